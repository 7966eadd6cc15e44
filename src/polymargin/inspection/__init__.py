"""Tidy tables and matplotlib displays of fitted models."""

from polymargin.inspection.rejection import RiskCoverageDisplay

__all__ = ["RiskCoverageDisplay"]
