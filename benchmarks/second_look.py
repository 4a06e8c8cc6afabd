"""What the second look costs a query, and an index.

    evenplace demo --run runs/demo
    python benchmarks/second_look.py runs/demo/seed-0/dapr-m PHOTOS --photos 100

Photos are asked one after another, as a phone would; then their points are found as an index finds
them, on all cores.  Medians of the clock; nothing else should run.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from evenplace.describe.onnx_engine import own_cores
from evenplace.photos.asked import find_asked
from evenplace.retrieval.local_features import build_local_features
from evenplace.retrieval.packed_features import pack_photos
from evenplace.run.run import Run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--photos", type=int, default=100)
    parser.add_argument("--verify", type=int, nargs="+", default=[0, 20, 50])
    asked = parser.parse_args()
    paths = list(find_asked([asked.folder]).paths)[: asked.photos]
    print(f"{len(paths)} photos, {own_cores()} cores\n")
    print("| candidates | looked at, median (mean) | ms a query | describing | the look |")
    print("|---|---|---|---|---|")
    for count in asked.verify:
        print(row(Run.open(asked.run), paths, count), flush=True)
    kind = build_local_features("xfeat")
    list(pack_photos(kind, paths[:4]))
    began = np.array([time.perf_counter(), time.process_time()])
    list(pack_photos(kind, paths))
    spent = np.array([time.perf_counter(), time.process_time()]) - began
    rates = len(paths) / spent
    print("\npoints of {:.1f} photos a second, {:.1f} a second of a processor".format(*rates))


def row(run: Run, paths: list[str], count: int) -> str:
    """One line of the table: as many candidates, each photo asked alone."""
    run.locate(paths[0], verify=count)
    clock, parts, looked = [], [], []
    for path in paths:
        began = time.perf_counter()
        answer = run.locate(path, verify=count)
        clock.append((time.perf_counter() - began) * 1e3)
        parts.append([answer.elapsed_ms["extract"], answer.elapsed_ms.get("verify", 0.0)])
        looked.append(answer.looked)
    describing, look = np.median(parts, axis=0)
    seen = f"{np.median(looked):.0f} ({np.mean(looked):.1f})"
    return f"| {count} | {seen} | {np.median(clock):.0f} | {describing:.0f} | {look:.0f} |"


if __name__ == "__main__":
    main()
