"""XFeat in torch: the oracle of networks/embedded/xfeat.onnx, and what wrote it.

    python -m tests.networks.xfeat_in_torch xfeat.pt      the authors' weights → the ONNX file

The network is the authors' without its part for dense matching, batch norms folded and cells read
by the first convolution of the point map; the file also keeps only the peaks of that map and turns
unit descriptors to the axes that are kept of them.  Weights lie in it as float16.

    B pictures · H, W their sides, multiples of 32 · D axes
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

from evenplace.networks.weight_files import read_weights
from evenplace.retrieval.local_features import XFEAT

_OURS = ("net.", "axes")  # weights in the file
_CELL = 8  # pixels a cell of the maps is wide


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
        self.cells: nn.Module = nn.PixelUnshuffle(_CELL)

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
        cells = self.keypoint_head(self.cells(grey))  # last: no point here
        odds = (
            cells - cells.amax(1, keepdim=True)
        ).exp()  # softmax, which onnxruntime takes 5 ms for
        chance = functional.pixel_shuffle(odds[:, :-1] / odds.sum(1, keepdim=True), _CELL)
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


def load_xfeat(weights: Path) -> XFeatNetwork:
    """The network with weights of the authors' xfeat.pt, or of our ONNX file."""
    network, folded = XFeatNetwork(), weights.suffix == ".onnx"
    if folded:
        _fold(network)
    tensors = _initialisers(weights) if folded else read_weights(weights)
    own = {
        key.removeprefix("net."): value
        for key, value in tensors.items()
        if not key.startswith(("fine_matcher", "axes"))
    }
    counters = {key: value for key, value in network.state_dict().items() if value.ndim == 0}
    network.load_state_dict(counters | own)
    network.eval().requires_grad_(False)
    if not folded:
        _fold(network)
    return network


class Peaks(nn.Module):
    """What the ONNX file computes: turned descriptors, peaks of the point map, reliability."""

    def __init__(self, net: XFeatNetwork, axes: Tensor) -> None:
        super().__init__()
        self.net = net
        self.axes = nn.Parameter(axes, requires_grad=False)  # (D, 64, 1, 1)

    def forward(self, grey: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        seen = self.net(grey)
        peak = seen.points == functional.max_pool2d(seen.points, 5, 1, 2)
        return (
            functional.conv2d(functional.normalize(seen.descriptors, dim=1), self.axes),
            peak.to(seen.points.dtype) * seen.points,
            seen.reliability,
        )


def load_peaks(weights: Path = XFEAT) -> Peaks:
    """What our ONNX file computes, by its own weights or the authors'; its axes."""
    return Peaks(load_xfeat(weights), _initialisers(XFEAT)["axes"]).eval()


def write_onnx(peaks: Peaks, path: Path) -> None:
    """Write the network for pictures of any sides that are multiples of 32."""
    high, wide = (torch.export.Dim(side, min=1, max=64) for side in ("high", "wide"))
    with torch.no_grad():
        torch.onnx.export(
            peaks, (torch.rand(1, 1, 320, 480),), path,
            input_names=["grey"], output_names=["descriptors", "peaks", "reliability"],
            dynamic_shapes={"grey": {2: 32 * high, 3: 32 * wide}},
            dynamo=True, external_data=False, verbose=False,
        )  # fmt: skip
    model = onnx.load(path)
    _forget_origin(model)
    for kept in [one for one in model.graph.initializer if one.name.startswith(_OURS)]:
        half = numpy_helper.to_array(kept).astype("float16")
        model.graph.initializer.remove(kept)
        model.graph.initializer.append(numpy_helper.from_array(half, f"half.{kept.name}"))
        cast = onnx.helper.make_node("Cast", [f"half.{kept.name}"], [kept.name], to=1)
        model.graph.node.insert(0, cast)
    onnx.save(model, path)


def _forget_origin(model: onnx.ModelProto) -> None:
    """Drop what the exporter tells of this machine: where each line of the network's code lies."""
    graph = model.graph
    for part in (model, graph, *graph.node, *graph.input, *graph.output, *graph.value_info,
                 *graph.initializer):  # fmt: skip
        del part.metadata_props[:]


def _fold(network: XFeatNetwork) -> None:
    network.eval()
    for part in network.modules():
        if isinstance(part, _Layer):
            part.fold()
    first: Any = network.keypoint_head[0]
    whole = nn.Conv2d(1, _CELL**2, _CELL, _CELL)  # of a cell's pixels, unshuffled or not
    whole.weight = nn.Parameter(first.layer[0].weight.reshape(whole.weight.shape))
    whole.bias = first.layer[0].bias
    first.layer[0], network.cells = whole.requires_grad_(False), nn.Identity()


def _initialisers(path: Path) -> dict[str, Tensor]:
    found: dict[str, Any] = {
        one.name.removeprefix("half."): torch.from_numpy(numpy_helper.to_array(one).copy())
        for one in onnx.load(path).graph.initializer
        if one.name.startswith("half.")
    }
    return {name: weights.float() for name, weights in found.items()}


if __name__ == "__main__":
    write_onnx(load_peaks(Path(sys.argv[1])), XFEAT)
