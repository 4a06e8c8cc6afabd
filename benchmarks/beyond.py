"""What else might find the tail, and does not: terms added to the fused score one at a time.

    python -m benchmarks.beyond timisoara cambridge [--seeds 3]

Data sets are those of `evenplace study --data` (EVENPLACE_DATA).  For every split by position the
recommended recipe is trained; its score, and the same score with one term more, learn their
weights on photos held out in turn; the test queries judge.  So do sources of confidence, and all
of them in one regression.  Writes benchmarks/results/beyond.md.

    V queries · P candidates · K terms
"""

import argparse
import datetime
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from evenplace.evaluation import Truth
from evenplace.evaluation.confidence_curves import trace
from evenplace.evaluation.evaluate import query_places
from evenplace.evaluation.intervals import pair
from evenplace.evaluation.predictions import find_spots
from evenplace.networks.network import build_network
from evenplace.photos.nearby import turn
from evenplace.places.tiers import TIERS
from evenplace.retrieval import Search
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.candidates import Pool, Ranking
from evenplace.retrieval.confidence import CONFIDENCES, Same, Spots
from evenplace.retrieval.learned_weights import Evidence, fit_fused, surprise
from evenplace.retrieval.rerank import Fused
from evenplace.run.fold_answers import evidence
from evenplace.run.folds import Fold, trained_folds
from evenplace.run.scenarios import no_other_day, on_other_days
from evenplace.study.data import Split, read_splits
from evenplace.training.loop import train
from evenplace.training.recipe import cut_places, read_recipe
from evenplace.training.trunk_cache import ViewSettings, cache_trunk, describe_cached

RESULTS = Path(__file__).parent / "results" / "beyond.md"
START, SPREAD = (30.0, -15.0, 0.5, -0.25), (10.0, 10.0, 0.3, 0.3)  # of the four fused terms
Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]
Term = Callable[[Fold, Pool], Floats]


def fused(fold: Fold, pool: Pool) -> Floats:
    """Likeness, impostors' likeness, log posterior, log photos of the place.  (P, 4)."""
    sizes = np.log(np.maximum(fold.index.sizes[pool.places], 1))
    return np.stack(
        [pool.cosines, fold.index.impostors[pool.rows], pool.log_posterior, sizes], axis=1
    ).astype(np.float32)


def around(fold: Fold, pool: Pool, metres: float, degrees: float = 180.0) -> Bools:
    """Which candidates stand, and look, like which.  (P, P)."""
    spots, heading = fold.index.photos.positions, fold.index.photos.heading
    gap = np.linalg.norm(spots[pool.rows][:, None] - spots[pool.rows][None], axis=2)
    away = np.nan_to_num(turn(heading[pool.rows][:, None], heading[pool.rows][None]))
    return np.asarray((gap <= metres) & (away <= degrees))


def neighbours(fold: Fold, pool: Pool) -> Floats:
    """Mean likeness of the photos within 12 m that look the same way: the database's own view."""
    near = around(fold, pool, 12.0, 45.0) & ~np.eye(len(pool), dtype=bool)
    many = near.sum(axis=1)
    mean = near @ pool.cosines / np.maximum(many, 1)
    return np.where(many > 0, mean, pool.cosines).astype(np.float32)


def expanded(fold: Fold, pool: Pool) -> Floats:
    """Likeness to the query after it was moved towards its three nearest photos."""
    rows = np.asarray(fold.index.descriptors[pool.rows], np.float32)  # (P, D)
    best = np.argsort(-pool.cosines)[:3]
    moved = pool.query + (rows[best] * pool.cosines[best, None]).mean(axis=0)
    return np.asarray(rows @ (moved / np.linalg.norm(moved)), np.float32)


def smoothed(fold: Fold, pool: Pool) -> Floats:
    """Log posterior of all places whose centres lie within 30 m of the candidate."""
    places, first = np.unique(pool.places, return_index=True)
    gap = fold.index.photos.positions[pool.rows][:, None] - fold.index.places.centres[places][None]
    near = np.linalg.norm(gap, axis=2) <= 30.0  # (P, places)
    near |= pool.places[:, None] == places[None]
    shares = near @ np.exp(pool.log_posterior[first])
    return np.asarray(np.log(shares + 1e-12), np.float32)


def voted(fold: Fold, pool: Pool) -> Floats:
    """Log of the likeness that lies within 25 m of the candidate."""
    weight = np.exp(15.0 * (pool.cosines - pool.cosines.max(initial=-1.0)))
    return np.asarray(np.log(around(fold, pool, 25.0) @ weight), np.float32)


class Shrunk:
    """Log posterior by prototypes drawn to their neighbours', the fewer photos the more."""

    def __init__(self) -> None:
        self.known: dict[int, Floats] = {}

    def __call__(self, fold: Fold, pool: Pool) -> Floats:
        if id(fold) not in self.known:
            self.known[id(fold)] = _drawn_together(fold)
        logits = fold.index.scale * (self.known[id(fold)] @ pool.query)  # (C,)
        return np.asarray((logits - np.logaddexp.reduce(logits))[pool.places], np.float32)


