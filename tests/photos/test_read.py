"""Every layout of the field, drawn small and read back."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import ExifTags, Image

from evenplace.errors import PhotoError, SettingError
from evenplace.photos import Photos, read_photos
from evenplace.photos.asked import find_asked
from evenplace.photos.check import check_photos
from evenplace.photos.geodesy import to_degrees
from evenplace.photos.layouts.exif import read_shot
from evenplace.photos.nearby import find_nearby
from evenplace.photos.protocols import find_protocols
from evenplace.photos.read import find_layout
from evenplace.photos.scan import picture_paths, walk_pictures
from tests.photos import drawn


def test_sfxl_is_recognised_and_a_folder_with_an_at_sign_does_no_harm(tmp_path: Path) -> None:
    test = drawn.sfxl(tmp_path)
    assert find_layout(test / "database") == "sf-xl"
    photos = read_photos(test / "database")
    assert sorted(photos.east) == [545000 + 15 * number for number in range(6)]
    assert photos.zones == [10]
    assert all(Path(path).is_file() for path in photos.paths)
    assert photos.paths == sorted(photos.paths)


def test_an_image_list_beside_the_folder_is_used_instead_of_a_walk(tmp_path: Path) -> None:
    database = drawn.sfxl(tmp_path) / "database"
    wanted = sorted(str(one.relative_to(database)) for one in database.rglob("*.jpg"))[:2]
    (database.parent / "database_images_paths.txt").write_text("\n".join(wanted) + "\n")
    assert [
        Path(one).relative_to(database).as_posix() for one in read_photos(database).paths
    ] == wanted


def test_panoramas_and_small_sets_read_like_crops(tmp_path: Path) -> None:
    drawn.picture(tmp_path / "sf_xl/raw/train/panoramas" / drawn.sfxl_name(545000, 4184000))
    drawn.picture(tmp_path / "sf_xl/small/train" / drawn.sfxl_name(545000, 4184000, heading="000"))
    assert len(read_photos(tmp_path / "sf_xl/raw/train/panoramas")) == 1
    assert read_photos(tmp_path / "sf_xl/small/train").heading.tolist() == [0]


def test_a_name_that_does_not_parse_is_skipped_with_its_reason(tmp_path: Path) -> None:
    database = drawn.sfxl(tmp_path) / "database"
    drawn.picture(database / "@holiday@in@rome.jpg")
    photos = read_photos(database)
    assert len(photos) == 6
    assert "fields" in photos.skipped[0].reason
    assert photos.skipped[0].path.endswith("@holiday@in@rome.jpg")


def test_a_folder_where_no_name_parses_is_refused_with_an_example(tmp_path: Path) -> None:
    drawn.picture(tmp_path / "@a@b@c.jpg")
    with pytest.raises(PhotoError, match=r"none of the 1 names.*@a@b@c\.jpg"):
        read_photos(tmp_path)


def test_hidden_files_are_passed_over(tmp_path: Path) -> None:
    database = drawn.sfxl(tmp_path) / "database"
    (database / ("._" + drawn.SFXL)).write_bytes(b"")
    assert len(read_photos(database)) == 6


def test_missing_and_empty_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PhotoError, match="does not exist"):
        read_photos(tmp_path / "gone")
    with pytest.raises(PhotoError, match=r"holds no photos.*\.jpg"):
        read_photos(tmp_path)


def test_an_unknown_layout_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"did you mean 'sf-xl'.*msls"):
        read_photos(tmp_path, layout="sfxl")


def test_two_zones_are_two_cities_and_one_can_be_kept(tmp_path: Path) -> None:
    drawn.picture(tmp_path / drawn.sfxl_name(545000, 4184000, zone="10"))
    drawn.picture(tmp_path / drawn.sfxl_name(245000, 4184000, zone="11"))
    assert read_photos(tmp_path).cities == ["10N", "11N"]
    assert read_photos(tmp_path, city="10N").east.tolist() == [545000]
    with pytest.raises(SettingError, match=r"11S.*did you mean '11N'"):
        read_photos(tmp_path, city="11S")
    kept = read_photos(tmp_path, zone=11)
    assert kept.east.tolist() == [245000]
    assert "zone 10" in kept.skipped[0].reason


def test_a_pattern_chooses_by_name_whatever_the_layout(tmp_path: Path) -> None:
    """Of a folder it says which files count; of a table and of a list the others are skipped."""
    names = [drawn.sfxl_name(545000 + at, 4184000, note=kind) for at, kind in enumerate("abb")]
    for name in names:
        drawn.picture(tmp_path / "folder" / name)
    (tmp_path / "folder" / "list.txt").write_text("\n".join(names), encoding="utf-8")
    rows = [(name, 545000 + at, 4184000) for at, name in enumerate(names)]
    table = drawn.table(tmp_path / "folder" / "t.csv", ("path", "east", "north"), rows)
    assert len(read_photos(tmp_path / "folder", "sf-xl", "*@b@.jpg")) == 2
    for where in (table, tmp_path / "folder" / "list.txt"):
        photos = read_photos(where, pattern="*@b@.jpg")
        assert photos.east.tolist() == [545001, 545002]
        assert [one.reason for one in photos.skipped] == ["its name is not like *@b@.jpg"]
        with pytest.raises(PhotoError, match=r"named like \*\.png; check the pattern"):
            read_photos(where, pattern="*.png")


def test_msls_reads_both_parts_of_every_city_without_panoramas(tmp_path: Path) -> None:
    root = drawn.msls(tmp_path)
    assert find_layout(root) == "msls"
    photos = read_photos(root)
    assert photos.cities == ["cph", "sf"]
    assert photos.zones == [10, 33]
    assert (
        len(photos[(photos.column("city") == "cph") & (photos.column("part") == "database")]) == 3
    )
    reasons = {one.reason for one in photos.skipped}
    assert reasons == {"it is a panorama", "it is not in the subtask all"}
    first = photos[(photos.column("city") == "cph") & (photos.column("part") == "query")][:1]
    assert first.column("night").tolist() == [True]
    assert first.heading.tolist() == [45.5]
    assert str(first.time[0]) == "2017-05-05T00:00:00"


def test_msls_reads_one_city_one_part_and_panoramas_on_request(tmp_path: Path) -> None:
    root = drawn.msls(tmp_path)
    assert len(read_photos(root / "train_val", cities="sf", part="query", subtask=None)) == 2
    assert len(read_photos(root / "train_val/sf", part="database", panoramas=True)) == 4
    assert len(read_photos(root / "train_val/sf/query")) == 2
    with pytest.raises(SettingError, match="paris"):
        read_photos(root, cities="paris")


def test_msls_tables_that_differ_in_length_are_refused(tmp_path: Path) -> None:
    root = drawn.msls(tmp_path)
    short = root / "train_val/sf/query/raw.csv"
    short.write_text("\n".join(short.read_text().splitlines()[:-1]) + "\n")
    with pytest.raises(PhotoError, match="differ in length"):
        read_photos(root)


def test_msls_test_cities_have_no_positions_and_say_so(tmp_path: Path) -> None:
    root = drawn.msls(tmp_path)
    (root / "train_val/sf/query/raw.csv").unlink()
    with pytest.raises(PhotoError, match="come without positions"):
        read_photos(root)


def test_pitts30k_gives_steps_of_pitch_and_yaw_and_no_heading(tmp_path: Path) -> None:
    photos = read_photos(drawn.pitts30k(tmp_path) / "database")
    assert sorted(zip(photos.column("pitch_step"), photos.column("yaw_step"), strict=True)) == [
        (1, 1), (1, 12), (2, 1), (2, 12),
    ]  # fmt: skip
    assert sorted(photos.column("tile")) == ["00", "11", "24", "35"]
    assert np.isnan(photos.heading).all()
    assert photos.zones == [17]


def test_pairs_a_kilometre_apart_are_no_frames_of_nordland(tmp_path: Path) -> None:
    for pair in range(30):  # AmsterTime and SPED, as VPR-datasets-downloader names them
        for part in ("database", "queries"):
            name = f"@0@{pair * 1000}@@@@@{pair:04d}@@@@@@@@.jpg"
            drawn.picture(tmp_path / "amstertime/images/test" / part / name)
    test = tmp_path / "amstertime/images/test"
    database, queries = read_photos(test / "database"), read_photos(test / "queries")
    assert find_nearby(database, queries).counts.tolist() == [1] * 30
    assert "frame" not in database.table.column_names
    assert find_protocols(tmp_path / "amstertime") == []


def test_nordland_frames_are_numbers_in_both_forms(tmp_path: Path) -> None:
    dummy = read_photos(drawn.nordland(tmp_path, 12) / "database")
    assert sorted(dummy.column("frame")) == list(range(12))
    assert dummy.zones == [0]
    for number in (7, 8):
        drawn.picture(tmp_path / "nordland_plain" / f"images-{number:05d}.png")
    plain = read_photos(tmp_path / "nordland_plain")
    assert plain.column("frame").tolist() == [7, 8]
    np.testing.assert_allclose(np.diff(plain.north), 25 / 10.5)


def test_gsv_cities_rebuilds_names_from_text_whatever_the_suffix(tmp_path: Path) -> None:
    photos = read_photos(drawn.gsv(tmp_path))
    assert len(photos) == 6
    assert photos.skipped == ()
    assert all(Path(path).is_file() for path in photos.paths)
    assert photos.cities == ["Boston", "London"]
    assert photos.column("place").tolist() == [1, 1, 2, 100001, 100001, 100002]
    assert photos.zones == [19, 30]
    assert len(read_photos(tmp_path, zone=19)) == 3


def test_gsv_cities_lists_a_picture_that_is_missing(tmp_path: Path) -> None:
    root = drawn.gsv(tmp_path)
    next((root / "Images/London").iterdir()).unlink()
    assert [one.reason for one in read_photos(root).skipped] == ["its file is not there"]


def test_a_phones_photos_are_placed_by_their_exif(tmp_path: Path) -> None:
    photos = read_photos(drawn.exif(tmp_path))
    assert len(photos) == 1
    assert photos.zones == [-19]
    np.testing.assert_allclose(photos.column("latitude"), [-(33 + 52 / 60 + 7.68 / 3600)])
    assert photos.heading.tolist() == [271.5]
    assert str(photos.time[0]) == "2021-06-07T08:09:10"
    assert sorted(one.reason[:12] for one in photos.skipped) == ["its EXIF has", "its GPS posi"]


def test_photos_without_any_position_are_refused_with_an_example(tmp_path: Path) -> None:
    drawn.picture(tmp_path / "cat.jpg")
    with pytest.raises(PhotoError, match=r"none of the 1 photos.*cat\.jpg.*no GPS"):
        read_photos(tmp_path)


def test_a_csv_with_degrees_is_projected_like_the_utm_package_does(tmp_path: Path) -> None:
    import utm

    drawn.table(tmp_path / "p.csv", ["name", "lat", "lng"], [["a", 52.2050448, 0.1195771]])
    (tmp_path / "a").write_bytes(b"x")
    photos = read_photos(tmp_path / "p.csv")
    east, north, zone, _ = utm.from_latlon(52.2050448, 0.1195771)
    np.testing.assert_allclose([photos.east[0], photos.north[0]], [east, north], atol=1e-6)
    assert photos.zones == [zone]


def test_a_table_needs_no_files_and_its_columns_can_be_named(tmp_path: Path) -> None:
    drawn.table(tmp_path / "p.csv", ["X pos", "Y pos", "who"], [[1.5, 2.5, "me"], ["", 3, "you"]])
    photos = read_photos(tmp_path / "p.csv", east="X pos", north="Y pos")
    assert photos.east.tolist() == [1.5]
    assert photos.column("who").tolist() == ["me"]
    assert photos.skipped[0].path == "row 1"
    assert "no position" in photos.skipped[0].reason
    with pytest.raises(PhotoError, match=r"no column 'Z' for north; it has X pos"):
        read_photos(tmp_path / "p.csv", east="X pos", north="Z")


def test_a_latitude_beyond_a_pole_is_said(tmp_path: Path) -> None:
    drawn.table(tmp_path / "p.csv", ["lat", "lon"], [[52.2, 0.1], [100.5, 13.7], [85, 1]])
    beyond, polar = read_photos(tmp_path / "p.csv").skipped
    assert "latitude 100.5 is beyond a pole; is it the longitude?" in beyond.reason
    assert "latitude 85 is beyond UTM" in polar.reason


@pytest.mark.parametrize(("mark", "point"), [(";", ","), (";", "."), ("\t", "."), (",", ".")])
def test_a_spreadsheet_of_any_country_is_read(mark: str, point: str, tmp_path: Path) -> None:
    rows = [["name", "lat", "lon"], ["Stra\u00dfe.jpg", f"52{point}25", f"0{point}125"]]
    for encoding in ("utf-8", "utf-8-sig", "latin-1"):
        text = "\r\n".join(mark.join(row) for row in rows) + "\r\n"
        (tmp_path / "p.csv").write_bytes(text.encode(encoding))
        (tmp_path / "Stra\u00dfe.jpg").write_bytes(b"x")
        photos = read_photos(tmp_path / "p.csv")
        assert photos.column("latitude").tolist() == [52.25], encoding
        assert Path(photos.paths[0]).name == "Stra\u00dfe.jpg"


def test_a_table_without_positions_lists_its_columns(tmp_path: Path) -> None:
    drawn.table(tmp_path / "p.csv", ["file", "colour"], [["a", "red"]])
    with pytest.raises(PhotoError, match=r"no positions \(columns: file, colour\)"):
        read_photos(tmp_path / "p.csv")


def test_a_row_whose_file_is_gone_is_skipped_by_name(tmp_path: Path) -> None:
    drawn.picture(tmp_path / "images" / "a.jpg")
    rows = [["a.jpg", 1, 2], ["b.jpg", 3, 4]]
    drawn.table(tmp_path / "index.csv", ["file", "east", "north"], rows)
    photos = read_photos(tmp_path)
    assert photos.paths == [f"{tmp_path}/images/a.jpg"]
    assert photos.skipped[0].path == "b.jpg"


def test_parquet_and_geojson_say_the_same_as_csv(tmp_path: Path) -> None:
    drawn.table(tmp_path / "p.csv", ["lat", "lon", "heading"], [[45.75, 21.22, 10.0]])
    csv = read_photos(tmp_path / "p.csv")
    csv.write(tmp_path / "p.parquet")
    feature = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [21.22, 45.75]},
               "properties": {"heading": 10.0}}  # fmt: skip
    collection = {"type": "FeatureCollection", "features": [feature]}
    (tmp_path / "p.geojson").write_text(json.dumps(collection))
    for other in ("p.parquet", "p.geojson"):
        photos = read_photos(tmp_path / other)
        np.testing.assert_allclose(photos.positions, csv.positions)
        assert (photos.zones, photos.heading.tolist()) == ([34], [10.0])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_features_may_tell_different_things(encoding: str, tmp_path: Path) -> None:
    point = {"type": "Point", "coordinates": [21.22, 45.75]}
    line = {"type": "LineString", "coordinates": [[21.22, 45.75], [21.23, 45.76]]}
    told: list[tuple[Any, Any]] = [
        (point, {"note": 1}), (point, {"note": "two", "heading": 9.0}), (line, None), (None, {})
    ]  # fmt: skip
    features = [{"type": "Feature", "geometry": at, "properties": known} for at, known in told]
    (tmp_path / "p.geojson").write_text(json.dumps({"features": features}), encoding=encoding)
    photos = read_photos(tmp_path / "p.geojson")
    assert photos.column("note").tolist() == ["1", "two"]
    assert photos.heading.tolist()[1] == 9.0
    assert [one.path for one in photos.skipped] == ["row 2", "row 3"]


@pytest.mark.parametrize("text", ['{"features": {"a": 1}}', "[1]", "{}", "oops"])
def test_json_that_is_no_table_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(PhotoError, match=r"p\.json (cannot be read as a|is no) table"):
        read_photos(tmp_path / "p.json")


def test_a_city_across_two_zones_fits_in_one_when_asked(tmp_path: Path) -> None:
    rows = [[51.5, -0.01], [51.5, 0.01], [51.5, 60.0]]
    drawn.table(tmp_path / "london.csv", ["lat", "lon"], rows)
    assert read_photos(tmp_path / "london.csv").cities == ["30N", "31N", "41N"]
    photos = read_photos(tmp_path / "london.csv", zone=30)
    assert len(photos) == 2
    np.testing.assert_allclose(np.hypot(*np.diff(photos.positions, axis=0)[0]), 1388, atol=5)
    assert "zone 41" in photos.skipped[0].reason


def test_a_town_across_the_equator_fits_in_one_zone_when_asked(tmp_path: Path) -> None:
    drawn.table(tmp_path / "town.csv", ["lat", "lon"], [[-0.001, 30.5], [0.001, 30.5], [-9, 30.5]])
    for zone in (36, -36):
        photos = read_photos(tmp_path / "town.csv", zone=zone)
        np.testing.assert_allclose(np.diff(photos.north[:2]), 221.3, atol=0.1)
        latitude, _ = to_degrees(photos.east[:2], photos.north[:2], zone)
        np.testing.assert_allclose(latitude, [-0.001, 0.001], atol=1e-9)
    assert len(read_photos(tmp_path / "town.csv", zone=36)) == 2


def test_a_list_of_names_and_a_colmap_model_are_read(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(f"db/{drawn.SFXL}\n")
    assert read_photos(tmp_path / "list.txt").paths == [f"{tmp_path}/db/{drawn.SFXL}"]
    camera = read_photos(drawn.colmap(tmp_path))
    np.testing.assert_allclose(camera.positions, [[5, 7]], atol=1e-9)
    np.testing.assert_allclose(camera.heading, [90], atol=1e-4)


def test_a_setting_a_layout_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PhotoError, match=r"layout sf-xl has no setting 'colour'"):
        read_photos(drawn.sfxl(tmp_path) / "database", colour="red")


@pytest.mark.parametrize(
    ("folder", "photos"), [("timisoara", 1360), ("timisoara/images", 1360), ("cambridge", 4096)]
)
def test_the_real_sets_are_read_whole(folder: str, photos: int, data: Path) -> None:
    read: Photos = read_photos(data / folder)
    assert len(read) == photos
    assert read.skipped == ()
    assert np.isfinite(read.heading).all()
    assert read.zones == ([34] if "timisoara" in folder else [31])


def test_one_holiday_photo_is_named_and_left_out_unless_asked_for(tmp_path: Path) -> None:
    rows = [[48.1 + row * 1e-4, 11.5] for row in range(60)] + [[-33.9, 18.4]]
    drawn.table(tmp_path / "p.csv", ["lat", "lon"], rows)
    photos = read_photos(tmp_path / "p.csv")
    assert (len(photos), photos.cities) == (60, ["32N"])
    assert "34S" in photos.skipped[0].reason
    assert len(read_photos(tmp_path / "p.csv", city="all")) == 61
    assert len(read_photos(tmp_path / "p.csv", city=["34S"])) == 1
    assert len(read_photos(tmp_path / "p.csv", bbox=(18, -34, 19, -33))) == 1
    with pytest.raises(PhotoError, match="no photo lies within"):
        read_photos(tmp_path / "p.csv", bbox=(0, 0, 1, 1))


def test_a_latitude_beyond_utm_is_left_out_with_the_reason(tmp_path: Path) -> None:
    drawn.table(tmp_path / "p.csv", ["lat", "lon"], [[-82.0, 10.0], [48.1, 11.5]])
    photos = read_photos(tmp_path / "p.csv")
    assert len(photos) == 1
    assert "latitude -82 is beyond UTM" in photos.skipped[0].reason
    drawn.table(tmp_path / "s.csv", ["lat", "lon"], [[-82.0, 10.0]])
    with pytest.raises(PhotoError, match="beyond UTM"):
        read_photos(tmp_path / "s.csv")


def test_folders_that_link_to_one_another_are_walked_once(tmp_path: Path) -> None:
    for name in ("a/one.jpg", "b/two.jpg", "c/three.jpg"):
        drawn.picture(tmp_path / name)
    for link, target in (("a/up", ".."), ("a/b", "../b"), ("b/a", "../a"), ("d", "c")):
        (tmp_path / link).symlink_to(tmp_path / Path(link).parent / target)
    (tmp_path / "a/gone.jpg").symlink_to("nowhere.jpg")
    found = [str(Path(path).relative_to(tmp_path)) for path in walk_pictures(tmp_path)]
    assert sorted(found) == ["a/gone.jpg", "a/one.jpg", "b/two.jpg", "c/three.jpg"]
    assert [Path(path).name for path in walk_pictures(tmp_path / "d")] == ["three.jpg"]


@pytest.mark.parametrize("ending", ["jpg", "jfif", "tif", "bmp", "png", "webp", "gif"])
def test_a_photo_of_any_usual_kind_is_read(ending: str, tmp_path: Path) -> None:
    photo = drawn.picture(tmp_path / f"a.{ending}")
    assert picture_paths(tmp_path).to_pylist() == [str(photo)]


@pytest.mark.parametrize(
    ("taken", "time"),
    [
        ("2024:05:01 10:00:00+02:00", "2024-05-01T10:00:00"),
        ("2024-05-01T10:00:00Z", "2024-05-01T10:00:00"),
        ("0000:00:00 00:00:00", "NaT"),
        ("2024:13:45 10:00:00", "NaT"),
        ("    :  :     :  :  ", "NaT"),
    ],
)
def test_a_camera_s_clock_is_read_or_nothing_is(taken: str, time: str, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[ExifTags.Base.DateTime] = taken
    photo = drawn.picture(tmp_path / "a.jpg", exif=exif)
    assert str(read_shot(str(photo)).time) == time


@pytest.mark.parametrize("parts", [(52.5,), (52, 30), (52, 29, 60)])
def test_degrees_of_an_exif_may_come_without_minutes(
    parts: tuple[float, ...], tmp_path: Path
) -> None:
    exif = Image.Exif()
    exif.get_ifd(ExifTags.IFD.GPSInfo).update({1: "S", 2: parts, 3: "W", 4: (13, 30, 0)})
    shot = read_shot(str(drawn.picture(tmp_path / "a.jpg", exif=exif)))
    assert (shot.latitude, shot.longitude) == (-52.5, -13.5)


def test_a_check_tells_of_files_that_are_no_pictures(tmp_path: Path) -> None:
    drawn.picture(tmp_path / drawn.sfxl_name(545010.0, 4184010.0))
    assert not any("passed over" in line for line in check_photos(tmp_path).lines())
    for name in ("a.dng", "b.dng", "film.mp4", "a.jpg.json"):
        (tmp_path / name).touch()
    told = "passed over 3 files that are no pictures (2 .dng, 1 .mp4)"
    assert told in check_photos(tmp_path).lines()


def test_one_photo_in_place_of_photos_is_told_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(PhotoError, match="is one photo; name its folder"):
        read_photos(drawn.picture(tmp_path / "a.jpg"))
    with pytest.raises(PhotoError, match="a photo's name is empty"):
        find_asked([""])


def test_a_sheet_is_written_over_nothing_and_as_a_picture(tmp_path: Path) -> None:
    photo = drawn.picture(tmp_path / "photos" / drawn.sfxl_name(545010.0, 4184010.0))
    before = photo.read_bytes()
    for sheet, why in ((photo, "exists; choose another name"), ("sheet.doc", "call it sheet.jpg")):
        with pytest.raises(PhotoError, match=why):
            check_photos(photo.parent, sheet=tmp_path / sheet)
    assert photo.read_bytes() == before
