"""The small parts of the trainer, each by itself: rates, averages, devices, miners, crops."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from evenplace.describe.torch_engine import (
    choose_device,
    choose_precision,
    loss_scaler,
    lower_precision,
)
from evenplace.errors import SettingError
from evenplace.networks.convolutional import import_timm
from evenplace.photos.nearby import find_nearby
from evenplace.training.augment import Augmentation, augmented
from evenplace.training.batches import Step, epoch_bunches
from evenplace.training.distributed import Ranks
from evenplace.training.objective import Setup
from evenplace.training.pair_objective import (
    clique_batch,
    cut_cliques,
    place_centres,
    similar_places,
)
from evenplace.training.photo_source import cut_regions
from evenplace.training.recipe_variants import corner
from evenplace.training.schedule import Average, rate, warm_up
from evenplace.training.specs import MiningSpec, TrainingSpec
from evenplace.training.triplet_objective import mine_triplets
from evenplace.training.trunk_cache import ViewSettings
from tests.drawn import photos_at, unit


def test_rates_follow_their_names() -> None:
    cosine = TrainingSpec(epochs=10, final=0.2)
    assert rate(cosine, 0) == 1
    assert rate(cosine, 10) == pytest.approx(0.2)
    assert rate(TrainingSpec(epochs=10, schedule="linear", final=0.2), 5) == pytest.approx(0.6)
    steps = TrainingSpec(schedule="steps", milestones=(5, 10), factor=0.3)
    assert [rate(steps, epoch) for epoch in (4.9, 5, 11)] == pytest.approx([1, 0.3, 0.09])
    assert rate(TrainingSpec(schedule="constant"), 7) == 1


def test_a_plateau_lowers_the_rate_once_for_each_wait() -> None:
    spec = TrainingSpec(schedule="plateau", patience=2, factor=0.1)
    falling = [5.0, 4.0, 3.0]
    assert rate(spec, 3, falling) == 1
    assert rate(spec, 5, [*falling, 3.0, 3.1]) == 1
    assert rate(spec, 6, [*falling, 3.0, 3.1, 3.2]) == pytest.approx(0.1)
    assert rate(spec, 9, [*falling, *[3.0] * 6]) == pytest.approx(0.01)


@given(st.floats(0, 20), st.floats(0.1, 10))
def test_warm_up_never_falls_and_ends_at_one(epoch: float, warmup: float) -> None:
    spec = TrainingSpec(warmup=warmup)
    assert 0 < warm_up(spec, epoch) <= warm_up(spec, epoch + 0.1) <= 1
    assert warm_up(spec, warmup) == 1
    assert warm_up(TrainingSpec(warmup=0), 0) == 1


def test_an_average_forgets_where_it_began_and_steps_aside() -> None:
    weight = nn.Parameter(torch.zeros(3))
    average = Average({"w": weight}, 0.9)
    for value in range(1, 41):
        with torch.no_grad():
            weight.fill_(float(value))
        average.update()
    with average.applied():
        seen = float(weight.detach()[0])
    assert 25 < seen < 40
    assert float(weight.detach()[0]) == 40
    average.keep()
    assert float(weight.detach()[0]) == seen


def test_devices_that_are_not_there_are_refused_by_name() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("auto").type in ("cpu", "cuda", "mps")
    with pytest.raises(SettingError, match="did you mean 'cuda'"):
        choose_device("cuda0")
    if not torch.cuda.is_available():
        with pytest.raises(SettingError, match="torch finds no cuda here"):
            choose_device("cuda:1")


def test_half_precision_is_for_devices_that_gain() -> None:
    cpu = torch.device("cpu")
    assert choose_precision("auto", cpu) == torch.float32
    assert choose_precision("bfloat16", cpu) == torch.bfloat16
    assert not loss_scaler(cpu, torch.bfloat16).is_enabled()
    with lower_precision(cpu, torch.bfloat16):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16


def test_a_network_can_be_laid_out_on_a_device_without_memory() -> None:
    from evenplace.networks.methods import NetworkSpec
    from evenplace.networks.network import build_network

    with torch.device("meta"):
        network = build_network(NetworkSpec(), weights=None)
        seen = network(torch.empty(2, 3, 224, 224))
    assert network.device.type == "meta"
    assert seen.shape == (2, 512)


def test_bunches_are_of_one_place_and_repeat_the_rare() -> None:
    labels = np.repeat([0, 1, 2], [9, 4, 1])
    for sampler, expected in (("place", 3), ("photo", 3 + 1 + 1), ("sqrt", 3)):
        found = epoch_bunches(labels, sampler, np.random.default_rng(0), 4)
        assert len(found) == expected, sampler
        for bunch in found:
            assert len(bunch) == 4
            assert len(set(labels[bunch])) == 1
    by_photo = np.concatenate(epoch_bunches(labels, "photo", np.random.default_rng(0), 4))
    assert set(by_photo) == set(range(14))
    assert len(epoch_bunches(labels, "place", np.random.default_rng(0), 4, size=10)) == 10


def test_broken_photos_leave_a_step_without_a_trace() -> None:
    six = np.arange(6)
    step = Step(
        rows=six,
        views=six,
        labels=six,
        heads=np.zeros(6, np.int64),
        triplets=np.array([[0, 1, 2], [3, 4, 5]]),
        soft=np.array([[0, 1], [3, 4]]),
        shares=np.ones((2, 9), np.float32),
    )
    kept = step.only(np.array([True, False, True, True, True, True]))
    assert kept.rows.tolist() == [0, 2, 3, 4, 5]
    assert kept.triplets is not None
    assert kept.rows[kept.triplets].tolist() == [[3, 4, 5]]
    assert kept.soft is not None
    assert kept.rows[kept.soft].tolist() == [[3, 4]]
    parts = [step.rows[slice(*Ranks(rank, 4).edges(len(step)))] for rank in range(4)]
    assert np.concatenate(parts).tolist() == list(range(6))


def test_the_hardest_negatives_are_found_among_those_far_enough() -> None:
    """Against plain loops over every candidate."""
    spots = np.random.default_rng(1).uniform(0, 120, (60, 2))
    photos, seen = photos_at(spots), unit(60, 8, 2)
    near = find_nearby(photos, photos, 20.0)
    queries = np.flatnonzero(near.counts > 1)
    spec = MiningSpec(negatives=3, positives=2, positive=20.0, negative=40.0)
    mined = mine_triplets(
        queries, near, photos.positions, lambda rows: seen[rows], np.random.default_rng(0), spec
    )
    gaps = np.linalg.norm(spots[:, None] - spots, axis=2)
    for query, positives, negatives in zip(*list(vars(mined).values())[:3], strict=True):
        close = [r for r in range(60) if r != query and gaps[query, r] <= 20]
        best = sorted(close, key=lambda r: -seen[query] @ seen[r])
        far = [r for r in range(60) if gaps[query, r] > 40]
        hard = sorted(far, key=lambda r: -seen[query] @ seen[r])[:3]
        assert positives[0] == best[0]
        assert negatives.tolist() == hard


def test_partial_mining_describes_only_its_pool() -> None:
    photos, seen = photos_at(np.random.default_rng(1).uniform(0, 300, (200, 2))), unit(200, 8, 2)
    near = find_nearby(photos, photos, 20.0)
    queries = np.flatnonzero(near.counts > 1)[:5]
    looked: list[int] = []

    def look(rows: np.ndarray) -> np.ndarray:
        looked.extend(rows)
        return np.asarray(seen[rows])

    spec = MiningSpec(negatives=3, positive=20.0, pool=30)
    mined = mine_triplets(queries, near, photos.positions, look, np.random.default_rng(0), spec)
    assert len(mined) == 5
    assert len(looked) == len(set(looked)) <= 30 + 5 + int(near.counts[queries].sum())


def test_cliques_are_close_within_and_apart_from_each_other() -> None:
    dice = np.random.default_rng(0)
    spots = dice.uniform(0, 200, (150, 2))
    found = cut_cliques(spots, dice, 4, reach=25.0)
    assert len(found) > 5
    for clique in found:
        assert len(clique) == 4
        assert np.linalg.norm(spots[clique][:, None] - spots[clique], axis=2).max() < 25
    for one, clique in enumerate(found):
        for other in found[one + 1 :]:
            assert np.linalg.norm(spots[clique][:, None] - spots[other], axis=2).min() >= 25


def test_a_clique_is_one_place_though_cells_part_its_photos() -> None:
    """Cells of 10 m and a reach of 25: by cell most pairs of a clique would be negatives."""
    dice = np.random.default_rng(0)
    spots = dice.uniform(0, 250, (900, 2))
    cells = np.floor(spots / 10).astype(np.int64)
    labels = np.unique(cells, axis=0, return_inverse=True)[1].ravel()
    centres = place_centres(unit(900, 8, 0), labels)
    batch = clique_batch(centres, spots, labels, dice, places=8, bunch=4, alike=400, reach=25.0)
    names = [int(labels[clique[0]]) for clique in batch]
    assert len(batch) == 8
    assert len(set(names)) == 8
    photos, called = np.concatenate(batch), np.repeat(names, 4)
    for one, first in zip(photos, called, strict=True):  # plain loops: who is near is one place
        for other, second in zip(photos, called, strict=True):
            near = np.hypot(*(spots[one] - spots[other])) < 25
            assert near == (first == second)
    by_cell = labels[photos].reshape(-1, 4)
    assert np.mean([len(set(row)) > 1 for row in by_cell]) > 0.8


def test_clique_batches_hold_places_that_look_alike() -> None:
    dice = np.random.default_rng(0)
    labels = np.repeat(np.arange(40), 5)
    spots = np.stack([labels * 60.0, np.zeros(200)], axis=1) + dice.uniform(0, 10, (200, 2))
    kind = np.eye(4)[labels // 10]  # four looks of ten places each
    seen = (kind + 0.05 * dice.normal(size=kind.shape)).astype(np.float32)
    seen /= np.linalg.norm(seen, axis=1, keepdims=True)
    centres = place_centres(seen, labels)
    alike = [
        np.mean(similar_places(centres, seed, 6, dice) // 10 == seed // 10) for seed in range(40)
    ]
    assert np.mean(alike) > 0.8
    batch = clique_batch(centres, spots, labels, dice, places=5, bunch=4, alike=6, reach=25.0)
    places = [int(labels[clique[0]]) for clique in batch]
    assert len(set(places)) == len(places) == 5
    assert all(len(set(labels[clique])) == 1 for clique in batch)


def test_a_map_is_cut_in_nine_that_cover_it() -> None:
    maps = torch.arange(5 * 6).float().view(1, 1, 5, 6)
    regions = cut_regions(maps)
    assert len(regions) == 9
    assert torch.equal(regions[0], maps)
    assert [tuple(one.shape[2:]) for one in regions[1:5]] == [(3, 6), (3, 6), (5, 3), (5, 3)]
    quarters = torch.cat([one.flatten() for one in regions[5:]])
    assert set(quarters.tolist()) == set(range(30))


def test_randaugment_and_hue_follow_the_generator() -> None:
    photos = torch.randint(0, 255, (6, 3, 16, 16), dtype=torch.uint8)
    how = Augmentation(hue=0.5, randaugment=3)
    one, again, other = (
        augmented(photos, torch.Generator().manual_seed(seed), how) for seed in (1, 1, 2)
    )
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert 0 <= float(one.min()) <= float(one.max()) <= 1
    grey = torch.full((2, 3, 4, 4), 128, dtype=torch.uint8)
    turned = augmented(grey, torch.Generator(), Augmentation(crop=1.0, jitter=0.0, hue=0.5))
    torch.testing.assert_close(turned, grey / 255, atol=2e-3, rtol=0)


def test_randaugment_is_torchvisions_and_leaves_other_dice_alone() -> None:
    import_timm()
    v2 = pytest.importorskip("torchvision.transforms.v2")
    photos = torch.randint(0, 255, (5, 3, 24, 24), dtype=torch.uint8)
    before = torch.random.get_rng_state()
    ours = augmented(
        photos, torch.Generator().manual_seed(4), Augmentation(1.0, 0.0, 0.0, False, 2)
    )
    assert torch.equal(torch.random.get_rng_state(), before)
    drawn = torch.randint(2**62, (), generator=torch.Generator().manual_seed(4))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(drawn))
        jitter = v2.ColorJitter(0.0, 0.0, 0.0, 0.0)
        change = v2.RandAugment(2, interpolation=v2.InterpolationMode.BILINEAR)
        theirs = torch.stack([change(jitter(photo)) for photo in photos])
    assert torch.equal(ours, theirs / 255)


def test_colours_change_as_torchvision_changes_them() -> None:
    import_timm()
    change = pytest.importorskip("torchvision.transforms.v2.functional")
    photos = torch.randint(0, 255, (6, 3, 12, 16), dtype=torch.uint8)
    ours = augmented(photos, torch.Generator().manual_seed(2), Augmentation(crop=1.0, jitter=0.6))
    drawn = torch.rand(6, 3, 1, 1, 1, generator=torch.Generator().manual_seed(2)).view(6, 3)
    steps = (change.adjust_brightness, change.adjust_contrast, change.adjust_saturation)
    for photo, factors, seen in zip(photos / 255, 1 + (drawn * 2 - 1) * 0.6, ours, strict=True):
        for step, factor in zip(steps, factors.tolist(), strict=True):
            photo = step(photo, factor)
        torch.testing.assert_close(seen, photo, atol=1e-6, rtol=0)  # of float32's 6e-8, added up


def test_views_of_other_crops_have_other_files() -> None:
    names = {
        ViewSettings(2, how=how).name(1)
        for how in (None, Augmentation(flip=True), Augmentation(jitter=0.7), Augmentation(crop=0.6))
    }
    assert len(names) == 4
    assert ViewSettings(2, how=Augmentation()).name(1) == ViewSettings(2).name(1)


def test_a_corner_surrounds_the_crowd_and_takes_a_few_of_each_cell() -> None:
    dice = np.random.default_rng(0)
    spots = np.concatenate([dice.uniform(0, 900, (100, 2)), dice.uniform(500, 515, (50, 2))])
    photos = photos_at(spots)
    found = corner(photos, 20, count=40)
    assert len(found) == 40
    cells, counts = np.unique(np.floor(found.positions / 20), axis=0, return_counts=True)
    assert len(cells) >= 5
    assert counts.max() == 8, "the crowd is there, and does not fill the corner"
    middle = photos.positions[100:].mean(axis=0)
    assert np.hypot(*(found.positions - middle).T).max() < 400  # the town reaches 560 from there


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"schedule": "cosin"}, "did you mean 'cosine'"),
        ({"optimiser": "adm"}, "did you mean 'ad"),
        ({"validation": 1.5}, "at most 0.9"),
        ({"accumulate": 0}, "at least 1"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        TrainingSpec(**settings)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="use 10 and 25"):
        MiningSpec(positive=30.0)


def test_what_a_round_chose_is_not_chosen_again_until_a_later_one_is_reached(
    tmp_path: Path,
) -> None:
    setup: Any = SimpleNamespace(run=tmp_path, ranks=Ranks())
    first = Setup.choose(setup, 3, 1, lambda: {"queries": np.arange(3)})
    again = Setup.choose(setup, 3, 1, lambda: {"queries": np.zeros(3, np.int64)})
    assert first["queries"].tolist() == again["queries"].tolist() == [0, 1, 2]
    Setup.forget(setup, 3, 1)
    assert Setup.choose(setup, 3, 1, dict)["queries"].tolist() == [0, 1, 2]
    Setup.forget(setup, 3, 2)
    assert Setup.choose(setup, 3, 1, dict) == {}
