"""Many photos at the command line: from a folder to a file of answers, and what can go wrong."""

import csv
import errno
import json
import os
import re
import shutil
from collections.abc import Iterator
from html import unescape
from itertools import islice
from pathlib import Path
from xml.etree import ElementTree as ET

import cv2
import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import ExifTags, Image

import evenplace.serve as service
from evenplace.describe.describer import Describer
from evenplace.photos.geodesy import to_degrees
from evenplace.report.answers import KINDS, MOODS, WRITERS, mood
from evenplace.run.locate_many import Located
from evenplace.run.run import Run
from tests.documents.typist import in_this_process
from tests.drawn import EAST, NORTH, ZONE, draw_split
from tests.serve.conftest import make_run

KML = "{http://www.opengis.net/kml/2.2}"


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty photos, a calibrated run of them, and twelve to ask with."""
    folder = draw_split(tmp_path_factory.mktemp("many"), database=40, queries=12)
    make_run(folder / "run", folder / "database")
    return folder


@pytest.fixture
def here(town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run, and with the queries under names that say nothing."""
    (tmp_path / "run").symlink_to(town / "run")
    (tmp_path / "trip").mkdir()
    for number, query in enumerate(sorted((town / "queries").iterdir())):
        shutil.copy(query, tmp_path / f"trip/img_{number:02d}.jpg")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(line: str, code: int = 0) -> str:
    said, ended = in_this_process(["evenplace", *line.split()])
    assert ended == code, said
    return said


