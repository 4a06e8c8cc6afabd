"""Tables as people have them: their own names, their country's commas, their own mistakes."""

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evenplace.errors import PhotoError, SettingError
from evenplace.photos import read_photos
from evenplace.photos.asked import find_asked
from evenplace.photos.check import check_photos
from evenplace.photos.layouts.cells import read_angle
from evenplace.photos.layouts.tables import find_columns, parse_columns, say_read
from evenplace.photos.passes import by_sequence
from evenplace.photos.pictures import _add_heif, open_picture
from tests.documents.typist import in_this_process

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


def metres(folder: Path, *zones: object) -> Path:
    """A table of metres with a zone a row."""
    told = [(f"img{n}.jpg", 391000 + 10 * n, 5817000, zone) for n, zone in enumerate(zones)]
    return write(folder / "photos.csv", "img,east,north,zone", told)


def test_a_zone_that_is_no_number_is_told_and_never_taken_for_local_metres(folder: Path) -> None:
    photos = read_photos(metres(folder, 33, "33N", "", -56, 33, 33), city="all")
    assert photos.zone.tolist() == [33, -56, 33, 33]
    assert [one.reason for one in photos.skipped] == [
        f"its UTM zone is {cell}; write 33, or -33 in the south" for cell in ("33N", "empty")
    ]
    with pytest.raises(PhotoError, match="its UTM zone is 33N; write 33"):
        read_photos(metres(folder, *["33N"] * 6))
    assert read_photos(metres(folder, *["33N"] * 6), zone=33).zones == [33]
    assert read_photos(metres(folder, *[""] * 6)).zones == [0]


def test_a_code_of_epsg_is_no_zone(folder: Path) -> None:
    with pytest.raises(PhotoError, match="no UTM zone 32733"):
        read_photos(metres(folder, *[32733] * 6))


def test_a_table_of_degrees_says_which_zone_a_town_across_a_border_is_in(folder: Path) -> None:
    spots = [(-33.5, 149.9995 + n * 2e-4) for n in range(6)]

    def zones(told: object) -> Any:
        table = [(f"img{n}.jpg", *spot, told) for n, spot in enumerate(spots)]
        return read_photos(write(folder / "photos.csv", "img,lat,lng,zone", table)).zone.tolist()

    assert zones(-56) == [-56] * 6
    assert not any("meet" in line for line in check_photos(folder / "photos.csv").lines())
    assert zones(32733) == zones("A") == zones(0) == zones("") == [-55] * 3 + [-56] * 3
    assert any("read them as one: --zone -56" in one for one in check_photos(folder).lines())


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


@pytest.mark.parametrize(
    ("encoding", "mark", "head"),
    [
        ("utf-16", "\t", "file,lat,lon"),  # what Excel calls Unicode text
        ("utf-16-le", ",", "file,lat,lon"),
        ("utf-16-be", ";", "file,lat,lon"),
        ("cp1252", ",", "file,lat,lon,größe"),
        ("utf-8", "|", " File , Latitude , Longitude "),
        ("utf-8", ",", "\n\nfile,lat,lon"),
        ("utf-8", ",", "file,lat,lon,,"),  # columns without a name
        ("utf-8", ",", "file,lat,lon,lat"),  # and one that is there twice
    ],
)
def test_a_table_is_read_however_it_was_exported(
    folder: Path, encoding: str, mark: str, head: str
) -> None:
    more = head.count(",") - 2
    cells = [[f" {name}", f"{lat} ", lon, lat, ""][: 3 + more] for name, lat, lon in rows()]
    text = "\n".join([head.replace(",", mark), *(mark.join(map(str, row)) for row in cells)])
    (folder / "p.csv").write_bytes(text.encode(encoding))
    placed(check_photos(folder / "p.csv").photos)
    (folder / "p.csv").rename(folder / "p.tsv")
    said, ended = in_this_process(["evenplace", "photos", "check", str(folder)])
    assert ended == 0, said
    assert "layout table: 6 photos" in said


