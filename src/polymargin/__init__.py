"""Polymargin: large-margin classification with more than two classes."""

from importlib.metadata import version as _version

from polymargin.estimators.proximal import ProximalSVC
from polymargin.estimators.refinement import NewtonRefinement
from polymargin.problems.certificate import Certificate
from polymargin.selection.proximal import ProximalSVCCV, proximal_path

__version__ = _version("polymargin")
__all__ = ["Certificate", "NewtonRefinement", "ProximalSVC", "ProximalSVCCV", "proximal_path"]