def rows_of(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_photos_that_are_all_unreadable_end_with_an_error_after_the_table(here: Path) -> None:
    for photo in (here / "trip").iterdir():
        photo.write_bytes(b"no picture")
    said = typed("locate run trip --out answers.csv", code=2)
    assert "error: none of the 12 photos can be read: trip/img_00.jpg is no picture" in said
    assert [row["status"] for row in rows_of("answers.csv")] == ["unreadable"] * 12
    assert "none of the 12 photos" in typed("locate run trip --json", code=2)


def test_a_folder_becomes_a_table_with_a_line_a_photo(here: Path) -> None:
    said = typed("locate run trip --out answers.csv")
    rows = rows_of("answers.csv")
    assert [Path(row["photo"]).name for row in rows] == [f"img_{at:02d}.jpg" for at in range(12)]
    assert "12 photos: 12 answered" in said
    assert "photos a second" in said
    for row in rows:
        lat, lon = to_degrees(float(row["east"]), float(row["north"]), ZONE)
        assert float(row["latitude"]) == pytest.approx(float(lat), abs=1e-6)
        assert float(row["longitude"]) == pytest.approx(float(lon), abs=1e-6)
        assert abs(float(row["east"]) - EAST) < 150
        assert float(row["uncertainty_m"]) > 0
        assert 0 <= float(row["confidence"]) <= 1
        assert row["verified_matches"] == ""
        assert Path(row["match"]).is_file()
        assert Path(row["match_5"]).is_file()


def test_many_are_answered_as_one_alone_is(here: Path) -> None:
    typed("locate run trip --out answers.csv")
    alone = json.loads(typed("locate run trip/img_03.jpg --json").splitlines()[-1])
    row = rows_of("answers.csv")[3]
    assert row["match"] == alone["hits"][0]["path"]
    assert float(row["confidence"]) == pytest.approx(alone["confidence"], abs=1e-3)
    assert float(row["east"]) == pytest.approx(alone["position"]["east"], abs=0.02)


def test_every_kind_of_file_tells_an_independent_reader_the_same(here: Path) -> None:
    kinds = ("csv", "parquet", "geojson", "gpx", "kml", "html")
    typed("locate run trip " + " ".join(f"--out a.{kind}" for kind in kinds))
    wanted = [(float(row["longitude"]), float(row["latitude"])) for row in rows_of("a.csv")]
    table = pq.read_table("a.parquet").to_pydict()
    assert list(zip(table["longitude"], table["latitude"], strict=True)) == wanted
    assert [len(matches) for matches in table["matches"]] == [5] * 12
    features = json.loads(Path("a.geojson").read_text())["features"]
    assert [tuple(one["geometry"]["coordinates"]) for one in features] == wanted
    points = ET.parse("a.gpx").findall("{http://www.topografix.com/GPX/1/1}wpt")
    assert [(float(one.attrib["lon"]), float(one.attrib["lat"])) for one in points] == wanted
    spots = ET.parse("a.kml").findall(f".//{KML}coordinates")
    assert [tuple(map(float, (one.text or "").split(",")[:2])) for one in spots] == wanted
    page = Path("a.html").read_text()
    assert page.count("<li id=") == 12
    assert "http://" not in page.split("</style>", 1)[1].split("<script>")[0]


def test_odd_names_times_and_silence_survive_every_kind_of_file(here: Path) -> None:
    odd = 'Grüße, "Ümit" & <co>; 100%.jpg'
    for number, photo in enumerate(sorted(Path("trip").iterdir())):
        exif = Image.Exif()
        exif[ExifTags.Base.DateTime] = f"2024:05:01 10:00:{number:02d}"
        with Image.open(photo) as image:
            image.save(photo, exif=exif, quality=95)
    Path("trip/img_00.jpg").rename(f"trip/{odd}")
    Path("trip/broken.jpg").write_bytes(b"\xff\xd8 no picture")
    kinds = ("csv", "parquet", "geojson", "gpx", "kml", "html")
    typed("locate run trip --min-precision 0.4 " + " ".join(f"--out a.{kind}" for kind in kinds))
    rows = rows_of("a.csv")
    assert {row["status"] for row in rows} == {"answered", "no answer", "unreadable"}
    assert f"trip/{odd}" in [row["photo"] for row in rows]
    table = pq.read_table("a.parquet").to_pylist()
    features = json.loads(Path("a.geojson").read_text())["features"]
    marks = ET.parse("a.kml").findall(".//{*}Placemark")
    for row, theirs, feature, mark in zip(rows, table, features, marks, strict=True):
        values = {one.attrib["name"]: one[0].text or "" for one in mark.iter(KML + "Data")}
        for name in set(row) & set(theirs):
            assert as_text(theirs[name]) == row[name], name
            assert values.get(name, "") == row[name], name
            if name not in ("latitude", "longitude"):
                assert as_text(feature["properties"][name]) == row[name], name
        assert mark.findtext("{*}name") == Path(row["photo"]).name
        assert (mark.find("{*}Point") is None) == (row["status"] != "answered")
    answers = [row for row in rows if row["status"] == "answered"]
    gpx = ET.parse("a.gpx")
    assert [one.text for one in gpx.findall("{*}wpt/{*}name")] == [
        Path(row["photo"]).name for row in answers
    ]
    times = [one.text for one in gpx.findall(".//{*}trkpt/{*}time")]
    assert times == sorted(f"{row['time']}Z" for row in answers)
    said = re.findall(r"<b>(.*?)</b>", Path("a.html").read_text())
    assert {unescape(one) for one in said} >= {Path(row["photo"]).name for row in answers}


def test_a_name_that_is_no_text_is_in_every_kind_of_file(here: Path) -> None:
    for at, photo in enumerate(sorted(Path("trip").iterdir())):
        if at:
            photo.unlink()
        else:
            photo.rename(photo.with_name(os.fsdecode(b"\xff\xfe.jpg")))
    typed("locate run trip " + " ".join(f"--out a{kind}" for kind in KINDS))
    assert "\udcff\udcfe.jpg" in Path("a.csv").read_text(errors="surrogateescape")
    assert pq.read_table("a.parquet").column("photo").to_pylist() == ["trip/??.jpg"]
    for kind in (".geojson", ".html"):
        assert "??.jpg" in Path(f"a{kind}").read_text()
    for kind in (".gpx", ".kml"):
        assert "\N{REPLACEMENT CHARACTER}" * 2 in Path(f"a{kind}").read_text()


@pytest.mark.parametrize(
    ("confidence", "calibrated", "called"),
    [
        (0.9, True, "sure"),
        (0.89, True, "likely"),
        (0.99, False, "likely"),
        (0.49, True, "a guess"),
        (57.0, False, "a guess"),
    ],
)
def test_an_answer_is_called_what_the_service_calls_it(
    confidence: float, calibrated: bool, called: str
) -> None:
    line = Located("a.jpg", "answered", confidence=confidence, calibrated=calibrated)
    assert MOODS[mood(line)][0] == called
    script = (Path(service.__file__).parent / "assets" / "answer.js").read_text()
    assert 'answer.calibrated && answer.confidence >= 0.9 ? "sure"' in script
    assert 'answer.confidence >= 0.5 ? "likely" : "guess"' in script


def as_text(value: object) -> str:
    return "" if value is None else str(value)


def test_what_was_not_answered_has_a_reason_and_no_position(here: Path) -> None:
    Path("trip/broken.jpg").write_bytes(b"\xff\xd8 no picture")
    said = typed("locate run trip --min-precision 0.999 --out a.csv --out a.geojson --out a.html")
    rows = {Path(row["photo"]).name: row for row in rows_of("a.csv")}
    broken = rows.pop("broken.jpg")
    assert broken["status"] == "unreadable"
    assert "broken.jpg" in broken["reason"]
    silent = [row for row in rows.values() if row["status"] == "no answer"]
    assert silent
    assert all(row["latitude"] == "" and "99.9 %" in row["reason"] for row in silent)
    table = [line for line in said.splitlines() if "  no answer  " in line]
    assert len(table) == len(silent)
    bar = {row["reason"].partition(", and ")[2] for row in silent}
    assert said.count("each answer and all together") == 1
    assert f"no answer where it is not sure enough: {bar.pop()}\n" in said
    assert f"unreadable, broken.jpg for example: {broken['reason']}\n" in said
    features = json.loads(Path("a.geojson").read_text())["features"]
    assert len(features) == 13
    assert sum(one["geometry"] is None for one in features) == len(silent) + 1
    assert "Without an answer" in Path("a.html").read_text()


def test_the_table_fits_a_terminal_however_long_names_are(here: Path) -> None:
    for photo in sorted(Path("trip").iterdir()):
        photo.rename(
            photo.with_stem(f"{photo.stem}_of_a_long_walk_along_the_river_to_the_old_town")
        )
    said = typed("locate run trip --min-precision 0.4")
    table = said[said.index("give or take") - 100 : said.index("no answer where")].splitlines()
    assert max(map(len, table)) <= 100
    assert "no answer" in "".join(table)


def test_patterns_lists_tables_and_names_mean_the_same_photos(here: Path) -> None:
    names = [f"trip/img_{at:02d}.jpg" for at in range(3)]
    Path("list.txt").write_text("# mine\n" + "\n".join(names))
    Path("table.csv").write_text("File Name,whose\n" + "\n".join(f"{one},me" for one in names))
    for number, asked in enumerate(
        ("trip/img_0[0-2].jpg", "list.txt", "table.csv", " ".join(names))
    ):
        typed(f"locate run {asked} --out {number}.csv")
        assert [row["photo"] for row in rows_of(f"{number}.csv")] == names


def test_a_video_is_located_frame_by_frame(here: Path) -> None:
    film = cv2.VideoWriter("walk.avi", cv2.VideoWriter.fourcc(*"MJPG"), 4.0, (64, 64))
    for photo in sorted(Path("trip").iterdir()):
        film.write(np.asarray(Image.open(photo))[:, :, ::-1])
    film.release()
    typed("locate run walk.avi --every 0.5 --out a.csv")
    rows = rows_of("a.csv")
    assert [row["photo"] for row in rows] == [f"walk.avi#t={at / 2:.2f}" for at in range(6)]
    typed("locate run trip --out b.csv")
    still = rows_of("b.csv")
    axes = [[float(one[axis]) for axis in ("east", "north")] for one in rows + still[::2]]
    away = np.linalg.norm(np.array(axes[:6]) - axes[6:], axis=1)
    assert np.sum(away < 25) >= 5  # a film is compressed once more


def fill_the_disk(*_: object) -> bytes:
    raise OSError(errno.ENOSPC, "No space left on device")


def stop_after(blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next job be stopped after so many blocks of four photos."""
    monkeypatch.setattr("evenplace.photos.asked.BLOCK", 4)
    real = Run.locate_many

    def stopped(self: Run, *words: object, **named: object) -> Iterator[object]:
        monkeypatch.setattr(Run, "locate_many", real)
        yield from islice(real(self, *words, **named), blocks)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "locate_many", stopped)


def test_a_stopped_job_goes_on_and_ends_as_if_it_had_not_stopped(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed("locate run trip --out whole.csv")
    stop_after(2, monkeypatch)
    assert "stopped after 8 photos" in typed("locate run trip --out a.csv", code=130)
    assert not Path("a.csv").exists()
    refused = typed("locate run trip --out a.csv -k 3", code=2)
    assert "begun with k 5" in refused
    half = Path("a.csv.part").read_text()
    Path("a.csv.part").write_text(half[:-20])  # as a power cut leaves it: the last line is lost
    assert "going on after 7 photos" in typed("locate run trip --out a.csv")
    assert Path("a.csv").read_text() == Path("whole.csv").read_text()
    assert not Path("a.csv.part").exists()


def test_a_job_goes_on_with_its_own_photos_only(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_after(2, monkeypatch)
    typed("locate run trip --out a.csv", code=130)
    shutil.copytree("trip", "other")
    kept = Path("a.csv.part").read_text()
    refused = typed("locate run other --out a.csv", code=2)
    assert "a.csv.part was begun with other photos, trip/img_00.jpg for example" in refused
    assert Path("a.csv.part").read_text() == kept
    Path("trip/img_00.jpg").rename("trip/an_earlier.jpg")
    assert "going on after 7 photos" in typed("locate run trip --out a.csv")
    assert [row["photo"] for row in rows_of("a.csv")] == sorted(map(str, Path("trip").iterdir()))


def test_answers_are_in_all_files_or_in_none_and_are_not_asked_for_again(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(WRITERS, ".kml", fill_the_disk)
        said = typed("locate run trip --out a.csv --out a.kml --out a.gpx", code=2)
    assert "could not write a.kml: the disk is full" in said
    assert {one.name for one in Path().iterdir()} == {"run", "trip", "a.csv.part"}
    said = typed("locate run trip --out a.csv --out a.kml --out a.gpx")
    assert "going on after 12 photos" in said
    assert len(rows_of("a.csv")) == 12


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--out a.csv --out folder.csv --replace", "folder.csv is a folder; choose another name"),
        ("--out a.csv --out trip/img_00.jpg/b.csv", "a file is in the way of a folder"),
        ("--out a.csv --sequence --speed 0", "--speed 0 goes nowhere"),
        ("--out a.csv --sequence --order date", "use time or name"),
        ("--out a.csv --every 0", "--every 0 takes no frames"),
        ("--out a.csv -k 0", "k=0 asks for no hit"),
        ("--write-exif --min-precision 0.4 --copies run/recipe.toml", "a file is in the way"),
        ("--write-exif --min-precision 0.4 --copies trip", "--copies trip is where the photos are"),
    ],
)
def test_what_cannot_be_written_is_refused_before_photos_are_described(
    here: Path, words: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("folder.csv").mkdir()
    monkeypatch.setattr(Describer, "describe", lambda *args, **words: pytest.fail("described"))
    before = sorted(Path().rglob("*"))
    assert sentence in typed(f"locate run trip {words}", code=2)
    assert sorted(Path().rglob("*")) == before, "no journal either, that would be in the way"


def test_a_file_that_is_named_twice_is_asked_about_once(here: Path) -> None:
    names = ["trip/img_00.jpg", "./trip/img_00.jpg", str(here / "trip/img_00.jpg"), "trip"]
    assert "12 photos: 12 answered" in typed(f"locate run {' '.join(names)}")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("locate run trip --out notes.txt", "use .csv, .parquet"),
        ("locate run films", "holds no photos (looked for .jpg"),
        ("locate run films", "name a video itself, as films/film.mp4"),
        ("locate run trip --out kept.csv", "kept.csv exists"),
        ("locate run empty", "holds no photos"),
        ("locate run nothing*.jpg", "nothing is named like"),
        ("locate run none.txt", "none.txt does not exist"),
        ("locate run none.mp4", "none.mp4 does not exist"),
        ("locate run trip/film.mp4", "no video that can be decoded"),
        ("locate run trip --every 0", "--every 0 takes no frames"),
        ("locate run", "takes photos or --descriptor"),
        ("locate run kept.csv", "has no column of paths"),
    ],
)
def test_a_sentence_for_what_cannot_be_and_nothing_written_over(
    here: Path, line: str, sentence: str
) -> None:
    Path("kept.csv").write_text("a,b\n1,2\n")
    Path("empty").mkdir()
    Path("films").mkdir()
    for folder in ("trip", "films"):
        Path(folder, "film.mp4").write_bytes(b"no film")
    said = typed(line, code=2)
    assert sentence in said
    assert "Traceback" not in said
    assert Path("kept.csv").read_text() == "a,b\n1,2\n"


def test_a_file_is_written_over_when_told_to(here: Path) -> None:
    Path("a.csv").write_text("mine")
    typed("locate run trip --out a.csv --replace")
    assert len(rows_of("a.csv")) == 12


def test_other_files_of_a_folder_are_passed_over_and_counted(here: Path) -> None:
    Path("trip/notes.txt").write_text("a day out")
    Path("trip/film.mp4").write_bytes(b"")
    said = typed("locate run trip --out a.csv")
    assert "passed over 2 files that are no pictures" in said
    assert "name a video itself" in said
    assert len(rows_of("a.csv")) == 12


def test_a_photo_whose_own_gps_is_elsewhere_is_not_answered(here: Path) -> None:
    photo = Path("trip/img_00.jpg")
    image, exif = Image.open(photo), Image.Exif()
    exif.get_ifd(ExifTags.IFD.GPSInfo).update(
        {1: "N", 2: (48.0, 8.0, 0.0), 3: "E", 4: (11.0, 30.0, 0.0)}
    )
    image.save(photo, exif=exif)
    typed("locate run trip --out a.csv")
    rows = rows_of("a.csv")
    assert rows[0]["status"] == "no answer"
    assert "its own GPS position, 48.1333, 11.5000" in rows[0]["reason"]
    assert rows[1]["status"] == "answered"


def test_a_database_in_local_metres_has_no_degrees_to_write(here: Path, town: Path) -> None:
    table = ["path,east,north"]
    for path in sorted((town / "database").iterdir()):
        _, east, north, *_ = path.name.split("@")
        table.append(f"{path},{float(east) - EAST},{float(north) - NORTH}")
    Path("local.csv").write_text("\n".join(table))
    make_run(Path("flat"), Path("local.csv"))
    assert "needs degrees" in typed("locate flat trip --out a.geojson", code=2)
    typed("locate flat trip --out a.csv --out a.html")
    assert rows_of("a.csv")[0]["latitude"] == ""
    assert abs(float(rows_of("a.csv")[0]["east"])) < 150


def test_json_is_a_line_a_photo(here: Path) -> None:
    lines = typed("locate run trip --json").splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{")]
    assert len(found) == 12
    assert found[0]["spot"]["zone"] == ZONE


def test_queries_without_positions_are_judged_as_far_as_that_goes(here: Path) -> None:
    said = typed("evaluate run --queries trip --min-precision 0.6")
    assert "no recall: none of the 12 photos in trip says where it was taken" in said
    for words in (
        "answered at 60 % asked",
        "confidence, quartiles",
        "right, by its own confidence",
    ):
        assert words in said
    Path("table.csv").write_text("path\ntrip/img_00.jpg\ntrip/img_01.jpg\n")
    assert "no recall: table.csv has no positions" in typed("evaluate run --queries table.csv")
    assert not Path("run/predictions.parquet").exists()


def test_a_run_that_promises_nothing_says_so_wherever_it_is_asked(here: Path) -> None:
    shutil.copytree("run", "doubtful")
    kept = Path("doubtful/calibration.json")
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"doubt": "it rained"}))
    ways = ("evaluate doubtful --queries trip", "locate doubtful trip")
    for words in ways:
        assert "uncalibrated: it rained" in typed(words)
        refused = typed(f"{words} --min-precision 0.6", code=2)
        assert "min_precision=0.6 cannot be promised: it rained" in refused
        typed(f"{words} --min-precision 0.6 --insist")
    said = typed("locate doubtful trip/img_00.jpg")
    assert "uncalibrated, a score and no probability, as it rained" in said


def test_a_check_shows_some_photos_a_line_each(town: Path) -> None:
    said = typed(f"photos check {town / 'database'}")
    (line, *_) = [line for line in said.splitlines() if ".jpg: east " in line]
    assert re.search(rf"\.jpg: east [\d.]+, north [\d.]+, zone {ZONE}, .*time 2020-01-01 ", line)
    assert "nan" not in line


def test_a_walk_hears_its_neighbours(here: Path) -> None:
    typed("locate run trip --out alone.csv")
    said = typed("locate run trip --sequence --order name --speed 20 --out a.csv")
    assert "the walk gives" in said
    rows = rows_of("a.csv")
    assert len(rows) == 12
    alone = {row["photo"]: row for row in rows_of("alone.csv")}
    kept = [row for row in rows if row["match"] == alone[row["photo"]]["match"]]
    assert kept
    assert all(row["confidence"] == alone[row["photo"]]["confidence"] for row in kept)
    assert all(row["calibrated"] == "False" for row in rows if row not in kept)
    assert "match_5" in rows[0]
    assert "match_6" not in rows[0]
    assert "no time in their EXIF" in typed("locate run trip --sequence --order time", code=2)


def test_a_clock_that_jumps_is_told_and_nothing_is_lost(here: Path) -> None:
    for number, photo in enumerate(sorted(Path("trip").iterdir())):
        exif = Image.Exif()
        minute = number if number < 6 else number - 6  # somebody set it back on the way
        exif[ExifTags.Base.DateTime] = f"2024:05:01 10:{minute:02d}:{number:02d}"
        with Image.open(photo) as image:
            image.save(photo, exif=exif, quality=95)
    said = " ".join(typed("locate run trip --sequence --out a.csv").split())
    assert "the clock jumps back 1 times in the order of names, first from trip/img_05.jpg" in said
    assert "use --order name if the names are right" in said
    assert len(rows_of("a.csv")) == 12
    named = typed("locate run trip --sequence --order name --out b.csv")
    assert "jumps" not in named
    assert len(rows_of("b.csv")) == 12


def test_a_track_with_a_gap_says_which_photos_it_cannot_place(here: Path) -> None:
    points = "".join(
        f'<trkpt lat="{48 + second / 1e5}" lon="11"><time>2024-05-01T10:{second // 60:02d}:'
        f"{second % 60:02d}Z</time></trkpt>"
        for second in (0, 10, 1800)
    )
    Path("trip/track.gpx").write_text(
        f'<gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>{points}</trkseg></trk></gpx>'
    )
    for name, minute in (("img_00", "00:05"), ("img_01", "15:00")):
        exif = Image.Exif()
        exif[ExifTags.Base.DateTime] = f"2024:05:01 10:{minute}"
        with Image.open(f"trip/{name}.jpg") as image:
            image.save(f"trip/{name}.jpg", exif=exif)
    said = " ".join(typed("photos check trip").split())
    assert "layout track: 1 photos" in said
    assert "it was taken in a gap of the track of #### s 1 trip/img_01.jpg" in said


def test_photos_of_another_light_are_asked_together(here: Path, town: Path) -> None:
    (here / "dusk").mkdir()
    for path in (town / "database").iterdir():
        picture = np.asarray(Image.open(path), np.float32) * (0.35, 0.5, 0.9) + (0, 10, 40)
        Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(here / "dusk" / path.name)
    alone, together = (
        np.mean(
            [
                json.loads(line)["matches"][0]["similarity"]
                for line in said.splitlines()
                if line.startswith("{")
            ]
        )
        for said in (typed(f"locate run dusk --json {way}") for way in ("--no-centre", "--centre"))
    )
    assert together > alone + 0.02
    assert "photos that are asked together" in typed("locate run trip/img_00.jpg --centre", 2)
