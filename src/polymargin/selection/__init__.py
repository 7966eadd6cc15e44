"""Searches over hyper-parameters, criteria for them, costs as scores, and rejection."""

from polymargin.selection.rejection import RejectOptionClassifier, StrengthCurve
from polymargin.selection.scoring import expected_cost, make_cost_scorer

__all__ = ["RejectOptionClassifier", "StrengthCurve", "expected_cost", "make_cost_scorer"]
