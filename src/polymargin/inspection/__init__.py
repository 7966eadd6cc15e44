"""Tidy tables and matplotlib displays of fitted models."""

from polymargin.inspection.rejection import RiskCoverageDisplay
from polymargin.inspection.separation import CoefficientPathDisplay, SeparationMapDisplay

__all__ = ["CoefficientPathDisplay", "RiskCoverageDisplay", "SeparationMapDisplay"]
