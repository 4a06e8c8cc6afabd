"""A database of a city nobody trained in has its own places, and means for prototypes."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evenplace.photos import Photos, join_photos
from evenplace.places import Grid, KdTree
from evenplace.places.maps import Rule
from evenplace.retrieval import Search
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.prototypes import MEANS, fill_means, reach

Floats = NDArray[np.float32]


def town(seed: int, zone: int, count: int = 90) -> Photos:
    rng = np.random.default_rng(seed)
    return Photos.from_arrays(
        east=500_000 + rng.uniform(0, 200, count),
        north=4_000_000 + rng.uniform(0, 200, count),
        zone=zone,
        path=[f"{zone}-{row}.jpg" for row in range(count)],
    )


def unit(count: int, dim: int = 8, seed: int = 0) -> Floats:
    rows = np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)
    made: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return made


@pytest.mark.parametrize("rule", [Grid(min_photos=2), KdTree(max_photos=12)])
def test_known_cities_keep_the_classifier_and_others_get_means(rule: Rule, tmp_path: Path) -> None:
    places = rule.partition(town(0, 31))  # type: ignore[attr-defined]
    prototypes = unit(len(places), seed=9)
    known = reach(places, prototypes, town(1, 31))
    assert known.places is places
    assert known.prototypes is prototypes
    elsewhere = reach(places, prototypes, town(1, 40))
    assert elsewhere.prototypes is None
    assert elsewhere.places.cities == ["40N"]
    photos = join_photos([town(1, 31), town(2, 40)])
    both = reach(places, prototypes, photos)
    vectors = unit(len(photos))
    index = index_descriptors(
        vectors, photos, both.places, tmp_path / "i", prototypes=both.prototypes
    )
    fresh = index.places.extra[MEANS] == 1
    assert (index.places.zones == np.where(fresh, 40, 31)).all()
    np.testing.assert_allclose(index.prototypes[~fresh], prototypes)
    at = int(np.flatnonzero(fresh)[0])
    rows = np.flatnonzero(both.places.locate(photos) == at)
    mean = vectors[rows].mean(axis=0)
    np.testing.assert_allclose(
        index.prototypes[at], mean / np.linalg.norm(mean), atol=1e-3
    )  # photos are kept as halves: 1e-3 of 1


def test_means_are_as_long_as_raw_prototypes() -> None:
    raw = np.array([[3.0, 0], [np.nan, np.nan], [0, 3]], np.float32)
    filled = fill_means(raw, np.array([[1, 0], [0.6, 0.8], [0, 1]], np.float32))
    np.testing.assert_allclose(filled, np.array([[3, 0], [1.8, 2.4], [0, 3]]), rtol=1e-6)


def test_the_same_metres_in_two_zones_are_two_answers(tmp_path: Path) -> None:
    """Two photos that look alike at one pair of coordinates, in two zones, agree with nobody."""
    photos = join_photos([town(0, 31, 1), town(0, 32, 1)])
    alike = np.full((2, 4), 0.5, np.float32)
    index = index_descriptors(alike, photos, Grid().partition(photos), tmp_path / "i")
    found = Search(index, confidence="mass").search(alike[:1], 2)
    assert found.confidence[0] == pytest.approx(0.5)
    np.testing.assert_allclose(index.impostors, 1.0, atol=1e-3)  # each is the other's impostor


def test_many_photos_in_no_known_place_are_indexed(tmp_path: Path) -> None:
    photos = Photos.from_arrays(east=np.arange(20_500.0) % 977, north=np.arange(20_500.0) // 977)
    places = Grid().partition(town(0, 31))
    index = index_descriptors(
        unit(20_500, 4), photos, places, tmp_path / "i", prototypes=unit(len(places), 4)
    )
    assert (index.labels < 0).all()
    assert np.isfinite(index.impostors).all()
