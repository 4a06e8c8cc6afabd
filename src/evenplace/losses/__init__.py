"""What training rewards: arrays in, scalars out.

`prior` says how often places were photographed · `classification`, `adjusted`, `reweighted`,
`margins` and `sigmoid` take cosines to every place · `pairs` and `triplets` take descriptors of
a batch · `sampled` is a classifier for very many places · `registry` knows them by name.
Imports nothing of EvenPlace but its errors, so that any trainer can use it.  Names load on first
use: a recipe names a loss where there is no torch to compute it with.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .registry import build_loss, loss_names, loss_takes

if TYPE_CHECKING:
    from .adjusted import (
        BalancedSoftmax,
        LogitAdjustment,
        adjust_logits,
        balanced_softmax,
        logit_adjustment,
    )
    from .classification import (
        AngularMargin,
        CrossEntropy,
        LargeMarginCosine,
        LowVisitBias,
        additive_angular_margin,
        cross_entropy,
        large_margin_cosine,
        low_visit_bias,
    )
    from .coherence import coherence_weights, draw_frequencies, place_coherence
    from .margins import (
        AdaptiveLogitAdjustment,
        LabelDistributionMargin,
        adaptive_logit_adjustment,
        label_distribution_margin,
        label_margins,
        rarities,
    )
    from .pairs import (
        Contrastive,
        LowVisitBiasPairs,
        MultiSimilarity,
        contrastive,
        low_visit_bias_pairs,
        multi_similarity,
    )
    from .prior import PriorEffect, PriorLoss, class_weights, logit_offsets
    from .reweighted import (
        ClassBalanced,
        Focal,
        HardClass,
        class_balanced,
        effective_weights,
        focal,
        hard_class,
        hard_weights,
    )
    from .sampled import SampledClassifier
    from .sigmoid import DistributionBalanced, distribution_balanced
    from .softmax import Columns, target_losses
    from .triplets import Sare, Triplet, sare, triplet

_ROOMS = (
    "adjusted", "classification", "coherence", "margins", "pairs", "prior", "reweighted",
    "sampled", "sigmoid", "softmax", "triplets",
)  # fmt: skip

__all__ = [
    "AdaptiveLogitAdjustment",
    "AngularMargin",
    "BalancedSoftmax",
    "ClassBalanced",
    "Columns",
    "Contrastive",
    "CrossEntropy",
    "DistributionBalanced",
    "Focal",
    "HardClass",
    "LabelDistributionMargin",
    "LargeMarginCosine",
    "LogitAdjustment",
    "LowVisitBias",
    "LowVisitBiasPairs",
    "MultiSimilarity",
    "PriorEffect",
    "PriorLoss",
    "SampledClassifier",
    "Sare",
    "Triplet",
    "adaptive_logit_adjustment",
    "additive_angular_margin",
    "adjust_logits",
    "balanced_softmax",
    "build_loss",
    "class_balanced",
    "class_weights",
    "coherence_weights",
    "contrastive",
    "cross_entropy",
    "distribution_balanced",
    "draw_frequencies",
    "effective_weights",
    "focal",
    "hard_class",
    "hard_weights",
    "label_distribution_margin",
    "label_margins",
    "large_margin_cosine",
    "logit_adjustment",
    "logit_offsets",
    "loss_names",
    "loss_takes",
    "low_visit_bias",
    "low_visit_bias_pairs",
    "multi_similarity",
    "place_coherence",
    "rarities",
    "sare",
    "target_losses",
    "triplet",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        for room in _ROOMS:
            if hasattr(module := import_module(f"{__name__}.{room}"), name):
                return getattr(module, name)
    raise AttributeError(f"evenplace.losses has no {name!r}; it has {', '.join(__all__)}")
