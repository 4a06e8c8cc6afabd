"""Losses by name, for recipes and the command line; a loss is loaded, and torch, when it is built.

Another package adds one with an entry point in the group ``evenplace.losses``: a `PriorLoss`
whose `takes` says "cosines" or "descriptors".
"""

import inspect
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal

from evenplace.errors import SettingError, unknown_name

if TYPE_CHECKING:
    from .prior import Counts, PriorLoss

Takes = Literal["cosines", "descriptors"]

COSINES = {
    "cross-entropy": "classification.CrossEntropy",
    "cosface": "classification.LargeMarginCosine",
    "arcface": "classification.AngularMargin",
    "aamc": "classification.easy_angular_margin",
    "low-visit-bias": "classification.LowVisitBias",
    "logit-adjustment": "adjusted.LogitAdjustment",
    "balanced-softmax": "adjusted.BalancedSoftmax",
    "focal": "reweighted.Focal",
    "class-balanced": "reweighted.ClassBalanced",
    "hard-class": "reweighted.HardClass",
    "ldam": "margins.LabelDistributionMargin",
    "adaptive-logit-adjustment": "margins.AdaptiveLogitAdjustment",
    "distribution-balanced": "sigmoid.DistributionBalanced",
}
DESCRIPTORS = {
    "multi-similarity": "pairs.MultiSimilarity",
    "low-visit-bias-pairs": "pairs.LowVisitBiasPairs",
    "contrastive": "pairs.Contrastive",
    "triplet": "triplets.Triplet",
    "sare": "triplets.Sare",
}
_HOMES = COSINES | DESCRIPTORS


def build_loss(name: str, counts: "Counts | None" = None, **settings: Any) -> "PriorLoss":
    """Build a loss by name: ``build_loss("low-visit-bias", counts, beta=0.25, kappa=0.5)``."""
    kind = find_loss(name)
    known = inspect.signature(kind).parameters
    for setting in settings:
        if setting not in known:
            raise unknown_name(f"{name} setting", setting, set(known) - {"counts"})
    if counts is None and known["counts"].default is inspect.Parameter.empty:
        raise SettingError(f"the loss {name!r} needs photos per place; pass counts=")
    return kind(counts, **settings)


def loss_names(takes: Takes | None = None) -> tuple[str, ...]:
    """List the losses; of one kind only, those over all places or those over a batch."""
    names = [*_HOMES, *(point.name for point in entry_points(group="evenplace.losses"))]
    return tuple(name for name in names if takes is None or loss_takes(name) == takes)


def loss_takes(name: str) -> Takes:
    """Say what a loss is called with: cosines to every place, or descriptors of a batch."""
    if name in _HOMES:
        return "cosines" if name in COSINES else "descriptors"
    takes: Takes = find_loss(name).takes  # type: ignore[attr-defined]
    return takes


def find_loss(name: str) -> "Callable[..., PriorLoss]":
    """What builds a loss, ours or a plug-in's."""
    found: Callable[..., PriorLoss]
    if name in _HOMES:
        module, _, attribute = _HOMES[name].partition(".")
        found = getattr(import_module(f"evenplace.losses.{module}"), attribute)
        return found
    points = entry_points(group="evenplace.losses")
    if name not in points.names:
        raise unknown_name("loss", name, [*_HOMES, *points.names])
    found = points[name].load()
    return found
