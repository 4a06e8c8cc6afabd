"""Classifiers: one softmax a group, or one a level, and joint scores over all places."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from evenplace.errors import SettingError
from evenplace.networks.classifiers import GroupClassifiers, LevelClassifiers
from evenplace.retrieval.level_scores import Levels
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


PARENTS = [[0, 0, 1, 1, 1], [0, 1, 2, 1, 0]]


def scores(classifiers: LevelClassifiers, descriptors: Tensor, scale: float) -> Tensor:
    """What a place scores when it is asked for: the sum by levels, the product by `joint`."""
    if classifiers.combine == "product":
        logits = scale * descriptors @ classifiers.joint().detach().T
    else:
        places = np.arange(classifiers.place_count)
        none = np.zeros((len(places), descriptors.shape[1]), np.float32)
        found = Levels.of(classifiers).scores(descriptors.numpy(), none, places, scale)
        logits = scale * torch.from_numpy(found)
    return logits.softmax(dim=1)


@settings(deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["product", "sum"]))
def test_levels_are_combined_as_in_the_loops(seed: int, combine: str) -> None:
    torch.manual_seed(seed)
    classifiers = LevelClassifiers(PARENTS, dim=6, combine=combine)
    descriptor = F.normalize(torch.randn(1, 6), dim=1)
    logits = [(10 * classifiers(descriptor, level))[0].tolist() for level in (0, 1)]
    wanted = oracle.level_scores(logits, PARENTS, combine)
    assert scores(classifiers, descriptor, 10.0)[0].tolist() == pytest.approx(wanted, abs=1e-5)


def test_a_sum_lets_one_sure_level_vouch_where_a_product_does_not() -> None:
    found = {}
    for combine in ("product", "sum"):
        classifiers = LevelClassifiers([[0, 1, 2], [0, 1, 2]], dim=3, combine=combine)
        sure, torn = classifiers.prototypes
        sure.data = torch.eye(3)  # cosines 1, 0, 0
        torn.data = torch.tensor([[-1.0, 0, 0], [0, 1, 0], [0.11, 0.99, 0]])
        found[combine] = scores(classifiers, torch.tensor([[1.0, 0, 0]]), 9.0)[0]
    assert found["sum"][0] > 0.45
    assert found["product"][0] < 0.4
    assert found["product"].argmax() != 0


def test_levels_refuse_what_they_cannot_use() -> None:
    with pytest.raises(SettingError, match="must be \\(levels, places\\)"):
        LevelClassifiers([0, 1, 2], dim=3)  # type: ignore[list-item]
    with pytest.raises(SettingError, match="did you mean 'product'"):
        LevelClassifiers([[0, 1]], dim=3, combine="produkt")
