"""Tidy tables and matplotlib displays of fitted models."""

from polymargin.inspection.criterion import CriterionSurfaceDisplay
from polymargin.inspection.rejection import RiskCoverageDisplay

__all__ = ["CriterionSurfaceDisplay", "RiskCoverageDisplay"]
