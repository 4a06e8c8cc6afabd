"""What the tests of losses share."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn


@pytest.fixture
def cosines() -> Tensor:
    """Seven photos before six places."""
    draw = torch.Generator().manual_seed(4)
    return 1.9 * torch.rand(7, 6, generator=draw, dtype=torch.float64) - 0.95


@pytest.fixture
def check_widening() -> Callable[[nn.Module, Tensor, Tensor], None]:
    """Half precision in: the loss is float32, as of the widened numbers, the gradient narrow."""

    def check(loss: nn.Module, batch: Tensor, labels: Tensor) -> None:
        for narrow in (torch.float16, torch.bfloat16):
            half = batch.to(narrow).requires_grad_()
            found = loss(half, labels)
            assert found.dtype == torch.float32
            wide = loss(half.detach().float(), labels)
            assert found.item() == pytest.approx(wide.item(), rel=1e-6)
            (gradient,) = torch.autograd.grad(found, half)
            assert gradient.dtype == narrow
            assert bool(torch.isfinite(gradient).all())

    return check
