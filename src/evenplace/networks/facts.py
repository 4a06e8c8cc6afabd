"""What no recipe says of a named system: who published weights, as what, and how well it did.

Everything else about a system (its network, places, loss, training, search) is in its recipe and
nowhere else.  Scores are those of the DAPR paper's Table 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class PublishedScore:
    """The paper's R@1 on SF-XL, in percent, for one backbone."""

    backbone: str
    v1: float
    v2: float


@dataclass(frozen=True)
class Facts:
    """What is known of a system beside its recipe.

    data: what the published weights saw.  system: whose weight files fit (`keys.systems`);
    release: where the file is; published: what its network has other than the recipe's; licence:
    of the repository it is in.  variants: what else changes with a backbone other than the
    recipe's.
    """

    data: str = ""
    paper: tuple[PublishedScore, ...] = ()
    system: str | None = None
    release: str | None = None
    published: Mapping[str, Any] = field(default_factory=dict)
    formats: str = ""
    licence: str = ""
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    note: str = ""


_COSPLACE_DIMS = {"vgg16": {"dim": 512}, "resnet18": {"dim": 512}}
_DAPR_DIMS = {"efficientnet-b0": {"dim": 1280}, "resnet101": {"dim": 2048}}
_CAFFE = {"backbone": "vgg16-caffe"}  # their weights want photos on Caffe's scale

FACTS: dict[str, Facts] = {
    "planet": Facts("SF-XL", (PublishedScore("EfficientNet", 24.5, 53.1),)),
    "hge": Facts("SF-XL", (PublishedScore("EfficientNet", 27.0, 56.4),)),
    "cplanet": Facts("SF-XL", (PublishedScore("EfficientNet", 27.4, 64.1),)),
    "dc": Facts(
        "SF-XL",
        (PublishedScore("EfficientNet", 61.0, 79.1),),
        system="dc",
        release="dc",
        formats="model_state_dict + classifiers_state_dict (.pth)",
        licence="none given",
        note="the released file does not name its classes",
    ),
    "dapr-c": Facts(
        "SF-XL",
        (
            PublishedScore("EfficientNet", 67.2, 84.1),
            PublishedScore("ResNet101", 68.9, 85.5),
            PublishedScore("DINOv2", 86.4, 91.1),
        ),
        variants=_DAPR_DIMS,
    ),
    "dapr-m": Facts(
        variants={
            "efficientnet-lite0": {"aggregator": "gem", "power": 1.0},
            "dinov2-base": {"dim": 768, "aggregator": "gem"},
        },
        note="what holds up on photographs; dapr-m-paper is the paper's",
    ),
    "dapr-m-paper": Facts(
        "SF-XL",
        (
            PublishedScore("EfficientNet", 74.5, 88.1),
            PublishedScore("ResNet101", 76.3, 88.0),
            PublishedScore("DINOv2", 89.7, 94.3),
        ),
        variants=_DAPR_DIMS,
    ),
    "dapr-m-paper-small": Facts(note="the paper's loss and distance on the embedded network"),
    "netvlad": Facts(
        "Pitts30k",
        (PublishedScore("VGG16", 40.0, 71.1),),
        system="netvlad",
        release="netvlad",
        published=_CAFFE,
        formats="MATLAB struct (.mat)",
        licence="MIT",
        note="clusters from k-means, then PCA whitening to 4096",
    ),
    "sfrs": Facts(
        "Pitts30k",
        (PublishedScore("VGG16", 51.2, 83.1),),
        system="sfrs",
        release="sfrs",
        published=_CAFFE,
        formats="flat (.pth)",
        licence="MIT",
    ),
    "gem": Facts(
        "retrieval-SfM-120k",
        (PublishedScore("VGG16", 21.7, 43.1),),
        system="gem",
        formats="state_dict (.pth) of cnnimageretrieval-pytorch",
        licence="MIT",
        note="the published weights were trained by pairs; the recipe is deep-vg's, by triplets",
    ),
    "cosplace": Facts(
        "SF-XL",
        (PublishedScore("VGG16", 64.7, 83.4), PublishedScore("ResNet101", 70.9, 81.9)),
        system="cosplace",
        release="cosplace",
        formats="flat, or model_state_dict of a training checkpoint (.pth)",
        licence="MIT",
        variants=_COSPLACE_DIMS,
    ),
    "eigenplaces": Facts(
        "SF-XL panoramas",
        system="eigenplaces",
        release="eigenplaces",
        formats="flat (.pth)",
        licence="MIT",
        variants=_COSPLACE_DIMS,
        note="CosPlace's network; the classes look at one point from several sides",
    ),
    "mixvpr": Facts(
        "GSV-Cities",
        system="mixvpr",
        formats="flat or state_dict (.ckpt)",
        licence="none given",
        note="one input size a network; also 512 and 128 numbers",
    ),
    "salad": Facts(
        "GSV-Cities",
        (PublishedScore("DINOv2", 87.6, 93.5), PublishedScore("DINOv2, LB", 88.0, 94.5)),
        system="salad",
        release="salad",
        formats="flat (.ckpt)",
        licence="GPL-3.0",
        note="needs more than 64 patches: 126 pixels or more",
    ),
    "boq": Facts(
        "GSV-Cities",
        (PublishedScore("DINOv2", 83.7, 92.8), PublishedScore("DINOv2, LB", 88.8, 93.7)),
        system="boq",
        release="boq-dinov2",
        formats="flat (.pth)",
        licence="MIT",
        variants={"resnet50": {"dim": 16384, "layer": 3, "cut": 3, "image_size": 384}},
        note="reads DINOv2 before its final norm; boq-8192 is what its training script makes",
    ),
    "boq-8192": Facts(note="the length of BoQ in the DAPR paper's tables; nobody released it"),
    "cricavpr": Facts(
        "GSV-Cities",
        system="cricavpr",
        release="cricavpr",
        formats="model_state_dict with module. (.pth)",
        licence="MIT",
        note="a descriptor depends on its batch, here 16 photos in the order of the files",
    ),
    "megaloc": Facts(
        "SF-XL, GSV-Cities, MSLS, MegaScenes, ScanNet",
        system="megaloc",
        release="megaloc",
        formats="safetensors",
        licence="MIT",
    ),
    "image": Facts(
        "GSV-Cities, MSLS, Pitts30k, SF-XL",
        system="image",
        release="image",
        formats="model_state_dict with module. (.pth)",
        licence="MIT",
    ),
    "cliquemining": Facts(
        "GSV-Cities, MSLS",
        system="cliquemining",
        release="cliquemining",
        formats="state_dict (.ckpt)",
        licence="GPL-3.0",
        note="SALAD's network; its own hub file loads SALAD's weights, so fetch the file itself",
    ),
    "anyloc": Facts(
        "none: a vocabulary from photos of the domain",
        system="anyloc",
        formats="one tensor of centres (.pt), beside DINOv2's own weights",
        licence="BSD-3-Clause",
        variants={
            "dinov2-small": {"dim": 12288, "layer": 9, "cut": 11},
            "dinov2-base": {"dim": 24576, "layer": 9, "cut": 11},
            "dinov2-large": {"dim": 32768, "layer": 18, "cut": 20},
        },
    ),
    "dc-cosplace": Facts(
        "SF-XL",
        (PublishedScore("EfficientNet", 71.4, 87.6),),
        formats="those of dc and cosplace",
    ),
    "dapr-c-salad": Facts("SF-XL", variants=_DAPR_DIMS),
    "dapr-c-boq": Facts("SF-XL", variants=_DAPR_DIMS),
}
