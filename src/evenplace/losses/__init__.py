"""What training rewards: arrays in, scalars out.

`prior` says how often places were photographed · `classification` and `longtail` take cosines
to every place · `pairs` and `triplets` take descriptors of a batch · `sampled` is a classifier
for very many places.  Imports nothing of EvenPlace but its errors, so any trainer can use it.
"""

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
from .prior import PriorEffect, PriorLoss, class_weights, logit_offsets
from .softmax import Columns, target_losses

__all__ = [
    "AngularMargin",
    "Columns",
    "CrossEntropy",
    "LargeMarginCosine",
    "LowVisitBias",
    "PriorEffect",
    "PriorLoss",
    "additive_angular_margin",
    "class_weights",
    "cross_entropy",
    "large_margin_cosine",
    "logit_offsets",
    "low_visit_bias",
    "target_losses",
]
