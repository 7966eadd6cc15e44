"""Tidy tables and matplotlib displays of fitted models."""

from polymargin.inspection.criterion import CriterionSurfaceDisplay
from polymargin.inspection.label_noise import LabelNoiseDisplay
from polymargin.inspection.rejection import RiskCoverageDisplay
from polymargin.inspection.separation import CoefficientPathDisplay, SeparationMapDisplay

__all__ = ["CoefficientPathDisplay", "RiskCoverageDisplay", "SeparationMapDisplay"]
from polymargin.inspection.relations import ClassRelationDisplay, related_classes

__all__ = [
    "ClassRelationDisplay",
    "CriterionSurfaceDisplay",
    "LabelNoiseDisplay",
    "RiskCoverageDisplay",
    "related_classes",
]
