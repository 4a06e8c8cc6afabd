"""Positions put into a photo: EXIF in a JPEG, pixel for pixel and tag for tag as it was, or XMP.

The EXIF is a TIFF file of its own with offsets everywhere (makers' notes have secret ones), so
nothing in it is moved: new directories are put at its end, and its head points to them.
"""

import struct
from fractions import Fraction

from evenplace.errors import PhotoError
from evenplace.photos.files import shipped_text

_EXIF = b"Exif\x00\x00"
_MOST = 65533  # bytes of a segment
_GPS = 0x8825  # tag of the first directory that points to the GPS one
_SIDECAR = "write an XMP file beside it instead: --sidecar xmp"
_BYTE, _ASCII, _LONG, _RATIONAL = 1, 2, 4, 5
_XMP = shipped_text("photos/position.xml")


def exif_of(jpeg: bytes) -> bytes | None:
    """The EXIF of a JPEG, a TIFF file; None where there is none."""
    start, end = _find_exif(jpeg)
    return jpeg[start + 10 : end] if end > start else None


def with_exif(jpeg: bytes, exif: bytes | None) -> bytes:
    """The same JPEG with another EXIF, or without; all else stays byte for byte."""
    start, end = _find_exif(jpeg)
    if exif is None:
        return jpeg[:start] + jpeg[end:]
    size = len(exif) + len(_EXIF) + 2
    if size > _MOST:
        raise PhotoError(f"its EXIF has no room for a position ({size:,} bytes); {_SIDECAR}")
    segment = b"\xff\xe1" + struct.pack(">H", size) + _EXIF + exif
    return jpeg[:start] + segment + jpeg[end:]


def place_exif(exif: bytes | None, latitude: float, longitude: float, metres: float) -> bytes:
    """An EXIF that says where, and give or take how many metres (GPSHPositioningError)."""
    old = exif or b"II*\x00\x08\x00\x00\x00" + bytes(6)
    try:
        return _placed(old, latitude, longitude, metres)
    except (struct.error, KeyError, IndexError) as cause:
        raise PhotoError(f"its EXIF is damaged ({cause}); {_SIDECAR}") from cause


def xmp(latitude: float, longitude: float, metres: float) -> str:
    """A sidecar that says the same, as Adobe's tools, darktable, digiKam and exiftool read it."""
    return _XMP.format(
        latitude=_minutes(latitude, "NS"),
        longitude=_minutes(longitude, "EW"),
        error=f"{round(100 * metres)}/100",
    )


def _find_exif(jpeg: bytes) -> tuple[int, int]:
    """Where the segment with the EXIF starts and ends; where it would go, if there is none."""
    if jpeg[:2] != b"\xff\xd8":
        raise PhotoError(f"only a JPEG takes a position into itself; {_SIDECAR}")
    at, put = 2, 2
    while jpeg[at : at + 1] == b"\xff" and jpeg[at + 1] not in (0xD9, 0xDA) and at + 4 < len(jpeg):
        end = at + 2 + int.from_bytes(jpeg[at + 2 : at + 4], "big")
        if jpeg[at + 1] == 0xE1 and jpeg[at + 4 : at + 10] == _EXIF:
            return at, end
        if jpeg[at + 1] == 0xE0 and at == put:
            put = end  # JFIF wants to be first
        at = end
    return put, put


def _placed(old: bytes, latitude: float, longitude: float, metres: float) -> bytes:
    order = {b"II": "<", b"MM": ">"}[old[:2]]
    first, after = _directory(old, old[4:8], order)
    gps: dict[int, bytes] = {}
    if _GPS in first:
        gps, _ = _directory(old, first[_GPS][8:], order)
    whole = bytearray(old) + bytes(len(old) % 2)
    gps |= _pack(whole, order, _position(latitude, longitude, metres, order))
    first |= _pack(whole, order, {_GPS: (_LONG, struct.pack(order + "I", len(whole)))})
    whole += _written(gps, bytes(4), order)
    struct.pack_into(order + "I", whole, 4, len(whole))
    return bytes(whole + _written(first, after, order))


def _position(
    latitude: float, longitude: float, metres: float, order: str
) -> dict[int, tuple[int, bytes]]:
    """GPS tags: their types and values."""
    rational = struct.Struct(order + "II")
    return {
        0: (_BYTE, bytes((2, 3, 0, 0))),
        1: (_ASCII, b"S\0" if latitude < 0 else b"N\0"),
        2: (_RATIONAL, b"".join(rational.pack(*part) for part in _sexagesimal(latitude))),
        3: (_ASCII, b"W\0" if longitude < 0 else b"E\0"),
        4: (_RATIONAL, b"".join(rational.pack(*part) for part in _sexagesimal(longitude))),
        18: (_ASCII, b"WGS-84\0"),
        31: (_RATIONAL, rational.pack(round(100 * metres), 100)),
    }


def _sexagesimal(degrees: float) -> list[tuple[int, int]]:
    """Degrees, minutes and seconds as fractions, right to a third of a millimetre."""
    parts = round(abs(degrees) * 3600 * 100_000)
    minutes, seconds = divmod(parts, 60 * 100_000)
    return [(minutes // 60, 1), (minutes % 60, 1), (seconds, 100_000)]


def _minutes(degrees: float, sides: str) -> str:
    whole = abs(Fraction(degrees).limit_denominator(10**9))
    minutes = float((whole - int(whole)) * 60)
    return f"{int(whole)},{minutes:.7f}{sides[degrees < 0]}"


def _directory(tiff: bytes, pointer: bytes, order: str) -> tuple[dict[int, bytes], bytes]:
    """The entries of a directory by tag, and its pointer to the next one."""
    (at,) = struct.unpack(order + "I", pointer)
    (count,) = struct.unpack_from(order + "H", tiff, at)
    entries = [tiff[at + 2 + 12 * n : at + 14 + 12 * n] for n in range(count)]
    after = tiff[at + 2 + 12 * count : at + 6 + 12 * count].ljust(4, b"\0")
    return {struct.unpack_from(order + "H", entry)[0]: entry for entry in entries}, after


def _pack(whole: bytearray, order: str, values: dict[int, tuple[int, bytes]]) -> dict[int, bytes]:
    """Entries for values; those of more than four bytes are put at the end of the file."""
    entries = {}
    widths = {_LONG: 4, _RATIONAL: 8}
    for tag, (kind, value) in values.items():
        held = value.ljust(4, b"\0")
        if len(value) > 4:
            held = struct.pack(order + "I", len(whole))
            whole += value + bytes(len(value) % 2)
        count = len(value) // widths.get(kind, 1)
        entries[tag] = struct.pack(order + "HHI", tag, kind, count) + held
    return entries


def _written(entries: dict[int, bytes], after: bytes, order: str) -> bytes:
    body = b"".join(entries[tag] for tag in sorted(entries))
    return struct.pack(order + "H", len(entries)) + body + after
