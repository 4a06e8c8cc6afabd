"""What fewer bytes cost: photos of the database ask the others, exactly and as they are kept.

V photos that ask · B photos they are compared with · D numbers given · d numbers kept
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from evenplace.places.tiers import TIERS
from evenplace.retrieval.codec import Codec

if TYPE_CHECKING:
    from evenplace.retrieval.generation import Order

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
_ASKED, _OTHERS = 500, 20_000
_BLOCK = 2048


def measure_loss(
    codec: Codec, values: Any, order: "Order", tiers: NDArray[np.int8], seed: int = 0
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
    queries = torch.from_numpy(np.asarray(values[asked], np.float32))  # (V, D)
    turned = torch.from_numpy(codec.turn(queries.numpy()))  # (V, d)
    both: tuple[list[torch.Tensor], list[torch.Tensor]] = ([], [])
    for start in range(0, len(others), _BLOCK):
        rows = np.asarray(values[others[start : start + _BLOCK]], np.float32)
        coded = codec.decode(codec.encode(codec.turn(rows))).astype(np.float32)
        both[0].append(queries @ torch.from_numpy(rows).T)
        both[1].append(turned @ torch.from_numpy(coded).T)
    exact, kept = (torch.cat(parts, dim=1) for parts in both)  # (V, B)
    itself = torch.from_numpy(asked)[:, None] == torch.from_numpy(others)[None]
    exact.masked_fill_(itself, -torch.inf)
    kept.masked_fill_(itself, -torch.inf)
    if codec.refines:
        best = kept.topk(min(100, kept.shape[1] - 1), dim=1).indices
        refined = torch.full_like(kept, -torch.inf)
        kept = refined.scatter_(1, best, exact.gather(1, best))
    return exact.argmax(dim=1).numpy(), kept.argmax(dim=1).numpy()
