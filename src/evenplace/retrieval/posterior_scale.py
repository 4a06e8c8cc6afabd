"""Two numbers fitted to the photos of an index: the scale of the posterior, the spread of a place.

N photos · C places · D descriptor · V photos asked
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
_ASKED, _RIVALS = 256, 4096
SCALES = np.geomspace(4, 256, 37)


def fit_scale(descriptors: Any, starts: Rows, prototypes: Floats, seed: int = 0) -> float:
    """The scale under which photos best foretell their own place, each left out of its mean.

        minimise over s   -mean_i log softmax_c(s <z_i, m_c>)[place of i],   m_c without z_i

    A classifier brings the scale it was trained with; means of photos have none.  Database
    photos are easier than queries, so this is the surest the posterior should be.  30 when no
    place has two photos.  -> s.
    """
    rng = np.random.default_rng(seed)
    sizes = np.diff(starts)
    several = np.flatnonzero(sizes > 1)
    if not len(several):
        return 30.0
    places = rng.choice(several, _ASKED)
    rows = starts[places] + rng.integers(sizes[places])
    asked = descriptors[rows].astype(np.float32)  # (V, D)
    own = np.array(
        [_left_out(descriptors, starts, *pair) for pair in zip(places, rows, strict=True)]
    )
    held = np.flatnonzero(sizes)
    rivals = np.sort(rng.permutation(held)[:_RIVALS])
    scores = asked @ prototypes[rivals].T  # (V, rivals)
    scores[rivals[None] == places[:, None]] = -np.inf
    mine = np.einsum("vd,vd->v", asked, own)[:, None]
    more = float(np.log(len(held) / len(rivals)))  # each rival stands for so many
    return float(SCALES[np.argmin([_surprise(float(s), mine, scores, more) for s in SCALES])])


def _left_out(descriptors: NDArray[Any], starts: Rows, place: int, row: int) -> Floats:
    """The mean direction of a place's photos without one of them."""
    rest = descriptors[starts[place] : starts[place + 1]].astype(np.float32).sum(axis=0)
    rest -= descriptors[row].astype(np.float32)
    left: Floats = rest / max(float(np.linalg.norm(rest)), 1e-12)
    return left


def _surprise(scale: float, mine: Floats, others: Floats, more: float) -> float:
    """Mean of -log p(own place)."""
    gap = scale * (others - mine) + more
    top = np.maximum(gap.max(axis=1), 0)
    return float(np.mean(top + np.log(np.exp(-top) + np.exp(gap - top[:, None]).sum(axis=1))))


def photo_spread(descriptors: Any, starts: Rows) -> float:
    """Root mean squared distance of photos to their place's mean; 1 if no place has two.

    Of 2000 places evenly chosen, where there are more.
    """
    several = np.flatnonzero(np.diff(starts) > 1)
    chosen = several[np.linspace(0, len(several) - 1, min(len(several), 2000)).astype(int)]
    total, count = 0.0, 0
    for place in chosen:
        rows = descriptors[starts[place] : starts[place + 1]].astype(np.float32)
        total += float(((rows - rows.mean(axis=0)) ** 2).sum())
        count += len(rows) - 1
    return (total / count) ** 0.5 if count else 1.0
