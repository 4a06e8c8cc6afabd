"""How to build each official network from its authors' checkout, and what of ours to compare.

The code runs where it lies; nothing of it is copied.  SALAD and CliqueMining are GPL and MixVPR
has no licence, so theirs are compared in OpenVPRLab's and MegaLoc's MIT versions.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn

from benchmarks.checkouts import checkout, dinov2, offline, stub, torchvision_models
from benchmarks.matlab import save_matlab, vgg16_netvlad
from evenplace.networks.backbone import IMAGENET_MEAN, IMAGENET_STD

Size = tuple[int, int]
_CAFFE_MEAN = (0.48501961, 0.45795686, 0.40760392)


def _flat(weights: dict[str, Tensor], path: Path) -> None:
    torch.save(weights, path)


def _safetensors(weights: dict[str, Tensor], path: Path) -> None:
    save_file(weights, path)


def _lightning(weights: dict[str, Tensor], path: Path) -> None:
    torch.save({"state_dict": weights, "epoch": 3}, path)


def _parallel(weights: dict[str, Tensor], path: Path) -> None:
    torch.save({"model_state_dict": {f"module.{k}": v for k, v in weights.items()}}, path)


def _call(model: nn.Module, photos: Tensor) -> Tensor:
    out = model(photos)
    first: Tensor = out[0] if isinstance(out, tuple) else out
    return first


@dataclass(frozen=True)
class Case:
    """An official network, and the method of ours that claims to be the same."""

    name: str
    method: str
    checkouts: tuple[str, ...]
    build: Callable[[Path], nn.Module]
    sizes: tuple[Size, Size]
    backbone: str | None = None
    changes: dict[str, Any] = field(default_factory=dict)
    save: Callable[[dict[str, Tensor], Path], None] = _flat
    suffix: str = ".pth"
    describe: Callable[[nn.Module, Tensor], Tensor] = _call
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD
    load: Callable[[dict[str, Tensor]], nn.Module] | None = None  # not by build_model
    gain: float = 1.0  # of the convolutions, so that two photos still differ at the end


def _cosplace(backbone: str, dim: int) -> Callable[[Path], nn.Module]:
    def build(folder: Path) -> nn.Module:
        with checkout(folder, "CosPlace"), offline(folder):
            module = importlib.import_module("cosplace_model.cosplace_network")
            model: nn.Module = module.GeoLocalizationNet(backbone, dim)
        return model

    return build


def _eigenplaces(folder: Path) -> nn.Module:
    with checkout(folder, "EigenPlaces"), offline(folder):
        module = importlib.import_module("eigenplaces_model.eigenplaces_network")
        model: nn.Module = module.GeoLocalizationNet_("ResNet18", 256)
    return model


def _megaloc(folder: Path) -> nn.Module:
    with checkout(folder, "MegaLoc"):
        model: nn.Module = importlib.import_module("megaloc_model").MegaLoc()
    return model


def _boq(backbone: str, dim: int) -> Callable[[Path], nn.Module]:
    def build(folder: Path) -> nn.Module:
        with checkout(folder, "Bag-of-Queries"), offline(folder):
            hub = importlib.import_module("hubconf")
            model: nn.Module = hub.get_trained_boq(backbone, dim)
        return model

    return build


def _cricavpr(folder: Path) -> nn.Module:
    with checkout(folder, "CricaVPR"):
        model: nn.Module = importlib.import_module("network").CricaVPRNet()
    return model


def _image(folder: Path) -> nn.Module:
    unused = stub(
        "transformers", "aggregators", "aggregators.netvlad", "aggregators.salad", "aggregators.boq"
    )
    with checkout(folder, "ImAge"), unused:
        hub = importlib.import_module("hubconf")
        model: nn.Module = importlib.import_module("network").VPRmodel(hub.SimpleArgs())
    return model


def _sfrs(folder: Path) -> nn.Module:
    with checkout(folder, "OpenIBL"), stub("cv2", "h5py"):
        model: nn.Module = importlib.import_module("hubconf").vgg16_netvlad()
    return model


def _gem(folder: Path) -> nn.Module:
    with checkout(folder, "cnnimageretrieval-pytorch"):
        module = importlib.import_module("cirtorch.networks.imageretrievalnet")
        model: nn.Module = module.init_network(
            {"architecture": "vgg16", "pooling": "gem", "whitening": True, "pretrained": False}
        )
    return model


class _Assembled(nn.Module):
    """A backbone and an aggregator, under the names SALAD and MixVPR publish."""

    def __init__(self, backbone: nn.Module, aggregator: nn.Module) -> None:
        super().__init__()
        self.backbone = nn.Module()
        self.backbone.model = backbone
        self.aggregator = aggregator


def _salad(folder: Path) -> nn.Module:
    with checkout(folder, "MegaLoc"):
        parts = importlib.import_module("megaloc_model")
        aggregator = parts.FeatureAggregator(num_channels=768)
    return _Assembled(dinov2(folder, "dinov2_vitb14"), aggregator)


def _describe_salad(model: Any, photos: Tensor) -> Tensor:
    out = model.backbone.model.forward_features(photos)
    grid = (photos.shape[2] // 14, photos.shape[3] // 14)
    maps = out["x_norm_patchtokens"].transpose(1, 2).unflatten(2, grid)
    return _call(model.aggregator, (maps, out["x_norm_clstoken"]))  # type: ignore[arg-type]


def _mixvpr(folder: Path) -> nn.Module:
    with checkout(folder, "OpenVPRLab"):
        module = importlib.import_module("src.models.aggregators.mixvpr")
        aggregator = module.MixVPR(in_channels=1024, in_h=9, in_w=9, out_channels=256, out_rows=2)
    network = torchvision_models().resnet50()
    del network.layer4, network.fc
    return _Assembled(network, aggregator)


def _describe_mixvpr(model: Any, photos: Tensor) -> Tensor:
    net = model.backbone.model
    x = net.maxpool(net.relu(net.bn1(net.conv1(photos))))
    return _call(model.aggregator, net.layer3(net.layer2(net.layer1(x))))


class _DivideAndClassify(nn.Module):
    """Divide&Classify has no licence: this is its network in the words of its paper."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = torchvision_models().efficientnet_b0().features
        self.classifier = nn.Sequential(nn.Linear(1280, 1280))

    def forward(self, photos: Tensor) -> Tensor:
        return F.normalize(self.classifier(self.backbone(photos).mean(dim=(2, 3))), dim=1)


