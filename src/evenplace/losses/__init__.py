"""What training rewards: arrays in, scalars out.

`prior` says how often places were photographed · `classification` and `long_tail` take cosines
to every place · `pairs` takes descriptors of a batch · `sampled` is a classifier for very many
places.  Imports nothing of EvenPlace but its errors, so that any trainer can use it.  Names load
on first use: a recipe names a loss where there is no torch to compute it with.

Another package adds a loss with an entry point in the group ``evenplace.losses``: a `PriorLoss`
whose `takes` says "cosines" or "descriptors".
"""

import inspect
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal

from evenplace.errors import unknown_name

if TYPE_CHECKING:
    from .classification import *  # noqa: F403
    from .coherence import *  # noqa: F403
    from .long_tail import *  # noqa: F403
    from .pairs import *  # noqa: F403
    from .prior import *  # noqa: F403
    from .prior import Counts, PriorLoss
    from .sampled import *  # noqa: F403
    from .softmax import *  # noqa: F403

_HOMES = {
    "classification": """
        AngularMargin BalancedSoftmax CrossEntropy LargeMarginCosine LogitAdjustment
        LowVisitBias additive_angular_margin adjust_logits balanced_softmax cross_entropy
        large_margin_cosine logit_adjustment low_visit_bias""",
    "coherence": "coherence_weights draw_frequencies place_coherence",
    "long_tail": """
        AdaptiveLogitAdjustment ClassBalanced DistributionBalanced Focal HardClass
        LabelDistributionMargin adaptive_logit_adjustment class_balanced
        distribution_balanced effective_weights focal hard_class hard_weights
        label_distribution_margin label_margins rarities""",
    "pairs": """
        Contrastive LowVisitBiasPairs MultiSimilarity Sare Triplet contrastive
        low_visit_bias_pairs multi_similarity sare triplet""",
    "prior": "PriorEffect PriorLoss class_weights logit_offsets",
    "sampled": "SampledClassifier",
    "softmax": "Columns target_losses",
}
__all__ = sorted(["build_loss", "loss_names", "loss_takes", *" ".join(_HOMES.values()).split()])

Takes = Literal["cosines", "descriptors"]

COSINES = {
    "cross-entropy": "classification.CrossEntropy",
    "cosface": "classification.LargeMarginCosine",
    "arcface": "classification.AngularMargin",
    "aamc": "classification.easy_angular_margin",
    "low-visit-bias": "classification.LowVisitBias",
    "logit-adjustment": "classification.LogitAdjustment",
    "balanced-softmax": "classification.BalancedSoftmax",
    "focal": "long_tail.Focal",
    "class-balanced": "long_tail.ClassBalanced",
    "hard-class": "long_tail.HardClass",
    "ldam": "long_tail.LabelDistributionMargin",
    "adaptive-logit-adjustment": "long_tail.AdaptiveLogitAdjustment",
    "distribution-balanced": "long_tail.DistributionBalanced",
}
DESCRIPTORS = {
    "multi-similarity": "pairs.MultiSimilarity",
    "low-visit-bias-pairs": "pairs.LowVisitBiasPairs",
    "contrastive": "pairs.Contrastive",
    "triplet": "pairs.Triplet",
    "sare": "pairs.Sare",
}
_BY_NAME = COSINES | DESCRIPTORS


def build_loss(name: str, counts: "Counts | None" = None, **settings: Any) -> "PriorLoss":
    """Build a loss by name: ``build_loss("low-visit-bias", counts, beta=0.25, kappa=0.5)``."""
    known = loss_settings(name)
    for setting in settings.keys() - known:
        raise unknown_name(f"{name} setting", setting, known)
    return find_loss(name)(counts, **settings)


def loss_settings(name: str) -> set[str]:
    """What a loss can be told besides its counts."""
    kind = find_loss(name)
    named = set(inspect.signature(kind).parameters) - {"counts", "settings"}
    loss: Any = getattr(kind, "func", kind)  # a name may stand for a loss with settings
    return named | set(loss.defaults())


def loss_names(takes: Takes | None = None) -> tuple[str, ...]:
    """List the losses; of one kind only, those over all places or those over a batch."""
    names = [*_BY_NAME, *(point.name for point in entry_points(group="evenplace.losses"))]
    return tuple(name for name in names if takes is None or loss_takes(name) == takes)


def loss_takes(name: str) -> Takes:
    """Say what a loss is called with: cosines to every place, or descriptors of a batch."""
    if name in _BY_NAME:
        return "cosines" if name in COSINES else "descriptors"
    takes: Takes = find_loss(name).takes  # type: ignore[attr-defined]
    return takes


def find_loss(name: str) -> "Callable[..., PriorLoss]":
    """What builds a loss, ours or a plug-in's."""
    found: Callable[..., PriorLoss]
    if name in _BY_NAME:
        module, _, attribute = _BY_NAME[name].partition(".")
        found = getattr(import_module(f"evenplace.losses.{module}"), attribute)
        return found
    points = entry_points(group="evenplace.losses")
    if name not in points.names:
        raise unknown_name("loss", name, [*_BY_NAME, *points.names])
    found = points[name].load()
    return found


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"evenplace.losses has no {name!r}; it has {', '.join(__all__)}")
