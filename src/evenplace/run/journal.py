"""A journal of answers: each block is on disk once it is given, so that a long job can go on.

It lies beside the file it becomes (`answers.csv.part`) from the first answer on, a line a photo
under a line that says how they were asked, and is removed when that file is whole.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evenplace.errors import RunError
from evenplace.photos.files import because, whole_file
from evenplace.run.locate_many import Located


class Journal:
    """Answers that were given already, and a place to keep the next ones."""

    def __init__(
        self, out: Path | None, way: dict[str, Any], asked: Sequence[str], replace: bool = False
    ) -> None:
        """out: the file it becomes; without one, answers are held in memory only.

        asked: the files asked about.  Answers to others that are still there are another job's.
        """
        self.path = None if out is None else out.with_name(f"{out.name}.part")
        self.answers: list[Located] = []
        self._rank, self._way, self._begun = {one: at for at, one in enumerate(asked)}, way, False
        if self.path is not None and self.path.exists() and not replace:
            self.answers = self._mine(_read(self.path, way))

    def in_order(self) -> list[Located]:
        """The answers in the order of the files asked about."""
        return sorted(self.answers, key=lambda one: (self._rank[one.file], one.second or 0.0))

    @property
    def done(self) -> frozenset[str]:
        """Photos that need not be asked again."""
        return frozenset(one.photo for one in self.answers)

    def add(self, block: Sequence[Located]) -> None:
        """Keep a block of answers."""
        self.answers += block
        if self.path is None:
            return
        if not self._begun:
            lines = _lines([{"asked": self._way}, *(one.as_dict() for one in self.answers)])
            with whole_file(self.path, RunError) as draft:
                draft.write_text(lines, encoding="utf-8")
            self._begun = True
            return
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(_lines([one.as_dict() for one in block]))
        except OSError as cause:
            raise RunError(f"could not write {self.path}: {because(cause)}") from cause

    def end(self) -> None:
        """Forget the journal: the answers are in their file."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _mine(self, answers: Sequence[Located]) -> list[Located]:
        others = [one.file for one in answers if one.file not in self._rank]
        if there := [one for one in others if Path(one).exists()]:
            raise RunError(
                f"{self.path} was begun with other photos, {there[0]} for example; ask as before, "
                "or start anew with --replace"
            )
        return [one for one in answers if one.file in self._rank]


def _lines(told: Sequence[dict[str, Any]]) -> str:
    return "".join(json.dumps(one) + "\n" for one in told)


def _read(path: Path, way: dict[str, Any]) -> list[Located]:
    """What was answered before; a last line that was cut off is asked again."""
    lines = path.read_text(encoding="utf-8").splitlines()
    try:
        asked = json.loads(lines[0])["asked"]
    except (IndexError, KeyError, TypeError, ValueError) as cause:
        raise RunError(
            f"{path} is no journal of answers; move it away, or start anew with --replace"
        ) from cause
    if asked != way:
        other = next(name for name in way | asked if way.get(name) != asked.get(name))
        raise RunError(
            f"{path} was begun with {other} {asked.get(other)!r} and this is {way.get(other)!r}; "
            "ask as before, or start anew with --replace"
        )
    found = []
    for line in lines[1:]:
        try:
            found.append(Located.from_dict(json.loads(line)))
        except (KeyError, TypeError, ValueError):
            break
    return found