def _drawn_together(fold: Fold) -> Floats:
    prototypes = np.asarray(fold.index.prototypes, np.float32)
    centres, sizes = fold.index.places.centres, fold.index.sizes
    near = np.linalg.norm(centres[:, None] - centres[None], axis=2) <= 45.0  # (C, C)
    mean = near @ prototypes / near.sum(axis=1, keepdims=True)
    share = 1 / (1 + np.maximum(sizes, 1))[:, None]
    moved = (1 - share) * prototypes + share * mean
    return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True), np.float32)


def terms_added() -> dict[str, Term | None]:
    return {
        "fused": None,
        "+ neighbours' likeness": neighbours,
        "+ query expansion": expanded,
        "+ posterior smoothed over 30 m": smoothed,
        "+ prototypes shrunk to their neighbours": Shrunk(),
        "+ likeness within 25 m": voted,
    }


def measure(
    fold: Fold, terms: Sequence[Term | None], truth: Truth
) -> list[tuple[list[Floats], Bools]]:
    """For every query: the terms of its candidates under each rule (P, K), and which are right."""
    found = []
    batches = (batch.pools for _, batch in fold.search(Search(fold.index)))
    pools = (pools[query] for pools in batches for query in range(len(pools)))
    for query, pool in enumerate(pools):
        base = fused(fold, pool)
        tables = [
            base if term is None else np.column_stack([base, term(fold, pool)]) for term in terms
        ]
        asked = np.full(len(pool), query)
        found.append((tables, truth.right(fold.queries, fold.index.photos, asked, pool.rows)))
    return found


def learn(asked: Sequence[tuple[Floats, Bools]]) -> NDArray[np.float64]:
    """Weights as `retrieval.learned_weights` finds them, for any number of terms."""
    asked = [(terms, right) for terms, right in asked if right.any()]
    many = asked[0][0].shape[1]
    table = torch.from_numpy(np.concatenate([terms for terms, _ in asked]).astype(np.float32))
    good = torch.from_numpy(np.concatenate([right for _, right in asked]))
    of = torch.from_numpy(np.repeat(np.arange(len(asked)), [len(right) for _, right in asked]))
    start = torch.tensor([*START, 0.0][:many])
    spread = torch.tensor([*SPREAD, 2.0][:many])
    moved = torch.zeros(many, requires_grad=True)
    optimiser = torch.optim.LBFGS([moved], max_iter=60, line_search_fn="strong_wolfe")

    def step() -> float:
        optimiser.zero_grad()
        score = table @ (start + moved * spread)
        cost = (surprise(score, good, of).sum() + moved.square().sum()) / len(asked)
        cost.backward()  # type: ignore[no-untyped-call]
        return float(cost.detach())

    optimiser.step(step)  # type: ignore[no-untyped-call]
    return (start + moved.detach() * spread).double().numpy()


@dataclass(frozen=True)
class Prepared:
    """A split with its recommended model: photos held out in turn, and the test."""

    split: Split
    held: list[Fold]
    test: Fold


def prepare(split: Split, folder: Path, cache: Path) -> Prepared:
    """Train with and without each fold, and index."""
    recipe = read_recipe("dapr-m").changed([f"seed={split.seed}"])
    places = cut_places(recipe.places, split.train)
    held = trained_folds(split.train, places, recipe, folder / "folds", cache_folder=cache)
    held = held if no_other_day(split.train) else on_other_days(held)
    network = build_network(recipe.network, seed=recipe.training.seed)
    train(network, split.train, places, recipe, folder / "run", cache_folder=cache)
    database, asked = (
        describe_cached(network, photos.paths, cache) for photos in (split.database, split.queries)
    )
    index = index_descriptors(
        database.descriptors,
        split.database[database.rows],
        places,
        folder / "index",
        prototypes=network.classifiers.joint().detach().numpy(),
        scale=network.scale,
    )
    every = np.arange(len(asked.rows))
    test = Fold(index, split.queries[asked.rows], asked.descriptors, every)
    return Prepared(split, held, test)


@dataclass(frozen=True)
class Judged:
    right: Bools  # (rules, Q) whether each rule's first answer is
    tiers: NDArray[np.int8]  # (Q,)
    weights: NDArray[np.float64]  # (rules,) of the term that was added


def judge(ready: Prepared) -> Judged:
    terms = list(terms_added().values())
    held = [one for fold in ready.held for one in measure(fold, terms, Truth())]
    tested = measure(ready.test, terms, ready.split.truth)
    right, added = [], []
    for rule in range(len(terms)):
        weights = learn([(tables[rule], good) for tables, good in held])
        added.append(weights[-1])
        right.append([bool(good[(tables[rule] @ weights).argmax()]) for tables, good in tested])
    tiers = query_places(Search(ready.test.index), ready.test.queries, 25.0)[1]
    return Judged(np.array(right), tiers, np.array(added))


