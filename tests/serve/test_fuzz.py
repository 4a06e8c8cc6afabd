"""Mutated files, 2,400 in `make long`: an answer or a problem each, no mistake, nothing kept."""

import gc
import io
import random
import tempfile
from pathlib import Path
from typing import Any

import psutil
import pytest
from PIL import Image

from evenplace.serve.problems import KINDS
from tests.serve.conftest import Town, serving
from tests.serve.test_api import ask

PIECES = (
    b"\xff\xd8\xff", b"\xff\xda", b"\xff\xc0", b"\xff\xc2", b"\xff\xc4", b"\xff\xdb", b"\xff\xe1",
    b"Exif\x00\x00", b"II*\x00", b"MM\x00*", b"IHDR", b"IDAT", b"IEND", b"iCCP", b"zTXt", b"tEXt",
    b"acTL", b"eXIf", b"RIFF", b"WEBP", b"VP8 ", b"VP8L", b"VP8X", b"ANIM", b"\x00" * 16,
    b"\xff" * 16, b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"GIF89a", b"<svg", b"%PDF", b"BM",
)  # fmt: skip


def seeds(town: Town) -> list[bytes]:
    """Small photos of each format, with what decoders trip over: EXIF, palettes, alpha, 16 bits."""
    picture = Image.open(io.BytesIO(town.photo()))
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "canary-in-the-exif"
    saved: list[tuple[Image.Image, str, dict[str, Any]]] = [
        (picture, "JPEG", {"exif": exif}),
        (picture, "JPEG", {"progressive": True, "quality": 30}),
        (picture.convert("L"), "JPEG", {}),
        (picture.convert("CMYK"), "JPEG", {}),
        (picture, "PNG", {"exif": exif}),
        (picture.convert("P"), "PNG", {"transparency": 3}),
        (picture.convert("LA"), "PNG", {}),
        (picture.convert("I;16"), "PNG", {}),
        (picture, "WEBP", {"quality": 40, "exif": exif}),
        (picture.convert("RGBA"), "WEBP", {"lossless": True}),
    ]
    made = []
    for image, kind, options in saved:
        data = io.BytesIO()
        image.save(data, kind, **options)
        made.append(data.getvalue())
    return made


def mutate(photo: bytes, others: list[bytes], rng: random.Random) -> bytes:
    data = bytearray(photo)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(8):
            case 0:
                data = data[:at]
            case 1:
                data[at : at + rng.randrange(1, 9)] = rng.randbytes(rng.randrange(1, 9))
            case 2:
                data[at:at] = rng.choice(PIECES)
            case 3:
                data[at : at + rng.randrange(1, 200)] = b""
            case 4:
                data[at : at + 4] = rng.choice(PIECES)[:4]
            case 5:
                other = rng.choice(others)
                data[at:] = other[rng.randrange(len(other)) :]
            case 6:
                data += data[at:] * rng.randrange(1, 4)
            case _:
                data[: min(64, len(data))] = rng.randbytes(min(64, len(data)))
        if not data:
            return b""
    return bytes(data)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # as in a service: a decoder may warn about a broken file
@pytest.mark.parametrize("files", [200, pytest.param(2400, marks=pytest.mark.long)])
def test_mutated_files_do_no_harm(town: Town, caplog: pytest.LogCaptureFixture, files: int) -> None:
    rng = random.Random(0)
    photos = seeds(town)
    files_before = set(Path(tempfile.gettempdir()).iterdir())
    process = psutil.Process()
    outcomes: dict[str, int] = {}
    warm = 0
    with serving(town.run) as client:
        for number in range(files):
            said = ask(client, mutate(rng.choice(photos), photos, rng), k=1)
            if said.status_code == 200:
                outcome = "answered"
            else:
                problem = said.json()
                outcome = problem["type"].removeprefix("urn:evenplace:")
                assert outcome in KINDS
            assert said.status_code in (200, 413, 422), (number, said.text)
            for leak in ("canary", "Traceback", "0x", "/tmp", ".py"):
                assert leak not in said.text, number
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
            if number == files // 4:
                gc.collect()
                warm = process.memory_info().rss
        gc.collect()
        grown = process.memory_info().rss / warm - 1
        assert client.app.state.service.waiting.photos == 0  # type: ignore[attr-defined]
    assert outcomes["answered"] > files / 12, "some mutations leave a photo"
    assert outcomes["photo-unreadable"] > files / 3
    assert grown < 0.1, f"memory grew by {grown:.1%}"
    assert "canary" not in caplog.text
    mine = {
        p
        for p in set(Path(tempfile.gettempdir()).iterdir()) - files_before
        if "evenplace" in p.name
    }
    assert not mine
