"""Training from files: it learns, it resumes as if it had never stopped, it leaves no half run."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from evenplace.errors import PlaceError, RunError, SettingError
from evenplace.networks.checkpoints import load_checkpoint
from evenplace.networks.methods import NetworkSpec
from evenplace.networks.network import PlaceNetwork, build_network
from evenplace.photos import Photos, read_photos
from evenplace.places import Grid
from evenplace.training.augment import Augmentation
from evenplace.training.loop import Trained, train
from evenplace.training.recipe import Recipe
from evenplace.training.trunk_cache import ViewSettings, cache_trunk
from tests.drawn import draw_photos

SPEC = NetworkSpec(image_size=32, dim=16, cut=8)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Photos:
    folder = tmp_path_factory.mktemp("town")
    spots = np.random.default_rng(0).uniform(0, 80, (48, 2))
    draw_photos(folder, spots)
    return read_photos(folder)


def network() -> PlaceNetwork:
    return build_network(SPEC)


def run_training(town: Photos, run: Path, *settings: str) -> Trained:
    recipe = Recipe().changed(["epochs=4", "batch=16", "lr=0.001", *settings])
    return train(network(), town, Grid(20).partition(town), recipe, run)


@pytest.mark.parametrize("mode", ["cached=true", "cached=false"])
def test_the_loss_falls(town: Photos, tmp_path: Path, mode: str) -> None:
    losses = run_training(town, tmp_path / "run", mode, "start=random", "epochs=6").losses
    assert len(losses) == 6
    assert np.isfinite(losses).all()
    assert losses[-1] < 0.8 * losses[0]


def test_a_stopped_run_goes_on_as_if_unbroken(town: Photos, tmp_path: Path) -> None:
    whole = run_training(town, tmp_path / "whole")

    class KilledError(Exception):
        pass

    def stop_after_two(what: str) -> object:
        def progress(done: int, total: int) -> None:
            if what == "training" and done > total * 0.6:
                raise KilledError

        return progress

    recipe = Recipe().changed(["epochs=4", "batch=16", "lr=0.001"])
    places = Grid(20).partition(town)
    with pytest.raises(KilledError):
        train(network(), town, places, recipe, tmp_path / "two", announce=stop_after_two)  # type: ignore[arg-type]
    resumed = train(network(), town, places, recipe, tmp_path / "two")
    assert resumed.losses == pytest.approx(whole.losses, rel=1e-6)
    for name, tensor in whole.network.state_dict().items():
        torch.testing.assert_close(resumed.network.state_dict()[name], tensor, msg=name)


def test_groups_take_turns(town: Photos, tmp_path: Path) -> None:
    places = Grid(20, groups=2).partition(town)
    recipe = Recipe().changed(["epochs=4", "batch=8"])
    trained = train(network(), town, places, recipe, tmp_path / "run")
    assert len(trained.network.classifiers) == 4
    joint = trained.network.classifiers.joint()
    assert joint.shape == (len(places), 16)
    np.testing.assert_allclose(joint.detach().norm(dim=1), 1, rtol=1e-5)


def test_a_checkpoint_gives_the_same_descriptors_and_places(town: Photos, tmp_path: Path) -> None:
    trained = run_training(town, tmp_path / "run", "epochs=1")
    loaded = load_checkpoint(tmp_path / "run" / "model.safetensors")
    places = Grid(20).partition(town)
    np.testing.assert_array_equal(loaded.places["ids"], places.ids)
    np.testing.assert_array_equal(loaded.places["counts"], places.counts)
    photos = torch.randint(0, 255, (2, 3, 32, 32), dtype=torch.uint8)
    with torch.no_grad():
        torch.testing.assert_close(loaded.network(photos), trained.network.eval()(photos))
    assert loaded.recipe["training"]["epochs"] == 1
    assert loaded.network.scale == trained.network.scale == 30.0
    other = run_training(town, tmp_path / "other", "epochs=1", "loss.scale=12.5")
    assert load_checkpoint(tmp_path / "other/model.safetensors").network.scale == 12.5
    assert other.network.scale == 12.5


def test_the_log_can_be_plotted(town: Photos, tmp_path: Path) -> None:
    run_training(town, tmp_path / "run")
    lines = [json.loads(x) for x in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [0, 1, 2, 3]
    assert all(line["loss"] > 0 for line in lines)


def test_a_run_of_another_recipe_is_not_taken_over(town: Photos, tmp_path: Path) -> None:
    run_training(town, tmp_path / "run", "epochs=1")
    with pytest.raises(RunError, match="another recipe"):
        run_training(town, tmp_path / "run", "epochs=1", "lr=0.01")


def test_one_place_cannot_be_told_apart(town: Photos, tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="1 place"):
        train(network(), town, Grid(5000).partition(town), Recipe(), tmp_path / "run")


def test_a_photo_that_cannot_be_read_is_listed_not_replaced(tmp_path: Path) -> None:
    draw_photos(tmp_path / "p", np.random.default_rng(0).uniform(0, 60, (20, 2)))
    broken = sorted((tmp_path / "p").iterdir())[3]
    broken.write_bytes(broken.read_bytes()[:200])
    photos = read_photos(tmp_path / "p")
    trained = run_training(photos, tmp_path / "run", "epochs=1")
    assert [Path(one.path).name for one in trained.skipped] == [broken.name]


def test_the_cache_follows_weights_photos_and_views(town: Photos, tmp_path: Path) -> None:
    first = network()
    paths = town.paths[:8]

    def files() -> int:
        return len(list(tmp_path.glob("*.npy")))

    cache_trunk(first, paths, ViewSettings(2), tmp_path)
    assert files() == 2
    cache_trunk(first, paths, ViewSettings(2), tmp_path)
    assert files() == 2
    cache_trunk(first, paths, ViewSettings(2, how=Augmentation(flip=True)), tmp_path)
    assert files() == 3, "the plain view is shared, the flipped one is new"
    with torch.no_grad():
        next(iter(first.backbone.stages[0].parameters())).mul_(1.01)
    cache_trunk(first, paths, ViewSettings(1), tmp_path)
    assert files() == 4
    Path(paths[0]).touch()
    cache_trunk(first, paths, ViewSettings(1), tmp_path)
    assert files() == 5


def test_cached_maps_are_what_the_trunk_gives(town: Photos, tmp_path: Path) -> None:
    from evenplace.describe.decoding import picture_pixels

    model = network().eval()
    cache = cache_trunk(model, town.paths, ViewSettings(1), tmp_path)
    rows = np.array([5, 0, 17])
    pixels = torch.from_numpy(np.stack([picture_pixels(town.paths[row], 32) for row in rows]))
    torch.testing.assert_close(
        cache.plain(rows), model.backbone.trunk(pixels), atol=2e-2, rtol=2e-3
    )


def test_some_of_the_photos_are_found_in_the_cache_of_all(town: Photos, tmp_path: Path) -> None:
    trunk, rows = network().eval(), np.array([7, 3, 30])
    whole = cache_trunk(trunk, town.paths, ViewSettings(), tmp_path)
    files = sorted(tmp_path.iterdir())
    some = cache_trunk(trunk, town[rows].paths, ViewSettings(), tmp_path)
    assert sorted(tmp_path.iterdir()) == files
    torch.testing.assert_close(some.plain(np.arange(3)), whole.plain(rows), atol=0, rtol=0)
    mixed = cache_trunk(trunk, town[rows].paths, ViewSettings(2), tmp_path)
    torch.testing.assert_close(mixed.plain(np.arange(3)), whole.plain(rows), atol=0, rtol=0)
    assert len(mixed.maps[1]) == 3


def test_a_photo_changed_since_is_not_taken_from_the_cache_of_all(
    town: Photos, tmp_path: Path
) -> None:
    draw_photos(tmp_path / "photos", np.random.default_rng(1).uniform(0, 80, (4, 2)))
    photos, trunk = read_photos(tmp_path / "photos"), network().eval()
    whole = cache_trunk(trunk, photos.paths, ViewSettings(), tmp_path / "cache")
    Path(photos.paths[1]).write_bytes(Path(town.paths[0]).read_bytes())
    some = cache_trunk(trunk, photos.paths[1:2], ViewSettings(), tmp_path / "cache")
    assert not torch.equal(some.plain(np.array([0])), whole.plain(np.array([1])))


def test_places_start_at_the_mean_of_their_photos(town: Photos, tmp_path: Path) -> None:
    trained = run_training(town, tmp_path / "run", "epochs=0")
    places = Grid(20).partition(town)
    cache = cache_trunk(trained.network, town.paths, ViewSettings(1), tmp_path / "c")
    with torch.no_grad():
        descriptors = trained.network.describe(cache.plain(np.arange(len(town))))
        mean = descriptors[torch.from_numpy(places.labels == 0)].sum(dim=0)
        prototype = trained.network.classifiers.joint()[0]
    torch.testing.assert_close(prototype, mean / mean.norm(), atol=1e-5, rtol=1e-4)


def test_pooling_once_trains_as_pooling_in_every_batch(town: Photos, tmp_path: Path) -> None:
    """A mean has nothing to learn, so keeping it changes nothing but float16's rounding, 5e-4."""
    spec = NetworkSpec(image_size=32, dim=16, cut=9, aggregator="mean")
    recipe = Recipe(network=spec).changed(["epochs=3", "batch=16", "lr=0.001", "views=1"])
    places = Grid(20).partition(town)
    every, once = (
        train(build_network(spec), town, places, recipe.changed([f"projection_only={how}"]),
              tmp_path / how)
        for how in ("false", "true")
    )  # fmt: skip
    np.testing.assert_allclose(every.losses, once.losses, rtol=2e-3)
    assert every.losses[-1] < 0.98 * every.losses[0]


def test_clusters_stay_where_they_started_when_only_the_projection_trains(
    town: Photos, tmp_path: Path
) -> None:
    spec = NetworkSpec(image_size=64, dim=16, cut=6, layer=5, aggregator="netvlad")
    recipe = Recipe(network=spec).changed(["batch=16", "lr=0.01", "views=1"])
    places = Grid(20).partition(town)
    before, after = (
        train(build_network(spec), town, places,
              recipe.changed([f"epochs={epochs}", "projection_only=true"]), tmp_path / str(epochs))
        .network.state_dict()
        for epochs in (0, 2)
    )  # fmt: skip
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert {"aggregator.centres", "aggregator.score.weight"} <= same
    assert "projection.weight" not in same
    assert not list((tmp_path / "2").glob("tmp*"))


def test_pooling_once_needs_a_frozen_network_and_one_view(town: Photos, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="use views=1"):
        Recipe().changed(["projection_only=true", "views=2"])
    with pytest.raises(SettingError, match="use cut=9"):
        run_training(town, tmp_path / "run", "projection_only=true", "views=1")
