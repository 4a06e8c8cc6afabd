"""Any picture a camera writes is decoded; any that cannot be says why."""

import io
import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from evenplace.errors import PhotoError
from evenplace.photos import open_picture
from tests.photos.drawn import picture


def pixels(image: Image.Image) -> NDArray[np.int64]:
    return np.asarray(image, np.int64)


@pytest.mark.parametrize("mode", ["L", "1", "P", "RGBA", "LA", "CMYK", "I;16", "YCbCr"])
def test_every_mode_becomes_rgb_of_the_same_brightness(mode: str, tmp_path: Path) -> None:
    grey = Image.new("L", (20, 10), 0)
    grey.paste(255, (10, 0, 20, 10))
    if mode == "I;16":
        image = Image.fromarray(np.asarray(grey, np.uint16) * 257)
    else:
        image = grey.convert("RGB").convert(mode)
    file = tmp_path / f"a.{'jpg' if mode in ('CMYK', 'YCbCr') else 'png'}"
    image.save(file, quality=100)
    opened = open_picture(file)
    assert opened.mode == "RGB"
    values = pixels(opened)
    assert values[:, 2:8].max() < 30
    assert values[:, 12:18].min() > 225


def test_what_is_transparent_becomes_white(tmp_path: Path) -> None:
    file = tmp_path / "a.png"
    Image.new("RGBA", (4, 4), (0, 0, 0, 0)).save(file)
    assert pixels(open_picture(file)).min() == 255


@pytest.mark.parametrize(
    ("orientation", "dark"), [(1, "left"), (3, "right"), (6, "top"), (8, "bottom")]
)
def test_the_exif_rotation_is_applied(orientation: int, dark: str, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[274] = orientation
    opened = open_picture(picture(tmp_path / "a.jpg", (255, 255, 255), exif=exif, quality=95))
    assert opened.size == ((48, 32) if orientation in (1, 3) else (32, 48))
    values = pixels(opened).mean(axis=2)
    half = {"left": values[:, :10], "right": values[:, -10:], "top": values[:10],
            "bottom": values[-10:]}[dark]  # fmt: skip
    assert half.mean() < 60
    assert values.mean() > 100


def test_size_is_a_side_or_height_and_width(tmp_path: Path) -> None:
    file = picture(tmp_path / "a.jpg")
    assert open_picture(file, 24).size == (24, 24)
    assert open_picture(file, (10, 40)).size == (40, 10)


def test_bytes_are_decoded_as_the_file_is(tmp_path: Path) -> None:
    file = picture(tmp_path / "a.jpg")
    assert open_picture(file.read_bytes()).tobytes() == open_picture(file).tobytes()


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "L"])
def test_a_large_png_made_small_in_strips_looks_like_one_resized(mode: str) -> None:
    rough = np.random.default_rng(0).integers(0, 255, (12, 20, 3)).astype(np.uint8)
    large = Image.fromarray(rough).resize((1800, 1152), Image.Resampling.BICUBIC).convert(mode)
    if mode == "RGBA":
        large.putalpha(Image.linear_gradient("L").resize(large.size))
    exif = Image.Exif()
    exif[0x0112] = 6  # lies on its side
    data = io.BytesIO()
    large.save(data, "PNG", exif=exif)
    small = np.asarray(open_picture(data.getvalue(), 64), np.int16)
    paper = Image.new("RGBA", large.size, "white")
    whole = (
        Image.alpha_composite(paper, large.convert("RGBA")).convert("RGB").rotate(-90, expand=True)
    )
    resized = np.asarray(whole.resize((64, 64), Image.Resampling.BICUBIC), np.int16)
    assert np.abs(small - resized).max() <= 4
    assert np.abs(small - resized).mean() < 0.6


def test_a_large_jpeg_decoded_small_looks_like_one_resized(tmp_path: Path) -> None:
    smooth = np.linspace(0, 255, 1600 * 1200).reshape(1200, 1600).astype(np.uint8)
    Image.fromarray(smooth).convert("RGB").save(tmp_path / "a.jpg", quality=95)
    quick = pixels(open_picture(tmp_path / "a.jpg", 64))
    slow = pixels(open_picture(tmp_path / "a.jpg").resize((64, 64), Image.Resampling.BICUBIC))
    assert np.abs(quick - slow).mean() < 2


def broken(tmp_path: Path, kind: str) -> Path:
    file = picture(tmp_path / f"{kind}.jpg")
    content = file.read_bytes()
    file.write_bytes({"zero": b"", "truncated": content[: len(content) // 2],
                      "noise": b"\x00\x01" * 500}[kind])  # fmt: skip
    return file


@pytest.mark.parametrize(
    ("kind", "why"),
    [("zero", "empty"), ("truncated", "cannot be decoded"), ("noise", "no picture")],
)
def test_a_broken_file_is_named_with_the_reason(kind: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(PhotoError, match=rf"{kind}\.jpg .*{why}"):
        open_picture(broken(tmp_path, kind))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PhotoError, match=r"gone\.jpg does not exist"):
        open_picture(tmp_path / "gone.jpg")


def test_a_picture_of_absurd_size_is_refused_before_it_is_decoded() -> None:
    packed = io.BytesIO()
    Image.new("L", (1, 1)).save(packed, "PNG")
    huge = bytearray(packed.getvalue())
    huge[16:24] = struct.pack(">II", 100_000, 100_000)
    import zlib

    huge[29:33] = struct.pack(">I", zlib.crc32(bytes(huge[12:29])))
    with pytest.raises(PhotoError, match="too large"):
        open_picture(bytes(huge))
