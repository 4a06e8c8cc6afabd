"""Bytes from a stranger → pixels, or a problem.

The header is read first and by three decoders only; nothing is decompressed before the memory
that takes is known to be allowed.  What the decoder said is not passed on: it may quote the file.
What it warns about is counted and never printed: a crafted EXIF block makes Pillow warn thousands
of times, each time with other words, which the warnings module prints and remembers for good.
"""

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import PIL
from PIL import Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin

from evenplace.arrays import Bytes
from evenplace.describe.decoding import picture_pixels
from evenplace.photos.pictures import Size, height_width, reduction
from evenplace.serve.problems import KINDS, Problem
from evenplace.serve.settings import Limits

# The decoders a stranger may reach, named by their modules so that they are loaded.
FORMATS = tuple(
    decoder.format
    for decoder in (
        JpegImagePlugin.JpegImageFile,
        PngImagePlugin.PngImageFile,
        WebPImagePlugin.WebPImageFile,
    )
)
MOST_SCANS = 100  # a progressive JPEG has ten; each one costs a pass over all pixels
# Bytes a pixel that decoding takes at its peak, measured with Pillow 13.
_STORED, _COPIED, _WEBP = 4, 16, 20
_DECODERS = str(Path(PIL.__file__).parent)


def decode_photo(data: bytes, size: Size, number: int = 1) -> Bytes:
    """Pixels of one uploaded photo that was weighed before: (3, H, W) uint8."""
    try:
        return picture_pixels(data, size)
    except Exception as cause:  # a decoder fed by a stranger may raise anything
        raise _unreadable(f"photo {number} cannot be decoded") from cause


def weigh_photo(data: bytes, size: Size, limits: Limits, number: int = 1) -> int:
    """Bytes of memory that decoding will take at most; a problem if they are too many."""
    least = 2 * max(height_width(size))
    (width, height), weight = _header(data, least, number)
    if width * height > limits.photo_pixels:
        raise Problem(
            "photo-too-many-pixels",
            f"photo {number} has {width:,} x {height:,} pixels, the limit is "
            f"{limits.photo_pixels:,}",
        )
    if data.count(b"\xff\xda") > MOST_SCANS and data.startswith(b"\xff\xd8"):
        raise _unreadable(f"photo {number} is a JPEG of more than {MOST_SCANS} scans")
    if weight > limits.decode_bytes:
        raise Problem(
            "photo-too-many-pixels",
            f"photo {number} of {width:,} x {height:,} pixels takes {weight >> 20} MiB to decode, "
            f"the limit is {limits.decode_bytes >> 20}",
            f"{KINDS['photo-too-many-pixels'].remedy}, or send a JPEG that is not progressive",
        )
    return weight


def _weight(image: Image.Image, data: bytes, least: int) -> int:
    pixels = image.width * image.height
    if isinstance(image, JpegImagePlugin.JpegImageFile):
        position = image.fp.tell() if image.fp else 0
        scans = 1 + data.count(b"\xff\xda", position)
        held = _coefficients(image) if scans > 1 or "progressive" in image.info else 0
        image.draft("RGB", (least, least))
        return held + _COPIED * image.width * image.height
    if isinstance(image, WebPImagePlugin.WebPImageFile):
        return _WEBP * pixels
    return (_STORED if reduction(image.size, least) > 1 else _COPIED) * pixels


def _coefficients(image: JpegImagePlugin.JpegImageFile) -> int:
    """Bytes of a JPEG in several scans, which is held whole, two bytes a sample, at any scale."""
    samples = [across * down for _, across, down, _ in image.layer]
    return 2 * image.width * image.height * sum(samples) // max(samples, default=1)


def _header(data: bytes, least: int, number: int) -> tuple[tuple[int, int], int]:
    if not data:
        raise _unreadable(f"photo {number} is empty")
    if _is_svg(data):
        raise _unreadable(f"photo {number} is an SVG, which is a drawing and may run scripts")
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            return image.size, _weight(image, data, least)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as cause:
        said = f"photo {number} claims more pixels than any camera has"
        raise Problem("photo-too-many-pixels", said) from cause
    except Exception as cause:  # a decoder fed by a stranger may raise anything
        raise _unreadable(f"photo {number} is no picture that can be decoded") from cause


def _is_svg(data: bytes) -> bool:
    head = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return head.startswith((b"<svg", b"<?xml", b"<!doctype svg"))


def _unreadable(detail: str) -> Problem:
    return Problem("photo-unreadable", detail)


@contextmanager
def count_warnings(count: Callable[[], None]) -> Iterator[None]:
    """Count Pillow's warnings for as long as the context lasts; others are shown as ever."""
    with warnings.catch_warnings():
        warnings.filterwarnings("always", module=r"PIL\.")  # "default" remembers every text
        shown = warnings.showwarning

        def show(message: Any, category: Any, filename: str, *rest: Any, **named: Any) -> None:
            if filename.startswith(_DECODERS):
                count()
            else:
                shown(message, category, filename, *rest, **named)

        warnings.showwarning = show
        yield
