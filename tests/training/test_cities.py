"""Training on several cities: given places, and batches that stay in one of them."""

import numpy as np

from evenplace.photos import Photos, join_photos, read_photos
from evenplace.photos.nearby import find_nearby
from evenplace.training.batches import city_batches
from evenplace.training.recipe import cut_places, read_recipe
from evenplace.training.recipe_variants import corner
from evenplace.training.specs import MiningSpec, PlacesSpec
from evenplace.training.triplet_objective import mine_triplets
from tests.standins import Standins


def test_gsv_recipes_take_gsv_places_and_squares_elsewhere(standins: Standins) -> None:
    for name in ("salad", "salad-small", "boq", "boq-small", "mixvpr", "cricavpr"):
        recipe = read_recipe(name)
        assert (recipe.places.rule, recipe.training.within_city) == ("given", True)
        photos = read_photos(standins.gsv)
        places = cut_places(recipe.places, photos)
        assert places.rule.name == "given"
        assert places.cities == ["Boston", "London", "Melbourne"]
        assert len(places) == len(np.unique(photos.column("place")))
        assert cut_places(recipe.places, read_photos(standins.photos)).rule.name == "grid"


def test_msls_trains_on_its_clusters(standins: Standins) -> None:
    photos = read_photos(standins.msls)
    places = cut_places(PlacesSpec(rule="given", column="cluster"), photos)
    pairs = {*zip(photos.column("city"), photos.column("cluster"), strict=True)}
    assert len(places) == len(pairs)


def test_batches_of_a_city_hold_every_bunch_once_and_no_other_city() -> None:
    homes = np.array([0, 1, 0, 1, 1, 0, 2, 1, 0, 0])
    batches = city_batches(homes, 2, np.random.default_rng(0))
    assert all(len(set(homes[batch])) == 1 for batch in batches)
    assert sorted(np.concatenate(batches)) == [0, 1, 2, 3, 4, 5, 7, 8, 9]  # 6 is alone in its city


def test_negatives_stay_in_the_city_when_asked_and_zones_are_far() -> None:
    east = [0.0, 5.0, 200.0]
    photos = join_photos(
        [Photos.from_arrays(east=east, north=[0.0, 0, 0], zone=zone) for zone in (31, 32)]
    )
    near = find_nearby(photos, photos, 10.0)
    seen = np.eye(6, dtype=np.float32)
    spec = MiningSpec(negatives=4, positives=1)
    for city, wanted in ((None, {2, 3, 4, 5}), (photos.city, {2})):
        mined = mine_triplets(np.array([0]), near, photos.points, lambda at: seen[at],
                              np.random.default_rng(0), spec, city)  # fmt: skip
        assert set(mined.negatives[0].tolist()) == wanted


def test_the_corner_of_a_rehearsal_is_of_one_city() -> None:
    rng = np.random.default_rng(0)
    towns = [
        Photos.from_arrays(east=rng.normal(0, 30, n), north=rng.normal(0, 30, n), zone=zone)
        for n, zone in ((120, 31), (150, 32))
    ]
    assert corner(join_photos(towns)).zones == [32]
