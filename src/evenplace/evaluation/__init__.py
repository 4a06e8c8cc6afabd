"""Hits → scores."""

from evenplace.evaluation.evaluate import compare, evaluate
from evenplace.evaluation.predictions import Predictions
from evenplace.evaluation.scores import Recalls, Scores, join_scores
from evenplace.evaluation.uncertainty import Interval

__all__ = ["Interval", "Predictions", "Recalls", "Scores", "compare", "evaluate", "join_scores"]
