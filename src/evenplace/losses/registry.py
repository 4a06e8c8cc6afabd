"""Losses by name, for recipes and the command line.

Another package adds one with an entry point in the group ``evenplace.losses``: a `PriorLoss`
whose `takes` says "cosines" or "descriptors".
"""

import inspect
from collections.abc import Callable
from functools import partial
from importlib.metadata import entry_points
from typing import Any, Literal

from evenplace.errors import SettingError, unknown_name

from .adjusted import BalancedSoftmax, LogitAdjustment
from .classification import AngularMargin, CrossEntropy, LargeMarginCosine, LowVisitBias
from .margins import AdaptiveLogitAdjustment, LabelDistributionMargin
from .pairs import Contrastive, LowVisitBiasPairs, MultiSimilarity
from .prior import Counts, PriorLoss
from .reweighted import ClassBalanced, Focal, HardClass
from .triplets import Sare, Triplet
from .yes_no import DistributionBalanced

Takes = Literal["cosines", "descriptors"]

LOSSES: dict[str, Callable[..., PriorLoss]] = {
    "cross-entropy": CrossEntropy,
    "cosface": LargeMarginCosine,
    "arcface": AngularMargin,
    "aamc": partial(AngularMargin, scale=100.0, margin=0.2, easy=True),
    "low-visit-bias": LowVisitBias,
    "logit-adjustment": LogitAdjustment,
    "balanced-softmax": BalancedSoftmax,
    "focal": Focal,
    "class-balanced": ClassBalanced,
    "hard-class": HardClass,
    "ldam": LabelDistributionMargin,
    "adaptive-logit-adjustment": AdaptiveLogitAdjustment,
    "distribution-balanced": DistributionBalanced,
    "multi-similarity": MultiSimilarity,
    "low-visit-bias-pairs": LowVisitBiasPairs,
    "contrastive": Contrastive,
    "triplet": Triplet,
    "sare": Sare,
}


def build_loss(name: str, counts: Counts | None = None, **settings: Any) -> PriorLoss:
    """Build a loss by name: ``build_loss("low-visit-bias", counts, beta=0.25, kappa=0.5)``."""
    kind = _find(name)
    known = inspect.signature(kind).parameters
    for setting in settings:
        if setting not in known:
            raise unknown_name(f"{name} setting", setting, set(known) - {"counts"})
    if counts is None and known["counts"].default is inspect.Parameter.empty:
        raise SettingError(f"the loss {name!r} needs photos per place; pass counts=")
    return kind(counts, **settings)


def loss_names(takes: Takes | None = None) -> tuple[str, ...]:
    """List the losses; of one kind only, those over all places or those over a batch."""
    names = [*LOSSES, *(point.name for point in entry_points(group="evenplace.losses"))]
    return tuple(name for name in names if takes is None or loss_takes(name) == takes)


def loss_takes(name: str) -> Takes:
    """Say what a loss is called with: cosines to every place, or descriptors of a batch."""
    kind: Any = _find(name)
    takes: Takes = getattr(kind, "func", kind).takes
    return takes


def _find(name: str) -> Callable[..., PriorLoss]:
    if name in LOSSES:
        return LOSSES[name]
    points = entry_points(group="evenplace.losses")
    if name in points.names:
        loaded: Callable[..., PriorLoss] = points[name].load()
        return loaded
    raise unknown_name("loss", name, [*LOSSES, *points.names])
