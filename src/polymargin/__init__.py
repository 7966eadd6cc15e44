"""Polymargin: large-margin classification with more than two classes."""

from importlib.metadata import version as _version

from polymargin.estimators.multicategory import MulticategorySVC
from polymargin.estimators.proximal import ProximalSVC
from polymargin.estimators.sparse import SparseSVC
from polymargin.problems.certificate import Certificate
from polymargin.selection.criteria import gacv, loo
from polymargin.selection.multicategory import MarginSearch
from polymargin.selection.sparse import SparsePath, SparseSVCCV, sparse_path

__version__ = _version("polymargin")
__all__ = [
    "Certificate",
    "MarginSearch",
    "MulticategorySVC",
    "ProximalSVC",
    "SparsePath",
    "SparseSVC",
    "SparseSVCCV",
    "gacv",
    "loo",
    "sparse_path",
]
