"""Hits → scores."""

from evenplace.evaluation.evaluate import Evaluation, compare, evaluate
from evenplace.evaluation.predictions import Predictions
from evenplace.evaluation.scores import Recalls, Scores
from evenplace.evaluation.uncertainty import Interval

__all__ = ["Evaluation", "Interval", "Predictions", "Recalls", "Scores", "compare", "evaluate"]
