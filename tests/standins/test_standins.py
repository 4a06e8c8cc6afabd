"""The stand-ins are what the readers take them for, and lie where they say."""

from pathlib import Path

import numpy as np
import pytest

import evenplace as ep
from evenplace.photos.nearby import find_nearby
from evenplace.photos.protocols import read_protocol
from evenplace.photos.read import find_layout
from tests.standins import NAMES, Standins

pytestmark = pytest.mark.slow  # six towns to draw

LAYOUTS = {
    "sfxl": "sf-xl", "msls": "msls", "pitts30k": "pitts30k", "nordland": "nordland",
    "gsv": "gsv-cities", "cities": "sf-xl", "exif": "exif", "photos": "sf-xl", "queries": "sf-xl",
}  # fmt: skip


@pytest.mark.parametrize(("name", "layout"), LAYOUTS.items())
def test_every_folder_is_recognised(standins: Standins, name: str, layout: str) -> None:
    assert find_layout(getattr(standins, name)) == layout


@pytest.mark.parametrize("file", ["photos.csv", "photos.tsv", "photos.parquet", "photos.geojson"])
def test_every_table_puts_the_photos_where_they_are(standins: Standins, file: str) -> None:
    truth, photos = standins.shots("london"), ep.read_photos(standins.tables / file)
    assert np.abs(photos.east - [shot.east for shot in truth]).max() < 0.02
    assert np.abs(photos.north - [shot.north for shot in truth]).max() < 0.02
    assert set(photos.zone) == {30}


def test_phone_photos_and_lists_put_them_there_too(standins: Standins) -> None:
    for name, city in ((standins.exif, "melbourne"), (standins.lists / "db_list.txt", "boston")):
        photos, shots = ep.read_photos(name), standins.shots(city)
        assert len(photos) == len(shots)
        assert {round(east) for east in photos.east} == {round(shot.east) for shot in shots}


def test_cities_lie_in_their_own_zones(standins: Standins) -> None:
    gsv, msls = ep.read_photos(standins.gsv), ep.read_photos(standins.msls)
    assert set(gsv.zone) == {19, 30, -55}
    assert set(msls.zone) == {19, -55, 33, 10}
    assert len(set(gsv.column("place"))) == sum(
        len({shot.place for shot in standins.shots(city) if shot.part == "database"})
        for city in ("boston", "london", "melbourne")
    )


TESTS = {
    "sfxl-v1": "sfxl", "sfxl-v2": "sfxl", "msls-val-740": "msls", "msls-val-all": "msls",
    "pitts30k-test": "pitts30k", "nordland-1f": "nordland_tenth", "nordland-2f": "nordland",
    "nordland-10f": "nordland",
}  # fmt: skip


@pytest.mark.parametrize(("protocol", "name"), TESTS.items())
def test_every_named_test_finds_its_queries(standins: Standins, protocol: str, name: str) -> None:
    test = read_protocol(protocol, getattr(standins, name), allow_partial=True)
    assert len(test.queries) >= 4
    assert (test.positives().counts > 0).all()


def test_a_city_has_a_head_and_a_tail(standins: Standins) -> None:
    photos = ep.read_photos(standins.photos)
    places = ep.Grid(cell=20).partition(photos)
    assert places.counts.min() <= 3
    assert places.counts.max() >= 20
    assert len(ep.Grid(cell=20, min_photos=10).partition(photos)) >= 3
    queries = ep.read_photos(standins.queries)
    assert (find_nearby(photos, queries, 25).counts > 0).all()


def test_descriptors_are_in_the_order_of_the_photos(standins: Standins) -> None:
    photos = ep.read_photos(standins.descriptors / "photos")
    rows = np.load(standins.descriptors / "database.npy")
    assert len(rows) == len(photos)
    near = np.hypot(photos.east - photos.east[0], photos.north - photos.north[0]) < 1
    assert (rows @ rows[0])[near].min() > 0.99


def test_links_bear_the_names_of_the_data_sets(standins: Standins, tmp_path: Path) -> None:
    standins.link_into(tmp_path)
    assert len(list(tmp_path.iterdir())) == len(NAMES)
    assert (tmp_path / "gsv_cities/Dataframes/London.csv").exists()
