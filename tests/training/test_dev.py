"""A rehearsal has several places to tell apart, whatever the recipe asks of a place."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from evenplace.cli import app
from evenplace.photos import Photos, read_photos
from evenplace.training.recipe import cut_places, read_recipe, recipe_names
from evenplace.training.recipe_variants import corner, rehearsal
from tests.drawn import draw_photos


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Photos]:
    """A long tail: half of the photos in one cell, the others over a quarter of a kilometre."""
    folder, dice = tmp_path_factory.mktemp("town"), np.random.default_rng(0)
    spots = np.concatenate([dice.uniform(101, 119, (150, 2)), dice.uniform(0, 250, (150, 2))])
    draw_photos(folder, spots)
    return folder, read_photos(folder)


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_finds_several_places_in_its_corner(
    town: tuple[Path, Photos], name: str
) -> None:
    recipe = rehearsal(read_recipe(name))
    chosen = corner(town[1], recipe.places.cell)
    places = cut_places(recipe.places, chosen)
    assert 2 <= len(chosen) <= 96
    assert len(places) >= 4
    assert places.counts.max() > 1, "some place has several photos"


def stop(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dim"),
    [("dapr-m", 32), ("dc-small", 32), ("cosplace-small", 32), ("anyloc-small", 3584)],
)
def test_a_rehearsal_is_typed(
    town: tuple[Path, Photos], tmp_path: Path, name: str, dim: int
) -> None:
    words = ["train", str(town[0]), "--run", str(tmp_path / "run"), "--method", name, "--dev"]
    for setting in ("image_size=64", f"dim={dim}", "verify=0"):  # the look has tests of its own
        words += ["--set", setting]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert f"{name}: " in done.output


def test_stopping_says_that_the_same_command_goes_on(
    town: tuple[Path, Photos], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenplace.training.loop.train", stop)
    done = CliRunner().invoke(app, ["train", str(town[0]), "--run", str(tmp_path / "run")])
    assert done.exit_code == 130
    assert "the same command goes on" in done.output
