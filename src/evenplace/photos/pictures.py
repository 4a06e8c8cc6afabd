"""Pictures: any file a camera writes, decoded to upright RGB, or a sentence why not."""

import io
import struct
import zlib
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from evenplace.errors import PhotoError

Size = int | tuple[int, int]  # a side, or height and width
SUFFIXES = (
    ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".tif", ".tiff", ".bmp", ".gif", ".heic",
    ".heif", ".avif",
)  # fmt: skip
_UNREADABLE = (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error)
LARGE = 2_000_000  # pixels beyond which a picture is made small strip by strip
_STRIP = 1 << 18  # pixels of a strip, about
_TOO_LARGE = (Image.DecompressionBombError, Image.DecompressionBombWarning)


def height_width(size: Size) -> tuple[int, int]:
    """A size as height and width; a lone side is a square's."""
    return (size, size) if isinstance(size, int) else size


def open_picture(source: str | Path | bytes | Image.Image, size: Size | None = None) -> Image.Image:
    """Decode a picture to upright RGB, resized to `size`.

    Grey, 16-bit, palette, transparent (over white) and CMYK pictures all become RGB; the EXIF
    rotation is applied.  A JPEG much larger than `size` is decoded at a fraction of its scale.
    """
    target = None if size is None else height_width(size)
    # A JPEG decoded at half its scale and then resized describes as the whole one does to a cosine
    # of .997, where the usual loaders' bilinear filter has .995, and takes half as long.  The
    # larger side for both, because a rotation may still swap them.
    picture = _decode(source, None if target is None else max(target))
    if target is None or picture.size == (target[1], target[0]):
        return picture
    return picture.resize((target[1], target[0]), Image.Resampling.BICUBIC)


def open_within(source: str | Path | bytes | Image.Image, longest: int) -> Image.Image:
    """Decode a picture to upright RGB whose longer side is that long; its shape stays."""
    picture = _decode(source, longest)
    share = longest / max(picture.size)
    width, height = (max(1, round(side * share)) for side in picture.size)
    if picture.size == (width, height):
        return picture
    return picture.resize((width, height), Image.Resampling.BICUBIC)


def _decode(source: str | Path | bytes | Image.Image, least: int | None) -> Image.Image:
    """Upright RGB; a JPEG at a fraction of its scale that leaves `least` pixels a side."""
    name = picture_name(source)
    try:
        # A caller's picture is copied: it stays open, at its own scale.
        with source.copy() if isinstance(source, Image.Image) else open_image(source) as image:
            if least is not None:
                image.draft("RGB", (least, least))
                return _rgb(ImageOps.exif_transpose(_reduced(image, least)))
            return _rgb(ImageOps.exif_transpose(image))
    except _TOO_LARGE as cause:
        raise PhotoError(f"{name} is too large to decode ({cause}); shrink it first") from cause
    except FileNotFoundError as cause:
        raise PhotoError(f"{name} does not exist; check the path") from cause
    except _UNREADABLE as cause:
        raise PhotoError(f"{name} {_reason(source, cause)}; replace it or leave it out") from cause


def reduction(size: tuple[int, int], least: int) -> int:
    """By how much a large picture of that size is reduced so that `least` pixels a side remain."""
    width, height = size
    return max(1, min(size) // least) if width * height > LARGE else 1


def _reduced(image: Image.Image, least: int) -> Image.Image:
    """A large picture at a whole fraction of its scale, made in strips.

    Beside the decoded picture there is never a second one of its size in memory: turning and
    converting a PNG of 49 million pixels takes 200 MB instead of 600.
    """
    factor = reduction(image.size, least)
    if factor == 1:
        return image
    width, height = image.size
    small = Image.new("RGB", (-(-width // factor), -(-height // factor)))
    rows = factor * max(1, _STRIP // (width * factor))
    for top in range(0, height, rows):
        strip = image.crop((0, top, width, min(height, top + rows)))
        small.paste(_rgb(strip).reduce(factor), (0, top // factor))
    small.info = {key: value for key, value in image.info.items() if key != "transparency"}
    return small


def jpeg_bytes(picture: Image.Image, quality: int) -> bytes:
    """A JPEG of the pixels only: no EXIF, no profile, no comment."""
    clean, data = Image.new("RGB", picture.size), io.BytesIO()
    clean.paste(picture)
    clean.save(data, "JPEG", quality=quality)
    return data.getvalue()


def picture_name(source: str | Path | bytes | Image.Image) -> str:
    """What to call a picture in a sentence about it."""
    if isinstance(source, bytes):
        return f"the picture of {len(source)} bytes"
    if isinstance(source, Image.Image):
        return f"the picture of {source.width} x {source.height} pixels"
    return str(source)


def open_image(source: str | Path | bytes) -> Image.Image:
    """Open a picture without decoding it; a phone's HEIC where pillow-heif is installed."""
    try:
        return Image.open(io.BytesIO(source) if isinstance(source, bytes) else source)
    except UnidentifiedImageError:
        if not _is_heif(source):
            raise
        if not _add_heif():
            raise OSError("it is HEIC or AVIF: pip install 'evenplace[heic]' reads it") from None
        return Image.open(io.BytesIO(source) if isinstance(source, bytes) else source)


def _is_heif(source: str | Path | bytes) -> bool:
    """Whether a file is of HEIC's family, by its first bytes."""
    if not isinstance(source, bytes):
        with Path(source).open("rb") as file:
            source = file.read(12)
    return source[4:8] == b"ftyp"


@cache
def _add_heif() -> bool:
    """Teach Pillow HEIC, where the package for it is there."""
    try:
        import pillow_heif
    except ImportError:
        return False
    pillow_heif.register_heif_opener()
    if hasattr(pillow_heif, "register_avif_opener"):
        pillow_heif.register_avif_opener()
    return True


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # 16-bit grey, whatever its byte order
        return Image.fromarray((np.asarray(image, np.uint32) >> 8).astype(np.uint8)).convert("RGB")
    if image.mode == "F":
        return Image.fromarray(np.clip(np.asarray(image), 0, 255).astype(np.uint8)).convert("RGB")
    if "A" in image.getbands() or "transparency" in image.info:
        paper = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(paper, image.convert("RGBA")).convert("RGB")
    return image.convert("RGB")


def _reason(source: str | Path | bytes | Image.Image, cause: Exception) -> str:
    named = Path(source) if isinstance(source, str | Path) else None
    if source == b"" or (named and named.is_file() and named.stat().st_size == 0):
        return "is empty (0 bytes)"
    if isinstance(cause, UnidentifiedImageError):
        return "is no picture that can be decoded"
    return f"cannot be decoded ({cause})"
