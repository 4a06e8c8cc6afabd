"""Places of several cities at once, and places that a data set brings."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evenplace.errors import PlaceError
from evenplace.photos import Photos, join_photos
from evenplace.places import FocalGrid, Given, Grid, Intersection, KdTree, Places, Quadtree
from evenplace.places.coverage import find_needs
from evenplace.places.maps import Rule
from evenplace.places.new_places import database_places, open_places, unknown_cities

RULES = [
    Grid(cell=20, groups=2),
    Grid(cell=20, heading_bins=4),
    KdTree(max_photos=9),
    Quadtree(max_photos=9),
    Quadtree(max_photos=9, finest=2.5),
    Intersection((Grid(cell=50), KdTree(max_photos=20))),
    FocalGrid(min_photos=2),
]


def town(seed: int, zone: int, count: int = 150, **columns: object) -> Photos:
    rng = np.random.default_rng(seed)
    return Photos.from_arrays(
        east=500_000 + rng.normal(0, 60, count),
        north=4_000_000 + rng.normal(0, 60, count),
        heading=rng.uniform(0, 360, count),
        zone=zone,
        **columns,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.name}-{rule!r:.30}")
def test_cities_together_are_the_cities_alone(rule: Rule, tmp_path: Path) -> None:
    """The same metres in two zones are two places, and every city is cut as if it were alone."""
    towns = [town(0, 31), town(0, 32), town(1, -33)]
    photos = join_photos(towns)
    places = rule.partition(photos)  # type: ignore[attr-defined]
    alone = [rule.partition(one) for one in towns]  # type: ignore[attr-defined]
    assert places.cities == ["31N", "32N", "33S"]
    starts = np.cumsum([0, *map(len, alone)])
    for number, (one, first) in enumerate(zip(alone, starts, strict=False)):
        mine = slice(first, first + len(one))
        assert (places.city[mine] == number).all()
        np.testing.assert_array_equal(places.ids[mine], one.ids)
        np.testing.assert_array_equal(places.centres[mine], one.centres)
        np.testing.assert_array_equal(places.outlines[mine], one.outlines)
        np.testing.assert_array_equal(places.groups[mine], one.groups)
        own = places.labels[150 * number : 150 * (number + 1)]
        np.testing.assert_array_equal(own, np.where(one.labels < 0, -1, one.labels + first))
    np.testing.assert_array_equal(places.locate(photos), places.labels)
    places.write(tmp_path / "places.parquet")
    again = Places.read(tmp_path / "places.parquet")
    assert [one.city for one in again.maps] == places.cities
    np.testing.assert_array_equal(again.locate(photos), places.labels)


def test_one_city_in_two_zones_is_cut_zone_by_zone() -> None:
    photos = join_photos([town(0, 31, city=["here"] * 150), town(0, 32, city=["here"] * 150)])
    places = Grid(cell=20).partition(photos)
    assert places.cities == ["here"]
    assert [one.zone for one in places.maps] == [31, 32]
    np.testing.assert_array_equal(places.zones[places.labels], photos.zone)
    np.testing.assert_array_equal(places.labels[150:], places.labels[:150] + len(places) // 2)


def test_an_order_of_photos_decides_nothing() -> None:
    photos = join_photos([town(0, 31), town(0, 32)])
    mixed = np.random.default_rng(3).permutation(len(photos))
    one, other = Grid().partition(photos), Grid().partition(photos[mixed])
    np.testing.assert_array_equal(one.ids, other.ids)
    np.testing.assert_array_equal(one.labels[mixed], other.labels)


def test_positions_of_places_in_two_zones_need_a_zone() -> None:
    places = Grid().partition(join_photos([town(0, 31), town(0, 32)]))
    with pytest.raises(PlaceError, match=r"zones 31, 32.*zone="):
        places.locate(places.centres)
    np.testing.assert_array_equal(
        places.locate(places.centres, zone=places.zones), np.arange(len(places))
    )


def test_needs_are_told_city_by_city() -> None:
    needs = find_needs(Grid(cell=40).partition(join_photos([town(0, 31), town(0, 32)])), most=99)
    assert {(need.city, need.zone) for need in needs} == {("31N", 31), ("32N", 32)}


def test_given_places_are_the_column_and_stay_in_their_city(tmp_path: Path) -> None:
    cluster = np.repeat([7, 7, 9, 3, -1], 30)
    one = town(0, 31, place=cluster)
    photos = join_photos([one, town(1, 32, place=cluster)])
    places = Given("place").partition(photos)
    assert places.ids.ravel().tolist() == [3, 7, 9, 3, 7, 9]
    assert places.counts.tolist() == [30, 60, 30] * 2
    assert places.outside == 60
    assert (places.labels[:60] == 1).all()
    places.write(tmp_path / "places.parquet")
    found = Places.read(tmp_path / "places.parquet").locate(places.centres, zone=places.zones)
    np.testing.assert_array_equal(found, np.arange(6))
    assert places.locate(places.centres[:1] + 40.0, zone=31).tolist() == [-1]
    with pytest.raises(PlaceError, match="no column 'cluster'"):
        Given("cluster").partition(photos)


def test_given_places_are_boxes_a_metre_wide_and_found_by_the_nearest_middle() -> None:
    photos = Photos.from_arrays(
        east=[0.0, 10.0, 40.0, 30.0, 5.0], north=[0.0, 4.0, 0.0, 0.0, 0.0], zone=31,
        place=pa.array([1.0, 1.0, 2.0, None, -3.0]),
    )  # fmt: skip
    places = Given().partition(photos)
    assert places.labels.tolist() == [0, 0, 1, -1, -1]
    assert places.centres.tolist() == [[5, 2], [40, 0]]
    assert places.areas.tolist() == [40, 1]
    asked = np.array([[21.0, 2.0], [25.0, 2.0], [65.0, 0.0], [65.1, 0.0], [-20.0, 2.0]])
    assert places.locate(asked).tolist() == [0, 1, 1, -1, 0]
    near = Given(reach=5.0).partition(photos)
    assert near.locate(asked[:2]).tolist() == [-1, -1]
    none = Given(min_photos=3).partition(photos)
    assert len(none) == 0
    assert none.locate(asked).tolist() == [-1] * 5


def test_words_are_places_too() -> None:
    photos = town(0, 31, 4, clique=["b", "a", None, "b"])
    assert Given("clique").partition(photos).labels.tolist() == [1, 0, -1, 1]


def test_a_database_opens_places_of_a_new_city_and_keeps_the_old_ones() -> None:
    known = Grid(cell=20, min_photos=3).partition(town(0, 31))
    database = join_photos([town(0, 31), town(5, 40)])
    assert unknown_cities(known, database).tolist() == [False] * 150 + [True] * 150
    opened = open_places(known, database[unknown_cities(known, database)])
    assert opened.places.cities == ["31N", "40N"]
    np.testing.assert_array_equal(opened.places.ids[opened.numbers], known.ids)
    fresh = opened.places.counts[opened.fresh]
    assert fresh.sum() == 150  # every photo counts there
    assert set(opened.places.tiers[opened.fresh].tolist()) == {0, 1, 2}


def test_a_city_is_known_by_one_photo_in_its_first_place() -> None:
    known = Grid(cell=20).partition(town(0, 31))
    first = town(0, 31)[np.flatnonzero(known.labels == 0)[:1]]
    far = Photos.from_arrays(east=[9e5], north=[4e6], zone=31)
    assert unknown_cities(known, first).tolist() == [False]
    assert unknown_cities(known, far).tolist() == [True]


def test_photos_outside_stay_outside_and_extras_of_new_places_are_unknown() -> None:
    known = Grid(cell=20, min_photos=3).partition(town(0, 31))
    known = replace(known, extra={"level_0": np.arange(len(known))})
    opened = open_places(known, town(5, 40))
    assert known.outside
    wanted = np.where(known.labels < 0, -1, opened.numbers[known.labels])
    np.testing.assert_array_equal(opened.places.labels, wanted)
    np.testing.assert_array_equal(
        opened.places.extra["level_0"][opened.numbers], np.arange(len(known))
    )
    assert set(opened.places.extra["level_0"][opened.fresh].tolist()) == {-1}
    np.testing.assert_array_equal(opened.places.tiers[opened.numbers], known.tiers)


def test_a_database_within_known_places_opens_none() -> None:
    known = Grid(cell=20).partition(town(0, 31))
    opened = open_places(known, town(0, 31))
    assert opened.places is known
    assert opened.numbers.tolist() == list(range(len(known)))
    assert not opened.fresh.any()


def test_places_of_a_database_are_cut_as_others_were() -> None:
    turned = Grid(cell=30, min_photos=9, heading_bins=4, heading_groups=2, groups_in_use=1)
    like = turned.partition(town(0, 31, 400))
    rule = database_places(town(1, 31), like).rule
    assert rule == Grid(cell=30, heading_bins=4, heading_groups=2)
    blind = Photos.from_arrays(east=[5e5, 5e5], north=[4e6, 4e6], zone=31, heading=[1.0, np.nan])
    assert database_places(blind, like).rule == Grid(cell=30)
    given = Given(min_photos=9).partition(town(0, 31, place=np.arange(150) // 30))
    again = database_places(town(1, 31, place=np.arange(150) // 50), given)
    assert again.ids.ravel().tolist() == [0, 1, 2]
    assert again.rule.settings()["min_photos"] == 1
    assert database_places(town(1, 31), given).rule == Grid(cell=20)
    tree = KdTree(max_photos=9).partition(town(0, 31))
    assert database_places(town(1, 31, place=np.arange(150)), tree).rule == Grid(20)


def test_cells_opened_beside_known_ones_are_of_the_tail_and_sorted_in() -> None:
    all_of_it = town(0, 31)
    west = all_of_it[all_of_it.east < 500_000]
    known = Grid(cell=20).partition(west)
    opened = open_places(known, all_of_it)
    whole = Grid(cell=20).partition(all_of_it)
    np.testing.assert_array_equal(opened.places.ids, whole.ids)
    assert len(opened.places.maps) == 1
    assert set(opened.places.tiers[opened.fresh].tolist()) == {2}
    assert (opened.places.locate(all_of_it) >= 0).all()


def test_a_city_added_to_one_of_its_zone_has_a_map_and_tiers_of_its_own() -> None:
    def moved(seed: int) -> Photos:
        drawn = town(seed, 31)
        return Photos.from_arrays(east=drawn.east, north=drawn.north + 1e5, zone=31)

    opened = open_places(Grid(cell=20).partition(town(0, 31)), moved(1)).places
    assert [one.city for one in opened.maps] == ["31N", "31N-2"]
    assert set(opened.tiers[opened.home == 1].tolist()) == {0, 1, 2}
    again = open_places(opened, moved(2)).places  # read alone, it is called 31N too
    assert [one.city for one in again.maps] == ["31N", "31N-2"]
    assert (np.bincount(again.home) > np.bincount(opened.home)).tolist() == [False, True]


def test_a_database_of_trees_and_given_places_opens_cells() -> None:
    for rule in (KdTree(max_photos=9), Quadtree(max_photos=9)):
        known = rule.partition(town(0, 31))
        opened = open_places(known, town(1, 40))
        np.testing.assert_array_equal(
            opened.places.locate(town(0, 31)), opened.numbers[known.labels]
        )
        assert (opened.places.locate(town(1, 40)) >= 0).all()
