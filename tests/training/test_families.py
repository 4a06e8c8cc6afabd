"""Every way to train, on a town of dots: the loss falls, places get prototypes, draws repeat."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from evenplace.describe.describer import Describer
from evenplace.errors import PhotoError, SettingError
from evenplace.losses import multi_similarity
from evenplace.networks.checkpoints import load_checkpoint
from evenplace.networks.classifiers import LevelClassifiers
from evenplace.photos import Photos
from evenplace.training.batches import Step
from evenplace.training.loop import Trained, train
from evenplace.training.pair_objective import CliqueObjective
from evenplace.training.recipe import Recipe, cut_places, read_recipe, recipe_names
from evenplace.training.recipe_variants import corner, rehearsal, with_loss
from tests.training.town import draw_town, quick_run, small_network

PAIRS = ["loss.name=multi-similarity", "sampler=place", "photos_per_place=3", "batch=24"]
TRIPLETS = ["loss.name=triplet", "sampler=triplets", "batch=24", "negatives=4", "positive=15"]
MINING = ["mining.queries=24", "mining.refresh=12", "mining.negative=25"]
FAMILIES = {
    "groups": ["places.groups=2", "epochs=8"],
    "levels": ["places.rule=hierarchy", "places.max_photos=6"],
    "overlaps": ["places.rule=intersection", "places.max_photos=8", "places.cell=40"],
    "focal": ["places.rule=focal-grid", "places.cell=20", "places.tolerance=180"],
    "pairs": PAIRS,
    "pairs by photo": [*PAIRS, "sampler=photo"],
    "pairs by root": [*PAIRS, "sampler=sqrt", "epochs=16"],
    "contrastive": [*PAIRS, "loss.name=contrastive"],
    "cliques": [*PAIRS, "sampler=cliques"],
    "full mining": [*TRIPLETS, *MINING],
    "partial mining": [*TRIPLETS, *MINING, "pool=20"],
    "generations": [
        *TRIPLETS, *MINING, "loss.name=sare", "sampler=generations", "generations=2",
        "mining.positives=2", "epochs=10",
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Photos:
    return draw_town(tmp_path_factory.mktemp("town"))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loss_falls_and_every_place_gets_a_prototype(
    town: Photos, tmp_path: Path, family: str
) -> None:
    settings = ["epochs=6", "lr=0.003", "start=random", *FAMILIES[family]]
    trained = quick_run(town, tmp_path / "run", *settings)
    losses = np.array(trained.losses)
    assert np.isfinite(losses).all()
    half = len(losses) // 2
    if family == "cliques":  # as the network learns, batches are mined that are harder for it
        raw = quick_run(town, tmp_path / "raw", *settings, "lr=1e-9")
        assert _pair_loss(trained, town) < 0.97 * _pair_loss(raw, town)
    elif family == "generations":  # the second has a teacher's loss on top; untrained it stays
        assert losses[-1] < 0.96 * losses[half]
    else:
        assert losses[half:].mean() < losses[:half].mean()
    loaded = load_checkpoint(tmp_path / "run/model.safetensors").network
    joint = loaded.classifiers.joint()
    assert joint.shape == (trained.network.place_count, 16)
    assert float(joint.detach().norm(dim=1).min()) > 0


def _pair_loss(trained: Trained, town: Photos) -> float:
    """The loss of all photos in one batch: harder or easier batches do not touch it."""
    found = torch.from_numpy(Describer(trained.network).describe(town.paths).descriptors)
    labels = torch.from_numpy(cut_places(Recipe().places, town).labels)
    return float(multi_similarity(found, labels))


def test_a_pair_trained_place_is_the_mean_of_its_photos(town: Photos, tmp_path: Path) -> None:
    trained = quick_run(town, tmp_path / "run", *PAIRS, "cached=false", "augment=false")
    recipe = Recipe()
    labels = cut_places(recipe.places, town).labels
    found = torch.from_numpy(Describer(trained.network).describe(town.paths).descriptors)
    mean = F.normalize(found[torch.from_numpy(labels == 0)].sum(dim=0), dim=0)
    torch.testing.assert_close(
        trained.network.classifiers.joint()[0].detach(), mean, atol=1e-5, rtol=1e-4
    )


def test_levels_survive_the_checkpoint(town: Photos, tmp_path: Path) -> None:
    trained = quick_run(town, tmp_path / "run", *FAMILIES["levels"])
    loaded = load_checkpoint(tmp_path / "run/model.safetensors").network.classifiers
    own = trained.network.classifiers
    assert isinstance(loaded, LevelClassifiers)
    assert isinstance(own, LevelClassifiers)
    assert loaded.combine == "product"
    drawn = F.normalize(torch.randn(4, 16), dim=1)
    for level in range(len(own)):
        torch.testing.assert_close(loaded(drawn, level), own(drawn, level))
    torch.testing.assert_close(loaded.joint(), own.joint())


@pytest.mark.parametrize("settings", [["sampler=triplets"], ["loss.name=triplet", "sampler=place"]])
def test_sampler_and_loss_must_fit(settings: list[str]) -> None:
    if len(settings) == 1:
        with pytest.raises(SettingError, match="classifies"):
            Recipe().changed(settings)
    else:
        with pytest.raises(SettingError, match="hands out triplets"):
            Recipe().changed([*settings, "sampler=triplets", "loss.name=contrastive"])


def test_photos_far_from_each_other_teach_no_triplet(town: Photos, tmp_path: Path) -> None:
    with pytest.raises(PhotoError, match="no photo has another within"):
        quick_run(town, tmp_path / "run", *TRIPLETS, *MINING, "positive=0.001")


@pytest.mark.parametrize("name", [n for n in recipe_names() if "+" not in n])
def test_low_visit_bias_fits_every_method(name: str) -> None:
    recipe = read_recipe(name)
    biased = with_loss(recipe, "low-visit-bias")
    assert biased.loss.settings["beta"] == 0.25
    assert biased.loss.settings["kappa"] > 0
    kept = {k: v for k, v in recipe.loss.settings.items() if k not in ("beta", "kappa")}
    assert kept.items() <= biased.loss.settings.items()
    assert replace(biased, name=recipe.name, loss=recipe.loss) == recipe
    paper = with_loss(recipe, "low-visit-bias", "paper")
    assert paper.loss.settings["beta"] == 0.01


def test_low_visit_bias_changes_what_is_learnt(town: Photos, tmp_path: Path) -> None:
    recipe = Recipe().changed([*PAIRS, "sampler=photo", "epochs=2", "lr=0.003"])
    places = cut_places(recipe.places, town)
    plain = train(small_network(), town, places, recipe, tmp_path / "plain")
    biased = with_loss(recipe, "low-visit-bias")
    other = train(small_network(), town, places, biased, tmp_path / "biased")
    assert plain.losses != other.losses


@pytest.mark.slow
@pytest.mark.parametrize("name", ["salad", "boq", "cricavpr", "mixvpr", "sfrs", "eigenplaces"])
def test_small_recipes_can_be_rehearsed(name: str, tmp_path: Path) -> None:
    town = corner(draw_town(tmp_path / "town", 24, 45), count=16)
    recipe = rehearsal(read_recipe(f"{name}-small")).changed(["views=1", "mining.queries=8"])
    from evenplace.networks.network import build_network

    places = cut_places(recipe.places, town)
    trained = train(build_network(recipe.network), town, places, recipe, tmp_path / "run")
    assert len(trained.losses) == 2
    assert np.isfinite(trained.losses).all()


def test_photos_train_at_one_size_and_are_asked_at_another(
    town: Photos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenplace.networks.backbone import Backbone

    seen: list[tuple[bool, int, int]] = []
    trunk = Backbone.trunk

    def watched(self: Backbone, photos: torch.Tensor) -> torch.Tensor:
        seen.append((self.training, *photos.shape[-2:]))
        return trunk(self, photos)

    monkeypatch.setattr(Backbone, "trunk", watched)
    quick_run(town, tmp_path / "run", *PAIRS, "cached=false", "train_size=[48, 64]", "epochs=1")
    assert set(seen) == {(True, 48, 64), (False, 32, 32)}  # the means of places are asked for


def test_a_cache_keeps_one_size() -> None:
    with pytest.raises(SettingError, match="use cached=false"):
        Recipe().changed(["train_size=64"])


def test_a_batch_of_cliques_calls_each_clique_one_place(town: Photos, tmp_path: Path) -> None:
    """The labels that reach the loss, with cells of 10 m, smaller than a clique."""
    seen: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    plan = CliqueObjective.plan

    def watched(self: CliqueObjective, epoch: int, round_: int) -> list[Step]:
        steps = plan(self, epoch, round_)
        seen.extend((step.rows, step.labels) for step in steps[1::2])
        return steps

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CliqueObjective, "plan", watched)
        settings = ["sampler=cliques", "places.cell=10", "mining.reach=25", "epochs=1"]
        quick_run(town, tmp_path / "run", *PAIRS, *settings)
    assert seen
    for rows, labels in seen:
        spots = town.positions[rows]
        near = np.hypot(*(spots[:, None] - spots).transpose(2, 0, 1)) < 25
        assert np.array_equal(near, labels[:, None] == labels)


@pytest.mark.parametrize("rule", ["grid", "hierarchy", "focal-grid"])
def test_the_prior_of_classifiers_follows_the_photos_that_remain(rule: str, tmp_path: Path) -> None:
    town = draw_town(tmp_path / "town")
    settings = ["loss.name=low-visit-bias", "loss.beta=0.5", "loss.kappa=0.5", "cached=false",
                "epochs=2", f"places.rule={rule}", "places.max_photos=6"]  # fmt: skip
    recipe = Recipe().changed(settings)
    labels = cut_places(recipe.places, town).labels
    lonely = np.flatnonzero(np.bincount(labels)[labels] == 2)[:1]
    Path(town.paths[int(lonely[0])]).write_bytes(b"no picture")
    quick_run(town, tmp_path / "run", *settings, "places.tolerance=180", "start=random")
    first, second = (
        json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()
    )
    assert (first["skipped"], second["skipped"]) == (1, 1)
    if rule == "grid":
        whole, rest = np.bincount(labels), np.bincount(np.delete(labels, lonely))
        assert first["weights"] == pytest.approx(edges(whole), abs=1e-4)
        assert second["weights"] == pytest.approx(edges(rest), abs=1e-4)
    assert first["offsets"] != second["offsets"]


def edges(counts: NDArray[np.int64]) -> list[float]:
    """The least and the largest weight of Eq. 2, written out."""
    tilted = (counts / counts.sum()) ** -0.5
    weights = len(counts) * tilted / tilted.sum()
    return [float(weights.min()), float(weights.max())]


def test_a_broken_photo_is_left_out_of_the_start_too(tmp_path: Path) -> None:
    town = draw_town(tmp_path / "town")
    Path(town.paths[3]).write_bytes(b"no picture")
    trained = quick_run(town, tmp_path / "run", "cached=false", "start=principal")
    assert [one.path for one in trained.skipped] == [town.paths[3]]
