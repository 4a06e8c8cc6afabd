"""What axes are worth to descriptors that are given: under L2, and under the tail layer.

    python -m benchmarks.axes cambridge [--host vlad] [--out studies]

Each host describes the development split of a city (its test queries are never asked): VLAD of
the frozen network as it is pooled (7,168 numbers) and as `dapr-m` starts (512, half-whitened),
NetVLAD and MegaLoc in small, trained on the database.  The descriptors then become a run like
anybody's, along each kind of axes.  Results: benchmarks/results/axes.md.
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenplace.evaluation import Scores
from evenplace.run.run import Run, from_descriptors
from evenplace.study.data import Split, read_splits
from evenplace.study.runs import run_study
from evenplace.study.spec import System, find_study
from evenplace.training.trunk_cache import describe_cached

PLAIN = ("folds=0", "verify=0")
EXACT = {"rerank": "l2", "confidence": "l2", "verify": 0, "exact": True}
HOSTS = {
    "pooled": ("dapr-m", ("epochs=0", "projection=false", "dim=7168")),
    "vlad": ("dapr-m", ("epochs=0",)),
    "netvlad": ("netvlad-small", ()),
    "megaloc": ("megaloc-small", ()),
}
LAYER = ("folds=5", "rerank=fused", "confidence=evidence", "shortlist=50")
AXES = ("given", "half-whitened", "learned")


def network_of(name: str, split: Split, out: Path) -> Run:
    """The host, trained once on the split's database."""
    recipe, changes = HOSTS[name]
    system = System(name, recipe, (*changes, *PLAIN), search=EXACT)
    study = replace(find_study("layer"), systems=(system,))
    return Run(run_study(study, [split], out).outcomes[0].runs[0])


def say(found: Scores) -> str:
    parts = (found.head, found.middle, found.tail)
    return f"{found.recall[1]:.1f} ({', '.join(f'{part.recall[1]:.1f}' for part in parts)})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--host", action="append", choices=tuple(HOSTS))
    parser.add_argument("--axes", action="append", choices=AXES)
    parser.add_argument("--out", type=Path, default=Path("studies"))
    asked = parser.parse_args()
    (split,) = read_splits(asked.data, 1, asked.out / "data", development=True)
    print("| descriptor | axes | L2: R@1 (head, middle, tail) | tail layer |\n|---|---|---|---|")
    for name in asked.host or HOSTS:
        network = network_of(name, split, asked.out).files.network
        database, queries = (
            describe_cached(network, photos.paths, asked.out / "cache").descriptors
            for photos in (split.database, split.queries)
        )
        for axes in asked.axes or AXES:
            settings = [*LAYER, f"axes={axes}"]
            with tempfile.TemporaryDirectory() as folder:
                run = from_descriptors(database, split.database, run=folder, settings=settings)
                how: dict[str, Any] = {"radius": split.truth.radius, "heading": split.truth.heading}
                plain = run.evaluate(split.queries, queries, **(how | EXACT))
                layer = run.evaluate(split.queries, queries, **how)
            print(f"| {name} | {axes} | {say(plain)} | {say(layer)} |", flush=True)


if __name__ == "__main__":
    main()
