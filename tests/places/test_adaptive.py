"""Kd-tree, quadtree, overlaps and focal points."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from evenplace.errors import SettingError
from evenplace.photos import Photos
from evenplace.photos.geodesy import to_degrees, to_metres
from evenplace.places import (
    FocalGrid,
    Grid,
    Intersection,
    KdTree,
    Places,
    Quadtree,
    kdtree,
)
from tests import oracle_places as oracle

Floats = NDArray[np.float64]
POINTS = st.lists(
    st.tuples(st.integers(-500, 500), st.integers(-500, 500)), min_size=1, max_size=120, unique=True
)


def photos_at(positions: Any, zone: int = 10, heading: Any = None) -> Photos:
    east, north = np.asarray(positions, float).T
    return Photos.from_arrays(east=east, north=north, zone=zone, heading=heading)


def town(count: int, seed: int = 0) -> Photos:
    rng = np.random.default_rng(seed)
    crowd = rng.normal((551000, 4180000), 300, (count // 2, 2))
    spread = rng.uniform((548000, 4178000), (555000, 4183000), (count - count // 2, 2))
    return photos_at(np.concatenate([crowd, spread]), heading=rng.uniform(0, 360, count))


PARTITIONS: dict[str, Callable[[], Any]] = {
    "grid": lambda: Grid(cell=50, min_photos=2, groups=2),
    "kd-tree": lambda: KdTree(max_photos=20),
    "quadtree": lambda: Quadtree(max_photos=40, min_photos=3),
    "intersection": lambda: Intersection((Grid(cell=300), KdTree(max_photos=200))),
    "focal": lambda: FocalGrid(cell=100, min_photos=2),
    "focal by heading": lambda: FocalGrid("frontal", cell=200, min_photos=2, tolerance=60),
}


@pytest.mark.parametrize("name", PARTITIONS)
def test_every_partition_keeps_its_promises(name: str, tmp_path: Path) -> None:
    photos = town(3000)
    places = PARTITIONS[name]().partition(photos)
    assert len(places) > 10
    counted = np.bincount(places.labels[places.labels >= 0], minlength=len(places))
    np.testing.assert_array_equal(counted, places.counts)
    np.testing.assert_array_equal(places.locate(photos), places.labels)
    assert len(np.unique(places.ids, axis=0)) == len(places)
    order = np.random.default_rng(1).permutation(len(photos))
    shuffled = PARTITIONS[name]().partition(photos[order])
    np.testing.assert_array_equal(shuffled.ids, places.ids)
    np.testing.assert_array_equal(shuffled.labels, places.labels[order])
    places.write(tmp_path / "places.parquet")
    again = Places.read(tmp_path / "places.parquet")
    np.testing.assert_array_equal(again.labels, places.labels)
    np.testing.assert_array_equal(again.locate(photos), places.labels)
    np.testing.assert_allclose(again.areas, places.areas)
    assert again.rule.settings() == places.rule.settings()


@pytest.mark.parametrize("name", ["grid", "kd-tree", "quadtree", "intersection"])
def test_a_photo_lies_inside_the_outline_of_its_place(name: str) -> None:
    photos = town(2000)
    places = PARTITIONS[name]().partition(photos)
    inside = places.labels >= 0
    corners = places.outlines[places.labels[inside]]  # (N, 4, 2)
    points = photos.positions[inside]
    edge = np.roll(corners, -1, axis=1) - corners
    to = points[:, None] - corners
    turn = edge[..., 0] * to[..., 1] - edge[..., 1] * to[..., 0]
    assert np.all((turn >= -1e-3).all(axis=1) | (turn <= 1e-3).all(axis=1))
    assert np.all(places.areas > 0)


@settings(max_examples=60)
@given(POINTS, st.integers(1, 20))
def test_kd_tree_leaves_differ_by_a_factor_of_two_at_most(
    positions: list[tuple[int, int]], most: int
) -> None:
    # One step east a photo: on shared columns and rows a median cannot part them evenly.
    apart = [(east + number / 1000, north + number / 1000) for number, (east, north) in
             enumerate(positions)]  # fmt: skip
    places = KdTree(max_photos=most).partition(photos_at(apart))
    assert places.outside == 0
    assert places.counts.max() <= most
    if len(positions) > most:
        assert places.counts.min() >= (most + 1) // 2
        assert places.counts.max() <= 2 * places.counts.min() + (most % 2)


def test_a_large_kd_tree_splits_on_the_table_and_is_as_even() -> None:
    photos = town(300_000)
    assert len(photos) > kdtree.MANY
    places = KdTree(max_photos=100).partition(photos)
    assert places.counts.max() <= 100
    assert places.counts.min() >= 50
    np.testing.assert_array_equal(places.locate(photos), places.labels)
    corners = places.outlines[places.labels]
    assert np.all(photos.positions >= corners[:, 0] - 1e-6)
    assert np.all(photos.positions <= corners[:, 2] + 1e-6)
    west, south, east, north = places.rule.cuts.root  # type: ignore[attr-defined]
    np.testing.assert_allclose(places.areas.sum(), (east - west) * (north - south), rtol=1e-9)


def test_photos_on_one_spot_stay_together() -> None:
    places = KdTree(max_photos=3).partition(photos_at([(5, 5)] * 10 + [(9, 9), (20, 20)]))
    assert len(set(places.labels[:10].tolist())) == 1
    assert places.counts.sum() == 12


def test_one_photo_far_from_the_origin_is_one_leaf() -> None:
    photos = Photos.from_arrays(east=[551_250.3], north=[4_180_671.5], zone=10)
    assert KdTree(max_photos=3).partition(photos).labels.tolist() == [0]


def test_a_kd_tree_moves_the_imbalance_into_the_areas() -> None:
    photos = town(4000)
    kd, grid = KdTree(max_photos=40).partition(photos), Grid(cell=100).partition(photos)
    assert kd.counts.max() / kd.counts.min() < 3 < grid.counts.max() / grid.counts.min()
    assert kd.areas.max() / kd.areas.min() > 50 > grid.areas.max() / grid.areas.min()


def test_off_the_map_of_a_kd_tree_is_nowhere() -> None:
    places = KdTree(max_photos=5).partition(photos_at([(0, 0), (10, 10), (5, 4)]))
    assert places.locate(np.array([[5.0, 5.0], [11.0, 5.0], [-1.0, 0.0]])).tolist() == [0, -1, -1]


@settings(max_examples=60)
@given(POINTS, st.integers(1, 12), st.integers(1, 6))
def test_a_quadtree_is_the_recursion_it_says(
    positions: list[tuple[int, int]], most: int, levels: int
) -> None:
    places = Quadtree(max_photos=most, finest=10, levels=levels).partition(photos_at(positions))
    expected = oracle.quadtree(positions, 10, levels, most)
    assert [tuple(one) for one in places.ids.tolist()] == list(expected)
    labels = np.empty(len(positions), int)
    for place, rows in enumerate(expected.values()):
        labels[rows] = place
    assert places.labels.tolist() == labels.tolist()


def test_hges_three_levels_are_nested() -> None:
    photos = town(3000)
    fine = Quadtree(min_photos=5).hierarchy(photos, (500, 200, 50))
    coarse, middle = (Quadtree(most, 5).partition(photos) for most in (500, 200))
    assert len(coarse) < len(middle) < len(fine)
    inside = fine.labels >= 0
    for name, one in (("level_0", coarse), ("level_1", middle)):
        parent = fine.extra[name]
        assert (parent >= 0).all()
        np.testing.assert_array_equal(parent[fine.labels[inside]], one.labels[inside])
    with pytest.raises(SettingError, match="coarse to fine"):
        Quadtree().hierarchy(photos, (50, 200))


def test_fine_places_are_where_coarse_ones_overlap() -> None:
    photos = town(1000)
    grids = (Grid(cell=500), Grid(cell=700))
    coarse = [grid.partition(photos) for grid in grids]
    places = Intersection(grids).partition(photos)
    for row in range(len(photos)):
        parents = places.ids[places.labels[row]]
        assert parents.tolist() == [one.labels[row] for one in coarse]
    with pytest.raises(SettingError, match="two partitions"):
        Intersection((Grid(),))


def street(
    view: str, tolerance: float | None = None, heading: float = 0.0
) -> tuple[Photos, Places]:
    """Ten photos along a street that runs east, all in one cell."""
    along = [(1.0 + step, 7.0 + 0.01 * (step % 2)) for step in range(10)]
    photos = photos_at(along, heading=[heading] * 10)
    return photos, FocalGrid(view, tolerance=tolerance).partition(photos)


def test_focal_points_lie_across_the_street_and_along_it() -> None:
    _, lateral = street("lateral")
    np.testing.assert_allclose(lateral.rule.points, np.array([(5.5, 17.0)]), atol=0.05)  # type: ignore[attr-defined]
    _, frontal = street("frontal")
    np.testing.assert_allclose(frontal.rule.points, np.array([(15.5, 7.0)]), atol=0.05)  # type: ignore[attr-defined]


def test_photos_that_look_away_belong_to_no_place() -> None:
    assert len(street("lateral", 45, heading=0.0)[1]) == 1
    away = street("lateral", 45, heading=180.0)[1]
    assert len(away) == 0
    assert away.outside == 10


@given(st.floats(-80, 83), st.floats(-179.9, 179.9))
def test_degrees_survive_the_way_to_metres_and_back(latitude: float, longitude: float) -> None:
    metres = to_metres([latitude], [longitude])
    lat, lon = to_degrees(metres.east, metres.north, int(metres.zone[0]))
    np.testing.assert_allclose(lat, [latitude], atol=1e-5)
    np.testing.assert_allclose(lon, [longitude], atol=1e-4)


def test_norway_and_svalbard_have_their_own_zones() -> None:
    from evenplace.photos.geodesy import zone_of

    lat = [60.4, 60.4, 78.2, 78.2, -33.9, 85.0, float("nan")]
    lon = [5.3, 2.9, 15.6, 8.9, 18.4, 0.0, 0.0]
    assert zone_of(lat, lon).tolist() == [32, 31, 33, 31, -34, 0, 0]
