"""Polymargin: large-margin classification with more than two classes."""

from importlib.metadata import version as _version

from polymargin.compression import Compression, compress
from polymargin.estimators.multicategory import MulticategorySVC
from polymargin.estimators.proximal import ProximalSVC
from polymargin.estimators.refinement import NewtonRefinement
from polymargin.estimators.robust import RobustSVC
from polymargin.estimators.shared import SharedStructureSVC
from polymargin.estimators.sparse import SparseSVC
from polymargin.estimators.trace_norm import TraceNormSVC
from polymargin.problems.certificate import Certificate
from polymargin.problems.penalties import ElasticNetPenalty, GroupLassoPenalty
from polymargin.selection.criteria import gacv, loo
from polymargin.selection.decisions import Decider
from polymargin.selection.multicategory import MarginSearch
from polymargin.selection.probabilities import ProbabilityClassifier
from polymargin.selection.proximal import ProximalSVCCV, proximal_path
from polymargin.selection.rejection import RejectOptionClassifier
from polymargin.selection.scoring import expected_cost, make_cost_scorer
from polymargin.selection.shared import SharedStructureSearch, TraceNormPath, trace_norm_path
from polymargin.selection.sparse import SparsePath, SparseSVCCV, sparse_path
from polymargin.selection.stability import Stability, stability_selection
from polymargin.solvers.trace import Trace

__version__ = _version("polymargin")
__all__ = [
    "Certificate",
    "Compression",
    "Decider",
    "ElasticNetPenalty",
    "GroupLassoPenalty",
    "MarginSearch",
    "MulticategorySVC",
    "NewtonRefinement",
    "ProbabilityClassifier",
    "ProximalSVC",
    "ProximalSVCCV",
    "RejectOptionClassifier",
    "RobustSVC",
    "SharedStructureSVC",
    "SharedStructureSearch",
    "SparsePath",
    "SparseSVC",
    "SparseSVCCV",
    "Stability",
    "Trace",
    "TraceNormPath",
    "TraceNormSVC",
    "compress",
    "expected_cost",
    "gacv",
    "loo",
    "make_cost_scorer",
    "proximal_path",
    "sparse_path",
    "stability_selection",
    "trace_norm_path",
]
