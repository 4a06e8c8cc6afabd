"""What the Characteristic Function Distance amounts to: the figures of docs/method.md.

    python -m benchmarks.cfd [--check]

Descriptors are drawn: 400 places of 1 to 60 photos in 512 dimensions, neighbours alike, each
place with its own spread; 300 queries, one seed.  Writes benchmarks/results/cfd.md; with
--check, exits 1 unless what the text claims holds.
"""

import argparse
import datetime
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenplace.retrieval import spectrum
from evenplace.retrieval.candidates import Pool
from evenplace.retrieval.rerank import CFD, KDE, L2, Database, Reranker

SEED, PLACES, DIM, QUERIES = 0, 400, 512, 300
RESULTS = Path(__file__).parent / "results" / "cfd.md"
Floats = NDArray[np.float32]


def unit(rows: NDArray[np.float64]) -> Floats:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True), np.float32)


def draw() -> tuple[Database, Floats, NDArray[np.int64]]:
    """A street of places whose centres walk slowly, and queries at random places."""
    rng = np.random.default_rng(SEED)
    steps = rng.normal(size=(PLACES + 4, DIM))
    centres = unit(sum(steps[shift : PLACES + shift] for shift in range(4)) + rng.normal(size=DIM))
    sizes = np.maximum(1, (60 * (1 / 60) ** (rng.permutation(PLACES) / PLACES)).astype(int))
    spread = rng.uniform(0.015, 0.04, PLACES)
    labels = np.repeat(np.arange(PLACES), sizes)
    rows = unit(centres[labels] + spread[labels, None] * rng.normal(size=(len(labels), DIM)))
    true = rng.integers(PLACES, size=QUERIES)
    queries = unit(centres[true] + spread[true, None] * rng.normal(size=(QUERIES, DIM)))
    starts = np.concatenate([[0], sizes.cumsum()])
    return Database(rows, starts, np.zeros(len(rows), np.float32)), queries, true


def first_places(rule: Reranker, database: Database, queries: Floats) -> NDArray[np.int64]:
    """The place each query is given, ranking the whole database."""
    labels = np.repeat(np.arange(PLACES), database.sizes)
    rule.fit(database)
    zeros = np.zeros(len(labels), np.float32)
    found = [
        rule.rank(Pool(np.arange(len(labels)), labels, database.descriptors @ query, zeros, query))
        for query in queries
    ]
    return np.array([labels[one.order[0]] for one in found])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    database, queries, true = draw()
    means = np.stack(
        [
            database.descriptors[a:b].mean(axis=0)
            for a, b in zip(database.starts, database.starts[1:], strict=False)
        ]
    )
    to_mean = ((queries[:, None] - means[None]) ** 2).sum(axis=2).argmin(axis=1)
    rules: dict[str, Reranker] = {
        "L2 to photos": L2(),
        "CFD, paper": CFD(),
        "CFD, paper, 4096 frequencies": CFD(count=4096),
        "CFD, paper, alpha 1": CFD(alpha=1.0),
        "CFD, multiscale": CFD(frequencies="multiscale"),
        "CFD, matched": CFD(frequencies="matched"),
        "CFD, matched, alpha 0.3, weighted phase": CFD(0.3, "matched", phase="weighted"),
        "KDE": KDE(),
    }
    found = {name: first_places(rule, database, queries) for name, rule in rules.items()}
    right = {name: float((places == true).mean()) for name, places in found.items()}
    agree = {name: float((places == to_mean).mean()) for name, places in found.items()}
    lines = ["| rule | right place | same as L2 to place means |", "|---|---|---|"]
    lines += [
        f"| {name} | {100 * right[name]:.1f} % | {100 * agree[name]:.1f} % |" for name in rules
    ]
    bias = {mode: amplitude_bias(database, mode) for mode in ("paper", "multiscale", "matched")}
    lines += [
        "",
        "| frequencies | mean amplitude | rank correlation with n | de-biased |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {mode} | {a:.4f} | {plain:+.2f} | {fair:+.2f} |"
        for mode, (a, plain, fair) in bias.items()
    ]
    commonest = np.unique(found["CFD, paper, alpha 1"], return_counts=True)[1].max()
    blind = float(commonest / QUERIES)
    lines += ["", f"At alpha = 1, {100 * blind:.0f} % of the queries get one same place."]
    claims = {
        "literal CFD with many frequencies agrees with L2 to place means on 80 % and more": agree[
            "CFD, paper, 4096 frequencies"
        ]
        >= 0.8,
        "alpha = 1 gives every query the same place": blind == 1.0,
        "multiscale is worse than literal CFD": right["CFD, multiscale"] < right["CFD, paper"],
        "small places seem compact: correlation below -0.5": all(
            plain < -0.5 for _, plain, _ in bias.values()
        ),
        "the correction removes most of it, where amplitudes are above their noise": all(
            abs(bias[mode][2]) < abs(bias[mode][1]) / 2 for mode in ("paper", "matched")
        ),
    }
    text = "\n".join(
        [*lines, "", *(f"- {'holds' if ok else 'FAILS'}: {claim}" for claim, ok in claims.items())]
    )
    head = f"# CFD\n\n{datetime.date.today()}, `python -m benchmarks.cfd --check`, seed {SEED}.\n\n"
    RESULTS.write_text(head + text + "\n")
    print(text)
    return 0 if all(claims.values()) or not asked.check else 1


def amplitude_bias(database: Database, mode: str) -> tuple[float, float, float]:
    """Mean amplitude, and how it follows the number of photos with and without correction."""
    points = spectrum.draw_frequencies(mode, DIM, seed=SEED, spread=0.8)
    spectra = spectrum.place_spectra(database.descriptors, database.starts, points)
    several = database.sizes > 1
    plain = np.abs(spectra).mean(axis=1)
    fair = spectrum.fair_amplitudes(np.abs(spectra), database.sizes).mean(axis=1)
    sizes = database.sizes.astype(float)
    return float(plain.mean()), ranks(plain, sizes), ranks(fair[several], sizes[several])


def ranks(a: NDArray[np.floating], b: NDArray[np.floating]) -> float:
    """Spearman's correlation; ties get their mean rank."""

    def mean_rank(values: NDArray[np.floating]) -> NDArray[np.float64]:
        _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
        return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[which])

    return float(np.corrcoef(mean_rank(a), mean_rank(b))[0, 1])


if __name__ == "__main__":
    sys.exit(main())
