"""The stages of timm's convolutional networks, in the order in which data meets them."""

import importlib
import sys
from itertools import pairwise
from types import ModuleType
from typing import Any

import torch
from torch import nn

from evenplace.networks.backbone import BackboneSpec

_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_declared: list[torch.library.Library] = []  # a library's operators live as long as it does
_VGG16_STAGE_STARTS = (0, 5, 10, 17, 24, 29)  # after each max-pool; 29 leaves out the last ReLU


def import_timm() -> ModuleType:
    """Return the timm module, beside a CPU build of torch too.

    timm imports torchvision, and the registry's torchvision wheel is built for CUDA: beside a
    CPU torch its import stops at `torchvision::nms does not exist`.  Nothing we use calls the two
    operators it then registers fake kernels for, so declaring their signatures is enough.
    """
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        _declare_missing_operators()
    return importlib.import_module("timm")


def _declare_missing_operators() -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]  # the half-imported package would be found again
    library = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
    for operator in ("nms", "qnms"):
        library.define(operator + _SIGNATURE)  # type: ignore[no-untyped-call]
    _declared.append(library)


def timm_network(spec: BackboneSpec) -> Any:
    """timm's network with random weights, its batch norm as the published weights expect."""
    options = {} if spec.norm_eps is None else {"bn_eps": spec.norm_eps}
    return import_timm().create_model(spec.timm_name, pretrained=False, **options)


def efficientnet_stages(spec: BackboneSpec) -> nn.ModuleList:
    """Stem, seven groups of blocks, head."""
    network = timm_network(spec)
    stem = nn.Sequential(network.conv_stem, network.bn1)
    head = nn.Sequential(network.conv_head, network.bn2)
    return nn.ModuleList([stem, *network.blocks, head][: spec.stages])


def resnet_stages(spec: BackboneSpec) -> nn.ModuleList:
    """Stem, then `layer1` to the last one kept."""
    network = timm_network(spec)
    stem = nn.Sequential(network.conv1, network.bn1, network.act1, network.maxpool)
    layers = [network.layer1, network.layer2, network.layer3, network.layer4]
    return nn.ModuleList([stem, *layers][: spec.stages])


def vgg16_stages(spec: BackboneSpec) -> nn.ModuleList:
    """Five groups of convolutions up to conv5_3, without its ReLU: what NetVLAD reads."""
    layers = list(timm_network(spec).features)
    return nn.ModuleList(
        nn.Sequential(*layers[first:last]) for first, last in pairwise(_VGG16_STAGE_STARTS)
    )


def vgg16_home(layer: int) -> tuple[int, int]:
    """The stage that holds a layer of torchvision's `features`, and its place in that stage."""
    stage = max(i for i, start in enumerate(_VGG16_STAGE_STARTS) if start <= layer)
    return stage, layer - _VGG16_STAGE_STARTS[stage]
