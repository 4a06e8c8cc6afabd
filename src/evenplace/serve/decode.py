"""Bytes from a stranger → pixels, or a problem.

The header is read first and by three decoders only; nothing is decompressed before its size is
known to be allowed.  What the decoder said is not passed on: it may quote the file.
"""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin

from evenplace.describe.decoding import picture_pixels
from evenplace.errors import PhotoError
from evenplace.photos.pictures import Size
from evenplace.serve.problems import Problem
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
REMEDY = "send a JPEG, PNG or WebP"


def decode_photo(data: bytes, size: Size, limits: Limits, number: int = 1) -> NDArray[np.uint8]:
    """Pixels of one uploaded photo, ready for the network: (3, H, W) uint8."""
    width, height = _header(data, number)
    if width * height > limits.photo_pixels:
        raise Problem(
            "photo-too-many-pixels",
            f"photo {number} has {width:,} x {height:,} pixels, the limit is "
            f"{limits.photo_pixels:,}",
            "shrink it; 1024 pixels a side are plenty",
        )
    if data.count(b"\xff\xda") > MOST_SCANS and data.startswith(b"\xff\xd8"):
        raise _unreadable(f"photo {number} is a JPEG of more than {MOST_SCANS} scans")
    try:
        return picture_pixels(data, size)
    except (PhotoError, MemoryError, OverflowError, AttributeError, TypeError, KeyError) as cause:
        raise _unreadable(f"photo {number} cannot be decoded") from cause


def _header(data: bytes, number: int) -> tuple[int, int]:
    if not data:
        raise _unreadable(f"photo {number} is empty")
    if _is_svg(data):
        raise _unreadable(f"photo {number} is an SVG, which is a drawing and may run scripts")
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            return image.size
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as cause:
        raise Problem(
            "photo-too-many-pixels",
            f"photo {number} claims more pixels than any camera has",
            "shrink it; 1024 pixels a side are plenty",
        ) from cause
    except Exception as cause:  # a decoder fed by a stranger may raise anything
        raise _unreadable(f"photo {number} is no picture that can be decoded") from cause


def _is_svg(data: bytes) -> bool:
    head = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return head.startswith((b"<svg", b"<?xml", b"<!doctype svg"))


def _unreadable(detail: str) -> Problem:
    return Problem("photo-unreadable", detail, REMEDY)


def encode_jpeg(picture: Image.Image, quality: int = 82) -> bytes:
    """Pixels only: no EXIF, no profile, no comment."""
    clean = Image.new("RGB", picture.size)
    clean.paste(picture)
    data = io.BytesIO()
    clean.save(data, "JPEG", quality=quality)
    return data.getvalue()
