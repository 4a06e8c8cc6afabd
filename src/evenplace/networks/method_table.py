"""Every system in the paper's tables, and their kin, as combinations of parts.

Settings are those of the papers and of the code their authors published; the scores are those
of the DAPR paper's Table 1.
"""

from typing import Any

from evenplace.networks.network import NetworkSpec
from evenplace.networks.parts import Method, Part, PublishedScore

_COSINE = Part("groups", {"prototypes": "cosine"})
_MULTI_SIMILARITY = Part("multi-similarity", {"alpha": 1.0, "beta": 50.0, "base": 0.0})
_L2 = Part("l2")
_CELL_CENTRE = Part("cell-centre")
_EFFICIENTNET = NetworkSpec("efficientnet-b0", dim=1280, aggregator="mean", image_size=224)
_DAPR = NetworkSpec("efficientnet-lite0-bands", dim=512, aggregator="mean")  # recipes/dapr-m.toml
_DAPR_GRID = Part("grid", {"cell": 20.0, "min_photos": 10})
_DAPR_LOSS = Part("low-visit-bias", {"beta": 0.01, "kappa": 0.05, "scale": 30.0, "margin": 0.4})
_DAPR_VARIANTS: dict[str, dict[str, Any]] = {
    "efficientnet-lite0": {"aggregator": "gem", "power": 1.0},
    "dinov2-base": {"dim": 768, "aggregator": "gem"},
}
_COSPLACE_DIMS = {"vgg16": {"dim": 512}, "resnet18": {"dim": 512}}
_SALAD = NetworkSpec("dinov2-base", dim=8448, aggregator="salad", image_size=322)

CLASSIFICATION: dict[str, Method] = {
    "planet": Method(
        kind="classification",
        network=_EFFICIENTNET,
        data="SF-XL",
        partition=Part("quadtree", {"max_photos": 1000, "min_photos": 10}),
        classifier=Part("groups", {"prototypes": "raw"}),
        loss=Part("cross-entropy"),
        rerank=_CELL_CENTRE,
        paper=(PublishedScore("EfficientNet", 24.5, 53.1),),
        note="cells of an adaptive quadtree, one softmax",
    ),
    "hge": Method(
        kind="classification",
        network=_EFFICIENTNET,
        data="SF-XL",
        partition=Part("quadtree", {"max_photos": (5000, 2000, 1000), "min_photos": 50}),
        classifier=Part("levels", {"combine": "product"}),
        loss=Part("cross-entropy"),
        rerank=_CELL_CENTRE,
        paper=(PublishedScore("EfficientNet", 27.0, 56.4),),
        note="three levels; a cell's probability is the product over its parents",
    ),
    "cplanet": Method(
        kind="classification",
        network=_EFFICIENTNET,
        data="SF-XL",
        partition=Part("intersection", {"of": "kdtree"}),
        classifier=Part("levels", {"combine": "sum"}),
        loss=Part("cross-entropy"),
        rerank=_CELL_CENTRE,
        paper=(PublishedScore("EfficientNet", 27.4, 64.1),),
        note="cells where several partitions meet; their scores are summed",
    ),
    "dc": Method(
        kind="classification",
        network=_EFFICIENTNET,
        data="SF-XL",
        partition=Part("grid", {"cell": 20.0, "groups": 2, "min_photos": 10}),
        classifier=Part("groups", {"prototypes": "raw"}),
        loss=Part("aamc"),
        rerank=_CELL_CENTRE,
        system="dc",
        release="dc",
        formats="model_state_dict + classifiers_state_dict (.pth)",
        paper=(PublishedScore("EfficientNet", 61.0, 79.1),),
        note="Divide&Classify; the released file does not name its classes",
    ),
    "dapr-c": Method(
        kind="classification",
        network=_DAPR,
        data="SF-XL",
        partition=_DAPR_GRID,
        classifier=_COSINE,
        loss=_DAPR_LOSS,
        rerank=_CELL_CENTRE,
        variants=_DAPR_VARIANTS,
        paper=(
            PublishedScore("EfficientNet", 67.2, 84.1),
            PublishedScore("ResNet101", 68.9, 85.5),
            PublishedScore("DINOv2", 86.4, 91.1),
        ),
    ),
}

