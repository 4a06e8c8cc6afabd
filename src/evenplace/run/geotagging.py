"""Answers written back into photos: into copies, into the photos themselves, or beside them.

A list says what was written, and undoes it.  Its lines are there before what they tell of, so
that a power cut leaves nothing that cannot be undone.
"""

import base64
import hashlib
import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from evenplace.errors import PhotoError, RunError, SettingError
from evenplace.photos.files import check_folder, whole_file
from evenplace.photos.geotags import exif_of, place_exif, with_exif, xmp
from evenplace.run.locate_many import Located

LIST = "written.jsonl"


@dataclass(frozen=True)
class Tagging:
    """How positions are written: EXIF into copies in a folder, or into the photos; or sidecars."""

    exif: bool = True
    copies: Path | None = Path("located")  # None: into the photos themselves
    replace: bool = False  # positions that are there already

    @property
    def list_folder(self) -> Path:
        return self.copies if self.exif and self.copies else Path()

    def check(self, photos: Sequence[str]) -> None:
        """Refuse, before hours of work, what could not be written or would be no copy."""
        check_folder(self.list_folder, RunError)
        if self.exif and self.copies and self.copies.resolve() == _root(photos).resolve():
            raise SettingError(
                f"--copies {self.copies} is where the photos are; choose another folder, or write "
                "into the photos with --in-place"
            )


@dataclass(frozen=True)
class Written:
    """One file that was written: enough to undo it, and to see that nobody changed it since."""

    photo: str
    file: str
    latitude: float
    longitude: float
    metres: float
    made: bool  # whether there was no such file before
    before: str | None  # the EXIF, or the sidecar, that was there: base64
    digest: str  # of the file as it is then


@dataclass
class Tagged:
    """What was written, and why others were left as they were."""

    listed: Path
    written: list[Written] = field(default_factory=list)
    left: Counter[str] = field(default_factory=Counter)


def write_positions(lines: Sequence[Located], how: Tagging) -> Tagged:
    """Write the position of every answer; photos that were not answered stay untouched."""
    given = [line for line in lines if line.answered]
    if any(line.spot and line.spot.latitude is None for line in given):
        raise SettingError("photos take degrees, and this database has local metres; use --out")
    tagged = Tagged(_free(how.list_folder / LIST))
    tagged.left["were not answered"] += len(lines) - len(given)
    root = _root([line.photo for line in lines if line.second is None])
    for line in given:
        try:
            _write_one(line, how, root, tagged)
        except PhotoError as cause:
            tagged.left[str(cause)] += 1
    tagged.left += Counter()  # without the zeros
    return tagged


def undo(listed: Path) -> tuple[int, list[str]]:
    """Take back what a list says was written; files that changed since are left, and named."""
    if not listed.is_file():
        raise RunError(f"{listed} does not exist; give the {LIST} that --write-exif named")
    undone, changed = 0, []
    for one in reversed(_read(listed)):  # the last first, where a file was written twice
        file = Path(one.file)
        if not file.exists():
            continue  # it was never written, or undone before
        data = file.read_bytes()
        if _digest(data) == one.digest:
            _take_back(one, file, data)
            undone += 1
        elif not _was_undone(one, data):
            changed.append(one.file)
    return undone, changed


def _was_undone(one: Written, data: bytes) -> bool:
    """Whether a file is as it was before it was written."""
    try:
        return not one.made and _as_before(one, data) == data
    except PhotoError:  # it is no JPEG any more
        return False


def _read(listed: Path) -> list[Written]:
    """What was written; a last line that a full disk cut off tells of nothing that was."""
    try:
        *lines, last = listed.read_text(encoding="utf-8").rstrip("\n").split("\n")
        if last.endswith("}") or not last.startswith("{"):
            lines.append(last)
        return [Written(**json.loads(line)) for line in lines if line]
    except (TypeError, ValueError) as cause:
        raise RunError(
            f"{listed} is no list of written positions ({cause}); give the {LIST} of before"
        ) from cause


def _root(photos: Sequence[str]) -> Path:
    """The folder that all photos are in; copies lie under theirs as photos under it."""
    folders = [Path(one).absolute().parent for one in photos]
    return Path(os.path.commonpath(folders or [Path()]))


def _write_one(line: Located, how: Tagging, root: Path, tagged: Tagged) -> None:
    assert line.spot is not None
    assert line.spot.latitude is not None
    assert line.spot.longitude is not None
    if line.second is not None:
        raise PhotoError("are frames of a video, which has no place for them")
    if line.own is not None and not how.replace:
        raise PhotoError("have a position of their own, which --replace would write over")
    where = (line.spot.latitude, line.spot.longitude, line.spot.major)
    photo = Path(line.photo)
    in_place = how.exif and how.copies is None
    try:
        data, rights = photo.read_bytes(), photo.stat().st_mode
    except OSError as cause:
        raise PhotoError("cannot be read any more") from cause
    if in_place and not rights & 0o222:
        raise PhotoError("are read-only; change their rights, or write copies")
    target = _target(photo, how, root)
    if how.exif:
        old: bytes | None = exif_of(data)
        new = with_exif(data, place_exif(old, *where))
    else:
        old = target.read_bytes() if target.exists() else None
        new = xmp(*where).encode()
    fresh = not target.exists()
    if not (fresh or how.replace or in_place):
        raise PhotoError(f"have a {'copy' if how.exif else 'sidecar'} there already")
    if not (fresh or in_place) and how.exif:
        old = _exif_there(target, data)
    kept = None if old is None else base64.b64encode(old).decode()
    one = Written(line.photo, str(target.absolute()), *where, fresh, kept, _digest(new))
    _note(tagged, one)
    with whole_file(target, RunError) as draft:  # which ends the job: others would fail as well
        draft.write_bytes(new)
    if fresh:
        target.chmod(rights)
    tagged.written.append(one)


def _target(photo: Path, how: Tagging, root: Path) -> Path:
    """The file that is written; in place it is the one that a link leads to."""
    if not how.exif:
        return photo.with_name(f"{photo.name}.xmp")
    return (
        photo.resolve() if how.copies is None else how.copies / photo.absolute().relative_to(root)
    )


def _exif_there(copy: Path, photo: bytes) -> bytes | None:
    """What --undo has to put back into a copy of before; another picture is not written over."""
    there = copy.read_bytes()
    if with_exif(there, None) != with_exif(photo, None):
        raise PhotoError("have another picture of their name there already")
    return exif_of(there)


def _note(tagged: Tagged, one: Written) -> None:
    tagged.listed.parent.mkdir(parents=True, exist_ok=True)
    with tagged.listed.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(one)) + "\n")


def _take_back(one: Written, file: Path, data: bytes) -> None:
    if one.made:
        file.unlink()
        return
    with whole_file(file, RunError) as draft:
        draft.write_bytes(_as_before(one, data))


def _as_before(one: Written, data: bytes) -> bytes:
    """The file as it was: with the EXIF, or the whole sidecar, that was there."""
    before = None if one.before is None else base64.b64decode(one.before)
    return before or b"" if one.file.endswith(".xmp") else with_exif(data, before)


def _free(path: Path) -> Path:
    """A name that no list has yet: what undoes an earlier job is never written over."""
    number = 1
    while path.exists():
        number += 1
        path = path.with_name(f"{LIST.removesuffix('.jsonl')}-{number}.jsonl")
    return path


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
