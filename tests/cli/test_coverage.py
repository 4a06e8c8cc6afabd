"""Where to photograph next: thin places first, gaps of a street, and what a run gets wrong."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from evenplace.places import Grid
from evenplace.places.wanted import Curve, HeldOut, find_gaps, find_wanted, fit_curve
from tests.cli.test_many import here, town, typed
from tests.drawn import photos_at
from tests.serve.conftest import make_run

__all__ = ["here", "town"]  # fixtures


def street(counts: list[int]) -> np.ndarray:
    """So many photos in every second cell of a street that goes east."""
    return np.array(
        [(40.0 * cell + 10, 10.0) for cell, many in enumerate(counts) for _ in range(many)]
    )


def test_the_thinnest_place_comes_first() -> None:
    photos = photos_at(street([9, 1, 6]))
    wanted = find_wanted(photos, Grid().partition(photos), most=8)
    assert (wanted[0].have, wanted[0].between) == (1, False)
    assert sum(one.photos for one in wanted) == 8
    assert [one.gain for one in wanted] == sorted((one.gain for one in wanted), reverse=True)


def test_a_gap_lies_between_two_places_and_nowhere_else() -> None:
    photos = photos_at(street([1, 1]))
    gaps = find_gaps(Grid().partition(photos))
    assert gaps.shape == (1, 3)
    near = photos_at(np.array([(10.0, 10.0), (30.0, 10.0)]))
    assert len(find_gaps(Grid().partition(near))) == 0


def test_a_place_that_is_asked_in_vain_is_wanted_more() -> None:
    photos = photos_at(street([5, 5]))
    places = Grid().partition(photos)
    held = HeldOut(np.repeat([0, 1], 10), np.full(20, 4.0), np.repeat([True, False], 10))
    wanted = [one for one in find_wanted(photos, places, 10, held) if not one.between]
    assert wanted[0].east == places.centres[1, 0]
    assert wanted[0].photos > wanted[-1].photos or len(wanted) == 1


def test_the_curve_is_the_one_the_answers_were_drawn_from() -> None:
    dice = np.random.default_rng(0)
    near = dice.integers(0, 20, 4000)
    right = dice.uniform(size=4000) < Curve(0.8, 4.0)(near)
    found = fit_curve(HeldOut(np.zeros(4000, int), near.astype(float), right))
    assert found.height == pytest.approx(0.8, abs=0.051)
    assert found.pace == pytest.approx(4.0, rel=0.25)


def test_a_run_and_photos_get_a_list_and_a_map(here: Path, town: Path) -> None:
    said = typed("coverage run --most 20 --out wanted.geojson --out wanted.html")
    assert "of its own photos asked about, each left out" in said
    features = json.loads(Path("wanted.geojson").read_text())["features"]
    assert sum(one["properties"]["photos"] for one in features) == 20
    assert [one["properties"]["rank"] for one in features] == list(range(1, len(features) + 1))
    assert "Where to photograph next" in Path("wanted.html").read_text()
    assert "has" in typed(f"coverage {town / 'database'} --most 5")
    assert "use .geojson, .html" in typed("coverage run --out wanted.csv", code=2)
    assert "wants no photos" in typed("coverage run --most 0", code=2)


def test_a_run_whose_photos_are_gone_says_so_and_counts_them(here: Path, town: Path) -> None:
    shutil.copytree(town / "database", "moved")
    make_run(Path("orphan"), Path("moved"))
    shutil.rmtree("moved")
    said = typed("coverage orphan --most 5")
    assert "none of its own photos can be opened; the list goes by their number" in said
    assert "nan" not in said


def test_a_list_of_nothing_is_refused_before_photos_are_asked_about(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "evenplace.run.leave_one_out.hold_out", lambda *_, **__: pytest.fail("asked")
    )
    assert "--most 0 wants no photos; use 1 or more" in typed("coverage run --most 0", code=2)


def test_a_list_that_exists_stays_unless_told_otherwise(here: Path) -> None:
    Path("mine.geojson").write_text("mine")
    said = typed("coverage run --most 5 --out mine.geojson", code=2)
    assert "mine.geojson exists; choose another name, or write it anew with --replace" in said
    assert "asked about" not in said, "refused before anything is asked"
    assert Path("mine.geojson").read_text() == "mine"
    typed("coverage run --most 5 --out mine.geojson --replace")
    assert json.loads(Path("mine.geojson").read_text())["features"]