RETRIEVAL: dict[str, Method] = {
    "netvlad": Method(
        kind="retrieval",
        network=NetworkSpec("vgg16-caffe", dim=4096, aggregator="netvlad", image_size=480),
        data="Pitts30k",
        loss=Part("triplet"),
        rerank=_L2,
        system="netvlad",
        release="netvlad",
        formats="MATLAB struct (.mat)",
        paper=(PublishedScore("VGG16", 40.0, 71.1),),
        note="clusters from k-means, then PCA whitening to 4096",
    ),
    "sfrs": Method(
        kind="retrieval",
        network=NetworkSpec("vgg16-caffe", dim=4096, aggregator="netvlad", image_size=480),
        data="Pitts30k",
        loss=Part("sare"),
        rerank=_L2,
        system="sfrs",
        release="sfrs",
        formats="flat (.pth)",
        paper=(PublishedScore("VGG16", 51.2, 83.1),),
    ),
    "gem": Method(
        kind="retrieval",
        network=NetworkSpec("vgg16", dim=512, aggregator="gem", image_size=480),
        data="retrieval-SfM-120k",
        loss=Part("contrastive", {"margin": 0.7}),
        rerank=_L2,
        system="gem",
        formats="state_dict (.pth) of cnnimageretrieval-pytorch",
        paper=(PublishedScore("VGG16", 21.7, 43.1),),
    ),
    "cosplace": Method(
        kind="retrieval",
        network=NetworkSpec("resnet50", dim=2048, aggregator="cosplace", image_size=512),
        data="SF-XL",
        partition=Part("grid", {"cell": 10.0, "heading": 30.0, "groups": 5, "min_photos": 10}),
        classifier=_COSINE,
        loss=Part("cosface", {"scale": 30.0, "margin": 0.4}),
        rerank=_L2,
        system="cosplace",
        release="cosplace",
        formats="flat, or model_state_dict of a training checkpoint (.pth)",
        variants=_COSPLACE_DIMS,
        paper=(PublishedScore("VGG16", 64.7, 83.4), PublishedScore("ResNet101", 70.9, 81.9)),
    ),
    "eigenplaces": Method(
        kind="retrieval",
        network=NetworkSpec("resnet50", dim=2048, aggregator="cosplace", image_size=512),
        data="SF-XL panoramas",
        partition=Part("grid", {"cell": 15.0, "groups": 3, "min_photos": 5}),
        classifier=_COSINE,
        loss=Part("cosface", {"scale": 100.0, "margin": 0.4}),
        rerank=_L2,
        system="eigenplaces",
        release="eigenplaces",
        formats="flat (.pth)",
        variants=_COSPLACE_DIMS,
        note="CosPlace's network; the classes look at one point from several sides",
    ),
    "mixvpr": Method(
        kind="retrieval",
        network=NetworkSpec("resnet50", dim=4096, aggregator="mixvpr", layer=3, image_size=320),
        data="GSV-Cities",
        loss=_MULTI_SIMILARITY,
        rerank=_L2,
        system="mixvpr",
        formats="flat or state_dict (.ckpt)",
        note="one input size a network; also 512 and 128 numbers",
    ),
    "salad": Method(
        kind="retrieval",
        network=_SALAD,
        data="GSV-Cities",
        loss=_MULTI_SIMILARITY,
        rerank=_L2,
        system="salad",
        release="salad",
        formats="flat (.ckpt)",
        paper=(PublishedScore("DINOv2", 87.6, 93.5), PublishedScore("DINOv2, LB", 88.0, 94.5)),
        note="needs more than 64 patches: 126 pixels or more",
    ),
    "boq": Method(
        kind="retrieval",
        network=NetworkSpec(
            "dinov2-base", dim=12288, aggregator="boq", layer=11, cut=11, image_size=322
        ),
        data="GSV-Cities",
        loss=_MULTI_SIMILARITY,
        rerank=_L2,
        system="boq",
        release="boq-dinov2",
        formats="flat (.pth)",
        variants={"resnet50": {"dim": 16384, "layer": 3, "cut": 3, "image_size": 384}},
        paper=(PublishedScore("DINOv2", 83.7, 92.8), PublishedScore("DINOv2, LB", 88.8, 93.7)),
        note="reads DINOv2 before its final norm; dim=8192 is what its training script makes",
    ),
    "cricavpr": Method(
        kind="retrieval",
        network=NetworkSpec(
            "dinov2-base-adapters", dim=10752, aggregator="cricavpr", image_size=224
        ),
        data="GSV-Cities",
        loss=_MULTI_SIMILARITY,
        rerank=_L2,
        system="cricavpr",
        release="cricavpr",
        formats="model_state_dict with module. (.pth)",
        note="a descriptor depends on its batch, here 16 photos in the order of the files",
    ),
    "megaloc": Method(
        kind="retrieval",
        network=NetworkSpec("dinov2-base", dim=8448, aggregator="megaloc", image_size=322),
        data="SF-XL, GSV-Cities, MSLS, MegaScenes, ScanNet",
        loss=_MULTI_SIMILARITY,
        rerank=_L2,
        system="megaloc",
        release="megaloc",
        formats="safetensors",
    ),
    "image": Method(
        kind="retrieval",
        network=NetworkSpec(
            "dinov2-base-reg-offset", dim=6144, aggregator="image", cut=9, image_size=322
        ),
        data="GSV-Cities, MSLS, Pitts30k, SF-XL",
        loss=_MULTI_SIMILARITY,
        rerank=_L2,
        system="image",
        release="image",
        formats="model_state_dict with module. (.pth)",
    ),
    "cliquemining": Method(
        kind="retrieval",
        network=_SALAD,
        data="GSV-Cities, MSLS",
        loss=_MULTI_SIMILARITY,
        rerank=_L2,
        system="cliquemining",
        release="cliquemining",
        formats="state_dict (.ckpt)",
        note="SALAD's network; its own hub file loads SALAD's weights, so fetch the file itself",
    ),
    "anyloc": Method(
        kind="retrieval",
        network=NetworkSpec(
            "dinov2-giant",
            dim=49152,
            aggregator="vlad",
            layer=31,
            facet="value",
            cut=33,
            image_size=322,
        ),
        data="none: a vocabulary from photos of the domain",
        loss=Part("none"),
        rerank=_L2,
        system="anyloc",
        formats="one tensor of centres (.pt), beside DINOv2's own weights",
        variants={
            "dinov2-small": {"dim": 12288, "layer": 9, "cut": 11},
            "dinov2-base": {"dim": 24576, "layer": 9, "cut": 11},
            "dinov2-large": {"dim": 32768, "layer": 18, "cut": 20},
        },
    ),
}

