"""What a second look is worth: by features, pixels, points, fit and candidates; its cost.

    python benchmarks/verification.py --data timisoara --seed 0 --out runs/verification --most 200
    python benchmarks/verification.py --cost RUN --queries PHOTOS

The first trains the recommended recipe on one split by position (or takes up what is in --out),
ranks its queries once, looks at the candidates in each way, and fits the two weights on one half
of the queries to judge the other, in turn.  "Told apart" needs no weights and few queries: the
share of right candidates that face the query's way and have more inliers than 99 % of those
farther than 60 m.  Milliseconds are of a processor.  The second times a run that looks twice: a
query's points, a candidate, a query with 20 and with 50 candidates and the early stop it learned,
and indexing.
"""

import argparse
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from evenplace.describe.onnx_engine import own_cores
from evenplace.evaluation.intervals import pair
from evenplace.photos import read_photos
from evenplace.photos.nearby import turn
from evenplace.photos.pictures import open_within
from evenplace.photos.table import Photos
from evenplace.places.tiers import TIERS
from evenplace.retrieval import Search
from evenplace.retrieval.candidates import Ranking
from evenplace.retrieval.learned_weights import Looked, fit_look
from evenplace.retrieval.local_features import LONGEST, build_local_features
from evenplace.retrieval.packed_features import Packing
from evenplace.retrieval.point_matching import FITS, keep_view, match_points
from evenplace.retrieval.second_look import LookWeights
from evenplace.run.run import Run
from evenplace.study.data import Split, read_splits
from evenplace.training.recipe import read_recipe

_AHEAD, _FAR = 45.0, 60.0  # degrees, metres
_KNOWN = shutil.ignore_patterns("index", "cache", "folds")  # points that were found before


@dataclass(frozen=True)
class Way:
    """How pictures are looked at."""

    features: str = "xfeat"
    fits: tuple[str, ...] = ("homography",)
    pixels: int = LONGEST
    points: int = 10_000  # at most
    kept: bool = True  # as an index keeps them, in 16 kB

    def say(self, fit: str) -> str:
        points = "" if self.points == Way.points else f", {self.points} points"
        how = "16 kB" if self.kept else "all"
        return f"{self.features} | {fit} | {self.pixels} | {how}{points}"


