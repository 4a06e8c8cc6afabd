"""CricaVPR's adapter: convolutions on the patch grid beside a frozen block's network.

B batch · T tokens, patches first · D channels · h, w patches
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_SCALE = 0.2


class ConvolutionAdapter(nn.Module):
    """Half-width features through 1x1, 3x3 and 5x5 convolutions, added to the block's update.

        x ← relu(down x),    out = 0.2 · up(x + [conv1 x ; conv3 x ; conv5 x])

    Tokens that are no patch have no neighbours; for them the convolutions are the identity.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        half = dim // 2
        narrow = half // 16
        self.down, self.up = nn.Linear(dim, half), nn.Linear(half, dim)
        self.branch1 = _Convolution(half, half // 2, 1)
        self.branch3 = nn.Sequential(
            _Convolution(half, narrow, 1), _Convolution(narrow, half // 4, 3)
        )
        self.branch5 = nn.Sequential(
            _Convolution(half, narrow, 1), _Convolution(narrow, half // 4, 5)
        )

    def forward(self, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        inner = F.relu(self.down(tokens))  # (B, T, D/2)
        patches, beside = inner.tensor_split([grid[0] * grid[1]], dim=1)
        maps = patches.transpose(1, 2).reshape(tokens.shape[0], -1, *grid)  # (B, D/2, h, w)
        seen = torch.cat([self.branch1(maps), self.branch3(maps), self.branch5(maps)], dim=1)
        mixed = torch.cat([seen.flatten(2).transpose(1, 2), beside], dim=1)
        out: Tensor = _SCALE * self.up(inner + mixed)
        return out


class _Convolution(nn.Sequential):
    def __init__(self, inputs: int, outputs: int, size: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, size, padding=size // 2)
        self.bn = nn.BatchNorm2d(outputs, eps=1e-3)
        self.act = nn.ReLU()
