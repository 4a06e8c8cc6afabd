"""Published systems: the names in their weight files, and how to tell one file from another.

A system's tensors are its backbone's, under a prefix and then its publisher's names
(`keys.networks`), and the rest, renamed here one regular expression after another.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch import Tensor

from evenplace.networks.backbone import BackboneSpec
from evenplace.networks.keys.networks import network_keys

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
