"""Which pictures somebody asks about: photos, folders, zips, patterns, lists, tables, videos.

None of them needs a position.  What is no picture is passed over and counted.
"""

import glob
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, islice
from pathlib import Path

from PIL import Image

from evenplace.errors import PhotoError, SettingError
from evenplace.photos.files import decode_text
from evenplace.photos.gather import Seen, spellings
from evenplace.photos.layouts import tables
from evenplace.photos.layouts.exif import read_shot
from evenplace.photos.pictures import SUFFIXES
from evenplace.photos.scan import is_archive, say_others, unpacked, walk_pictures

VIDEOS = (".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v")
BLOCK = 4096  # photos at a time
FRAMES = 32  # of a video, which wait in memory


@dataclass(frozen=True)
class Picture:
    """One picture to ask about: its name, and what a describer takes."""

    name: str  # its path; of a frame, that of the video and the second
    source: str | Image.Image
    second: float | None = None  # of a video

    @cached_property
    def shot(self) -> Seen:
        """What it says of itself; a frame says nothing."""
        return read_shot(self.source) if isinstance(self.source, str) else Seen("")


@dataclass(frozen=True)
class Asked:
    """Files in the order they were asked for, and what was passed over."""

    paths: tuple[str, ...]
    passed: Counter[str] = field(default_factory=Counter)  # other files of folders, by ending

    @property
    def videos(self) -> bool:
        return any(is_video(path) for path in self.paths)

    def say_passed(self) -> str:
        """What folders held besides pictures, in a sentence; empty if nothing."""
        films = any(kind in VIDEOS for kind in self.passed)
        remedy = "; name a video itself to have its frames located" if films else ""
        return f"{say_others(self.passed)}{remedy}"

    def blocks(self, every: float = 1.0, done: frozenset[str] = frozenset()) -> Iterator["Block"]:
        """The pictures a few at a time, but for those `done`; of videos a frame every second."""
        if not every > 0:
            raise SettingError(f"--every {every:g} takes no frames; use seconds above 0")
        for films, paths in groupby(self.paths, is_video):
            if films:
                frames = (frame for path in paths for frame in _frames(path, every, done))
                while block := list(islice(frames, FRAMES)):
                    yield block
            else:
                wanted = [path for path in paths if path not in done]
                for start in range(0, len(wanted), BLOCK):
                    part = wanted[start : start + BLOCK]
                    yield [Picture(path, path) for path in part]


Block = list[Picture]


def find_asked(words: Sequence[str | Path]) -> Asked:
    """What is meant by paths as a person types them; each file once."""
    found: dict[str, str] = {}
    passed: Counter[str] = Counter()
    for word in words:
        for path in _meant(os.fspath(word), passed):
            found.setdefault(os.path.abspath(path), path)  # noqa: PTH100, links are not read
    return Asked(tuple(found.values()), passed)


def is_video(path: str | Path) -> bool:
    return Path(path).suffix.lower() in VIDEOS


def _meant(word: str, passed: Counter[str]) -> list[str]:
    path = Path(word)
    if not word:
        raise PhotoError("a photo's name is empty; name a photo, or . for this folder")
    if path.is_dir() or is_archive(path):
        return _folder(path if path.is_dir() else unpacked(path), passed)
    if not path.exists() and any(mark in word for mark in "*?["):
        names = sorted(glob.glob(word, recursive=True))  # noqa: PTH207, a pattern with folders
        if not names:
            raise PhotoError(f"nothing is named like {word}; check the pattern")
        return [one for name in names for one in _meant(name, passed)]
    if is_video(path) and not path.exists():
        raise PhotoError(f"{path} does not exist; check the path")
    if path.suffix.lower() == ".txt":
        return _listed(path)
    if path.suffix.lower() in tables.SUFFIXES and path.is_file():
        return _tabled(path)
    return [word]


def _folder(folder: Path, passed: Counter[str]) -> list[str]:
    files = sorted(walk_pictures(folder, "*"))
    pictures = [name for name in files if name.lower().endswith(SUFFIXES)]
    passed.update(Path(name).suffix.lower() for name in set(files).difference(pictures))
    if not pictures:
        films = [name for name in files if is_video(name)]
        remedy = f"name a video itself, as {films[0]}" if films else "check the path"
        raise PhotoError(f"{folder} holds no photos (looked for {', '.join(SUFFIXES)}); {remedy}")
    return pictures


def _listed(file: Path) -> list[str]:
    """A path a line, from the list's folder, or from here."""
    if not file.is_file():
        raise PhotoError(f"{file} does not exist; check the path")
    lines = (line.strip() for line in decode_text(file.read_bytes()).splitlines())
    names = [line for line in lines if line and not line.startswith("#")]
    if not names:
        raise PhotoError(f"{file} lists no pictures; write a path a line")
    return [_beside(file, name) for name in names]


def _tabled(file: Path) -> list[str]:
    """The paths of a table, whether it has positions or not."""
    table = tables.load_table(file)
    column = tables.usual_column("path", table.column_names)
    if column is None:
        raise PhotoError(
            f"{file} has no column of paths ({', '.join(table.column_names)}); call it path"
        )
    return [_beside(file, str(name)) for name in table.column(column).to_pylist() if name]


def _beside(file: Path, name: str) -> str:
    spelt = [start / one for one in spellings(name) for start in (file.parent, Path())]
    return str(next((one for one in spelt if one.exists()), spelt[0]))


def _frames(path: str, every: float, done: frozenset[str]) -> Iterator[Picture]:
    """A frame every so many seconds, turned upright, but for those `done`."""
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")  # its complaints are not sentences
    import cv2

    film = cv2.VideoCapture(path)
    rate, number, given = film.get(cv2.CAP_PROP_FPS) or 25.0, 0, 0
    try:
        while film.grab():
            second = number / rate
            number += 1
            if second < given * every - 1e-9:
                continue
            good, pixels = film.retrieve()
            if good:
                given += 1
                if (name := f"{path}#t={second:.2f}") not in done:
                    yield Picture(name, Image.fromarray(pixels[:, :, ::-1]), second=second)
    finally:
        film.release()
    if not given:
        raise PhotoError(
            f"{path} is no video that can be decoded; convert it to MP4 (H.264) or to frames"
        )
