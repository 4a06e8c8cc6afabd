"""Photos with a track beside them (GPX, or NMEA's RMC sentences): positions by time.

Times come from the EXIF, from names that are seconds since 1970 or parts of them (ROS), or from
a timestamps.txt, a line a picture (KITTI).  EXIF tells no zone: `offset` is how many seconds the
camera's clock was ahead of UTC.
"""

import re
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

from evenplace.arrays import Doubles
from evenplace.errors import PhotoError
from evenplace.photos.gather import Seen, gather_seen
from evenplace.photos.layouts.exif import read_shot
from evenplace.photos.scan import first_pictures, picture_paths
from evenplace.photos.table import Photos

ENDINGS = (".gpx", ".nmea")
GAP = 60.0  # seconds between two points of a track beyond which nobody knows


def recognises(path: Path) -> bool:
    """Whether a folder has pictures and a track."""
    return path.is_dir() and bool(_tracks(path)) and bool(first_pictures(path, 1))


def read(
    path: Path, pattern: str | None = None, zone: int | None = None, *, offset: float = 0.0
) -> Photos:
    """Place every picture on the track; those outside it, or in a gap of it, are skipped."""
    if not _tracks(path):
        raise PhotoError(f"{path} has no track ({', '.join(ENDINGS)}); put it beside the photos")
    points = np.concatenate([read_track(one) for one in _tracks(path)])
    points = points[np.argsort(points[:, 0], kind="stable")]
    paths = picture_paths(path, pattern).to_pylist()
    times = _times(path, paths) - offset
    seen = [_place(one, time, points) for one, time in zip(paths, times.tolist(), strict=True)]
    if all(one.reason for one in seen):
        known = times[np.isfinite(times)]
        taken = (
            f"from {_clock(known.min())} to {_clock(known.max())}"
            if len(known)
            else "at no known time"
        )
        raise PhotoError(
            f"no photo of {path} was taken during its track, which goes from "
            f"{_clock(points[0, 0])} to {_clock(points[-1, 0])} UTC; they were taken {taken}: is "
            "the camera's clock in another zone? --offset SECONDS (offset= in Python)"
        )
    return gather_seen(seen, zone, path)


def read_track(file: Path) -> Doubles:
    """Seconds since 1970, latitude and longitude of a track's points: (P, 3)."""
    try:
        points = _gpx(file) if file.suffix.lower() == ".gpx" else _nmea(file)
    except (ET.ParseError, KeyError, ValueError) as cause:
        raise PhotoError(
            f"{file} is no track that can be read ({cause}); export it again"
        ) from cause
    if len(points) < 2:
        raise PhotoError(f"{file} has no two points with a time; export the track with times")
    return np.array(points)


def _tracks(folder: Path) -> list[Path]:
    return sorted(one for one in folder.iterdir() if one.suffix.lower() in ENDINGS)


def _gpx(file: Path) -> list[tuple[float, float, float]]:
    found = [one for one in ET.parse(file).iter() if one.tag.endswith("trkpt")]
    return [
        (_seconds((when.text or "").strip()), float(one.attrib["lat"]), float(one.attrib["lon"]))
        for one in found
        if (when := one.find("{*}time")) is not None
    ]


def _seconds(text: str) -> float:
    """Seconds since 1970 of an ISO time; one without a zone is UTC, whatever this machine's is."""
    when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


_RMC = re.compile(
    r"\$..RMC,(\d{6})[\d.]*,A,(\d{2})(\d\d\.\d+),([NS]),(\d{3})(\d\d\.\d+),([EW]),[^,]*,[^,]*,(\d{6})"
)


def _nmea(file: Path) -> list[tuple[float, float, float]]:
    points = []
    for clock, lat, lat_min, ns, lon, lon_min, ew, day in _RMC.findall(
        file.read_text(encoding="ascii", errors="replace")
    ):
        when = datetime.strptime(f"{day}{clock}+0000", "%d%m%y%H%M%S%z").timestamp()
        latitude = (int(lat) + float(lat_min) / 60) * (-1 if ns == "S" else 1)
        longitude = (int(lon) + float(lon_min) / 60) * (-1 if ew == "W" else 1)
        points.append((when, latitude, longitude))
    return points


def _times(folder: Path, paths: list[str]) -> Doubles:
    """Seconds since 1970 of each picture, nan where unknown."""
    listed = next(iter(sorted(folder.rglob("timestamps.txt"))), None)
    if listed is not None:
        lines = listed.read_text(encoding="utf-8").split("\n")
        lines = [line.strip() for line in lines if line.strip()]
        if len(lines) != len(paths):
            raise PhotoError(f"{listed} has {len(lines)} times for {len(paths)} pictures; one each")
        try:
            read = np.array([np.datetime64(line.replace(" ", "T"), "ns") for line in lines])
        except ValueError as cause:
            raise PhotoError(f"{listed} is no list of times ({cause}); write ISO times") from cause
        return read.astype(float) / 1e9
    return np.array([_time(one) for one in paths])


def _time(path: str) -> float:
    name = Path(path).stem
    if name.isdigit() and 10 <= len(name) <= 19:
        return int(name) / 10.0 ** (len(name) - 10)
    time = read_shot(path).time
    return float("nan") if np.isnat(time) else float(time.astype(int))


def _place(path: str, time: float, points: Doubles) -> Seen:
    if np.isnan(time):
        return Seen(path, reason="nothing says when it was taken")
    after = int(np.searchsorted(points[:, 0], time))
    if after == len(points) or (after == 0 and time < points[0, 0]):
        return Seen(path, reason="it was taken before the track begins or after it ends")
    here, before = points[after], points[max(after - 1, 0)]
    if here[0] - before[0] > GAP and time not in (here[0], before[0]):
        return Seen(
            path, reason=f"it was taken in a gap of the track of {here[0] - before[0]:.0f} s"
        )
    share = (time - before[0]) / max(here[0] - before[0], 1e-9)
    latitude, longitude = before[1:] + share * (here[1:] - before[1:])
    return Seen(path, float(latitude), float(longitude), time=np.datetime64(int(time), "s"))


def _clock(seconds: float) -> str:
    return str(np.datetime64(int(seconds), "s")).replace("T", " ")
