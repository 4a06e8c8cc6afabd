"""Published systems: the names in their weight files, and how to tell one file from another.

A system's tensors are its backbone's, under a prefix and then torchvision's or DINOv2's names,
and the rest, renamed one regular expression after another.  Keys of parts we leave out (a
classifier, blocks after the one we stop at, DINOv2's mask token) are dropped; anything else
unknown keeps its own name, for the loader to report.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn

from evenplace.networks.backbone import BackboneSpec
from evenplace.networks.convolutional import vgg16_home
from evenplace.photos.files import shipped_tables

# Our stages of a ResNet's parts, under torchvision's names or numbered as a Sequential.
_RESNET = {"conv1": "0.0", "bn1": "0.1", "layer1": "1", "layer2": "2", "layer3": "3", "layer4": "4"}
_RESNET |= {"0": "0.0", "1": "0.1", "4": "1", "5": "2", "6": "3", "7": "4"}


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
            rest = rest.replace("mlp.w12.", "mlp.fc1.").replace("mlp.w3.", "mlp.fc2.")  # the giant
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
        stage = _RESNET.get(head, head)
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
    own = _shapes(spec)
    if spec.stages < len(spec.widths):  # what comes after the stage we stop at is left out
        body = dict(list(body.items())[: len(own)])
    if list(own.values()) != [v.shape for v in body.values()]:
        return dict(body)
    return dict(zip(own, body.values(), strict=True))


@cache
def _shapes(spec: BackboneSpec) -> dict[str, torch.Size]:
    """A network's tensors by name: assembled once for this, not whenever weights are read."""
    with torch.random.fork_rng(devices=[]):  # nobody's draws depend on who asked first
        stages: nn.Module = spec.assemble(spec)
    return {name: tensor.shape for name, tensor in stages.state_dict().items()}


@dataclass(frozen=True)
class System:
    """How one system's weight file names its tensors.

    mark: a pattern that only its keys match.  backbone: the prefix of its backbone's keys, or
    None where the file has no backbone.
    """

    mark: str
    renames: Sequence[tuple[str, str]]
    backbone: str | None = None

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


SYSTEMS = {
    name: System(**one) for name, one in shipped_tables("networks/published_keys.toml").items()
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
