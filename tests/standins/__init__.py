"""Tiny stand-ins of every photo layout the package reads, drawn and never downloaded.

The fixture `standins` (of tests/conftest.py, once a session) has a property for each layout; it
is drawn when first asked for, and gives the folder.  Do not write into these folders; hang your
own beside them with `standins.link_into(tmp_path)` or copy what you change.

    standins.sfxl         sf_xl/raw/train/database, processed/{train,val/…}, and processed/test/
                          {database,queries_v1,queries_v2}; one city, zone 10
    standins.msls         msls/train_val/{boston,melbourne,cph,sf}/{database,query} with the four
                          tables; zones 19, -55, 33, 10; clusters are 20 m cells; the last photo
                          of each part is a panorama, the one before it off the subtask
    standins.pitts30k     pitts30k/images/{train,val,test}/{database,queries}; zone 17
    standins.nordland     nordland/images/test/{database,queries}; the same frames, pale; for
                          nordland-2f and -10f; standins.nordland_tenth, nordland_1f/{ref,query},
                          has every tenth as a query, for nordland-1f
    standins.gsv          gsv_cities/{Dataframes,Images}: Boston, London, Melbourne; places are
                          20 m cells; zones 19, 30, -55
    standins.tables       tables/photos.{csv,tsv,parquet,geojson}, gps.csv (foreign names)
                          beside tables/images; one city; queries too
    standins.cities       cities/{sf,boston,london,melbourne}, SF-XL names; database photos
    standins.exif         exif/IMG_0000.jpg …, positions in the EXIF; one city
    standins.lists        lists/db_list.txt as hloc has it, beside lists/images
    standins.descriptors  descriptors/{photos,queries}, database.npy, queries.npy, hloc.h5
    standins.photos       photos/ and standins.queries queries/: one town with SF-XL names

A city has 76 database photos in 7 places of 1 to 24 photos, and 8 queries of other days, each
within 25 m of a database photo.  Pictures are 96 px and of one seed a city, so a network
tells them apart; `standins.shots("boston")` gives them with their truth (`towns.Shot`).
A town takes four seconds to draw, once a machine: it stays beside pytest's temporary folders under
a digest of the code that draws.  By hand: `python -m tests.standins FOLDER`.
"""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from tests.standins import layouts
from tests.standins.towns import CITIES, Shot, town_shots

MSLS = ("boston", "melbourne", "cph", "sf")
GSV = ("boston", "london", "melbourne")
ZONES = ("sf", "boston", "london", "melbourne")


class Standins:
    """Folders of stand-ins below `root`; `towns` may be shared by several."""

    def __init__(self, root: Path, towns: Path) -> None:
        self.root, self.towns = root, towns

    def shots(self, *cities: str) -> list[Shot]:
        """The pictures of some cities with their truth."""
        return [shot for name in cities for shot in town_shots(CITIES[name], self.towns)]

    def link_into(self, folder: Path, *names: str) -> None:
        """Links in `folder` to the layouts named, or to all, under the names above."""
        for name in names or NAMES:
            target: Path = getattr(self, name)
            (folder / target.name).symlink_to(target, target_is_directory=True)

    def _lay(self, name: str, layout: Callable[[Path, list[Shot]], Path], *cities: str) -> Path:
        return layout(self.root / name, self.shots(*cities))

    @cached_property
    def sfxl(self) -> Path:
        return self._lay("sf_xl", layouts.sfxl, "sf")

    @cached_property
    def msls(self) -> Path:
        return self._lay("msls", layouts.msls, *MSLS)

    @cached_property
    def pitts30k(self) -> Path:
        return self._lay("pitts30k", layouts.pitts30k, "pittsburgh")

    @cached_property
    def nordland(self) -> Path:
        return self._lay("nordland", layouts.nordland, "london")

    @cached_property
    def nordland_tenth(self) -> Path:
        return self._lay("nordland_1f", layouts.nordland_tenth, "london")

    @cached_property
    def gsv(self) -> Path:
        return self._lay("gsv_cities", layouts.gsv, *GSV)

    @cached_property
    def tables(self) -> Path:
        return self._lay("tables", layouts.tables, "london")

    @cached_property
    def cities(self) -> Path:
        return layouts.named(self.root / "cities", layouts.of(self.shots(*ZONES), "database"))

    @cached_property
    def exif(self) -> Path:
        return self._lay("exif", layouts.exif, "melbourne")

    @cached_property
    def lists(self) -> Path:
        return self._lay("lists", layouts.lists, "boston")

    @cached_property
    def descriptors(self) -> Path:
        return self._lay("descriptors", layouts.descriptors, "sf")

    @cached_property
    def photos(self) -> Path:
        return layouts.flat(self.root / "photos", layouts.of(self.shots("sf"), "database"))

    @cached_property
    def queries(self) -> Path:
        return layouts.flat(self.root / "queries", layouts.of(self.shots("sf"), "query"))


NAMES = tuple(name for name, kind in vars(Standins).items() if isinstance(kind, cached_property))
