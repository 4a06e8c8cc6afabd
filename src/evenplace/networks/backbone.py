"""A network that turns photos into feature maps: a row of stages cut in two.

The stages before `cut` are the trunk: frozen, the same for every epoch, so its output can be
cached.  The stages after it train.  This file knows nothing of places, losses or descriptors,
nor of any particular network.

    B batch · H, W pixels · D channels · h, w cells of the feature map
    E class token and registers · Q prompts · A channels of all levels together
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from evenplace.errors import SettingError
from evenplace.photos.pictures import Size, height_width

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class FoldedStages:
    """A copy of frozen stages with each batch norm folded into the convolution before it.

    The same maps for a third less work: on EfficientNet-Lite0's trunk, 224 px, one core, 1.3 to
    1.6 times the photos a second.  Made again whenever the weights have changed.

    Kept beside the network rather than in it, so that checkpoints and digests see the weights
    as their authors named them.
    """

    def __init__(self) -> None:
        self._seen: tuple[tuple[int, int], ...] = ()
        self._folded: list[nn.Module] = []

    def __call__(self, stages: list[nn.Module]) -> list[nn.Module]:
        """The stages to run: folded ones, or the very same where there is nothing to fold."""
        if torch.compiler.is_compiling():  # an exporter folds for itself, and traces no pointers
            return stages
        if not any(isinstance(m, nn.BatchNorm2d) for stage in stages for m in stage.modules()):
            return stages
        tensors = [t for stage in stages for t in (*stage.parameters(), *stage.buffers())]
        seen = tuple((one.data_ptr(), one._version) for one in tensors)
        if seen != self._seen:
            self._folded = [_fold(copy.deepcopy(stage).eval()) for stage in stages]
            self._seen = seen
        return self._folded


@torch.no_grad()
def _fold(module: nn.Module) -> nn.Module:
    """Fold each batch norm into the convolution registered before it; keep its activation."""
    before: tuple[str, nn.Module] = ("", module)
    for name, child in list(module.named_children()):
        if isinstance(child, nn.BatchNorm2d) and isinstance(before[1], nn.Conv2d):
            module.add_module(before[0], fuse_conv_bn_eval(before[1], child))
            module.add_module(name, getattr(child, "act", nn.Identity()))
        else:
            _fold(child)
        before = name, child
    return module.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


@dataclass(frozen=True)
class Features:
    """A photo as a map of local features, and, from a transformer, the tokens beside the map."""

    maps: Tensor  # (B, D, h, w)
    tokens: Tensor | None = None  # (B, E, D), the class token first
    prompts: Tensor | None = None  # (B, Q, D)

    @property
    def class_token(self) -> Tensor:
        """(B, D)."""
        if self.tokens is None:
            raise SettingError(
                "this aggregator reads the class token of a transformer, and a convolutional "
                "network has none; use a dinov2 backbone"
            )
        return self.tokens[:, 0]


@dataclass(frozen=True)
class BackboneSpec:
    """What is known of a network before it is built.

    `assemble` turns the spec into its stages; it stays out of the repr, which names caches.
    """

    channels: int
    input_size: int
    stages: int
    cut: int
    assemble: Callable[["BackboneSpec"], nn.ModuleList] = field(repr=False)
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD
    timm_name: str = ""
    norm_eps: float | None = None
    widths: tuple[int, ...] = ()  # channels after each stage, where a network may stop early
    patch: int = 1  # sides of the input are multiples of this
    heads: int = 0  # of a transformer, and so are the next five
    registers: int = 0
    offset: float = 0.0  # added to the grid before positions are interpolated
    facet: str = "token"
    adapters: bool = False
    gated: bool = False
    bands: tuple[int, ...] = ()  # stages that are read too, in two bands (`BandedBackbone`)
    embedded: tuple[str, str] | None = None  # pip package, class that tells the weight file's path
    release: str = ""  # the name of its published weights in `releases.toml`
    halvings: int = 5  # how often a convolutional network halves the sides
    halved: tuple[int, ...] = ()  # and how often after each stage, where it may stop early
    ceils: bool = True  # an odd side is rounded up

    def cells(self, size: Size) -> int:
        """How many cells the feature map of a photo of `size` pixels has."""
        if self.bands:
            return 1
        height, width = (self._side(pixels) for pixels in height_width(size))
        return height * width

    def _side(self, pixels: int) -> int:
        if self.patch > 1:
            return pixels // self.patch
        for _ in range(self.halvings):
            pixels = (pixels + self.ceils) // 2
        return pixels


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
        self._folded = FoldedStages()
        for stage in stages[:cut]:
            stage.requires_grad_(False)
        self.train()  # a module starts out training: keep batch norm from it at once

    def forward(self, photos: Tensor) -> Tensor:
        """photos: (B, 3, H, W) uint8, or floats already in 0..1 -> (B, D, h, w)."""
        return self.tail(self.trunk(photos))

    def trunk(self, photos: Tensor) -> Tensor:
        """What the frozen stages make of the photos; always four axes, so that it can be cached."""
        with torch.no_grad():
            maps = self.normalise(photos).contiguous(memory_format=torch.channels_last)
            for stage in self._folded(list(self.stages[: self.cut])):
                maps = stage(maps)
        return maps

    def tail(self, maps: Tensor) -> Tensor:
        """From the trunk's output to feature maps."""
        return self.features(maps).maps

    def features(self, maps: Tensor, prompts: Tensor | None = None) -> Features:
        """From the trunk's output to all that an aggregator may read."""
        if prompts is not None:
            raise SettingError("prompt tokens need a transformer; use a dinov2 backbone")
        for stage in self.stages[self.cut :]:
            maps = stage(maps)
        if self.spec.facet == "mean":
            return Features(maps, maps.mean(dim=(2, 3)).unsqueeze(1))
        return Features(maps)

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


