"""The simulators of the papers, with their true class probabilities, and loaders for real data."""

from polymargin.datasets._population import flip_labels
from polymargin.datasets.criteria import gckl, misrate
from polymargin.datasets.multicategory import make_competing_interval, make_interval_scenario, make_waveform
from polymargin.datasets.preprocessing import log_entropy, standardize_arrays, top_terms
from polymargin.datasets.proximal import make_unbalanced_pair, make_unbalanced_rings
from polymargin.datasets.real import fetch_benchmark
from polymargin.datasets.robust import make_curved, make_triangle
from polymargin.datasets.shared import make_related_classes
from polymargin.datasets.sparse import make_class_specific

__all__ = [
    "fetch_benchmark",
    "flip_labels",
    "gckl",
    "log_entropy",
    "make_class_specific",
    "make_competing_interval",
    "make_curved",
    "make_interval_scenario",
    "make_related_classes",
    "make_triangle",
    "make_unbalanced_pair",
    "make_unbalanced_rings",
    "make_waveform",
    "misrate",
    "standardize_arrays",
    "top_terms",
]
