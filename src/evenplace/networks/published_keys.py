"""Published systems: the names in their weight files, and how to tell one file from another.

A system's tensors are its backbone's, under a prefix and then torchvision's or DINOv2's names,
and the rest, renamed one regular expression after another.  Keys of parts we leave out (a
classifier, blocks after the one we stop at, DINOv2's mask token) are dropped; anything else
unknown keeps its own name, for the loader to report.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from evenplace.networks.backbone import BackboneSpec
from evenplace.networks.convolutional import vgg16_home

_TORCHVISION_RESNET = {"0": "0.0", "1": "0.1", "4": "1", "5": "2", "6": "3", "7": "4"}
_RESNET_NAMES = {"conv1": "0", "bn1": "1", "layer1": "4", "layer2": "5", "layer3": "6"}
_RESNET_NAMES["layer4"] = "7"


def network_keys(spec: BackboneSpec, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename the tensors of a published backbone to those of our stages."""
    if spec.heads:
        return transformer_keys(spec, tensors)
    if spec.timm_name.startswith("resnet"):
        return resnet_keys(spec, tensors)
    if spec.timm_name == "vgg16":
        return vgg_keys(tensors)
    return efficientnet_keys(spec, tensors)


def transformer_keys(spec: BackboneSpec, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """DINOv2: `blocks.3.norm1.weight` is stage 4, the final norm the stage after the blocks."""
    depth = len(spec.widths) - 2
    renamed = {}
    for key, tensor in tensors.items():
        block = re.match(r"blocks\.(?:\d+\.)??(\d+)\.(?=\D)(.+)", key)
        if key == "mask_token":
            continue
        if block:
            stage, rest = int(block[1]) + 1, block[2]
        elif key.startswith("norm."):
            stage, rest = depth + 1, key.removeprefix("norm.")
        else:
            stage, rest = 0, key.replace("patch_embed.proj.", "patch_embed.")
        last = stage == spec.stages - 1 and spec.facet != "token"
        if stage < spec.stages and not (last and not rest.startswith(("norm1.", "attn."))):
            renamed[f"{stage}.{_adapter_key(rest)}"] = tensor
    return renamed


def _adapter_key(rest: str) -> str:
    names = {"D_fc1": "down", "D_fc2": "up", "branch1": "branch1", "branch2": "branch3"}
    names["branch3"] = "branch5"
    found = re.match(r"adapter\.(\w+)\.(.+)", rest)
    return f"adapter.{names[found[1]]}.{found[2]}" if found and found[1] in names else rest


def resnet_keys(spec: BackboneSpec, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A ResNet under torchvision's names, or as a Sequential of its children."""
    renamed = {}
    for key, tensor in tensors.items():
        head, _, rest = key.partition(".")
        number = _RESNET_NAMES.get(head, head)
        stage = _TORCHVISION_RESNET.get(number, number)
        if head != "fc" and not (stage[:1].isdigit() and int(stage[0]) >= spec.stages):
            renamed[f"{stage}.{rest}"] = tensor
    return renamed


def vgg_keys(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """VGG16's `features.<layer>`, or the same layers in a Sequential."""
    renamed = {}
    for key, tensor in tensors.items():
        number, _, rest = key.removeprefix("features.").partition(".")
        if number.isdigit():
            stage, place = vgg16_home(int(number))
            renamed[f"{stage}.{place}.{rest}"] = tensor
        elif not key.startswith("classifier."):
            renamed[key] = tensor
    return renamed


def efficientnet_keys(spec: BackboneSpec, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """EfficientNet: names differ between packages, the order and shapes of the layers do not.

    If they do not line up the tensors keep their names, for the loader to report.
    """
    body = {k: v for k, v in tensors.items() if not re.match(r"(_fc|classifier)\.", k)}
    ours: nn.Module = spec.assemble(spec)
    own = ours.state_dict()
    if spec.stages < len(spec.widths):  # what comes after the stage we stop at is left out
        body = dict(list(body.items())[: len(own)])
    if [v.shape for v in own.values()] != [v.shape for v in body.values()]:
        return dict(body)
    return dict(zip(own, body.values(), strict=True))


Renames = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class System:
    """How one system's weight file names its tensors.

    mark: a pattern that only its keys match.  backbone: the prefix of its backbone's keys, or
    None where the file has no backbone.
    """

    mark: str
    backbone: str | None
    renames: Renames

    def rename(self, spec: BackboneSpec, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The file's tensors under our names; what nobody knows keeps its own."""
        inside: dict[str, Tensor] = {}
        renamed: dict[str, Tensor] = {}
        for key, tensor in tensors.items():
            match = re.match(self.backbone, key) if self.backbone else None
            if match:
                inside[key[match.end() :]] = tensor
            else:
                renamed[self._ours(key)] = tensor
        network = network_keys(spec, inside) if inside else {}
        return renamed | {f"backbone.stages.{key}": tensor for key, tensor in network.items()}

    def _ours(self, key: str) -> str:
        for pattern, name in self.renames:
            found, count = re.subn(rf"^{pattern}", name, key)
            if count:
                return found
        return key


_SALAD: Renames = (
    (r"token_features\.", "aggregator.token."),
    (r"cluster_features\.", "aggregator.local."),
    (r"score\.", "aggregator.score."),
    (r"dust_bin$", "aggregator.dustbin"),
)


def _under(prefix: str, renames: Renames) -> Renames:
    return tuple((prefix + pattern, name) for pattern, name in renames)


_COSPLACE = System(
    mark=r"aggregation\.3\.",
    backbone=r"backbone\.",
    renames=((r"aggregation\.1\.p$", "aggregator.p"), (r"aggregation\.3\.", "projection.")),
)
_SALAD_FILE = System(
    mark=r"aggregator\.dust_bin$",
    backbone=r"backbone\.model\.",
    renames=_under(r"aggregator\.", _SALAD),
)

SYSTEMS: dict[str, System] = {
    "cosplace": _COSPLACE,
    "eigenplaces": _COSPLACE,
    "dc": System(
        mark=r"classifier\.0\.weight$",
        backbone=r"backbone\.",
        renames=((r"classifier\.0\.", "projection."),),
    ),
    "gem": System(
        mark=r"whiten\.weight$",
        backbone=r"features\.",
        renames=((r"pool\.p$", "aggregator.p"), (r"whiten\.", "projection.")),
    ),
    "netvlad": System(
        mark=r"centres$",
        backbone=r"backbone\.",
        renames=(
            (r"score$", "aggregator.score.weight"),
            (r"centres$", "aggregator.centres"),
            (r"whiten\.", "projection."),
        ),
    ),
    "sfrs": System(
        mark=r"net_vlad\.",
        backbone=r"base_model\.base\.",
        renames=(
            (r"net_vlad\.conv\.weight$", "aggregator.score.weight"),
            (r"net_vlad\.centroids$", "aggregator.centres"),
            (r"pca_layer\.", "projection."),
        ),
    ),
    "mixvpr": System(
        mark=r"aggregator\.mix\.",
        backbone=r"backbone\.model\.",
        renames=(
            (r"aggregator\.mix\.(\d)\.mix\.0\.", r"aggregator.mixers.\1.norm."),
            (r"aggregator\.mix\.(\d)\.mix\.1\.", r"aggregator.mixers.\1.first."),
            (r"aggregator\.mix\.(\d)\.mix\.3\.", r"aggregator.mixers.\1.second."),
            (r"aggregator\.channel_proj\.", "aggregator.channels."),
            (r"aggregator\.row_proj\.", "aggregator.rows."),
        ),
    ),
    "salad": _SALAD_FILE,
    "cliquemining": _SALAD_FILE,
    "megaloc": System(
        mark=r"aggregator\.agg\.",
        backbone=r"backbone\.",
        renames=(
            *_under(r"aggregator\.agg\.", _SALAD),
            (r"aggregator\.linear\.", "projection."),
        ),
    ),
    "boq": System(
        mark=r"aggregator\.boqs\.",
        backbone=r"backbone\.(dino|net)\.",
        renames=(
            (r"aggregator\.boqs\.(\d)\.self_attn\.", r"aggregator.blocks.\1.among."),
            (r"aggregator\.boqs\.(\d)\.cross_attn\.", r"aggregator.blocks.\1.read."),
            (r"aggregator\.boqs\.(\d)\.norm_q\.", r"aggregator.blocks.\1.norm_queries."),
            (r"aggregator\.boqs\.(\d)\.norm_out\.", r"aggregator.blocks.\1.norm_answers."),
            (r"aggregator\.boqs\.", "aggregator.blocks."),
            (r"aggregator\.proj_c\.", "aggregator.reduce."),
            (r"aggregator\.norm_input\.", "aggregator.norm."),
            (r"aggregator\.fc\.", "aggregator.mix."),
        ),
    ),
    "cricavpr": System(
        mark=r"backbone\.blocks\.0\.adapter\.D_fc1",
        backbone=r"backbone\.",
        renames=(
            (r"aggregation\.1\.p$", "aggregator.p"),
            (r"encoder\.", "aggregator.across."),
        ),
    ),
    "image": System(
        mark=r"learnable_aggregation_tokens$",
        backbone=r"backbone\.",
        renames=((r"learnable_aggregation_tokens$", "aggregator.tokens"),),
    ),
    "anyloc": System(
        mark=r"vocabulary$", backbone=None, renames=((r"vocabulary$", "aggregator.centres"),)
    ),
}

_NETWORKS = {
    "the DINOv2 backbone alone": r"blocks\.0\.ls1\.gamma$",
    "a torchvision ResNet": r"layer1\.0\.conv1\.weight$",
    "a torchvision VGG or EfficientNet": r"features\.0\.",
}


def seems_to_be(keys: Iterable[str]) -> str:
    """What a file with these keys most likely holds, in words."""
    keys = list(keys)
    names = [n for n, system in SYSTEMS.items() if any(re.match(system.mark, k) for k in keys)]
    names += [n for n, mark in _NETWORKS.items() if any(re.match(mark, k) for k in keys)]
    return " or ".join(names) or "nothing we know"
