"""Tidy tables and matplotlib displays of fitted models."""

from polymargin.inspection.criterion import CriterionSurfaceDisplay
from polymargin.inspection.label_noise import LabelNoiseDisplay
from polymargin.inspection.rejection import RiskCoverageDisplay
from polymargin.inspection.relations import ClassRelationDisplay, related_classes
from polymargin.inspection.separation import CoefficientPathDisplay, SeparationMapDisplay

__all__ = [
    "ClassRelationDisplay",
    "CoefficientPathDisplay",
    "CriterionSurfaceDisplay",
    "LabelNoiseDisplay",
    "RiskCoverageDisplay",
    "SeparationMapDisplay",
    "related_classes",
]
