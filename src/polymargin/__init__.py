"""Polymargin: large-margin classification with more than two classes."""

from importlib.metadata import version as _version

from polymargin.estimators.multicategory import MulticategorySVC
from polymargin.estimators.proximal import ProximalSVC
from polymargin.estimators.robust import RobustSVC
from polymargin.problems.certificate import Certificate
from polymargin.selection.criteria import gacv, loo
from polymargin.selection.multicategory import MarginSearch

__version__ = _version("polymargin")
__all__ = ["Certificate", "MarginSearch", "MulticategorySVC", "ProximalSVC", "RobustSVC", "gacv", "loo"]