MIXED: dict[str, Method] = {
    "dc-cosplace": Method(
        kind="mixed",
        network=_EFFICIENTNET,
        data="SF-XL",
        partition=Part("grid", {"cell": 20.0, "groups": 2, "min_photos": 10}),
        classifier=Part("groups", {"prototypes": "raw"}),
        loss=Part("aamc"),
        rerank=_L2,
        describer="cosplace",
        system="dc",
        release="dc",
        formats="those of dc and cosplace",
        paper=(PublishedScore("EfficientNet", 71.4, 87.6),),
    ),
    "dapr-m": Method(
        kind="mixed",
        network=_DAPR,
        data="SF-XL",
        partition=_DAPR_GRID,
        classifier=_COSINE,
        loss=_DAPR_LOSS,
        rerank=Part("cfd", {"alpha": 0.7}),
        variants=_DAPR_VARIANTS,
        paper=(
            PublishedScore("EfficientNet", 74.5, 88.1),
            PublishedScore("ResNet101", 76.3, 88.0),
            PublishedScore("DINOv2", 89.7, 94.3),
        ),
    ),
    "dapr-c-salad": Method(
        kind="mixed",
        network=_DAPR,
        data="SF-XL",
        partition=_DAPR_GRID,
        classifier=_COSINE,
        loss=_DAPR_LOSS,
        rerank=_L2,
        describer="salad",
        variants=_DAPR_VARIANTS,
        note="DAPR-C's shortlist, ranked by SALAD's descriptors",
    ),
    "dapr-c-boq": Method(
        kind="mixed",
        network=_DAPR,
        data="SF-XL",
        partition=_DAPR_GRID,
        classifier=_COSINE,
        loss=_DAPR_LOSS,
        rerank=_L2,
        describer="boq",
        variants=_DAPR_VARIANTS,
        note="DAPR-C's shortlist, ranked by BoQ's descriptors",
    ),
}

METHOD_TABLE: dict[str, Method] = CLASSIFICATION | RETRIEVAL | MIXED