class BandedBackbone(Backbone):
    """A network read at several depths: the bands of some levels beside the mean of the last.

    The last layer of an ImageNet network tells a dog from a car; streets are told apart by windows,
    cornices and kerbs, which the layers before it still see.  Photos are taken upright, so the
    upper half of a map is roofs and sky and the lower half doors and pavement: two bands keep that
    apart and still forgive a step to the left.  The output is one cell of A channels.

    Frozen whole (cut = all stages), a photo's cache is A numbers; cut before the first level
    that is read, the stages after it train.
    """

    def __init__(self, stages: nn.ModuleList, spec: BackboneSpec, cut: int) -> None:
        if spec.bands[0] + 1 < cut < spec.stages:
            raise SettingError(
                f"cut={cut} is between the levels that are read; "
                f"use {spec.stages} to freeze them all, or 0 to {spec.bands[0] + 1}"
            )
        super().__init__(stages, spec, cut)

    def trunk(self, photos: Tensor) -> Tensor:
        if self.cut < len(self.stages):
            return super().trunk(photos)
        with torch.no_grad():
            maps = self.normalise(photos).contiguous(memory_format=torch.channels_last)
            return self._read(maps, self._folded(list(self.stages)), 0)

    def features(self, maps: Tensor, prompts: Tensor | None = None) -> Features:
        if prompts is not None or self.cut == len(self.stages):
            return super().features(maps, prompts)
        return Features(self._read(maps, list(self.stages[self.cut :]), self.cut))

    def _read(self, maps: Tensor, stages: list[nn.Module], first: int) -> Tensor:
        """Run the stages from number `first` on and keep what each level shows.  -> (B, A, 1, 1)"""
        levels = [halves(maps)] if first - 1 in self.spec.bands else []
        for number, stage in enumerate(stages, first):
            maps = stage(maps)
            if number in self.spec.bands:
                levels.append(halves(maps))
        levels.append(maps.mean(dim=(-2, -1)))
        return torch.cat([F.normalize(level, dim=1) for level in levels], dim=1)[:, :, None, None]


def halves(maps: Tensor) -> Tensor:
    """The mean of a map's upper and of its lower half; a middle row counts for both.

    maps: (B, D, h, w) -> (B, 2 D).
    """
    return F.adaptive_avg_pool2d(maps, (2, 1)).transpose(1, 2).flatten(1)
