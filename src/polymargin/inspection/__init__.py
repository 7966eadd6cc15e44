"""Tidy tables and matplotlib displays of fitted models."""

from polymargin.inspection.criterion import CriterionPathDisplay, CriterionSurfaceDisplay
from polymargin.inspection.decisions import DecisionVectorDisplay
from polymargin.inspection.label_noise import LabelNoiseDisplay
from polymargin.inspection.probabilities import ReliabilityDisplay, SetSizeDisplay
from polymargin.inspection.rejection import RiskCoverageDisplay
from polymargin.inspection.relations import ClassRelationDisplay, related_classes
from polymargin.inspection.separation import CoefficientPathDisplay, SeparationMapDisplay

__all__ = [
    "ClassRelationDisplay",
    "CoefficientPathDisplay",
    "CriterionPathDisplay",
    "CriterionSurfaceDisplay",
    "DecisionVectorDisplay",
    "LabelNoiseDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "SeparationMapDisplay",
    "SetSizeDisplay",
    "related_classes",
]
