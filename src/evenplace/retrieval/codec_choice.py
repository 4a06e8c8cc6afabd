"""Which codec keeps descriptors, and what fewer bytes cost.

The cost is measured: photos of the database ask the others, as given and as kept.

N photos · D numbers given · d numbers kept · V photos that ask
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import evenly
from evenplace.places.tiers import TIERS
from evenplace.retrieval.array_files import Rows
from evenplace.retrieval.codec import (
    AXES_SAMPLE,
    REFINED,
    SAMPLE,
    WHITENED,
    Codec,
    codec_for,
    fit_codec,
)
from evenplace.retrieval.index_writer import Order
from evenplace.retrieval.learned_axes import learn_axes

ALLOWED = 0.5  # points of R@1 that `--bytes` may lose
_ASKED, _OTHERS = 500, 20_000  # photos whose neighbours are sought, and among how many
_BLOCK = 2048
_REFINED = 100


def choose_codec(
    keep: str | int | None, values: Any, order: Order, tiers: NDArray[np.int8]
) -> tuple[Codec, dict[str, float]]:
    """The codec that was asked for, fitted to photos evenly chosen, and what it loses.

    Bytes that lose more than half a point of R@1, overall or in the tail, are refined.
    """
    count, dim = values.shape
    name = codec_for(dim, keep, count) if isinstance(keep, int) else keep or "float16"
    if name == "float16":
        return Codec(), {}
    white = name.startswith(WHITENED)
    most = AXES_SAMPLE if white else SAMPLE
    rows = evenly(count, most)
    generator = np.random.default_rng(0)
    codec = fit_codec(name, generator.permutation(np.asarray(values[rows], np.float32)))
    if white:  # folds say what such axes are worth
        return learn_axes(codec, values, order) if name.startswith("learned") else codec, {}
    loss = measure_loss(codec, values, order, tiers)
    lost = max(loss.get(f"{part}exact", 0) - loss.get(f"{part}kept", 0) for part in ("", "tail_"))
    if isinstance(keep, int) and codec.axes is not None and lost > ALLOWED and not codec.refines:
        codec = replace(codec, name=name + REFINED)
        loss = measure_loss(codec, values, order, tiers)
    return codec, loss


def measure_loss(
    codec: Codec, values: Any, order: Order, tiers: NDArray[np.int8], seed: int = 0
) -> dict[str, float]:
    """R@1 of photos left out, in percent: the nearest other photo is of the same place.

    Up to 500 photos of places with two or more ask up to 20,000 others, all of their own places
    among them; `exact` and `kept`, overall and of places in the tail, and how many asked.
    """
    sizes = np.diff(order.starts)
    several = np.flatnonzero(sizes > 1)
    if not len(several):
        return {"asked": 0.0}
    rng = np.random.default_rng(seed)
    places = np.sort(rng.permutation(several)[:_ASKED])
    asked = order.starts[places] + rng.integers(sizes[places])
    own = np.concatenate([np.arange(order.starts[p], order.starts[p + 1]) for p in places])
    others = np.union1d(own, rng.permutation(len(order.rows))[:_OTHERS])
    exact, kept = _nearest(codec, values, order.rows[asked], order.rows[others])
    tail = tiers[places] == TIERS.index("tail")
    found = {"asked": float(len(asked)), "tail_asked": float(tail.sum())}
    for name, rows in (("exact", exact), ("kept", kept)):
        right = order.labels[others[rows]] == places
        found[name] = 100 * float(right.mean())
        found[f"tail_{name}"] = 100 * float(right[tail].mean()) if tail.any() else float("nan")
    return {name: value for name, value in found.items() if value == value}


def _nearest(codec: Codec, values: Any, asked: Rows, others: Rows) -> tuple[Rows, Rows]:
    """Which of the others each is most like, itself left out: as given, and as kept.

    A code that is refined finds the 100 most alike, of which the nearest as given is taken.
    """
    queries = np.asarray(values[asked], np.float32)  # (V, D)
    turned = codec.turn(queries)  # (V, d)
    exact, kept = np.empty((2, len(asked), len(others)), np.float32)
    for start in range(0, len(others), _BLOCK):
        part = slice(start, start + _BLOCK)
        rows = np.asarray(values[others[part]], np.float32)
        exact[:, part] = queries @ rows.T
        kept[:, part] = turned @ codec.decode(codec.encode(codec.turn(rows))).astype(np.float32).T
    itself = asked[:, None] == others
    exact[itself] = kept[itself] = -np.inf
    if codec.refines:
        best = np.argpartition(-kept, min(_REFINED, len(others) - 1), axis=1)[:, :_REFINED]
        mine = np.take_along_axis(exact, best, axis=1).argmax(axis=1)
        return exact.argmax(axis=1), np.take_along_axis(best, mine[:, None], axis=1)[:, 0]
    return exact.argmax(axis=1), kept.argmax(axis=1)
