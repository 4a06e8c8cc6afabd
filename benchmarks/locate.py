"""What a folder of 1,000 photos costs to locate, against describing its photos alone.

    evenplace city town --photos 1000 --queries 10
    evenplace train town/database --run runs/town --set verify=0
    evenplace index runs/town --database town/database
    python benchmarks/locate.py runs/town town/database [--photos 1000] [--rounds 2]

Locating is what `evenplace locate RUN FOLDER --out answers.csv` does, without starting up: find,
read the EXIF, describe, search, keep a journal, write the table.  Both describe with the same
engine and Python's lock changes hands as the command line sets it.  Rounds alternate; the least
time of each counts, on the clock and of the processors.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenplace.cli.process import take_short_turns
from evenplace.photos.asked import Asked, find_asked
from evenplace.report.answers import write_answers
from evenplace.retrieval import open_index
from evenplace.run.journal import Journal
from evenplace.run.run import Run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--photos", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    asked = parser.parse_args()
    take_short_turns()
    run = Run.open(asked.run)
    paths = list(find_asked([asked.folder]).paths)[: asked.photos]
    engine = run.search(verify=0, expected=len(paths))
    assert engine.describer is not None
    engine.describer.describe(paths[:32])
    alone, located = [], []
    for _ in range(asked.rounds):
        began = _clock()
        engine.describer.describe(paths)
        alone.append(_clock() - began)
        located.append(locate(run, paths))
    spent = [np.min(part, axis=0) for part in (alone, located)]  # (2,) seconds, of processors
    print(engine.describer.chosen)
    rates = [len(paths) / seconds for seconds, _ in spent]
    print(f"{len(paths)} photos: {rates[0]:.1f} a second described, {rates[1]:.1f} located")
    print("{:.3f} times the time, {:.3f} times the processors".format(*spent[1] / spent[0]))


def _clock() -> NDArray[np.float64]:
    """Seconds, and seconds of all processors that this process had."""
    return np.array([time.perf_counter(), time.process_time()])


def locate(run: Run, paths: list[str]) -> NDArray[np.float64]:
    """Seconds to answer all of them into a table; opening the run is not counted."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "answers.csv"
        journal, places = Journal(out, {}, paths), open_index(run.folder / "index").places
        blocks = run.locate_many(Asked(tuple(paths)), verify=0)
        began = _clock()
        for block in blocks:
            journal.add(block)
        write_answers(journal.answers, [out], places)
        return _clock() - began


if __name__ == "__main__":
    main()
