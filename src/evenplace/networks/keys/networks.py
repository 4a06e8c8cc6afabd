"""torchvision's and DINOv2's names → ours, for a backbone's stages.

Keys that belong to parts we leave out (a classifier, blocks after the one we stop at, DINOv2's
mask token) are dropped; anything else unknown is kept under its own name, for the loader to
report.
"""

import re
from collections.abc import Mapping

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
