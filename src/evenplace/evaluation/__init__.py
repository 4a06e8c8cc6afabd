"""Hits → scores."""

from evenplace.evaluation.confidence_curves import Knowing, compare_sources, judge
from evenplace.evaluation.evaluate import compare, compare_pairs, evaluate, score
from evenplace.evaluation.intervals import Interval, Paired
from evenplace.evaluation.predictions import Predictions
from evenplace.evaluation.scores import Recalls, Scores, join_scores
from evenplace.evaluation.truth import Truth

__all__ = [
    "Interval",
    "Knowing",
    "Paired",
    "Predictions",
    "Recalls",
    "Scores",
    "Truth",
    "compare",
    "compare_pairs",
    "compare_sources",
    "evaluate",
    "join_scores",
    "judge",
    "score",
]
