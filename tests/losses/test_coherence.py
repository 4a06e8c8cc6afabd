"""Weights from how alike the photos of a place look."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from evenplace.errors import SettingError
from evenplace.losses import (
    LowVisitBias,
    class_weights,
    coherence_weights,
    draw_frequencies,
    place_coherence,
)
from tests import oracle_losses as oracle

LABELS = [0, 0, 0, 1, 1, 3, -1, 1, 1]
labels = torch.tensor(LABELS)


def descriptors() -> Tensor:
    return torch.randn(len(LABELS), 4, generator=torch.Generator().manual_seed(6))


def frequencies() -> Tensor:
    return draw_frequencies(7, 4, torch.Generator().manual_seed(0))


def test_similarity_equals_the_loops() -> None:
    found = place_coherence(descriptors(), labels)
    z = descriptors().tolist()
    for place in (0, 1):
        expected = oracle.similarity_coherence(z, LABELS, place)
        assert found[place].item() == pytest.approx(expected, abs=1e-6)


def test_amplitude_equals_the_loops() -> None:
    found = place_coherence(descriptors(), labels, measure="amplitude", frequencies=frequencies())
    z = F.normalize(descriptors()).tolist()
    for place in (0, 1):
        expected = oracle.amplitude_coherence(z, LABELS, place, frequencies().tolist())
        assert found[place].item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("measure", ["similarity", "amplitude"])
def test_coherence_does_not_depend_on_how_many_photos_there_are(measure: str) -> None:
    draw = torch.Generator().manual_seed(0)
    scatter = F.normalize(torch.randn(40_000, 8, generator=draw) + 0.6)
    y = torch.cat([torch.arange(10_000).repeat_interleave(2), torch.full((20_000,), 10_000)])
    found = place_coherence(
        scatter,
        y,
        measure="amplitude" if measure == "amplitude" else "similarity",
        frequencies=draw_frequencies(64, 8, torch.Generator().manual_seed(1)),
    )
    # Pairs of photos on average (of the square, which is what is unbiased) as 20,000 photos.
    power = 2 if measure == "amplitude" else 1
    if measure == "similarity":
        assert found[:10_000].mean().item() == pytest.approx(found[10_000].item(), abs=0.02)
    else:
        pairs = found[:10_000].square().mean().item()
        assert pairs == pytest.approx(found[10_000].item() ** power, abs=0.05)


def test_equal_photos_are_wholly_coherent_and_a_lone_photo_is_average() -> None:
    z = torch.tensor([[1.0, 0.0], [2.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    found = place_coherence(z, torch.tensor([0, 0, 1, 1, 2]), places=5)
    assert found.tolist() == pytest.approx([1.0, 0.0, 0.5, 0.5, 0.5])


def test_photos_that_disagree_entirely_weigh_twenty_times_at_most() -> None:
    z = torch.tensor([[1.0, 0.0], [2.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    y = torch.tensor([0, 0, 1, 1, 2])
    weights = coherence_weights(z, y)  # of coherences 1, 0 and their mean
    assert weights.tolist() == pytest.approx([3 / 23, 60 / 23, 6 / 23])
    assert coherence_weights(z, y, strength=2.0)[0].item() == pytest.approx(3 / 405)


def test_frequencies_are_drawn_as_wide_as_said() -> None:
    draws = [torch.Generator().manual_seed(3) for _ in range(3)]
    plain = torch.randn(5, 2, generator=draws[0])
    assert torch.equal(draw_frequencies(5, 2, draws[1]), plain)
    assert torch.equal(draw_frequencies(5, 2, draws[2], bandwidth=2.5), 2.5 * plain)


def test_lone_photos_everywhere_weigh_alike() -> None:
    assert coherence_weights(torch.eye(3), torch.tensor([0, 1, 2])).tolist() == [1.0, 1.0, 1.0]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(-1, 6), min_size=2, max_size=30), st.floats(0, 2))
def test_weights_average_to_one_and_favour_disagreement(y: list[int], strength: float) -> None:
    z = torch.randn(len(y), 5, generator=torch.Generator().manual_seed(len(y)))
    weights = coherence_weights(z, torch.tensor(y), places=7, strength=strength)
    assert float(weights.mean()) == pytest.approx(1.0, rel=1e-5)
    order = place_coherence(z, torch.tensor(y), places=7).argsort()
    assert bool((weights[order].diff() <= 1e-5).all())


def test_they_replace_or_multiply_the_count_prior() -> None:
    counts = [3, 4, 1, 1]
    loss = LowVisitBias(counts, beta=0.5)
    found = coherence_weights(descriptors(), labels, places=4)
    loss.update_weights(found * class_weights(counts, 0.5))
    assert loss.weights is not None
    assert torch.allclose(loss.weights, found * class_weights(counts, 0.5))


def test_half_precision_descriptors_are_widened() -> None:
    half = coherence_weights(descriptors().half(), labels)
    assert half.dtype == torch.float32
    assert torch.allclose(half, coherence_weights(descriptors(), labels), rtol=0.02)


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(SettingError, match="labels reach 3 for 3 places; pass places= above"):
        place_coherence(descriptors(), labels, places=3)
    with pytest.raises(SettingError, match="labels reach nothing"):
        place_coherence(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64))
    with pytest.raises(SettingError, match="needs frequencies"):
        place_coherence(descriptors(), labels, measure="amplitude")
    with pytest.raises(SettingError, match="did you mean 'amplitude'"):
        place_coherence(descriptors(), labels, measure="amplitudes")  # type: ignore[arg-type]