WAYS = (
    Way(fits=FITS),
    Way(kept=False),
    Way(points=480),
    Way(points=240),
    Way(pixels=480),
    Way("sift", FITS),
    Way("sift", kept=False),
    Way("aliked", FITS),
    Way("aliked", kept=False),
    Way("disk", FITS),
    Way("disk", kept=False),
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
    fit_ms: float  # a pair


def main() -> None:
    given = _arguments()
    if given.cost:
        time_run(Run.open(given.cost), read_photos(given.queries).paths[: given.most])
        return
    split = read_splits(
        given.data, given.seed + 1, given.out / "data", development=given.development
    )[given.seed]
    engine = _engine(split, given.out)
    asked = _ask(engine, split, given.most, max(given.candidates))
    print(f"{given.data}, seed {given.seed}: {len(asked.photos)} queries, right within "
          f"{split.truth}; one look: {_recall(asked, asked.right)}\n")  # fmt: skip
    print("| features | fit | pixels | kept | candidates | R@1 (head / middle / tail), R@5 | gain, "
          "points | inliers alone | told apart, % | ms a photo | match | fit |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for way in WAYS:
        if way.features in given.features and (not given.quick or len(way.fits) > 1):
            for fit, seen in _look(engine, asked, way).items():
                _print(asked, way.say(fit), seen, given.candidates)


def _print(asked: Asked, way: str, seen: Seen, counts: list[int]) -> None:
    for count in counts:
        learned, alone = (_judge(asked, seen.inliers, count, alone=a) for a in (False, True))
        print(f"| {way} | {count} | {_recall(asked, learned)} | {_gain(asked, learned)} "
              f"| {_recall(asked, alone)} | {_told_apart(asked, seen.inliers[:, :count]):.1f} "
              f"| {seen.extract_ms:.0f} | {seen.match_ms:.1f} | {seen.fit_ms:.1f} |",
              flush=True)  # fmt: skip


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="town")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/verification"))
    parser.add_argument("--most", type=int, default=200, help="queries, drawn at random")
    parser.add_argument("--development", action="store_true", help="test queries unseen")
    parser.add_argument("--features", nargs="+", default=["xfeat", "sift"])
    parser.add_argument("--candidates", nargs="+", type=int, default=[5, 20, 50])
    parser.add_argument("--quick", action="store_true", help="features as an index keeps them")
    parser.add_argument("--cost", type=Path, help="a run that looks twice, to time")
    parser.add_argument("--queries", type=Path, help="photos to time it with")
    return parser.parse_args()


def _engine(split: Split, out: Path) -> Search:
    run = Run(out / f"{split.name}-{split.seed}-{split.digest}")
    if not (run.folder / "calibration.json").exists():
        recipe = read_recipe("dapr-m").changed(["verify=0"])  # every way looks on its own
        run.train(split.train, recipe=recipe, cache_folder=out / "cache")
    if not (run.folder / "index").exists():
        run.index(split.database, cache_folder=out / "cache")
    return run.search(radius=split.truth.radius, heading=split.truth.heading, verify=0)


def _ask(engine: Search, split: Split, most: int, count: int) -> Asked:
    drawn = np.random.default_rng(0).permutation(len(split.queries))[:most]
    photos = split.queries[np.sort(drawn)]
    assert engine.describer is not None
    described = engine.describer.describe(photos.paths)
    photos = photos[described.rows]
    found = engine.search(described.descriptors, count)
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


def _look(engine: Search, asked: Asked, way: Way) -> dict[str, Seen]:
    """Points are found and matched once, and fitted in each way."""
    kind, there = build_local_features(way.features), asked.rows >= 0
    wanted = np.unique(asked.rows[there])
    paths = [*engine.index.paths(wanted), *asked.photos.paths]
    began = time.process_time()
    every = [kind.extract(open_within(path, way.pixels)).best(way.points) for path in paths]
    extract_ms = (time.process_time() - began) * 1e3 / len(paths)
    if way.kept:
        packing = Packing(kind.dim)
        every = [packing.unpack(packing.pack(one)) for one in every]
    known = dict(zip(wanted.tolist(), every, strict=False))
    began = time.process_time()
    matches = [
        match_points(every[len(wanted) + query], known[asked.rows[query, at]], kind)
        for query, at in np.argwhere(there).tolist()
    ]
    match_ms = (time.process_time() - began) * 1e3 / len(matches)
    seen = {}
    for fit in way.fits:
        inliers, began = np.zeros(there.shape, np.float32), time.process_time()
        inliers[there] = [keep_view(match, fit).inliers for match in matches]
        fit_ms = (time.process_time() - began) * 1e3 / len(matches)
        seen[fit] = Seen(inliers, extract_ms, match_ms, fit_ms)
    return seen


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


def time_run(run: Run, paths: list[str]) -> None:
    """Print what looking twice costs a run, on as many cores as it may use."""
    look = run.search().look
    assert look is not None, "a run that looks twice is asked for: evenplace index RUN --verify 50"
    print(f"{len(paths)} queries, {len(look.index)} photos, {own_cores()} cores, {look}\n")
    print("| candidates | looked at, median | ms a query in the second look, median | 95th | "
          "ms a candidate, one core |\n|---|---|---|---|---|")  # fmt: skip
    queries, seen_ms = [], []
    for path in paths:
        clock = time.perf_counter()
        queries.append(look.see(path))
        seen_ms.append((time.perf_counter() - clock) * 1e3)
    rows = np.random.default_rng(0).integers(0, len(look.index), (len(paths), 5))
    began = time.process_time()
    for query, some in zip(queries, rows, strict=True):
        look.count_inliers(query, some)
    candidate_ms = (time.process_time() - began) * 1e3 / rows.size
    for count in (20, 50):
        run.locate(paths[0], verify=count)  # opens what it needs
        answers = [run.locate(path, verify=count) for path in paths]
        spent = [answer.elapsed_ms["verify"] for answer in answers]
        print(f"| {count} | {np.median([answer.looked for answer in answers]):.0f} "
              f"| {np.median(spent):.1f} | {np.percentile(spent, 95):.1f} | {candidate_ms:.2f} |",
              flush=True)  # fmt: skip
    print(f"\nof a query its points take {np.median(seen_ms):.1f} ms at the median")
    photos = look.index.photos[:200]
    with TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(run.folder, Path(folder) / "run", ignore=_KNOWN))
        began, clock = time.process_time(), time.perf_counter()
        Run.open(copy).index(photos, cache_folder=Path(folder) / "cache")
        core, wall = time.process_time() - began, time.perf_counter() - clock
    print(f"\nindexing {len(photos)} photos, descriptors and points: {len(photos) / core:.1f} a "
          f"second and core, {len(photos) / wall:.1f} a second")  # fmt: skip


if __name__ == "__main__":
    main()
