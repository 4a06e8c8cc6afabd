"""The blocks of code in the documents, and whether a test types them.

A block of `console` or `python` is typed (tests/documents/test_documents.py), unless the line above
it says `<!-- not run: REASON -->`; then only its verbs, flags and names are looked up.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
TAKES_RUNS = (  # documents that begin with a run
    "docs/evaluate.md",
    "docs/deploy.md",
    "docs/locate.md",
    "docs/security.md",
    "docs/serve.md",
)
TYPED = ("console", "python")
MARK = re.compile(r"<!-- not run: (.+?) -->")
FENCE = re.compile(r"^(?P<fence>`{3,})(?P<kind>[^\n`]*)\n(?P<text>.*?)^(?P=fence)$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """A fenced block and the line its fence is on; unrun: why no test types it."""

    document: str
    line: int
    kind: str
    text: str
    unrun: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A line after `$ `, its words, and what the document shows of its answer."""

    words: tuple[str, ...]
    shown: tuple[str, ...]

    @property
    def refused(self) -> bool:
        return any(line.startswith("error: ") for line in self.shown)


def read_blocks(page: Path) -> list[Block]:
    """Every fenced block of a document, in order."""
    return list(_blocks(page.read_text(), str(page.relative_to(ROOT))))


def _blocks(text: str, document: str) -> Iterator[Block]:
    for found in FENCE.finditer(text):
        before = text[: found.start()].splitlines()
        mark = MARK.fullmatch(before[-1].strip()) if before else None
        yield Block(
            document=document,
            line=len(before) + 1,
            kind=found["kind"].strip(),
            text=found["text"],
            unrun=mark[1] if mark else "",
        )


def read_commands(block: Block) -> list[Command]:
    """The commands of a console block; a backslash at a line's end goes on with the next."""
    found: list[Command] = []
    for line in block.text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            found.append(Command(tuple(shlex.split(line[2:], comments=True)), ()))
        elif line.strip():
            last = found.pop()
            found.append(Command(last.words, (*last.shown, line)))
    return found


_TYPED = [page for page in PAGES if any(one.kind in TYPED for one in read_blocks(page))]
WITH_RUNS = [page for page in _TYPED if page.relative_to(ROOT).as_posix() in TAKES_RUNS]
WITHOUT_RUNS = [page for page in _TYPED if page not in WITH_RUNS]
