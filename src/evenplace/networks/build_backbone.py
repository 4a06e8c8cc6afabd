"""Every network that can see for us, by name, and how to build one."""

import dataclasses
import importlib

import torch
from torch import Tensor

from evenplace.errors import SettingError, WeightsError
from evenplace.networks.backbone import Backbone, BackboneSpec, BandedBackbone
from evenplace.networks.convolutional import efficientnet_stages, resnet_stages, vgg16_stages
from evenplace.networks.dinov2 import Transformer, dinov2_stages
from evenplace.networks.published_keys import network_keys
from evenplace.networks.registry import Registry
from evenplace.networks.weight_files import fetch, read_weights
from evenplace.photos.files import shipped_tables

__all__ = ["BACKBONES", "Backbone", "BackboneSpec", "build_backbone"]


_STAGES = {
    "efficientnet": efficientnet_stages,
    "resnet": resnet_stages,
    "vgg16": vgg16_stages,
    "dinov2": dinov2_stages,
}


def _table() -> dict[str, BackboneSpec]:
    table = {}
    for family in shipped_tables("networks/backbones.toml").values():
        assemble, networks = _STAGES[family.pop("assemble")], family.pop("networks")
        for name, own in networks.items():
            told = family | own
            if depth := told.pop("depth", 0):
                width, stages = told["channels"], depth + 2
                told = {"stages": stages, "cut": stages - 5, "heads": width // 64,
                        "widths": (width,) * stages} | told  # fmt: skip
            table[name] = BackboneSpec(assemble=assemble, **told)
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
