"""Figures with what was asked of them, how they are timed, and the page they are written to."""

import datetime
import os
import platform
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np
import torch
from numpy.typing import NDArray

PAGE = Path(__file__).parent / "results" / "search.md"
_HEAD = """# Search

Every section says how it was measured; `python -m benchmarks.search --only PART` renews one.
"""

Cell = tuple[str, str, str, bool | None]  # figure, measured, asked, whether it holds


def plain(name: str, value: str) -> Cell:
    return _told((name, value, "", None))


def most(name: str, value: float, limit: float) -> Cell:
    return _told((name, f"{value:.3g}", f"at most {limit:g}", bool(value <= limit)))


def least(name: str, value: float, limit: float) -> Cell:
    shown = f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"
    return _told((name, shown, f"at least {limit:,g}", bool(value >= limit)))


def _told(cell: Cell) -> Cell:
    """Say a figure as soon as it is known: the whole takes minutes."""
    print(*cell[:3], sep=" | ", file=sys.stderr, flush=True)
    return cell


def timed(call: Callable[[int], object], count: int, warm: int = 20) -> NDArray[np.float64]:
    """Milliseconds of each call, after a few to warm up."""
    for number in range(warm):
        call(number)
    spent = []
    for number in range(count):
        began = time.perf_counter()
        call(number)
        spent.append((time.perf_counter() - began) * 1e3)
    return np.array(spent)


def resident() -> float:
    """This process's resident memory in GB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e9


def write_section(part: str, cells: list[Cell]) -> None:
    """Put the figures of one part on the page; the other parts stay as they are."""
    marks = {True: "holds", False: "FAILS", None: ""}
    asked = re.sub(r"--folder[ =]\S+", "--folder FOLDER", " ".join(sys.argv[1:]))
    command = f"python -m benchmarks.search {asked}".strip()
    lines = [
        f"## {part}",
        "",
        f"{datetime.date.today()}, `{command}`, seed 0, {os.cpu_count()} cores "
        f"({platform.machine()}), load {os.getloadavg()[0]:.1f}, torch {torch.__version__}, "
        f"numpy {np.__version__}, faiss {faiss.__version__}",
        "",
        "| figure | measured | asked | |",
        "|---|---|---|---|",
        *(f"| {name} | {value} | {wish} | {marks[ok]} |" for name, value, wish, ok in cells),
    ]
    known = re.split(r"^(?=## )", PAGE.read_text(), flags=re.MULTILINE)[1:] if PAGE.exists() else []
    sections = {text.split("\n", 1)[0][3:]: text.rstrip() for text in known}
    sections[part] = "\n".join(lines)
    print(sections[part], flush=True)
    PAGE.write_text("\n".join([_HEAD, "\n\n".join(sections.values()), ""]))
