"""Small fitted models of every family, with held-out rows, for the tests of the report."""

from functools import cache

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import (
    MarginSearch,
    MulticategorySVC,
    NewtonRefinement,
    ProximalSVC,
    ProximalSVCCV,
    RejectOptionClassifier,
    RobustSVC,
    SharedStructureSearch,
    SharedStructureSVC,
    SparseSVC,
    SparseSVCCV,
    TraceNormSVC,
    report,
)

NAMES = np.array(['"Barolo" & <b>Nebbiolo</b>', "</script><script>alert(1)</script>", "Grüner $x$ 'Veltliner'"])
"""Labels that break a page that does not escape them."""

COMMON = ("fitted", "errors", "strengths", "scoring", "costs", "predictions")
OWN = {
    "multicategory": (),
    "proximal": ("search",),
    "sparse": ("variables",),
    "sparse search": ("variables", "search"),
    "shared": ("relations",),
    "shared search": ("relations", "search"),
    "trace norm": (),
    "robust": ("suspects",),
    "search": ("search",),
    "reject": (),
    "refinement": (),
}
"""Sections that only the model of a family has."""


@cache
def wine():
    """Training and held-out rows; names of variables and classes are hostile."""
    bunch = load_wine(as_frame=True)
    X = bunch.data.rename(columns={"alcohol": "alcohol <i>% vol</i>"})
    y = pd.Series(NAMES[bunch.target], index=X.index)
    return X[::2], y[::2], X[1::2], y[1::2]


@cache
def fitted(family):
    """Return a fitted model of the family."""
    X, y, _, _ = wine()
    costs = {(NAMES[0], NAMES[2]): 10.0, (NAMES[1], NAMES[2]): 10.0}
    machine = {
        "multicategory": lambda: MulticategorySVC(C=0.3, cost_matrix=costs),
        "proximal": lambda: ProximalSVCCV(ProximalSVC(), Cs=[1.0, 10.0, 100.0]),
        "sparse": lambda: SparseSVC(C=0.1),
        "sparse search": lambda: SparseSVCCV(n_Cs=6, cv=2, adaptive=True, initial_Cs=[1.0]),
        "shared": lambda: SharedStructureSVC(C=0.1),
        "shared search": lambda: SharedStructureSearch(Cs=[0.1, 1.0], penalty_fractions=[1e-6, 1e-3], cv=2),
        "trace norm": lambda: TraceNormSVC(),
        "robust": lambda: RobustSVC(C=0.1),
        "search": lambda: MarginSearch(Cs=[0.1, 1.0], gammas=[0.01, 0.1]),
        "reject": lambda: RejectOptionClassifier(MulticategorySVC(), quantile=0.8),
        "refinement": lambda: NewtonRefinement(ProximalSVC(kernel="rbf")),
    }[family]()
    return make_pipeline(StandardScaler(), machine).fit(X, y)


@cache
def page_of(family):
    """Return the report about the model of the family."""
    return report.build(fitted(family), *wine()[2:])