CASES: tuple[Case, ...] = (
    Case(
        "cosplace-resnet18",
        "cosplace",
        ("CosPlace",),
        _cosplace("ResNet18", 256),
        ((160, 160), (224, 288)),
        backbone="resnet18",
        changes={"dim": 256},
    ),
    Case(
        "cosplace-resnet101",
        "cosplace",
        ("CosPlace",),
        _cosplace("ResNet101", 128),
        ((160, 160), (224, 288)),
        backbone="resnet101",
        changes={"dim": 128},
    ),
    Case(
        "cosplace-vgg16",
        "cosplace",
        ("CosPlace",),
        _cosplace("VGG16", 512),
        ((160, 160), (224, 288)),
        gain=1.5,
        backbone="vgg16",
    ),
    Case(
        "cosplace-efficientnet-b0",
        "cosplace",
        ("CosPlace",),
        _cosplace("EfficientNet_B0", 512),
        ((160, 160), (224, 288)),
        backbone="efficientnet-b0",
        changes={"dim": 512},
        gain=1.4,
    ),
    Case(
        "eigenplaces-resnet18",
        "eigenplaces",
        ("EigenPlaces",),
        _eigenplaces,
        ((160, 160), (224, 288)),
        backbone="resnet18",
        changes={"dim": 256},
    ),
    Case(
        "dc-efficientnet-b0",
        "dc",
        (),
        lambda _: _DivideAndClassify(),
        ((160, 160), (224, 256)),
        gain=1.4,
        save=_parallel,
    ),
    Case(
        "megaloc",
        "megaloc",
        ("MegaLoc",),
        _megaloc,
        ((126, 126), (154, 224)),
        save=_safetensors,
        suffix=".safetensors",
    ),
    Case(
        "boq-dinov2",
        "boq",
        ("Bag-of-Queries", "dinov2"),
        _boq("dinov2", 12288),
        ((126, 126), (154, 224)),
    ),
    Case(
        "boq-resnet50",
        "boq",
        ("Bag-of-Queries", "dinov2"),
        _boq("resnet50", 16384),
        ((160, 160), (224, 288)),
        backbone="resnet50",
    ),
    Case(
        "cricavpr",
        "cricavpr",
        ("CricaVPR",),
        _cricavpr,
        ((224, 224), (252, 252)),
        save=_parallel,
    ),
    Case("image", "image", ("ImAge",), _image, ((126, 126), (154, 224)), save=_parallel),
    Case(
        "sfrs",
        "sfrs",
        ("OpenIBL",),
        _sfrs,
        ((160, 160), (224, 288)),
        gain=1.5,
        mean=_CAFFE_MEAN,
        std=(1 / 255,) * 3,
    ),
    Case(
        "netvlad",
        "netvlad",
        ("VPR-methods-evaluation",),
        vgg16_netvlad,
        ((160, 160), (224, 288)),
        gain=1.5,
        save=save_matlab,
        suffix=".mat",
        mean=IMAGENET_MEAN,
    ),
    Case(
        "gem-vgg16",
        "gem",
        ("cnnimageretrieval-pytorch",),
        _gem,
        ((160, 160), (224, 288)),
        gain=1.5,
        save=_lightning,
        describe=lambda model, photos: model(photos).T,
    ),
    Case(
        "salad",
        "salad",
        ("MegaLoc", "dinov2"),
        _salad,
        ((126, 126), (154, 224)),
        describe=_describe_salad,
        suffix=".ckpt",
    ),
    Case(
        "cliquemining",
        "cliquemining",
        ("MegaLoc", "dinov2"),
        _salad,
        ((126, 126), (154, 224)),
        describe=_describe_salad,
        save=_lightning,
        suffix=".ckpt",
    ),
    Case(
        "mixvpr-512",
        "mixvpr",
        ("OpenVPRLab",),
        _mixvpr,
        ((144, 144), (140, 140)),
        changes={"dim": 512, "image_size": 144},
        describe=_describe_mixvpr,
        suffix=".ckpt",
    ),
)
