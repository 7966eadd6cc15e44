"""Tidy tables and matplotlib displays of fitted models."""

from polymargin.inspection.rejection import RiskCoverageDisplay
from polymargin.inspection.relations import ClassRelationDisplay, related_classes

__all__ = ["ClassRelationDisplay", "RiskCoverageDisplay", "related_classes"]
