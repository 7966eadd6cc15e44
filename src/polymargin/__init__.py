"""Polymargin: large-margin classification with more than two classes."""

from importlib.metadata import version as _version

from polymargin.estimators.proximal import ProximalSVC
from polymargin.problems.certificate import Certificate

__version__ = _version("polymargin")
__all__ = ["Certificate", "ProximalSVC"]
