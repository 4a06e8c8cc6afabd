"""How long does it take to evaluate 100,000 queries with 20 hits each?

    python benchmarks/evaluate.py [--queries 100000] [--database 20000] [--check]

Positions, hits and confidences are drawn; from the hits on everything is real: which hits are
right, recall overall, by tier and by condition with bootstrap intervals, mAP, position errors,
all seven sources of confidence, and predictions.parquet on disk.  Writes
benchmarks/results/evaluate.md; with --check, exits 1 unless hits become scores within 5 seconds
and AUC-PR equals scikit-learn's.
"""

import argparse
import datetime
import platform
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score

from evenplace.evaluation.confidence_curves import SOURCES
from evenplace.evaluation.cost import measure_cost
from evenplace.evaluation.evaluate import Asked, predict
from evenplace.evaluation.predictions import Predictions
from evenplace.evaluation.scores import Scores, summarise
from evenplace.evaluation.truth import Truth
from evenplace.photos import Photos
from evenplace.places import Grid
from evenplace.retrieval import Hits, Search
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.positions import Ellipse, Position

SEED, SIDE, HITS, PLACES, LIMIT = 0, 2000.0, 20, 20, 5.0
RESULTS = Path(__file__).parent / "results" / "evaluate.md"


def draw_photos(count: int, seed: int) -> Photos:
    """Photos crowded along the streets of a 2 km square, with headings and times."""
    rng = np.random.default_rng((SEED, seed))
    streets = rng.uniform(0, SIDE, 60)
    along, across = (
        rng.uniform(0, SIDE, count),
        rng.choice(streets, count) + rng.normal(0, 4, count),
    )
    turned = rng.random(count) < 0.5
    return Photos.from_arrays(
        east=5e5 + np.where(turned, along, across),
        north=4e6 + np.where(turned, across, along),
        zone=34,
        heading=rng.uniform(0, 360, count),
        time=np.datetime64("2020-01-01") + rng.integers(0, 365, count).astype("timedelta64[D]"),
        path=[f"{seed}/{number:07d}.jpg" for number in range(count)],
    )


def draw_hits(engine: Search, queries: Photos) -> Hits:
    """Answers of a system that is right about six times in ten."""
    rng = np.random.default_rng(SEED + 1)
    count, stored = len(queries), len(engine.index)
    rows = rng.integers(0, stored, (count, HITS))
    near = engine.index.places.locate(queries)
    sure = np.flatnonzero((near >= 0) & (rng.random(count) < 0.6))
    rows[sure, 0] = engine.index.starts[near[sure]]
    spots = engine.index.positions[rows[:, 0]]
    flat = Ellipse(8.0, 8.0, 0.0)
    return Hits(
        rows=rows,
        distances=np.sort(rng.random((count, HITS)), axis=1).astype(np.float32),
        shortlist=rng.integers(0, len(engine.index.places), (count, PLACES)),
        confidence=rng.random(count).astype(np.float32),
        elapsed_ms={},
        posterior=np.zeros((count, PLACES), np.float32),
        positions=tuple(Position(float(east), float(north), flat) for east, north in spots),
        cosines=rng.random((count, HITS)).astype(np.float32),
        inliers=np.full((count, HITS), np.nan, np.float32),
        looked=np.zeros(count, np.int64),
    )


def evaluate(
    engine: Search, queries: Photos, hits: Hits, folder: Path
) -> tuple[Scores, list[float]]:
    """Hits to scores, and scores to disk, with the seconds of each step."""
    rng = np.random.default_rng(SEED + 2)
    sources = {name: rng.random(len(queries)).astype(np.float32) for name in SOURCES}
    clock = [time.perf_counter()]
    asked = Asked(
        hits=hits,
        in_pool=rng.random(len(queries)) < 0.9,
        pool_sizes=np.full(len(queries), HITS),
        sources=sources,
        descriptors=None,
    )
    found = predict(engine, queries, Truth(25), asked, hits.shortlist)
    clock.append(time.perf_counter())
    cost = measure_cost(engine, answerable=0, skipped=0, pool_size=HITS, latency={})
    scores = summarise("drawn", found, engine.index.places, cost, Truth(25))
    clock.append(time.perf_counter())
    found.write(folder / "predictions.parquet")
    clock.append(time.perf_counter())
    Predictions.read(folder / "predictions.parquet")
    clock.append(time.perf_counter())
    return scores, np.diff(clock).tolist()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--database", type=int, default=20_000)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        photos = draw_photos(asked.database, 0)
        descriptors = np.tile(np.array([[0.6, 0.8]], np.float32), (len(photos), 1))
        index = index_descriptors(
            descriptors, photos, Grid(20).partition(photos), Path(folder) / "index"
        )
        engine, queries = Search(index), draw_photos(asked.queries, 1)
        hits = draw_hits(engine, queries)
        scores, spent = evaluate(engine, queries, hits, Path(folder))
    run = scores.predictions
    theirs = average_precision_score(run.right, run.confidence)
    gap = abs(theirs - scores.knowing["own"].auc_pr)
    good = spent[0] + spent[1] <= LIMIT and gap < 1e-9
    command = " ".join(["python benchmarks/evaluate.py", *sys.argv[1:]])
    text = f"""# Evaluating {asked.queries:,} queries with {HITS} hits each

{datetime.date.today()}, `{command}`, seed {SEED}, {platform.machine()}, {asked.database:,} database photos in {len(index.places):,} places

| step | seconds |
| --- | --- |
| hits → right or wrong, places, conditions | {spent[0]:.2f} |
| counting: recall, tiers, conditions, mAP, intervals, 8 confidences | {spent[1]:.2f} |
| **hits → scores** (at most {LIMIT:g}) | **{spent[0] + spent[1]:.2f}** |
| writing predictions.parquet | {spent[2]:.2f} |
| reading it again | {spent[3]:.2f} |

R@1 {scores.overall.intervals[1]}; AUC-PR differs from scikit-learn's by {gap:.1e}.
"""  # noqa: E501
    RESULTS.write_text(text)
    print(text)
    return 0 if good or not asked.check else 1


if __name__ == "__main__":
    sys.exit(main())
