"""What the tests of losses over places share."""

import pytest
import torch
from torch import Tensor


@pytest.fixture
def cosines() -> Tensor:
    """Seven photos before six places."""
    draw = torch.Generator().manual_seed(4)
    return 1.9 * torch.rand(7, 6, generator=draw, dtype=torch.float64) - 0.95
