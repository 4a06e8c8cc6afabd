"""Axes learned from places: along them, what parts two photos of one place counts for less.

They start half-whitened.  Pairs of photos are drawn, every place with two or more as often as any
other, and the start is whitened by what parts them:

    S = mean of (z_a - z_b)(z_a - z_b)' / 2,   a, b of one place
    M = (S + s tr(S) / d)^(-1/2)

With s large the axes stay where they start.  No step size, no epochs: one pass over the pairs.

D numbers given · d axes · B pairs of a block
"""

from dataclasses import replace
from typing import Any

import numpy as np

from evenplace.arrays import draw_pairs
from evenplace.retrieval.array_files import widened
from evenplace.retrieval.codec import Codec
from evenplace.retrieval.index_writer import Order

_PAIRS, _BLOCK = 8192, 1024
_SHRINK = 0.3  # s; from 0.1 to 1 the same on development photos of Cambridge


def learn_axes(start: Codec, values: Any, order: Order) -> Codec:
    """The codec with axes that tell places apart; as it is where no place has two photos.

    values: (N, D) in the order they were given.
    """
    assert start.axes is not None
    assert start.offset is not None
    rows = order.rows[draw_pairs(order.starts, _PAIRS, np.random.default_rng(0))]  # (2, pairs)
    if not rows.size:
        return start
    scatter = np.zeros((start.axes.shape[1],) * 2)
    for at in range(0, _PAIRS, _BLOCK):
        one, other = (
            start.turn(widened(np.asarray(values[part[at : at + _BLOCK]]))) for part in rows
        )
        apart = one - other  # (B, d)
        scatter += apart.T @ apart
    variance, own = np.linalg.eigh(scatter / (2 * _PAIRS))
    turned = (own / np.sqrt(variance + _SHRINK * variance.mean())).astype(np.float32)
    return replace(start, axes=start.axes @ turned, offset=start.offset @ turned)