def sources(fold: Fold, rule: Fused, truth: Truth) -> tuple[Floats, Bools]:
    """Every source of confidence on the answers (V, sources), and whether each is right (V,)."""
    seen: list[list[float]] = []

    def remember(pool: Pool, ranking: Ranking, spots: Spots, same: Same) -> float:
        seen.append([one(pool, ranking, spots, same) for one in CONFIDENCES.values()])
        return 0.0

    engine = Search(fold.index, rerank=rule, confidence=remember, facing=truth.heading is not None)
    found = engine.search(fold.source[fold.rows], k=1, without=fold.hidden)
    answered = np.flatnonzero(found.rows[:, 0] >= 0)
    right = truth.right(fold.queries, fold.index.photos, answered, found.rows[answered, 0])
    return np.array(seen, np.float32), right


def combine(ready: Prepared) -> dict[str, float]:
    """AUC-PR of every source, and of a logistic regression on all of them learned on the folds."""
    truth, spec = ready.split.truth, read_recipe("dapr-m").search
    rule = fit_fused(Evidence.join([evidence(fold, spec) for fold in ready.held]))
    parts = [sources(fold, rule, truth) for fold in ready.held]
    known, good = (np.concatenate(part) for part in zip(*parts, strict=True))
    asked, right = sources(ready.test, rule, truth)
    found = {
        name: trace(right, asked[:, column]).average_precision
        for column, name in enumerate(CONFIDENCES)
    }
    centre, spread = known.mean(axis=0), known.std(axis=0) + 1e-9
    weights = _logistic((known - centre) / spread, good)
    return found | {
        "all, combined": trace(right, (asked - centre) / spread @ weights).average_precision
    }


def _logistic(inputs: Floats, right: Bools) -> Floats:
    """Weights of a logistic regression, one answer's worth of doubt on each."""
    table, truth = torch.from_numpy(inputs).float(), torch.from_numpy(right).float()
    weights = torch.zeros(table.shape[1] + 1, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=100, line_search_fn="strong_wolfe")

    def step() -> float:
        optimiser.zero_grad()
        score = table @ weights[:-1] + weights[-1]
        cost = functional.binary_cross_entropy_with_logits(score, truth, reduction="sum")
        cost = (cost + weights[:-1].square().sum() / 2) / len(table)
        cost.backward()  # type: ignore[no-untyped-call]
        return float(cost.detach())

    optimiser.step(step)  # type: ignore[no-untyped-call]
    return weights.detach()[:-1].numpy()


def report(data: str, seeds: int, cache: Path) -> str:
    splits = read_splits(data, seeds, cache / "towns")
    network = build_network(read_recipe("dapr-m").network)
    paths = sorted(
        {path for split in splits for path in (*split.database.paths, *split.queries.paths)}
    )
    cache_trunk(network, paths, ViewSettings(), cache)
    parts, sure = [], []
    for split in splits:
        with tempfile.TemporaryDirectory() as folder:
            ready = prepare(split, Path(folder), cache)
            parts.append(judge(ready))
            sure.append(combine(ready))
        print(f"{data}, seed {split.seed}: {parts[-1].right.mean(axis=1).round(3)}", flush=True)
    right = np.concatenate([part.right for part in parts], axis=1)  # (rules, Q)
    tiers = np.concatenate([part.tiers for part in parts])
    spots = find_spots(np.concatenate([split.queries.positions for split in splits]))
    tail = tiers == TIERS.index("tail")
    lines = [
        f"## {data}",
        "",
        f"{right.shape[1]} queries of {seeds} splits, {tail.sum()} in the tail. Points of R@1, and "
        "their difference from the fused score (95 % interval, spots resampled).",
        "",
        "| score | R@1 | difference | tail | difference | weight of the term, each split |",
        "|---|---|---|---|---|---|",
    ]
    for rule, name in enumerate(terms_added()):
        gains = [
            "" if not rule else str(pair(right[rule][of], right[0][of], spots[of]))
            for of in (np.ones(len(tail), bool), tail)
        ]
        weights = ", ".join(f"{part.weights[rule]:.2f}" for part in parts) if rule else ""
        overall, rare = 100 * right[rule].mean(), 100 * right[rule][tail].mean()
        lines.append(
            f"| {name} | {overall:.1f} | {gains[0]} | {rare:.1f} | {gains[1]} | {weights} |"
        )
    lines += [
        "",
        "AUC-PR of each source of confidence on the answers of the fused score, mean over the "
        "splits, and points over −L2.",
        "",
        "| source | AUC-PR | − L2 |",
        "|---|---|---|",
    ]
    for name in sure[0]:
        mean, plain = (np.mean([one[key] for one in sure]) for key in (name, "l2"))
        lines.append(f"| {name} | {mean:.3f} | {100 * (mean - plain):+.1f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cache", type=Path, help="keep the trunk's output here")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as spare:
        parts = [report(data, asked.seeds, asked.cache or Path(spare)) for data in asked.data]
    head = (
        "# Beyond the fused score\n\n"
        f"`python -m benchmarks.beyond {' '.join(asked.data)} --seeds {asked.seeds}`, "
        f"{datetime.date.today()}. One term is added to the recommended score at a time; all "
        "weights are learned on training photos held out in turn.\n"
    )
    RESULTS.write_text("\n".join([head, *parts]), encoding="utf-8")
    print(RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
