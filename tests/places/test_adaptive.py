"""Kd-tree, quadtree, overlaps and focal points."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from evenplace.errors import PlaceError, SettingError
from evenplace.photos import Photos
from evenplace.photos.geodesy import to_degrees, to_metres
from evenplace.places import (
    FocalGrid,
    Given,
    Grid,
    GridGroups,
    Intersection,
    KdTree,
    Places,
    Quadtree,
    kdtree,
)
from evenplace.places.split_tree import Cuts
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


@settings(max_examples=40)
@given(POINTS, st.integers(1, 9))
def test_a_kd_tree_is_the_recursion_it_says(positions: list[tuple[int, int]], most: int) -> None:
    places = KdTree(max_photos=most).partition(photos_at(positions))
    expected = oracle.kd_tree(positions, places.rule.cuts.lattice.step, most)  # type: ignore[attr-defined]
    assert places.ids[:, 0].tolist() == list(expected)
    labels = np.empty(len(positions), int)
    for place, rows in enumerate(expected.values()):
        labels[rows] = place
    assert places.labels.tolist() == labels.tolist()


def test_a_table_of_counts_is_split_at_the_edge_nearest_the_median() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, (12, 12)) * (rng.random((12, 12)) < 0.4)
    sums = np.zeros((13, 13), np.int64)
    sums[1:, 1:] = counts.cumsum(axis=0).cumsum(axis=1)
    corners = np.sort(rng.integers(0, 13, (400, 2, 2)), axis=1).reshape(400, 4)
    bins = corners[(corners[:, 2] > corners[:, 0]) & (corners[:, 3] > corners[:, 1])]
    axes, ats, good = kdtree._near_medians(sums, bins, 1)
    assert good.any()
    assert not good.all()
    for box, axis, at, near in zip(bins.tolist(), axes, ats, good, strict=True):
        west, south, east, north = box
        inside = counts[west:east, south:north]
        longer = 0 if east - west >= north - south else 1
        before = [0, *inside.sum(axis=1 - longer).cumsum().tolist()]  # by edge
        total = before[-1]
        low = max(edge for edge in range(len(before) - 1) if 2 * before[edge] <= total)
        edge = low if total - 2 * before[low] <= 2 * before[low + 1] - total else low + 1
        smaller = min(before[edge], total - before[edge])
        assert (axis, at) == (longer, box[longer] + edge)
        assert near == (smaller > 2 and smaller >= 0.3 * total)


def test_a_bin_is_the_highest_bits_of_both_axes() -> None:
    east, north = (0b101 << 20) + 77, (0b011 << 20) + 5  # of 23 bits
    code = np.array([(east << 23) | north])
    assert kdtree._bins(code, 3).tolist() == [0b101_011]
    assert kdtree._bins(code, 0).tolist() == [0]


def test_the_trunk_stops_growing_when_its_cells_are_used_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sums = 5 * np.outer(np.arange(17), np.arange(17))  # five photos to a bin
    assert len(kdtree._split_levels(sums, 5)[1]) == 64
    monkeypatch.setattr(kdtree, "CELLS", 16)
    splits, nodes, boxes = kdtree._split_levels(sums, 5)
    assert sorted(nodes.tolist()) == list(range(16, 32))
    assert sorted(boxes.tolist()) == sorted(
        [4 * i, 4 * j, 4 * i + 4, 4 * j + 4] for i in range(4) for j in range(4)
    )
    assert [len(part[0]) for part in splits] == [1, 2, 4, 8, 0]


def test_a_tree_knows_which_of_its_nodes_are_leaves() -> None:
    cuts = Cuts((0.0, 0.0, 8.0, 8.0), np.array([1, 3]), np.array([0, 1], np.int8), np.array([4, 4]))
    assert cuts.everything.tolist() == [1, 2, 3, 6, 7]
    assert cuts.leaves.tolist() == [2, 6, 7]
    assert cuts.leaf_of.tolist() == [-1, 0, -1, 1, 2]
    again = Cuts.from_plain(cuts.to_plain())
    assert again == cuts
    assert hash(again) == hash(cuts)
    assert cuts != Cuts(cuts.root, cuts.nodes, cuts.axes, cuts.at + 1)


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
    edges = np.array([[0.0, 0.0], [10.0, 10.0], [0.0, 10.0], [10.0, 0.0]])
    assert places.locate(edges).tolist() == [0] * 4
    over = [[-0.01, 0.0], [0.0, -0.01], [10.01, 0.0], [0.0, 10.01]]
    assert places.locate(np.array(over)).tolist() == [-1] * 4


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
    for wrong in ((50, 200), ()):
        with pytest.raises(SettingError, match="coarse to fine"):
            Quadtree().hierarchy(photos, wrong)


def test_fine_places_are_where_coarse_ones_overlap() -> None:
    photos = town(1000)
    grids = (Grid(cell=500), Grid(cell=700))
    coarse = [grid.partition(photos) for grid in grids]
    places = Intersection(grids).partition(photos)
    for row in range(len(photos)):
        parents = places.ids[places.labels[row]]
        assert parents.tolist() == [one.labels[row] for one in coarse]
    with pytest.raises(SettingError, match="two partitions or more, not of 1"):
        Intersection((Grid(),))


def test_where_a_coarse_partition_has_no_places_there_are_no_fine_ones() -> None:
    photos = town(50)
    places = Intersection((Grid(cell=500), Grid(min_photos=51))).partition(photos)
    assert len(places) == 0
    assert places.labels.tolist() == [-1] * 50
    assert places.locate(photos).tolist() == [-1] * 50


def test_an_overlap_is_the_box_that_both_parents_share() -> None:
    places = Intersection((Grid(cell=30), Grid(cell=50))).partition(
        photos_at([(31.0, 1.0), (51.0, 59.0)])
    )
    boxes = [(30, 0, 50, 30), (50, 50, 60, 60)]
    for outline, (west, south, east, north) in zip(places.outlines, boxes, strict=True):
        corners = [[west, south], [east, south], [east, north], [west, north]]
        assert outline.tolist() == corners
    assert places.areas.tolist() == [600, 100]


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


@pytest.mark.parametrize("view", ["lateral", "frontal"])
def test_focal_points_follow_the_principal_direction_of_every_cell(view: str) -> None:
    rng = np.random.default_rng(0)
    offsets = [rng.normal(0, 1, (12, 2)) * (3, 1) @ _turned(angle) for angle in range(0, 180, 15)]
    centres = [np.array([20.0 * at + 10, 910.0]) for at in range(len(offsets))]
    spots = [one.clip(-9, 9) + centre for one, centre in zip(offsets, centres, strict=True)]
    photos = photos_at([*np.concatenate(spots).tolist(), (5000.0, 5000.0)])
    places = FocalGrid(view, cell=20, distance=7.0).partition(photos)
    assert len(places) == len(offsets)
    for place, point in enumerate(np.array(places.rule.points)):  # type: ignore[attr-defined]
        mine = photos.positions[places.labels == place]
        _, axes = np.linalg.eigh(np.cov(mine.T))
        look = axes[:, 1 if view == "frontal" else 0]
        look = look if look[1] > 0 else -look
        np.testing.assert_allclose(point, mine.mean(axis=0) + 7.0 * look, atol=1e-3)


def _turned(degrees: float) -> Floats:
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([[cos, sin], [-sin, cos]])


def test_a_rule_that_was_not_cut_has_no_focal_points() -> None:
    rule = FocalGrid(cell=20, tolerance=45)
    where, heading = np.array([[5.0, 5.0]]), np.zeros(1, np.float32)
    with pytest.raises(PlaceError, match="no focal points yet"):
        rule.find(np.array([[0, 0]]), where, heading)
    assert rule.find(np.array([[7, 7]]), where, heading).tolist() == [-1]


def test_a_photo_as_far_turned_as_tolerated_belongs_to_its_place() -> None:
    rule = FocalGrid(cell=20, tolerance=45, points=((10.0, 20.0),))
    ids, here = np.array([[0, 0]]), np.full((5, 2), 10.0)
    heading = np.array([0.0, 45.0, 315.0, 45.01, np.nan], np.float32)
    assert rule.find(ids, here, heading).tolist() == [0, 0, 0, -1, -1]


WHOLE = {
    "Grid(cell=20.0, min_photos=1, groups=1, heading_bins=1, heading_groups=1, "
    "groups_in_use=None)": Grid(),
    "Grid(cell=10.0, min_photos=10, groups=5, heading_bins=12, heading_groups=2, "
    "groups_in_use=8)": Grid.cosplace(),
    "GridGroups(cell=20.0, min_photos=10, groups=2, heading_bins=1, heading_groups=1, "
    "groups_in_use=None)": GridGroups(),
    "FocalGrid(view='lateral', cell=15.0, groups=3, min_photos=5, distance=10.0, "
    "tolerance=None)": FocalGrid(),
    "KdTree(max_photos=320, min_photos=1)": KdTree(),
    "Quadtree(max_photos=320, min_photos=1, finest=5.0, levels=12)": Quadtree(),
    "Given(column='place', min_photos=1, reach=25.0)": Given(),
}


@pytest.mark.parametrize("said", WHOLE)
def test_a_rule_says_its_settings_and_not_all_that_it_cut(said: str) -> None:
    rule = WHOLE[said]
    assert repr(rule) == said
    crowd = Photos.from_arrays(
        east=[1.0] * 20, north=[1.0] * 20, zone=10, heading=[5.0] * 20, place=[3] * 20
    )
    assert repr(rule.partition(crowd).rule) == said
    both = Intersection((Grid(), KdTree())).partition(crowd).rule
    assert repr(both) == "Intersection(partitions=(), min_photos=1)"


@pytest.mark.parametrize(("rule", "wrong", "good"), [
    (Grid, {"cell": 0.0}, {"cell": 0.5}),
    (Grid, {"min_photos": 0}, {"min_photos": 1}),
    (Grid, {"groups": 0}, {"groups": 1}),
    (Grid, {"heading_bins": 0}, {"heading_bins": 1}),
    (Grid, {"heading_groups": 0}, {"heading_groups": 1}),
    (Grid, {"groups_in_use": 0}, {"groups_in_use": 1}),
    (Grid, {"groups": 2, "groups_in_use": 5}, {"groups": 2, "groups_in_use": 4}),
    (Grid, {"heading_bins": 5, "heading_groups": 4}, {"heading_bins": 5, "heading_groups": 5}),
    (Grid, {"heading_bins": 3, "heading_groups": 2}, {"heading_bins": 2, "heading_groups": 2}),
    (KdTree, {"max_photos": 0}, {"max_photos": 1}),
    (KdTree, {"min_photos": 0}, {"min_photos": 1}),
    (Quadtree, {"max_photos": 0}, {"max_photos": 1}),
    (Quadtree, {"min_photos": 0}, {"min_photos": 1}),
    (Quadtree, {"finest": 0.0}, {"finest": 0.5}),
    (Quadtree, {"levels": 0}, {"levels": 1}),
    (Quadtree, {"levels": 41}, {"levels": 40}),
    (FocalGrid, {"view": "upward"}, {"view": "frontal"}),
    (FocalGrid, {"distance": 0.0}, {"distance": 0.5}),
    (FocalGrid, {"tolerance": 0.0}, {"tolerance": 0.5}),
    (FocalGrid, {"tolerance": 180.5}, {"tolerance": 180.0}),
    (Given, {"min_photos": 0}, {"min_photos": 1}),
    (Given, {"reach": 0.0}, {"reach": 0.5}),
])  # fmt: skip
def test_a_setting_is_refused_just_beyond_what_makes_sense(
    rule: type, wrong: dict[str, Any], good: dict[str, Any]
) -> None:
    *_, (name, value) = wrong.items()
    with pytest.raises(SettingError, match=f"{name} is {value!r}|{name} {value!r}"):
        rule(**wrong)
    assert vars(rule(**good)).items() >= good.items()


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
