"""Tables as people have them: their own names, their country's commas, their own mistakes."""

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evenplace.errors import PhotoError, SettingError
from evenplace.photos import read_photos
from evenplace.photos.check import check_photos
from evenplace.photos.layouts.tables import find_columns, parse_columns, say_read
from evenplace.photos.passes import by_sequence
from evenplace.photos.pictures import _add_heif, open_picture

SPOTS = [(52.5 + n * 1e-4, 13.25 + n * 1e-4) for n in range(6)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(6):
        Image.new("RGB", (16, 16), (number * 40, 9, 9)).save(tmp_path / f"img{number}.jpg")
    return tmp_path


def write(
    file: Path, head: str, rows: list[tuple[Any, ...]], *, mark: str = ",", end: str = "\n"
) -> Path:
    lines = [head, *(mark.join(map(str, row)) for row in rows)]
    file.write_bytes((end.join(lines) + end).encode("utf-8-sig" if end == "\r\n" else "utf-8"))
    return file


def rows() -> list[tuple[Any, ...]]:
    return [(f"img{n}.jpg", *spot) for n, spot in enumerate(SPOTS)]


def placed(photos: Any) -> None:
    assert len(photos) == 6
    assert photos.zones == [33]
    np.testing.assert_allclose(photos.column("latitude"), [lat for lat, _ in SPOTS])


@pytest.mark.parametrize(
    "head", ["image_name,gps_lat,gps_lon", "File Name,Latitude,Longitude", "img,lat,lng"]
)
def test_usual_names_are_found(folder: Path, head: str) -> None:
    placed(read_photos(write(folder / "photos.csv", head, rows())))


def test_a_table_says_of_which_drive_a_photo_is(folder: Path) -> None:
    drives = [*(("7",) for _ in range(3)), *(("",) for _ in range(3))]
    table = [row + drive for row, drive in zip(rows(), drives, strict=True)]
    photos = read_photos(write(folder / "photos.csv", "img,lat,lng,drive", table))
    assert photos.column("sequence").tolist() == ["7"] * 3 + [None] * 3
    assert by_sequence(photos).tolist() == [0] * 3 + [-1] * 3


def test_a_single_table_beside_the_photos_is_theirs_whatever_it_is_called(folder: Path) -> None:
    write(folder / "holiday 2024.csv", "image_name,gps_lat,gps_lon", rows())
    placed(read_photos(folder))


def test_a_table_of_something_else_is_passed_over(folder: Path) -> None:
    write(folder / "losses.csv", "epoch,loss", [(1, 0.5)])
    with pytest.raises(PhotoError, match="its EXIF has no GPS position"):
        read_photos(folder)


def test_columns_are_told_by_keyword_path_too(folder: Path) -> None:
    file = write(folder / "p.csv", "bild,breite,laenge", rows())
    placed(read_photos(file, path="bild", latitude="breite", longitude="laenge"))
    placed(read_photos(folder, path="bild", latitude="breite", longitude="laenge"))


def test_a_spreadsheet_s_semicolons_commas_mark_and_line_ends_are_read(folder: Path) -> None:
    european = [(n, str(a).replace(".", ","), str(b).replace(".", ",")) for n, a, b in rows()]
    placed(read_photos(write(folder / "p.csv", "file;lat;lon", european, mark=";", end="\r\n")))
    quoted = [(n, f'"{a}"', f'"{b}"') for n, a, b in european]
    placed(read_photos(write(folder / "q.csv", "file,lat,lon", quoted)))


def test_latitude_and_longitude_in_each_other_s_place_are_recognised(folder: Path) -> None:
    turned = [(name, lon + 100, lat) for name, lat, lon in rows()]
    file = write(folder / "p.csv", "file,lat,lon", turned)
    with pytest.raises(PhotoError, match=r"swapped .*--column latitude=lon --column longitude=lat"):
        read_photos(file)


def test_what_will_fail_in_train_fails_in_check(folder: Path) -> None:
    nameless = [(row[1], row[2]) for row in rows()]
    file = write(folder / "p.csv", "lat,lon", nameless)
    with pytest.raises(PhotoError, match="--column path=NAME"):
        check_photos(file)
    for number in range(6):
        (folder / f"img{number}.jpg").write_bytes(b"no picture")
    with pytest.raises(PhotoError, match="none of 6 photos opens"):
        check_photos(write(folder / "q.csv", "file,lat,lon", rows()))


def test_what_was_guessed_is_one_line(tmp_path: Path) -> None:
    file = write(tmp_path / "p.csv", "image_name,gps_lat,longitude,yaw", [])
    said = "read path from image_name, latitude from gps_lat, heading from yaw"
    assert say_read(file, {}) == f"{file}: {said}"
    assert say_read(write(tmp_path / "q.csv", "path,east,north", []), {}) == ""


@pytest.mark.parametrize("told", ["latitude", "=lat", "latitude="])
def test_a_column_that_is_no_pair_is_refused(told: str) -> None:
    with pytest.raises(SettingError, match="latitude=gps_lat"):
        parse_columns([told])


def test_unknown_columns_are_named() -> None:
    with pytest.raises(SettingError, match="'altitude' is nothing a table is asked for"):
        find_columns(["a"], {"altitude": "a"})
    with pytest.raises(PhotoError, match="no column 'b' for path; it has a"):
        find_columns(["a"], {"path": "b"})


def test_a_phone_s_heic_is_read_or_says_what_would_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heif = pytest.importorskip("pillow_heif")
    made = heif.from_pillow(Image.new("RGB", (64, 48), (200, 30, 30)))
    made.save(tmp_path / "a.heic")
    assert open_picture(tmp_path / "a.heic").size == (64, 48)
    monkeypatch.setattr(Image, "ID", [name for name in Image.ID if name != "HEIF"])
    imported = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name == "pillow_heif":
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    _add_heif.cache_clear()
    with pytest.raises(PhotoError, match=r"HEIC or AVIF: pip install 'evenplace\[heic\]'"):
        open_picture(tmp_path / "a.heic")
    _add_heif.cache_clear()
