"""What a stranger may send: limits, bombs, drawings, polyglots, and bodies that are no form."""

import io
import struct
import zipfile
import zlib
from typing import Any

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from evenplace.serve.settings import Limits
from tests.serve.conftest import Town, jpeg, serving
from tests.serve.test_api import ask, problem_of


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


@pytest.mark.parametrize("length", ["9" * 5000, "9" * 20, "67108865"])
def test_an_announced_length_beyond_the_limit_is_not_waited_for(
    client: TestClient, length: str
) -> None:
    headers = {"content-type": "image/jpeg", "content-length": length}
    assert problem_of(client.post("/locate", content=b"x", headers=headers)).status == 413
