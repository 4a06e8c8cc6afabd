"""Classifiers: one softmax a group, or one a level, and joint scores over all places."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from evenplace.errors import SettingError
from evenplace.networks.classifiers import GroupClassifiers, LevelClassifiers, combine_levels
from tests import oracle_models as oracle


def test_joint_prototypes_stand_in_the_order_of_the_places() -> None:
    classifiers = GroupClassifiers([1, 0, 1, 0], dim=3)
    rows = F.normalize(torch.randn(4, 3), dim=1)
    classifiers.set_prototypes(rows)
    assert torch.allclose(classifiers.joint(), rows, atol=1e-6)
    assert len(classifiers) == 2


def test_a_group_scores_only_its_own_places() -> None:
    classifiers = GroupClassifiers([1, 0, 1, 0], dim=3)
    descriptors = F.normalize(torch.randn(5, 3), dim=1)
    joint = descriptors @ classifiers.joint().T
    assert torch.allclose(classifiers(descriptors, 1), joint[:, [0, 2]], atol=1e-6)


def test_raw_prototypes_keep_their_length() -> None:
    classifiers = GroupClassifiers([0, 0], dim=2)
    classifiers.prototypes[0].data = torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    assert classifiers.joint(raw=True).norm(dim=1).tolist() == [3.0, 1.0]
    assert classifiers.joint().norm(dim=1).tolist() == [1.0, 1.0]


def test_raw_prototypes_let_a_long_one_win_where_cosines_do_not() -> None:
    classifiers = GroupClassifiers([0, 1], dim=2)
    classifiers.prototypes[0].data = torch.tensor([[9.0, 0.0]])
    classifiers.prototypes[1].data = torch.tensor([[0.0, 1.0]])
    descriptor = F.normalize(torch.tensor([[0.5, 1.0]]), dim=1)
    assert int((descriptor @ classifiers.joint().T).argmax()) == 1
    assert int((descriptor @ classifiers.joint(raw=True).T).argmax()) == 0


@given(st.integers(0, 10_000), st.sampled_from(["product", "sum"]))
def test_levels_are_combined_as_in_the_loops(seed: int, combine: str) -> None:
    generator = torch.Generator().manual_seed(seed)
    parents = [[0, 0, 1, 1, 1], [0, 1, 2, 1, 0]]
    logits = [torch.randn(1, n, generator=generator, dtype=torch.float64) for n in (2, 3)]
    found = combine_levels(logits, torch.tensor(parents), combine)[0]
    wanted = oracle.level_scores([level[0].tolist() for level in logits], parents, combine)
    assert found.tolist() == pytest.approx(wanted, rel=1e-9)


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_the_sum_of_prototypes_ranks_as_the_product_of_probabilities(seed: int) -> None:
    torch.manual_seed(seed)
    classifiers = LevelClassifiers([[0, 0, 1, 1], [0, 1, 2, 3], [1, 0, 0, 1]], dim=6)
    descriptors = F.normalize(torch.randn(3, 6), dim=1)
    with torch.no_grad():
        product = classifiers.scores(descriptors, scale=10.0)
        quick = (10.0 * descriptors @ classifiers.joint().T).softmax(dim=1)
    assert torch.allclose(product, quick, atol=1e-5)


def test_a_sum_lets_one_sure_level_vouch_where_a_product_does_not() -> None:
    parents = torch.tensor([[0, 1, 2], [0, 1, 2]])
    sure, torn = torch.tensor([[9.0, 0.0, 0.0]]), torch.tensor([[-9.0, 0.0, 1.0]])
    product = combine_levels([sure, torn], parents, "product")
    vouched = combine_levels([sure, torn], parents, "sum")
    assert vouched[0, 0] > 0.45
    assert product[0, 0] < 0.1 or product.argmax() != 0


def test_levels_refuse_what_they_cannot_use() -> None:
    with pytest.raises(SettingError, match="must be \\(levels, places\\)"):
        LevelClassifiers([0, 1, 2], dim=3)  # type: ignore[list-item]
    with pytest.raises(SettingError, match="did you mean 'product'"):
        LevelClassifiers([[0, 1]], dim=3, combine="produkt")
