"""DINOv2 beside Meta's own module, and AnyLoc, which reads the inside of it."""

import dataclasses
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from benchmarks.checkouts import checkout, dinov2, stub
from benchmarks.official import Case
from evenplace.networks.build_backbone import BACKBONES, Backbone, build_backbone, fill_backbone
from evenplace.networks.build_model import build_model, fill_official
from evenplace.networks.dinov2 import Transformer

_SIZES = ((126, 126), (154, 224))


class _Ours(nn.Module):
    """Patch features and class token in one row, to be compared at once."""

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, photos: Tensor) -> Tensor:
        features = self.backbone.features(self.backbone.trunk(photos))
        patches = features.maps.flatten(2).transpose(1, 2)
        return torch.cat([patches.flatten(1), features.class_token], dim=1)


def _theirs(model: Any, photos: Tensor) -> Tensor:
    out = model.forward_features(photos)
    return torch.cat([out["x_norm_patchtokens"].flatten(1), out["x_norm_clstoken"]], dim=1)


def _features(name: str, arch: str) -> Case:
    def load(weights: dict[str, Tensor]) -> nn.Module:
        backbone = build_backbone(name, weights=None)
        fill_backbone(backbone, weights)
        return _Ours(backbone)

    return Case(
        f"features of {name}",
        name,
        ("dinov2",),
        lambda folder: dinov2(folder, arch),
        _SIZES,
        describe=_theirs,
        load=load,
    )


def _shallow_giant(registers: int) -> Case:
    """Two of the giant's forty blocks: all that is different about it, in a tenth of the memory."""
    name = "dinov2-giant-reg" if registers else "dinov2-giant"

    def build(folder: Path) -> nn.Module:
        with checkout(folder, "dinov2"):
            module = importlib.import_module("dinov2.models.vision_transformer")
            model: nn.Module = module.vit_giant2(
                patch_size=14,
                img_size=518,
                init_values=1.0,
                ffn_layer="swiglufused",
                block_chunks=0,
                num_register_tokens=registers,
                interpolate_antialias=bool(registers),
                interpolate_offset=0.0 if registers else 0.1,
            )
        model.blocks = model.blocks[:2]  # type: ignore[index]
        return model

    def load(weights: dict[str, Tensor]) -> nn.Module:
        spec = dataclasses.replace(BACKBONES[name], widths=(1536,) * 4, stages=4, cut=2)
        backbone = Transformer(spec.assemble(spec), spec, 2)
        fill_backbone(backbone, weights)
        return _Ours(backbone)

    return Case(
        f"features of {name}, 2 blocks",
        name,
        ("dinov2",),
        build,
        _SIZES,
        describe=_theirs,
        load=load,
    )


class _AnyLoc(nn.Module):
    """AnyLoc's extractor and VLAD around one DINOv2, with a vocabulary of random unit centres."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.dino = dinov2(folder, "dinov2_vits14")
        self.centres = nn.Parameter(torch.zeros(32, 384))
        unused = stub("transformers", "faiss.contrib.torch_utils")
        with checkout(folder, "AnyLoc"), unused:
            self.tools: Callable[[], Any] = importlib.import_module("utilities").__dict__.copy

    def forward(self, photos: Tensor) -> Tensor:
        tools = self.tools()
        with mock.patch("torch.hub.load", return_value=self.dino):
            extract = tools["DinoV2ExtractFeatures"]("dinov2_vits14", 9, "value")
        vlad = tools["VLAD"](32, desc_dim=384)
        vlad.fit(self.centres.detach().repeat(2, 1))
        vlad.c_centers = vlad.kmeans.centroids = self.centres.detach()
        descriptors: Tensor = vlad.generate_multi(extract(photos))
        return descriptors


def _load_anyloc(weights: dict[str, Tensor]) -> nn.Module:
    network = build_model("anyloc", "dinov2-small", weights=None)
    inside = {k.removeprefix("dino."): v for k, v in weights.items() if k.startswith("dino.")}
    fill_backbone(network.backbone, inside)
    fill_official(network, "anyloc", {"vocabulary": weights["centres"]})
    return network


DINOV2_CASES: tuple[Case, ...] = (
    _features("dinov2-small", "dinov2_vits14"),
    _features("dinov2-small-reg", "dinov2_vits14_reg"),
    _features("dinov2-base", "dinov2_vitb14"),
    _features("dinov2-base-reg", "dinov2_vitb14_reg"),
    _features("dinov2-large", "dinov2_vitl14"),
    _shallow_giant(0),
    _shallow_giant(4),
    Case("anyloc", "anyloc", ("AnyLoc", "dinov2"), _AnyLoc, _SIZES, load=_load_anyloc),
)
