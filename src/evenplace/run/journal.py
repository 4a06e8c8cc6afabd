"""A journal of answers: each block is on disk once it is given, so that a long job can go on.

It lies beside the file it becomes (`answers.csv.part`), a line a photo under a line that says
how they were asked, and is removed when that file is whole.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evenplace.errors import RunError
from evenplace.photos.files import because
from evenplace.run.located import Located


class Journal:
    """Answers that were given already, and a place to keep the next ones."""

    def __init__(self, out: Path | None, way: dict[str, Any], replace: bool = False) -> None:
        """out: the file it becomes; without one, answers are held in memory only."""
        self.path = None if out is None else out.with_name(f"{out.name}.part")
        self.answers: list[Located] = []
        if self.path is not None and self.path.exists() and not replace:
            self.answers = _read(self.path, way)
        self._write("w", [{"asked": way}, *(one.as_dict() for one in self.answers)])

    @property
    def done(self) -> frozenset[str]:
        """Photos that need not be asked again."""
        return frozenset(one.photo for one in self.answers)

    def add(self, block: Sequence[Located]) -> None:
        """Keep a block of answers."""
        self.answers += block
        self._write("a", [one.as_dict() for one in block])

    def end(self) -> None:
        """Forget the journal: the answers are in their file."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _write(self, mode: str, lines: Sequence[dict[str, Any]]) -> None:
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open(mode, encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
        except OSError as cause:
            raise RunError(f"could not write {self.path}: {because(cause)}") from cause


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
