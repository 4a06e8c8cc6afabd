"""What a second look is worth: by features, pixels, points, fit and candidates; its cost.

    python benchmarks/verification.py --data timisoara --seed 0 --out runs/verification --most 200

Trains the recommended recipe on one split by position (or takes up what is in --out), ranks its
queries once, looks at the candidates in each way, and fits the two weights on one half of the
queries to judge the other, in turn.  "Told apart" needs no weights and few queries: the share of
right candidates that face the query's way and have more inliers than 99 % of those farther than
60 m.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenplace.evaluation.uncertainty import pair
from evenplace.photos.nearby import turn
from evenplace.photos.pictures import open_within
from evenplace.photos.table import Photos
from evenplace.places.tiers import TIERS
from evenplace.retrieval import Search
from evenplace.retrieval.candidates import Ranking
from evenplace.retrieval.fusion import Looked, fit_look
from evenplace.retrieval.local_features import LONGEST, Features, build_local_features
from evenplace.retrieval.packed_features import Packing
from evenplace.retrieval.second_look import LookWeights
from evenplace.retrieval.verification import verify
from evenplace.run.run import Run
from evenplace.study.data import Split, read_splits

COUNTS = (5, 20, 50)
_AHEAD, _FAR = 45.0, 60.0  # degrees, metres


@dataclass(frozen=True)
class Way:
    """How pictures are looked at."""

    features: str = "xfeat"
    fit: str = "homography"
    pixels: int = LONGEST
    points: int = 10_000  # at most
    kept: bool = True  # as an index keeps them, in 16 kB

    def __str__(self) -> str:
        points = "" if self.points == Way.points else f", {self.points} points"
        how = "16 kB" if self.kept else "all"
        return f"{self.features} | {self.fit} | {self.pixels} | {how}{points}"


WAYS = (
    Way(),
    Way(points=480),
    Way(points=240),
    Way(pixels=480),
    Way(pixels=480, points=240),
    Way(kept=False),
    Way(fit="fundamental"),
    Way(features="sift"),
    Way(features="sift", kept=False),
)


@dataclass(frozen=True)
class Asked:
    """Queries, and the candidates they were given, best first."""

    photos: Photos
    rows: NDArray[np.int64]  # (Q, N) of the index, -1 for none
    distances: NDArray[np.float32]  # (Q, N)
    right: NDArray[np.bool_]  # (Q, N)
    facing: NDArray[np.bool_]  # (Q, N) right, and looking the query's way
    far: NDArray[np.bool_]  # (Q, N) shows something else
    tiers: NDArray[np.int8]  # (Q,)


@dataclass(frozen=True)
class Seen:
    """Inliers of every candidate, and what finding them took."""

    inliers: NDArray[np.float32]  # (Q, N)
    extract_ms: float  # a photo
    match_ms: float  # a pair


def main() -> None:
    given = _arguments()
    split = read_splits(
        given.data, given.seed + 1, given.out / "data", development=given.development
    )[given.seed]
    engine = _engine(split, given.out)
    asked = _ask(engine, split, given.most)
    print(f"{given.data}, seed {given.seed}: {len(asked.photos)} queries, right within "
          f"{split.truth}; one look: {_recall(asked, asked.right)}\n")  # fmt: skip
    print("| features | fit | pixels | kept | candidates | R@1 (head / middle / tail), R@5 | gain, "
          "points | inliers alone | told apart, % | ms a photo | ms a pair |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for way in WAYS:
        seen = _look(engine, asked, way)
        for count in COUNTS:
            learned, alone = (_judge(asked, seen.inliers, count, alone=a) for a in (False, True))
            print(f"| {way} | {count} | {_recall(asked, learned)} | {_gain(asked, learned)} "
                  f"| {_recall(asked, alone)} | {_told_apart(asked, seen.inliers[:, :count]):.1f} "
                  f"| {seen.extract_ms:.0f} | {seen.match_ms:.1f} |", flush=True)  # fmt: skip


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="town")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/verification"))
    parser.add_argument("--most", type=int, default=200, help="queries, drawn at random")
    parser.add_argument("--development", action="store_true", help="test queries unseen")
    return parser.parse_args()


def _engine(split: Split, out: Path) -> Search:
    run = Run(out / f"{split.name}-{split.seed}-{split.digest}")
    if not (run.folder / "calibration.json").exists():
        run.train(split.train, recipe="dapr-m", cache_folder=out / "cache")
    if not (run.folder / "index").exists():
        run.index(split.database, cache_folder=out / "cache")
    return run.search(radius=split.truth.radius, heading=split.truth.heading, verify=0)


def _ask(engine: Search, split: Split, most: int) -> Asked:
    drawn = np.random.default_rng(0).permutation(len(split.queries))[:most]
    photos = split.queries[np.sort(drawn)]
    assert engine.describer is not None
    described = engine.describer.describe(photos.paths)
    photos = photos[described.rows]
    found = engine.search(described.descriptors, max(COUNTS))
    of = np.repeat(np.arange(len(photos)), found.rows.shape[1])
    index, rows = engine.index.photos, np.maximum(found.rows, 0)
    right = split.truth.right(photos, index, of, rows.ravel()).reshape(rows.shape)
    right &= found.rows >= 0
    metres = np.linalg.norm(index.positions[rows] - photos.positions[:, None], axis=2)
    ahead = turn(index.heading[rows], photos.heading[:, None]) <= _AHEAD
    own = engine.index.places.locate(photos)
    return Asked(
        photos=photos,
        rows=found.rows,
        distances=found.distances,
        right=right,
        facing=right & ahead,
        far=(metres > _FAR) & (found.rows >= 0),
        tiers=np.where(own >= 0, engine.index.places.tiers[own], -1).astype(np.int8),
    )


def _look(engine: Search, asked: Asked, way: Way) -> Seen:
    kind = build_local_features(way.features)
    packing, wanted = Packing(kind.dim), np.unique(asked.rows[asked.rows >= 0])
    paths = [*engine.index.paths(wanted), *asked.photos.paths]
    began = time.process_time()
    every = [kind.extract(open_within(path, way.pixels)).best(way.points) for path in paths]
    extract_ms = (time.process_time() - began) * 1e3 / len(paths)
    if way.kept:
        every = [packing.unpack(packing.pack(one)) for one in every]
    known: dict[int, Features] = dict(zip(wanted.tolist(), every, strict=False))
    inliers, began = np.zeros(asked.rows.shape, np.float32), time.process_time()
    for query, own in enumerate(every[len(wanted) :]):
        for at, row in enumerate(asked.rows[query].tolist()):
            inliers[query, at] = verify(own, known[row], way.fit).inliers if row >= 0 else 0
    spent = (time.process_time() - began) * 1e3 / max(1, int((asked.rows >= 0).sum()))
    return Seen(inliers, extract_ms, spent)


def _judge(
    asked: Asked, inliers: NDArray[np.float32], count: int, *, alone: bool
) -> NDArray[np.bool_]:
    """Which hits are right once the candidates are ranked again; halves judge each other."""
    half = np.random.default_rng(1).permutation(len(asked.photos)) % 2
    ranked = asked.right.copy()
    for part in (0, 1):
        other = np.flatnonzero(half != part)
        weights = fit_look([_looked(asked, inliers, query, count) for query in other.tolist()])
        weights = LookWeights(1e-6, 1.0) if alone else weights
        for query in np.flatnonzero(half == part):
            there = int((asked.rows[query] >= 0).sum())
            ranking = Ranking(np.arange(there), asked.distances[query, :there])
            order = weights.rank(ranking, inliers[query, : min(count, there)]).order
            ranked[query, :there] = asked.right[query, order]
    return ranked


def _looked(asked: Asked, inliers: NDArray[np.float32], query: int, count: int) -> Looked:
    there = slice(min(count, int((asked.rows[query] >= 0).sum())))
    return Looked(asked.distances[query, there], inliers[query, there], asked.right[query, there])


def _told_apart(asked: Asked, inliers: NDArray[np.float32]) -> float:
    """Share of right candidates with more inliers than 99 % of the wrong ones, in percent."""
    wrong = inliers[asked.far[:, : inliers.shape[1]]]
    right = inliers[asked.facing[:, : inliers.shape[1]]]
    if not len(wrong) or not len(right):
        return np.nan
    return 100 * float(np.mean(right > np.percentile(wrong, 99)))


def _recall(asked: Asked, right: NDArray[np.bool_]) -> str:
    first = right[:, 0]
    tiers = [f"{100 * first[asked.tiers == tier].mean():.1f}" for tier in range(len(TIERS))
             if (asked.tiers == tier).any()]  # fmt: skip
    five = 100 * right[:, :5].any(axis=1).mean()
    return f"{100 * first.mean():.1f} ({' / '.join(tiers)}), {five:.1f}"


def _gain(asked: Asked, right: NDArray[np.bool_]) -> str:
    """Points of R@1 over one look, with a paired interval over spots."""
    spots = np.unique(asked.photos.positions.round(-1), axis=0, return_inverse=True)[1]
    gain = pair(right[:, 0], asked.right[:, 0], spots).gain
    return f"{gain.mean:+.1f} [{gain.low:+.1f}, {gain.high:+.1f}]"


if __name__ == "__main__":
    main()
