"""Figures with what was asked of them, how they are timed, and the page they are written to."""

import datetime
import os
import platform
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import faiss
import numpy as np
import torch
from numpy.typing import NDArray

PAGE = Path(__file__).parent / "results" / "search.md"
_HEAD = """# Search

Every section says how it was measured; `python -m benchmarks.search --only PART` renews one.
"First version" is what the rooms `index` and `search` were measured at on this machine; sections of
2026-11-16 are theirs, and were not measured since.
"""

Cell = tuple[str, str, str, bool | None]  # figure, measured, asked, whether it holds


OLD = {  # of the first version's rooms `index` and `search`, on this machine; issue 19 and before
    "times faster than the flat search": "352 to 398",
    "ours, one query, median ms": "2.55",
    "faiss IndexFlatL2, one query, median ms": "1014",
    "p99 over median, one query": "2.3 to 5.0",
    "throughput of 64 queries over one by one": "2.8",
    "64 queries at once, ms a query": "0.70",
    "one query, l2, median ms": "1.73",
    "one query, fused, median ms": "2.02",
    "one query, cfd, median ms": "2.41",
    "cost of fused over l2": "1.17",
    "cost of cfd over l2": "1.40",
    "build from descriptors, photos a second": "22,000 to 58,752",
    "build with spectra for CFD, photos a second": "16,949",
    "impostor terms: exact less approximate, mean": "0.044",
    "correlation over photos": "0.920",
    "resident with the index open, GB": "0.388",
    "open, seconds": "0.52",
    "cost at 10,000,000 photos over 100,000": "1.85 (× 256)",
}


_SPINS = "Measured with GOMP_SPINCOUNT=1000, as the command line sets it (`cli/process.py`)."
NOTES = {  # what limits a figure, below its table
    "build": "Beside its own work it waits for the disk: 4.3 GB of rows are on it, hashed, when "
    "the build ends, and have been written since it began.  Where the load is above the cores, "
    "other processes had a part of both.  Processor seconds are the build's own, whoever else "
    f"works; divided by the cores they are the least it can take.  {_SPINS}",
    "query": "What limits 64 at once is the shortlist: the codes of all places are scanned for "
    "every query, arithmetic that queries do not share and only cores divide.  Python, which they "
    "do share, is mostly the ranking of one query.  At a load above the cores, two threads have "
    f"hardly more of them than one.  {_SPINS}",
    "bytes": "The town is one where photos differ along all axes (`FallingTown`).  `--bytes 512` "
    "takes 512 numbers of a byte; where that alone loses more than half a point, what was given "
    "lies beside on the disk as float16 (the bytes after the +) and the 100 best candidates of a "
    "query are compared with it.  So 512 bytes are what a search scans and wants in memory, not "
    "what the disk holds.  By arithmetic (reverse water-filling of axes that fall as 1/i) an "
    "ideal code of 4,096 bits errs by .004 in a cosine, the 512 best axes by .0046.",
}


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


def resident(kind: str = "VmRSS") -> float:
    """This process's resident memory in GB.  RssAnon: without pages of files."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith(kind)).split()[1]) * 1024 / 1e9


class Watched:
    """The most memory, without pages of files, that this process took meanwhile, GB."""

    def __enter__(self) -> Self:
        self.most, self._done, self._before = 0.0, threading.Event(), resident("RssAnon")
        self._watcher = threading.Thread(target=self._watch)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            self.most = max(self.most, resident("RssAnon") - self._before)


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
        "| figure | first version | now | asked | |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {OLD.get(name, '')} | {value} | {wish} | {marks[ok]} |"
            for name, value, wish, ok in cells
        ),
    ]
    lines += ["", NOTES[part]] if part in NOTES else []
    known = re.split(r"^(?=## )", PAGE.read_text(), flags=re.MULTILINE)[1:] if PAGE.exists() else []
    sections = {text.split("\n", 1)[0][3:]: text.rstrip() for text in known}
    sections[part] = "\n".join(lines)
    print(sections[part], flush=True)
    PAGE.write_text("\n".join([_HEAD, "\n\n".join(sections.values()), ""]))
