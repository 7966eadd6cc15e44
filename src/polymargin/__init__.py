"""Polymargin: large-margin classification with more than two classes.

Public names are imported when they are first used: `import polymargin` and the command line start at once.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from polymargin import datasets, distributed, export, inspection, persistence, report
    from polymargin.compression import Compression, compress
    from polymargin.costs import costs_to_utility, utility_to_costs
    from polymargin.estimators.multicategory import MulticategorySVC
    from polymargin.estimators.proximal import ProximalSVC
    from polymargin.estimators.refinement import NewtonRefinement
    from polymargin.estimators.robust import RobustSVC
    from polymargin.estimators.shared import SharedStructureSVC
    from polymargin.estimators.sparse import SparseSVC
    from polymargin.estimators.trace_norm import TraceNormSVC
    from polymargin.problems.certificate import Certificate
    from polymargin.problems.hinge import ReinforcedLoss
    from polymargin.problems.penalties import ElasticNetPenalty, GroupLassoPenalty
    from polymargin.selection.budget import BudgetSearch
    from polymargin.selection.criteria import gacv, loo
    from polymargin.selection.decisions import Decider
    from polymargin.selection.labels import (
        CleaningEffect,
        LabelSuspicion,
        NoiseMatrix,
        clean_and_refit,
        suspect_labels,
    )
    from polymargin.selection.multicategory import MarginSearch
    from polymargin.selection.prediction_sets import PredictionSetClassifier
    from polymargin.selection.probabilities import ProbabilityClassifier
    from polymargin.selection.proximal import ProximalSVCCV, proximal_path
    from polymargin.selection.rejection import RejectOptionClassifier
    from polymargin.selection.robust import RobustSearch
    from polymargin.selection.scoring import (
        expected_cost,
        expected_utility,
        make_cost_scorer,
        make_utility_scorer,
    )
    from polymargin.selection.shared import SharedStructureSearch, TraceNormPath, trace_norm_path
    from polymargin.selection.sparse import SparsePath, SparseSVCCV, sparse_path
    from polymargin.selection.stability import Stability, stability_selection
    from polymargin.solvers.trace import Trace

    __version__: str

_PLACES = {
    "BudgetSearch": "selection.budget",
    "Certificate": "problems.certificate",
    "CleaningEffect": "selection.labels",
    "Compression": "compression",
    "Decider": "selection.decisions",
    "ElasticNetPenalty": "problems.penalties",
    "GroupLassoPenalty": "problems.penalties",
    "LabelSuspicion": "selection.labels",
    "MarginSearch": "selection.multicategory",
    "MulticategorySVC": "estimators.multicategory",
    "NewtonRefinement": "estimators.refinement",
    "NoiseMatrix": "selection.labels",
    "PredictionSetClassifier": "selection.prediction_sets",
    "ProbabilityClassifier": "selection.probabilities",
    "ProximalSVC": "estimators.proximal",
    "ProximalSVCCV": "selection.proximal",
    "ReinforcedLoss": "problems.hinge",
    "RejectOptionClassifier": "selection.rejection",
    "RobustSVC": "estimators.robust",
    "RobustSearch": "selection.robust",
    "SharedStructureSVC": "estimators.shared",
    "SharedStructureSearch": "selection.shared",
    "SparsePath": "selection.sparse",
    "SparseSVC": "estimators.sparse",
    "SparseSVCCV": "selection.sparse",
    "Stability": "selection.stability",
    "Trace": "solvers.trace",
    "TraceNormPath": "selection.shared",
    "TraceNormSVC": "estimators.trace_norm",
    "clean_and_refit": "selection.labels",
    "compress": "compression",
    "costs_to_utility": "costs",
    "expected_cost": "selection.scoring",
    "expected_utility": "selection.scoring",
    "gacv": "selection.criteria",
    "loo": "selection.criteria",
    "make_cost_scorer": "selection.scoring",
    "make_utility_scorer": "selection.scoring",
    "proximal_path": "selection.proximal",
    "sparse_path": "selection.sparse",
    "stability_selection": "selection.stability",
    "suspect_labels": "selection.labels",
    "trace_norm_path": "selection.shared",
    "utility_to_costs": "costs",
}
"""The module of every public name."""

_MODULES = ("datasets", "distributed", "export", "inspection", "persistence", "report")
"""The public modules."""

__all__ = [
    "BudgetSearch",
    "Certificate",
    "CleaningEffect",
    "Compression",
    "Decider",
    "ElasticNetPenalty",
    "GroupLassoPenalty",
    "LabelSuspicion",
    "MarginSearch",
    "MulticategorySVC",
    "NewtonRefinement",
    "NoiseMatrix",
    "PredictionSetClassifier",
    "ProbabilityClassifier",
    "ProximalSVC",
    "ProximalSVCCV",
    "ReinforcedLoss",
    "RejectOptionClassifier",
    "RobustSVC",
    "RobustSearch",
    "SharedStructureSVC",
    "SharedStructureSearch",
    "SparsePath",
    "SparseSVC",
    "SparseSVCCV",
    "Stability",
    "Trace",
    "TraceNormPath",
    "TraceNormSVC",
    "clean_and_refit",
    "compress",
    "costs_to_utility",
    "datasets",
    "distributed",
    "expected_cost",
    "expected_utility",
    "export",
    "gacv",
    "inspection",
    "loo",
    "make_cost_scorer",
    "make_utility_scorer",
    "persistence",
    "proximal_path",
    "report",
    "sparse_path",
    "stability_selection",
    "suspect_labels",
    "trace_norm_path",
    "utility_to_costs",
]


def __getattr__(name: str) -> _Any:
    if name in _PLACES:
        value = getattr(_import_module(f"polymargin.{_PLACES[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return _import_module(f"polymargin.{name}")
    if name == "__version__":
        return _import_module("importlib.metadata").version("polymargin")
    raise AttributeError(f"module 'polymargin' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
