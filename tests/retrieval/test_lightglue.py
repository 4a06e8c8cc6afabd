"""What ALIKED is computed with here, where torchvision's own operator may be missing."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from evenplace.retrieval.lightglue import bent_convolution

Doubles = NDArray[np.float64]


class Bent(nn.Module):
    """A layer as ALIKED has it; offsets reach beyond the maps' edges."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.offset_conv = nn.Conv2d(3, 18, 3, padding=1).double()
        self.regular_conv = nn.Conv2d(3, 4, 3, padding=1, bias=False).double()


def between(cells: Doubles, y: float, x: float) -> Doubles:
    """A map read between its cells; 0 beyond its edges.  (C, h, w) -> (C,)."""
    found = np.zeros(len(cells))
    for row in (int(np.floor(y)), int(np.floor(y)) + 1):
        for column in (int(np.floor(x)), int(np.floor(x)) + 1):
            if 0 <= row < cells.shape[1] and 0 <= column < cells.shape[2]:
                found += (1 - abs(y - row)) * (1 - abs(x - column)) * cells[:, row, column]
    return found


@pytest.mark.parametrize("sides", [(5, 7), (1, 6), (4, 1)])
def test_a_bent_convolution_is_that_of_plain_loops(sides: tuple[int, int]) -> None:
    layer, maps = Bent(), 3 * torch.randn(1, 3, *sides, dtype=torch.double)
    with torch.inference_mode():
        found = bent_convolution(layer, maps)[0].numpy()
        far = max(sides) / 4
        moved = layer.offset_conv(maps)[0].clamp(-far, far).numpy()
        weights, cells = layer.regular_conv.weight.numpy(), maps[0].numpy()
    assert np.abs(moved).max() == far  # some are held back
    for row, column in np.ndindex(*sides):
        wanted = np.zeros(4)
        for tap in range(9):
            y = row + tap // 3 - 1 + moved[2 * tap, row, column]
            x = column + tap % 3 - 1 + moved[2 * tap + 1, row, column]
            wanted += weights[:, :, tap // 3, tap % 3] @ between(cells, y, x)
        np.testing.assert_allclose(found[:, row, column], wanted, atol=1e-12)
