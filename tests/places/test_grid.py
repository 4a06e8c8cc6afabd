"""Cells, groups, counts and tiers, against the field's own formulas and plain loops."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenplace.errors import PhotoError, PlaceError, SettingError
from evenplace.photos import Photos
from evenplace.places import Grid, GridGroups, Places, query_tiers, table, tiers
from evenplace.places.grid import cell_numbers
from evenplace.places.keys import Span, look_up, tally
from evenplace.places.tiers import gini, imbalance_ratio, share_with_half
from tests import oracle_places as oracle

METRES = st.one_of(
    st.floats(-5e6, 5e6),
    st.integers(-10_000, 10_000).map(lambda k: 20.0 * k),
    st.integers(-10_000, 10_000).map(lambda k: float(np.nextafter(20.0 * k, -np.inf))),
    st.integers(-10_000, 10_000).map(lambda k: float(np.nextafter(20.0 * k, np.inf))),
)
TOWN = st.lists(st.tuples(st.floats(-60, 60), st.floats(-60, 60)), min_size=1, max_size=80)


def photos_at(positions: list[tuple[float, float]], heading: object = None) -> Photos:
    east, north = zip(*positions, strict=True)
    return Photos.from_arrays(east=east, north=north, zone=10, heading=heading)  # type: ignore[arg-type]


@given(st.lists(METRES, min_size=1), st.sampled_from([1.0, 10.0, 15.0, 20.0]))
def test_cell_numbers_are_pythons_floor_division_even_on_boundaries(
    metres: list[float], cell: float
) -> None:
    assert cell_numbers(np.array(metres), cell).tolist() == [int(x // cell) for x in metres]


@given(st.lists(st.tuples(METRES, METRES, st.floats(0, 359.99)), min_size=1, max_size=30))
def test_classes_and_groups_are_cosplaces(photos: list[tuple[float, float, float]]) -> None:
    M, alpha, N, L = 10, 30, 5, 2
    heading = np.array([one[2] for one in photos], np.float32)
    places = Grid(cell=M, groups=N, heading_bins=12, heading_groups=L).partition(
        photos_at([one[:2] for one in photos], heading)
    )
    for row, (east, north, _) in enumerate(photos):
        ids = places.ids[places.labels[row]]
        theirs = oracle.cosplace_class(east, north, float(heading[row]), M, alpha)
        assert (ids * [M, M, alpha]).tolist() == list(theirs)
        e, n, h = oracle.cosplace_group(theirs, M, alpha, N, L)
        assert places.groups[places.labels[row]] == (e * N + n) * L + h


@given(st.lists(st.tuples(METRES, METRES), min_size=1, max_size=30))
def test_classes_and_groups_are_divide_and_classifys(photos: list[tuple[float, float]]) -> None:
    places = GridGroups(min_photos=1).partition(photos_at(photos))
    for row, (east, north) in enumerate(photos):
        theirs = oracle.dc_class(east, north, 20)
        assert (places.ids[places.labels[row]] * 20).tolist() == list(theirs)
        e, n = oracle.dc_group(theirs, 20, 2)
        assert places.groups[places.labels[row]] == e * 2 + n


@given(TOWN, st.integers(1, 4))
def test_a_grid_is_eq_1_in_plain_loops(positions: list[tuple[float, float]], least: int) -> None:
    places = Grid(cell=20, min_photos=least).partition(photos_at(positions))
    expected = oracle.grid(positions, 20, least)
    assert [tuple(one) for one in places.ids.tolist()] == list(expected)
    assert places.counts.tolist() == [len(rows) for rows in expected.values()]
    assert places.tiers.tolist() == oracle.tiers(places.counts.tolist())
    labels = np.full(len(positions), -1)
    for place, rows in enumerate(expected.values()):
        labels[rows] = place
    assert places.labels.tolist() == labels.tolist()
    assert places.outside == int(np.sum(labels < 0))


@given(TOWN, st.integers(2, 4))
def test_cells_of_one_group_are_never_adjacent(
    positions: list[tuple[float, float]], N: int
) -> None:
    places = Grid(cell=20, groups=N).partition(photos_at(positions))
    apart = np.abs(places.ids[:, None] - places.ids[None]).max(axis=2)
    same = places.groups[:, None] == places.groups[None]
    assert not np.any(same & (apart == 1))


@pytest.mark.parametrize("L", [2, 3, 4, 6])
def test_headings_of_one_group_are_never_adjacent_even_across_north(L: int) -> None:
    bins = np.arange(12)
    places = Grid(heading_bins=12, heading_groups=L).partition(
        photos_at([(1.0, 1.0)] * 12, bins * 30 + 1)
    )
    for one in range(12):
        assert places.groups[one] != places.groups[(one + 1) % 12]


def test_groups_that_would_meet_across_north_are_refused() -> None:
    with pytest.raises(SettingError, match="neighbours across north"):
        Grid(heading_bins=12, heading_groups=11)


def test_photos_without_a_heading_are_outside_when_headings_matter() -> None:
    photos = photos_at([(1.0, 1.0), (2.0, 2.0)], [90.0, float("nan")])
    places = Grid(heading_bins=4).partition(photos)
    assert places.labels.tolist() == [0, -1]
    assert places.locate(photos).tolist() == [0, -1]


def test_cosplace_has_fifty_groups_and_uses_eight() -> None:
    rng = np.random.default_rng(0)
    photos = photos_at(rng.uniform(0, 100, (20_000, 2)).tolist(), rng.uniform(0, 360, 20_000))
    grid = Grid.cosplace()
    assert grid.group_total == 50
    places = grid.partition(photos)
    assert set(places.groups.tolist()) == set(range(8))
    assert places.counts.min() >= 10
    assert places.counts.sum() + places.outside == len(photos)
    np.testing.assert_array_equal(places.locate(photos), places.labels)


@given(TOWN, st.randoms(use_true_random=False))
def test_the_order_of_photos_changes_nothing(
    positions: list[tuple[float, float]], random: object
) -> None:
    order = list(range(len(positions)))
    random.shuffle(order)  # type: ignore[attr-defined]
    grid = Grid(cell=20, min_photos=2, groups=2)
    one, other = (
        grid.partition(photos_at(positions)),
        grid.partition(photos_at([positions[row] for row in order])),
    )
    assert one.ids.tolist() == other.ids.tolist()
    assert one.tiers.tolist() == other.tiers.tolist()
    assert other.labels.tolist() == one.labels[order].tolist()


def test_new_photos_are_looked_up_by_position() -> None:
    places = Grid(cell=20).partition(photos_at([(5.0, 5.0), (45.0, 5.0)]))
    found = places.locate(np.array([[19.9, 0.0], [20.0, 0.0], [59.9, 19.9], [np.nan, 0], [1e9, 0]]))
    assert found.tolist() == [0, -1, 1, -1, -1]


def test_centres_and_areas_are_those_of_squares() -> None:
    places = Grid(cell=20).partition(photos_at([(545001.0, 4184001.0)]))
    np.testing.assert_allclose(places.centres, [[545010, 4184010]])
    np.testing.assert_allclose(places.areas, [400])


def test_photos_of_another_zone_are_in_no_place() -> None:
    places = Grid().partition(photos_at([(1.0, 1.0)]))
    other = Photos.from_arrays(east=[1.0, 1.0], north=[1.0, 1.0], zone=[11, 10])
    assert places.locate(other).tolist() == [-1, 0]


def test_no_photos_and_absurd_settings_are_refused() -> None:
    with pytest.raises(PhotoError, match="no photos"):
        Grid().partition(Photos.from_arrays(east=[], north=[]))
    for wrong in ({"cell": 0.0}, {"cell": float("nan")}, {"min_photos": 0}, {"groups": 0},
                  {"groups_in_use": 2}):  # fmt: skip
        with pytest.raises(SettingError):
            Grid(**wrong)


def test_coordinates_beyond_any_map_are_refused() -> None:
    with pytest.raises(SettingError, match=r"1e\+300 is beyond any map"):
        Grid().partition(photos_at([(1e300, 0.0)]))
    with pytest.raises(PlaceError, match="more than can be numbered"):
        Grid(cell=1e-6).partition(photos_at([(0, 0), (1e4, 1e4)]))


def test_a_span_holds_less_than_two_to_the_62() -> None:
    most = (1 << 31) - 1
    assert Span.between([0, 0], [most, most - 1]).total == (most + 1) * most
    with pytest.raises(PlaceError, match="span 2147483648 × 2147483648 cells"):
        Span.between([0, 0], [most, most])


def test_cells_that_floats_do_not_hold_exactly_are_refused() -> None:
    edge = 1 << 52
    assert cell_numbers(np.array([edge - 1.0, 1.0 - edge]), 1.0).tolist() == [edge - 1, 1 - edge]
    for beyond in (float(edge), -float(edge)):
        with pytest.raises(SettingError, match="beyond any map"):
            cell_numbers(np.array([3.0, beyond]), 1.0)


def test_a_summary_says_how_uneven_the_places_are() -> None:
    east = np.repeat(20.0 * np.arange(10) + 5, [12, 6, 5, 4, 4, 3, 2, 2, 1, 1])
    photos = photos_at([(one, 5.0) for one in [*east.tolist(), 900.0, 900.0]])
    assert Grid(groups=2).partition(photos).summary().splitlines() == [
        "42 photos in 11 places (grid), 0 outside every place",
        "imbalance 12:1 (12 to 1 photos), Gini 0.39, 3 group(s)",
        "  head: 3 places of 5-12 photos, 55% of all",
        "middle: 5 places of 2-4 photos, 36% of all",
        "  tail: 3 places of 1-2 photos, 10% of all",
    ]
    assert Grid(min_photos=50).partition(photos).summary() == (
        "no places: all 42 photos lie outside"
    )


def test_the_share_of_places_with_half_of_the_photos() -> None:
    assert share_with_half([1, 4, 1, 2]) == 1 / 4  # 4 of 8
    assert share_with_half([3, 3, 3]) == 2 / 3
    assert gini([0, 0]) == 0.0
    assert np.isnan(imbalance_ratio([]))
    assert np.isnan(imbalance_ratio([0.0, 0.0])), "places of no size, all photos at one spot"


def test_positions_without_a_north_are_refused() -> None:
    places = Grid().partition(photos_at([(1.0, 1.0)]))
    with pytest.raises(PlaceError, match=r"positions have shape \(2, 3\); give \(N, 2\)"):
        places.locate(np.zeros((2, 3)))
    assert places.locate(np.array([1.0, 1.0])).tolist() == [0]


def test_columns_of_unequal_length_are_refused() -> None:
    places = Grid().partition(photos_at([(1.0, 1.0), (50.0, 1.0)]))
    with pytest.raises(PlaceError, match=r"have \[1, 2\] rows; give one each"):
        replace(places, counts=places.counts[:1])


def test_places_of_another_version_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = Grid().partition(photos_at([(1.0, 1.0)]))
    monkeypatch.setattr(table, "VERSION", 1)
    places.write(tmp_path / "places.parquet")
    monkeypatch.undo()
    with pytest.raises(PlaceError, match="is of version 1 and this EvenPlace reads 2; cut"):
        Places.read(tmp_path / "places.parquet")


def test_the_members_of_a_place_are_its_rows_in_order() -> None:
    places = Grid(min_photos=2).partition(
        photos_at([(25.0, 1.0), (1.0, 1.0), (90.0, 1.0), (26.0, 1.0), (2.0, 1.0)])
    )
    rows, starts = places.members()
    own = [rows[first:last].tolist() for first, last in pairwise(starts)]
    assert own == [[1, 4], [0, 3]]
    assert places.outside == 1


def test_places_survive_the_disk(tmp_path: Path) -> None:
    places = Grid(cell=20, groups=2).partition(photos_at([(1, 1), (30, 1), (31, 1), (-5, 70)]))
    places.write(tmp_path / "places.parquet")
    again = Places.read(tmp_path / "places.parquet")
    assert again.rule == places.rule
    assert again.zones.tolist() == [10] * len(again)
    for name in ("labels", "ids", "centres", "counts", "groups", "tiers", "areas"):
        one, other = getattr(again, name), getattr(places, name)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_a_file_that_holds_no_places_is_refused(tmp_path: Path) -> None:
    photos_at([(1, 1)]).write(tmp_path / "photos.parquet")
    with pytest.raises(PlaceError, match="no file of places"):
        Places.read(tmp_path / "photos.parquet")
    with pytest.raises(PlaceError, match="does not exist; check the path"):
        Places.read(tmp_path / "places.parquet")
    (tmp_path / "places.parquet").write_bytes((tmp_path / "photos.parquet").read_bytes()[:100])
    with pytest.raises(PlaceError, match=r"is damaged.* put a copy back"):
        Places.read(tmp_path / "places.parquet")


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60))
def test_tiers_are_three_and_four_and_three_tenths(counts: list[int]) -> None:
    assert tiers(counts).tolist() == oracle.tiers(counts)


def test_the_papers_query_tails_have_222_and_2044_queries() -> None:
    for queries, tail in ((740, 222), (6816, 2044)):
        found = query_tiers(np.arange(queries))
        assert np.sum(found == 2) == tail
        assert found[0] == 2
        assert found[-1] == 0


def test_a_place_with_one_photo_is_the_middle() -> None:
    places = Grid().partition(photos_at([(1.0, 1.0)]))
    assert places.tiers.tolist() == [1]
    assert "1 photos in 1 places" in places.summary()


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1), st.booleans())
def test_counting_and_sorting_number_keys_alike(rows: list[tuple[int, int]], wide: bool) -> None:
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    far = 1 << 30 if wide else 20
    span = Span.between([-far, -9], [far, 9])
    found = tally(span.pack(columns), span.total)
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    assert span.unpack(found.keys).tolist() == distinct.tolist()
    assert found.counts.tolist() == counts.tolist()
    assert span.unpack(found.keys)[found.labels].tolist() == [list(row) for row in rows]
    beyond = look_up(found.keys, np.array([span.total]), span.total)
    assert beyond.tolist() == [-1]


def test_keys_too_far_apart_for_a_table_are_numbered_too() -> None:
    total, far = 10**13, 10**12
    found = tally(np.array([7, far, 3, 7, far + 1]), total)
    assert found.keys.tolist() == [3, 7, far, far + 1]
    assert found.counts.tolist() == [1, 2, 1, 1]
    assert found.labels.tolist() == [1, 2, 0, 1, 3]
    asked = np.array([far + 1, 4, total - 1, 3])
    assert look_up(found.keys, asked, total).tolist() == [3, -1, -1, 0]
    assert look_up(found.keys[:0], asked, total).tolist() == [-1] * 4
    rare = tally(np.array([7, far, 3, 7, far + 1]), total, least=2)
    assert rare.labels.tolist() == [0, -1, -1, 0, -1]
