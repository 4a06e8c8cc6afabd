"""Who is let in, what is refused, and what is never said."""

import io
import logging
import struct
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from evenplace.errors import SettingError
from evenplace.photos import Photos
from evenplace.serve import guard
from evenplace.serve.guard import COOKIE, session_cookie
from evenplace.serve.settings import Limits, Settings, read_token
from tests.serve.conftest import Town, serving
from tests.serve.test_api import ask, problem_of

TOKEN = "a-token-of-some-length"
EVIL = {"origin": "http://evil.example"}


def jpeg(width: int = 64, height: int = 64, **options: Any) -> bytes:
    data = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 255, (height, width, 3)).astype(np.uint8)
    Image.fromarray(noise).save(data, "JPEG", **options)
    return data.getvalue()


def png_claiming(width: int, height: int) -> bytes:
    """A PNG whose header promises more than it holds: a decompression bomb."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(1_000_000), 9)
    start = b"\x89PNG\r\n\x1a\n"
    return start + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def test_another_name_for_this_machine_is_refused(client: TestClient) -> None:
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::2]", "[bad"):
        said = client.get("/about", headers={"host": host})
        assert problem_of(said).type.endswith("host-refused"), host
    for host in ("localhost", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST:1", "localhost."):
        assert client.get("/about", headers={"host": host}).status_code == 200, host


def test_a_name_can_be_allowed(town: Town) -> None:
    with serving(town.run, hosts=("places.example",)) as client:
        assert client.get("/about", headers={"host": "places.example"}).status_code == 200
        assert client.get("/about", headers={"host": "other.example"}).status_code == 421


def test_other_sites_pages_may_neither_send_nor_embed(client: TestClient, town: Town) -> None:
    files = [("photo", town.photo())]
    assert problem_of(client.post("/locate", files=files, headers=EVIL)).status == 403
    null = client.post("/locate", files=files, headers={"origin": "null"})
    assert problem_of(null).type.endswith("origin-refused")
    for site in ("cross-site", "same-site"):
        said = client.get("/about", headers={"sec-fetch-site": site, "sec-fetch-mode": "no-cors"})
        assert problem_of(said).status == 403
    visit = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=visit).status_code == 200
    own = client.post("/locate", files=files, headers={"origin": "http://127.0.0.1"})
    assert own.status_code == 200


def test_there_is_no_cors(client: TestClient) -> None:
    asked = EVIL | {"access-control-request-method": "POST"}
    said = client.options("/locate", headers=asked)
    assert said.status_code == 403
    assert not [name for name in said.headers if name.startswith("access-control")]


def test_every_response_carries_the_security_headers(client: TestClient, town: Town) -> None:
    said = [client.get(path) for path in ("/", "/docs", "/about", "/nothing", "/assets/app.js")]
    said += [client.get("/about", headers={"host": "evil.example"}), ask(client, b"no photo")]
    for one in said:
        policy = one.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy, "no other machine"
        assert "frame-ancestors 'none'" in policy
        assert one.headers["x-content-type-options"] == "nosniff"
        assert one.headers["referrer-policy"] == "no-referrer"
        assert one.headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in one.headers


def test_tiles_are_allowed_only_from_where_they_were_configured(town: Town) -> None:
    with serving(town.run, tiles="https://tiles.example/{z}/{x}/{y}.png") as client:
        policy = client.get("/").headers["content-security-policy"]
        assert "img-src 'self' blob: data: https://tiles.example;" in policy
        assert client.get("/about").json()["tiles"].startswith("https://tiles.example")


def test_tiles_need_a_globe(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    from evenplace.serve import service

    service._check_tiles(Settings(town.run), 0)
    with pytest.raises(SettingError, match="UTM zone"):
        service._check_tiles(Settings(town.run, tiles="http://t.example/{z}/{x}/{y}.png"), 0)


def test_a_public_address_needs_a_token(town: Town) -> None:
    for host in ("0.0.0.0", "::", "192.168.1.5", "places.example"):
        with pytest.raises(SettingError, match="token"):
            Settings(town.run, host=host)
        Settings(town.run, host=host, token=TOKEN)
    for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8"):
        Settings(town.run, host=host)


def test_a_token_is_long_and_never_shown(town: Town) -> None:
    with pytest.raises(SettingError, match="characters"):
        Settings(town.run, token="short")
    assert TOKEN not in repr(Settings(town.run, token=TOKEN))


def test_the_token_comes_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENPLACE_TOKEN", TOKEN)
    assert read_token(None) == TOKEN
    (tmp_path / "token").write_text("another-long-token\n")
    assert read_token(tmp_path / "token") == "another-long-token"
    (tmp_path / "token").write_text("\n")
    with pytest.raises(SettingError, match="no token"):
        read_token(tmp_path / "token")


def test_without_the_token_there_is_only_the_empty_page(town: Town) -> None:
    with serving(town.run, token=TOKEN) as client:
        for path in ("/", "/health", "/ready", "/assets/app.js", "/docs"):
            assert client.get(path).status_code == 200
        for path in ("/about", "/map", "/places", "/places/0", "/photos/00000000-0", "/metrics"):
            said = client.get(path)
            assert problem_of(said).status == 401, path
            assert said.headers["www-authenticate"] == "Bearer"
        for path in ("/assets/%2e%2e/about", "/assets/..%2fabout", "/about/", "/ABOUT"):
            assert client.get(path, follow_redirects=False).status_code in (307, 401, 404), path
        assert ask(client, town.photo()).status_code == 401
        for wrong in (TOKEN[:-1], TOKEN + "x", "", "ü" * 22, TOKEN.upper()):
            headers = {b"authorization": f"Bearer {wrong}".encode()}
            assert client.get("/about", headers=headers).status_code == 401
        right = {"authorization": f"Bearer {TOKEN}"}
        assert client.get("/about", headers=right).status_code == 200


def test_the_page_signs_in_with_a_cookie_that_is_not_the_token(town: Town) -> None:
    with serving(town.run, token=TOKEN) as client:
        assert client.post("/session", json={"token": "wrong"}).status_code == 401
        said = client.post("/session", json={"token": TOKEN})
        cookie = said.headers["set-cookie"]
        assert TOKEN not in cookie
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert client.get("/about").status_code == 200
    with serving(town.run, token=TOKEN) as fresh:
        bad = fresh.get("/about", headers={"cookie": f"{COOKIE}={'0' * 64}"})
        assert bad.status_code == 401
        other = f"{COOKIE}={session_cookie('another-token-altogether')}"
        assert fresh.get("/about", headers={"cookie": other}).status_code == 401


def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[bytes, bytes]] = []

    def compare(a: bytes, b: bytes) -> bool:
        seen.append((a, b))
        return a == b

    monkeypatch.setattr("hmac.compare_digest", compare)
    assert guard.same("x", "x")
    assert not guard.same("x", "y")
    assert seen == [(b"x", b"x"), (b"x", b"y")]


def test_a_photo_of_too_many_bytes_is_refused(town: Town) -> None:
    with serving(town.run, limits=Limits(photo_bytes=5000, request_bytes=50_000)) as client:
        large = jpeg(quality=100) * 3
        assert problem_of(ask(client, large)).type.endswith("photo-too-large")
        assert problem_of(ask(client, bytes(60_000))).type.endswith("request-too-large")

        def chunks() -> Any:
            for _ in range(100):
                yield bytes(1000)

        headers = {"content-type": "image/jpeg"}
        endless = client.post("/locate", content=chunks(), headers=headers)
        assert problem_of(endless).status == 413


def test_too_many_photos_are_refused(client: TestClient, town: Town) -> None:
    assert problem_of(ask(client, *[town.photo()] * 17)).type.endswith("too-many-photos")


def test_a_photo_of_too_many_pixels_is_refused_before_it_is_decoded(
    town: Town, client: TestClient
) -> None:
    for side in (8_000, 12_000, 30_000, 60_000):
        said = ask(client, png_claiming(side, side))
        assert problem_of(said).type.endswith("photo-too-many-pixels"), side
    with serving(town.run, limits=Limits(photo_pixels=1000)) as strict:
        assert problem_of(ask(strict, jpeg())).status == 422


def test_a_jpeg_of_endless_scans_is_refused(client: TestClient) -> None:
    plain = jpeg(progressive=True)
    scan = plain[plain.rindex(b"\xff\xda") : -2]
    assert problem_of(ask(client, plain[:-2] + scan * 200 + plain[-2:])).status == 422


@pytest.mark.parametrize(
    "drawing",
    [
        b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
        b'<?xml version="1.0"?><!DOCTYPE svg><svg/>',
        b'\xef\xbb\xbf  <SVG onload="x"/>',
    ],
)
def test_an_svg_is_refused(client: TestClient, drawing: bytes) -> None:
    said = ask(client, drawing)
    assert "SVG" in problem_of(said).detail
    assert b"alert" not in said.content


@pytest.mark.parametrize("kind", ["GIF", "BMP", "TIFF", "ICO", "PPM", "EPS", "PDF"])
def test_formats_no_camera_writes_reach_no_decoder(client: TestClient, kind: str) -> None:
    data = io.BytesIO()
    Image.new("RGB", (32, 32)).save(data, kind)
    assert problem_of(ask(client, data.getvalue())).type.endswith("photo-unreadable")


def test_a_polyglot_is_a_photo_or_nothing(client: TestClient) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("evil.txt", "payload-in-zip")
    page = b"<html><script>payload-in-html</script></html>"
    for tail in (archive.getvalue(), page, b"%PDF-1.4 payload", b"<?php payload ?>"):
        for mixed in (jpeg() + tail, tail + jpeg(), jpeg(comment=tail[:60000])):
            said = ask(client, mixed)
            assert said.status_code in (200, 422)
            assert "json" in said.headers["content-type"]
            assert b"payload" not in said.content


def test_truncated_and_empty_photos_are_refused(client: TestClient) -> None:
    whole = jpeg(256, 256)
    for broken in (b"", whole[:2], whole[:20], whole[: len(whole) // 2], b"\xff\xd8\xff\xd9"):
        problem = problem_of(ask(client, broken))
        assert problem.type.endswith("photo-unreadable")
        assert "0x" not in problem.detail


@pytest.mark.parametrize(
    "escape",
    [
        "../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd",
        "....//....//etc/passwd", "/etc/passwd", "00000000-0/../../etc/passwd", "00000000--1",
        "file:///etc/passwd", "00000000-0%00.jpg", "C:\\windows\\win.ini", "-1", "9" * 5000,
        "00000000-99999999999999999999", "٠٠٠٠٠٠٠٠-٠",
    ],
)  # fmt: skip
def test_an_id_never_reaches_the_file_system(client: TestClient, escape: str) -> None:
    for room in ("photos", "places", "assets"):
        said = client.get(f"/{room}/{escape}")
        assert said.status_code in (404, 422)
        assert "root:" not in said.text
        assert "<!doctype" not in said.text.lower()


def test_no_exif_leaves_the_service(town: Town, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x010E] = "secret-description"
    path = tmp_path / "tagged.jpg"
    path.write_bytes(jpeg(exif=exif, comment=b"secret-comment"))
    with serving(town.run) as client:
        said = ask(client, path.read_bytes())
        assert said.status_code == 200
        assert b"secret" not in said.content
        snapshot = client.app.state.service.library.current  # type: ignore[attr-defined]
        object.__setattr__(snapshot, "path_of", lambda row: str(path))
        picture = client.get(f"/photos/{snapshot.version}-0").content
    assert b"secret" not in picture
    assert not Image.open(io.BytesIO(picture)).getexif()


def test_no_path_of_the_database_is_said(client: TestClient, town: Town) -> None:
    photos: Photos = client.app.state.service.library.current.engine.index.photos  # type: ignore[attr-defined]
    folder = str(Path(photos.paths[0]).parent)
    answers = [
        ask(client, town.photo()).text,
        client.get("/places/0").text,
        client.get("/about").text,
    ]
    assert all(folder not in text and ".jpg" not in text for text in answers)


def test_no_photo_touches_the_disk(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, town: Town
) -> None:
    def refuse(*words: object, **options: object) -> None:
        raise AssertionError("a photo was written to disk")

    large = jpeg(1600, 1600, quality=95)
    assert len(large) > 1 << 20, "more than what Starlette would keep in memory"
    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "rollover", refuse)
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    assert ask(client, large, town.photo()).status_code == 200


def test_logs_hold_nothing_of_a_photo(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        ask(client, b"secret-pixels" * 100)
        ask(client, jpeg(comment=b"secret-comment"))
    assert "secret" not in caplog.text


def test_a_mistake_of_ours_tells_no_details(
    town: Town, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(town.run) as client:
        service = client.app.state.service  # type: ignore[attr-defined]

        def fail(*words: object) -> None:
            raise RuntimeError("secret-inside")

        monkeypatch.setattr(type(service.library.current.engine), "answers", fail)
        said = ask(client, town.photo())
        assert problem_of(said).type.endswith("failed")
        assert "secret" not in said.text
        assert "secret-inside" in caplog.text, "but the log has it"
        monkeypatch.undo()
        assert ask(client, town.photo()).status_code == 200, "the next batch is answered"


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("text/plain", b"x", 415), ("", b"x", 415), ("application/json", b"{}", 415),
        ("multipart/form-data", b"x", 400), ("multipart/form-data; boundary=a", b"x", 400),
        ("multipart/form-data; boundary=a", b"--a--\r\n", 422),
        ("multipart/form-data; boundary=" + "a" * 5000, b"--a--\r\n", 400),
        ("multipart/form-data; boundary=a", b"--a\r\nContent-Disposition: x\r\n\r\n1\r\n", 400),
        (
            "multipart/form-data; boundary=a",
            b'--a\r\nContent-Disposition: form-data; name="photo"\r\n\r\ntext\r\n--a--\r\n',
            422,
        ),
        (
            "multipart/form-data; boundary=a",
            b'--a\r\nContent-Disposition: form-data; name="f"; filename="x"\r\n\r\n1\r\n--a--\r\n',
            422,
        ),
    ],
)  # fmt: skip
def test_a_body_that_is_no_form_of_photos_is_refused(
    client: TestClient, kind: str, body: bytes, expected: int
) -> None:
    said = client.post("/locate", content=body, headers={"content-type": kind})
    assert problem_of(said).status == expected