@pytest.mark.parametrize(
    ("text", "degrees"),
    [
        ("33°51'24.5\"S", -33.8568056), ("S 33° 51.408'", -33.8568), ("33:51:24.5 S", -33.8568056),
        ("33 51 24,5 s", -33.8568056), ("33.8568°", 33.8568), ("-33,8568", -33.8568),
        ("33.8568 N", 33.8568), ("33°51′24.5″W", -33.8568056), ("33°71'", np.nan),
        ("33.8.5", np.nan), ("north", np.nan), ("", np.nan), (None, np.nan),
    ],
)  # fmt: skip
def test_an_angle_is_read_however_it_is_written(text: str | None, degrees: float) -> None:
    assert read_angle(text) == pytest.approx(degrees, abs=1e-7, nan_ok=True)


def test_metres_are_never_read_as_minutes(folder: Path) -> None:
    table = [("img0.jpg", "381 209", "5818091"), ("img1.jpg", "381209", "5818091")]
    photos = read_photos(write(folder / "p.csv", "file,east,north", table))
    assert photos.east.tolist() == [381209]
    (one,) = photos.skipped
    assert one.reason == "it has no position (east 381 209, north 5818091)"


def test_each_row_that_is_left_out_says_what_it_held(folder: Path) -> None:
    table = [*rows()[:2], ("img2.jpg", 0, 0), ("img3.jpg", "", 13.2), ("img4.jpg", 52.5, 213.2),
             ("img5.jpg", "here", 13.2), ("img0.jpg", 52.6, 13.3)]  # fmt: skip
    photos = read_photos(write(folder / "p.csv", "file,lat,lon", table))
    assert [Path(path).name for path in photos.paths] == ["img0.jpg", "img1.jpg"]
    assert {Path(one.path).name: one.reason for one in photos.skipped} == {
        "img2.jpg": "its GPS position is 0, 0, which cameras write without a fix",
        "img3.jpg": "it has no position (latitude empty, longitude 13.2)",
        "img4.jpg": "its longitude 213.2 is beyond 180",
        "img5.jpg": "it has no position (latitude here, longitude 13.2)",
        "img0.jpg": "the same file came before",
    }


def test_pictures_that_the_table_of_their_folder_does_not_list_are_told(folder: Path) -> None:
    file = write(folder / "p.csv", "file,lat,lon", [(f"./{n}", *spot) for n, *spot in rows()[:4]])
    assert [(Path(one.path).name, one.reason) for one in read_photos(folder).skipped] == [
        ("img4.jpg", "p.csv does not list it"), ("img5.jpg", "p.csv does not list it")
    ]  # fmt: skip
    assert not read_photos(file).skipped, "who names the table means its photos"


def test_a_table_from_windows_finds_its_files(folder: Path) -> None:
    (folder / "sub").mkdir()
    for number in range(6):
        (folder / f"img{number}.jpg").rename(folder / "sub" / f"img{number}.jpg")
    table = [(f"sub\\{name}", *spot) for name, *spot in rows()]
    placed(read_photos(write(folder / "p.csv", "file,lat,lon", table)))
    assert all(Path(one).is_file() for one in find_asked([folder / "p.csv"]).paths)


def test_two_columns_of_one_name_that_differ_are_refused(folder: Path) -> None:
    file = write(folder / "p.csv", "file,lat,lon,lat", [(*row, 9) for row in rows()])
    with pytest.raises(PhotoError, match="two columns called 'lat'; rename one"):
        read_photos(file)


def test_a_time_that_cannot_be_read_costs_no_other_its_own(folder: Path) -> None:
    shot = ["2024-05-01T10:00:00Z", "2024:05:01 10:00:01", "2024-05-01 10:00", "2024-05-01",
            "in May", ""]  # fmt: skip
    table = [(*row, when) for row, when in zip(rows(), shot, strict=True)]
    photos = read_photos(write(folder / "p.csv", "file,lat,lon,shot_at", table))
    assert [str(one) for one in photos.time] == [
        "2024-05-01T10:00:00", "2024-05-01T10:00:01", "2024-05-01T10:00:00",
        "2024-05-01T00:00:00", "NaT", "NaT",
    ]  # fmt: skip


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_a_list_is_read_whatever_wrote_it(folder: Path, encoding: str) -> None:
    (folder / "img0.jpg").rename(folder / "für.jpg")
    (folder / "list.txt").write_bytes("für.jpg\r\n .\\img1.jpg\r\n".encode(encoding))
    paths = find_asked([folder / "list.txt"]).paths
    assert [Path(one).name for one in paths] == ["für.jpg", "img1.jpg"]
    assert all(Path(one).is_file() for one in paths)


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
