"""What a folder of 1,000 photos costs to locate, against describing its photos alone.

    evenplace city town --photos 1000 --queries 10
    evenplace train town/database --run runs/town --set verify=0
    evenplace index runs/town --database town/database
    python benchmarks/locate.py runs/town town/database [--photos 1000] [--rounds 2]

Locating is what `evenplace locate RUN FOLDER --out answers.csv` does, without starting up: find,
read the EXIF, describe, search, keep a journal, write the table.  Both describe with the same
engine.  Rounds alternate; the least time of each counts.
"""

import argparse
import tempfile
import time
from pathlib import Path

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
    run = Run.open(asked.run)
    paths = list(find_asked([asked.folder]).paths)[: asked.photos]
    engine = run.search(verify=0, expected=len(paths))
    assert engine.describer is not None
    engine.describer.describe(paths[:32])
    alone, located = [], []
    for _ in range(asked.rounds):
        began = time.perf_counter()
        engine.describer.describe(paths)
        alone.append(time.perf_counter() - began)
        located.append(locate(run, paths))
    ratio = min(located) / min(alone)
    print(engine.describer.chosen)
    print(f"{len(paths)} photos: describing {len(paths) / min(alone):.1f} a second, locating "
          f"{len(paths) / min(located):.1f} a second, {ratio:.3f} times the time")  # fmt: skip


def locate(run: Run, paths: list[str]) -> float:
    """Seconds to answer all of them into a table; opening the run is not counted."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "answers.csv"
        journal, places = Journal(out, {}), open_index(run.folder / "index").places
        blocks = run.locate_many(Asked(tuple(paths)), verify=0)
        began = time.perf_counter()
        for block in blocks:
            journal.add(block)
        write_answers(journal.answers, out, places)
        return time.perf_counter() - began


if __name__ == "__main__":
    main()
