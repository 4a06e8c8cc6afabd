"""What other people's services and cameras hand out: read with position, time and licence."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evenplace.errors import PhotoError
from evenplace.photos import read_photos
from evenplace.photos.gather import credits_of
from evenplace.photos.geotags import place_exif, with_exif
from evenplace.photos.layouts.track import read_track
from tests.documents.typist import in_this_process

SPOT = (48.137, 11.575)


def draw(path: Path, taken: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    if taken:
        exif[306] = taken
    Image.new("RGB", (16, 16), "grey").save(path, exif=exif)
    return path


def item(name: str, lon: float = 11.575, **told: Any) -> dict[str, Any]:
    return {
        "id": name, "type": "Feature", "stac_version": "1.0.0",
        "geometry": {"type": "Point", "coordinates": [lon, 48.137]},
        "properties": {"datetime": "2024-05-01T10:00:00+00:00", "view:azimuth": 90,
                       "license": "CC-BY-SA-4.0", "geovisio:producer": "Jane", **told},
        "providers": [{"name": "Jane", "roles": ["producer"]}],
        "links": [{"rel": "self", "href": f"https://p.example/{name}"}],
    }  # fmt: skip


def test_takeout_is_read_from_the_json_beside_each_photo(tmp_path: Path) -> None:
    long = "PXL_20240501_100000000.PORTRAIT-01.COVER_abc"
    beside = {
        "a.jpg": "a.jpg.json", "b.jpg": "b.jpg.supplemental-metadata.json",
        "a(1).jpg": "a.jpg(1).json", "b(2).jpg": "b.jpg.supplemental-metadata(2).json",
        "a-edited.jpg": None, f"{long}.jpg": f"{long}.j.json",
    }  # fmt: skip
    for name, described in beside.items():
        draw(tmp_path / name)
        told = {"geoData": {"latitude": SPOT[0], "longitude": SPOT[1]},
                "photoTakenTime": {"timestamp": "1714557600"}}  # fmt: skip
        if described is not None:
            (tmp_path / described).write_text(json.dumps(told))
    draw(tmp_path / "c.jpg")
    (tmp_path / "c.jpg.json").write_text('{"geoData": {"latitude": 0.0, "longitude": 0.0}}')
    photos = read_photos(tmp_path)
    assert sorted(Path(one).name for one in photos.paths) == sorted(beside)
    assert str(photos.time[0]) == "2024-05-01T10:00:00"
    assert photos.column("latitude")[0] == SPOT[0]
    nothing = "its JSON has no position, and its EXIF has no GPS position"
    assert [one.reason for one in photos.skipped] == [nothing]


def test_a_takeout_photo_whose_json_knows_nothing_is_placed_by_its_exif(tmp_path: Path) -> None:
    told = {"a.jpg": None, "b.jpg": (0.0, 0.0), "c.jpg": (None, None), "d.jpg": SPOT}
    for name, spot in told.items():
        photo = draw(tmp_path / name)
        photo.write_bytes(with_exif(photo.read_bytes(), place_exif(None, 48.2, 11.5, 3.0)))
        if spot is not None:
            where = {"geoData": dict(zip(("latitude", "longitude"), spot, strict=True))}
            (tmp_path / f"{name}.json").write_text(json.dumps(where))
    photos = read_photos(tmp_path)
    assert photos.column("latitude") == pytest.approx([48.2, 48.2, 48.2, SPOT[0]])
    assert not photos.skipped


def test_mapillary_tools_descriptions_are_read(tmp_path: Path) -> None:
    draw(tmp_path / "a.jpg")
    draw(tmp_path / "b.jpg")
    rows = [
        {"filename": "a.jpg", "MAPLatitude": SPOT[0], "MAPLongitude": SPOT[1],
         "MAPCaptureTime": "2024_05_01_10_00_00_000", "MAPCompassHeading": {"TrueHeading": 12.5},
         "MAPSequenceUUID": "drive"},
        {"filename": "b.jpg", "error": {"message": "no GPS"}},
        {"filename": "gone.jpg", "MAPLatitude": 1.0, "MAPLongitude": 1.0},
    ]  # fmt: skip
    (tmp_path / "mapillary_image_description.json").write_text(json.dumps(rows))
    photos = read_photos(tmp_path)
    assert (len(photos), float(photos.heading[0])) == (1, 12.5)
    assert str(photos.time[0]) == "2024-05-01T10:00:00"
    assert "no GPS" in photos.skipped[0].reason
    assert photos.column("sequence").tolist() == ["drive"]


def test_exports_of_mapillary_and_panoramax_keep_whose_they_are(tmp_path: Path) -> None:
    draw(tmp_path / "77.jpg")
    row = {"id": "77", "computed_geometry": {"type": "Point", "coordinates": [SPOT[1], SPOT[0]]},
           "computed_compass_angle": 361.0, "captured_at": 1714557600000,
           "creator": {"username": "joe"}, "sequence": "s7"}  # fmt: skip
    (tmp_path / "m.json").write_text(json.dumps({"data": [row]}))
    photos = read_photos(tmp_path / "m.json")
    assert credits_of(photos, [0]) == ["joe, CC-BY-SA-4.0"]
    assert float(photos.heading[0]) == 1.0
    assert photos.column("sequence").tolist() == ["s7"]
    found = item("77") | {"collection": "c7"}
    made = {"type": "FeatureCollection", "features": [found, item("gone")]}
    (tmp_path / "p.geojson").write_text(json.dumps(made))
    photos = read_photos(tmp_path / "p.geojson")
    assert credits_of(photos, [0]) == ["Jane, CC-BY-SA-4.0"]
    assert (float(photos.heading[0]), len(photos.skipped)) == (90.0, 1)
    assert photos.column("source")[0] == "https://p.example/77"
    assert photos.column("sequence").tolist() == ["c7"]


def gpx(points: list[tuple[str, float, float]]) -> str:
    rows = "".join(f'<trkpt lat="{a}" lon="{b}"><time>{t}</time></trkpt>' for t, a, b in points)
    head = '<gpx xmlns="http://www.topografix.com/GPX/1/1" version="1.1" creator="x"><trk><trkseg>'
    return f"{head}{rows}</trkseg></trk></gpx>"


def test_photos_are_placed_on_a_track_by_time_and_not_into_its_gaps(tmp_path: Path) -> None:
    times = [("2024-05-01T10:00:00Z", 48.0, 11.0), ("2024-05-01T10:00:10Z", 48.001, 11.002),
             ("2024-05-01T10:30:00Z", 48.1, 11.1)]  # fmt: skip
    (tmp_path / "track.gpx").write_text(gpx(times))
    draw(tmp_path / "a.jpg", "2024:05:01 10:00:05")
    draw(tmp_path / "b.jpg", "2024:05:01 10:15:00")
    draw(tmp_path / "c.jpg", "2024:05:01 11:15:00")
    draw(tmp_path / "d.jpg")
    draw(tmp_path / "1714557608500.jpg")  # milliseconds, as ROS names frames
    photos = read_photos(tmp_path)
    assert [Path(one).name for one in photos.paths] == ["1714557608500.jpg", "a.jpg"]
    assert photos.column("latitude")[1] == pytest.approx(48.0005)
    assert photos.column("longitude")[0] == pytest.approx(11.0017)
    reasons = [one.reason for one in photos.skipped]
    assert "in a gap of the track of 1790 s" in reasons[0]
    assert "after it ends" in reasons[1]
    assert "nothing says when" in reasons[2]
    ahead = read_photos(tmp_path, offset=4500.0)
    assert "c.jpg" in ahead.paths[-1]


def test_a_track_of_another_day_asks_for_the_clock(tmp_path: Path) -> None:
    (tmp_path / "t.gpx").write_text(gpx([("2024-05-01T10:00:00Z", 48.0, 11.0)] * 2))
    draw(tmp_path / "a.jpg", "2023:05:01 10:00:05")
    with pytest.raises(PhotoError, match=r"2023-05-01 10:00:05.*--offset SECONDS"):
        read_photos(tmp_path)
    words = ["evenplace", "photos", "check", str(tmp_path), "--offset"]
    said, ended = in_this_process([*words, str(-366 * 86400 + 5)])
    assert ended == 0, said
    assert "layout track: 1 photos" in said


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("t.gpx", "<gpx>", "no track that can be read"),
        ("t.gpx", "<gpx></gpx>", "export the track with times"),
        ("t.nmea", "$GPRMC,256199,A,5230.0,N,01312.0,E,,,320524,,", "no track that can be read"),
        ("timestamps.txt", "this morning", "no list of times"),
    ],
)
def test_a_track_that_cannot_be_read_is_named(
    name: str, text: str, sentence: str, tmp_path: Path
) -> None:
    draw(tmp_path / "a.jpg", "2024:05:01 10:00:05")
    with pytest.raises(PhotoError, match="has no track"):
        read_photos(tmp_path, "track")
    (tmp_path / "a.gpx").write_text(gpx([("2024-05-01T10:00:00Z", 48.0, 11.0)] * 2))
    (tmp_path / name).write_text(text)
    with pytest.raises(PhotoError, match=sentence):
        read_photos(tmp_path)


def test_a_track_without_a_zone_is_in_utc_wherever_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.gpx").write_text(gpx([("2024-05-01T10:00:00", 48.0, 11.0)] * 2))
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        try:
            assert read_track(tmp_path / "t.gpx")[0, 0] == 1714557600
        finally:
            patch.undo()
            time.tzset()


def test_nmea_and_timestamps_are_read(tmp_path: Path) -> None:
    (tmp_path / "log.nmea").write_text(
        "$GPRMC,100000.00,A,4807.038,N,01131.000,E,022.4,084.4,010524,,,A*6A\n"
        "$GPRMC,100005.00,V,,,,,,,010524,,,N*00\n"
        "$GPRMC,100010.00,A,4807.138,N,01131.100,W,022.4,084.4,010524,,,A*6A\n"
    )
    track = read_track(tmp_path / "log.nmea")
    assert track[:, 1] == pytest.approx([48 + 7.038 / 60, 48 + 7.138 / 60])
    assert track[1, 2] == pytest.approx(-(11 + 31.1 / 60))
    (tmp_path / "log.nmea").write_text(
        (tmp_path / "log.nmea").read_text().replace("W,022", "E,022")
    )
    for number in range(2):
        draw(tmp_path / f"data/000000000{number}.png")
    stamps = "2024-05-01 10:00:00.000000000\n2024-05-01 10:00:05.000000000\n"
    (tmp_path / "timestamps.txt").write_text(stamps)
    photos = read_photos(tmp_path)
    assert photos.column("latitude")[1] == pytest.approx(48 + 7.088 / 60)


class Stub(BaseHTTPRequestHandler):
    """Speaks what the two services document: pages, tokens, refusals, pictures."""

    asked: list[tuple[str, dict[str, str]]]
    busy = 0

    def do_GET(self) -> None:
        type(self).asked.append((self.path, dict(self.headers.items())))
        home = f"http://{self.headers['Host']}"
        if type(self).busy:
            type(self).busy -= 1
            self.send_response(429)
            self.send_header("Retry-After", "0")
            self.end_headers()
            return
        if self.path.startswith("/api/search"):
            second = "page=2" in self.path
            names = ["c"] if second else ["a", "b", "../../evil"]
            made = [
                item(one) | {"assets": {"sd": {"href": f"{home}/pic/{n}"}}}
                for n, one in enumerate(names)
            ]
            links = [] if second else [{"rel": "next", "href": f"{home}/api/search?page=2"}]
            self.answer(json.dumps({"type": "FeatureCollection", "features": made, "links": links}))
        elif self.path.startswith("/images"):
            if self.headers["Authorization"] != "OAuth secret":
                self.send_error(401)
                return
            west = float(self.path.split("bbox=")[1].split("%2C")[0])
            row = {"id": f"{round(west * 1000)}", "captured_at": 1714557600000,
                   "geometry": {"type": "Point", "coordinates": [west, 48.1]},
                   "thumb_1024_url": f"{home}/pic/1", "creator": {"username": "joe"}}  # fmt: skip
            self.answer(json.dumps({"data": [row]}))
        else:
            self.answer(b"\xff\xd8 a picture")

    def answer(self, body: str | bytes) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body if isinstance(body, bytes) else body.encode())

    def log_message(self, format: str, *words: Any) -> None:  # noqa: A002
        pass


@pytest.fixture
def stub() -> Iterator[str]:
    Stub.asked, Stub.busy = [], 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def typed(line: str, code: int = 0) -> str:
    said, ended = in_this_process(["evenplace", *line.split()])
    assert ended == code, said
    return said


def test_panoramax_is_fetched_page_by_page_once(
    stub: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Stub.busy = 1
    line = f"fetch panoramax --bbox 11.5,48.1,11.6,48.2 --out got --rate 500 --api {stub}"
    assert "2 photos in got" in typed(f"{line} --most 2")
    assert "3 photos in got" in typed(line)
    assert sorted(one.name for one in Path("got").iterdir()) == [
        "a.jpg",
        "b.jpg",
        "c.jpg",
        "index.csv",
    ]
    pictures = [path for path, _ in Stub.asked if path.startswith("/pic/")]
    assert len(pictures) == 3, "what is there is not fetched again"
    assert all(headers["User-Agent"].startswith("EvenPlace/") for _, headers in Stub.asked)
    photos = read_photos("got")
    assert len(photos) == 3
    assert credits_of(photos, [2]) == ["Jane, CC-BY-SA-4.0"]
    assert float(photos.heading[0]) == 90.0
    assert str(photos.time[0]) == "2024-05-01T10:00:00"


def test_a_table_of_somebody_else_is_not_added_to(
    stub: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    Path("mine/index.csv").write_text("path,latitude,longitude\nx.jpg,48.1,11.5\n")
    line = f"fetch panoramax --bbox 11.5,48.1,11.6,48.2 --out mine --rate 500 --api {stub}"
    assert "has other columns than fetch writes; use another folder" in typed(line, code=2)
    assert [one.name for one in Path("mine").iterdir()] == ["index.csv"]


def test_mapillary_is_asked_cell_by_cell_with_the_token_in_no_address(
    stub: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("token").write_text("secret\n")
    line = f"fetch mapillary --bbox 11.5,48.1,11.525,48.105 --out got --rate 500 --api {stub}"
    assert "3 photos in got" in typed(f"{line} --token-file token")
    assert not any("secret" in path for path, _ in Stub.asked)
    assert not any("Authorization" in told for path, told in Stub.asked if path.startswith("/pic"))
    assert credits_of(read_photos("got"), [0]) == ["joe, CC-BY-SA-4.0"]
    Path("token").write_text("wrong")
    assert "check the token" in typed(f"{line} --token-file token", code=2)
    assert "holds no token" in typed(f"{line} --token-file none", code=2)


def test_offline_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    line = "fetch panoramax --bbox 11.5,48.1,11.6,48.2 --out got --api"
    assert "cannot be reached" in typed(f"{line} http://127.0.0.1:9", code=2)
    assert "no address on the web" in typed(f"{line} file:///etc", code=2)
    wrong = "fetch panoramax --bbox 12,48.1,11.6,48.2 --out got"
    assert "is not west,south,east,north" in typed(wrong, code=2)
    assert np.all([one.suffix != ".jpg" for one in Path("got").rglob("*")])
