"""What a number means does not depend on the type that it is given in."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import polymargin
from polymargin import (
    MarginSearch,
    MulticategorySVC,
    NewtonRefinement,
    ProximalSVC,
    ProximalSVCCV,
    RobustSearch,
    RobustSVC,
    SharedStructureSearch,
    SharedStructureSVC,
    SparseSVC,
    SparseSVCCV,
    TraceNormSVC,
)
from tests.simulate import blobs

X, Y = blobs(np.random.default_rng(0), 30, 3, 3)
FLOATS = (np.float16, np.float32, np.float64, np.longdouble)
INTEGERS = (np.int8, np.uint8, np.int64)
REALS = {
    "C": 0.5, "initial_C": 0.25, "relation_penalty": 0.5, "gamma": 0.25, "degree": 2.0, "coef0": 0.5, "tol": 1e-3,
    "time_limit": 100.0, "cache_size": 10.0, "adaptive_power": 0.5, "truncation": -0.5, "eps": 0.125,
    "search_tol": 0.0078125,
}  # fmt: skip
COUNTS = {
    "max_iter": 100,
    "n_init": 3,
    "max_dc_iter": 50,
    "adaptive_rounds": 2,
    "n_Cs": 3,
    "cv": 2,
    "criterion": 2,
}
MACHINES = [
    MulticategorySVC(kernel="poly"),
    MulticategorySVC(kernel="linear", loss="crammer"),
    RobustSVC(kernel="poly", random_state=0),
    ProximalSVC(kernel="poly"),
    SharedStructureSVC(kernel="poly", random_state=0),
    TraceNormSVC(kernel="poly"),
    SparseSVC(adaptive=True),
    SparseSVC(penalty="l2"),
    SparseSVCCV(n_Cs=3, cv=2, initial_Cs=[1.0], adaptive=True),
    MarginSearch(Cs=[1.0], gammas=[0.5]),
    ProximalSVCCV(Cs=[1.0]),
    RobustSearch(Cs=[1.0], cv=2),
    SharedStructureSearch(Cs=[1.0], relation_penalties=[1.0], cv=2),
    NewtonRefinement(ProximalSVC(refine=False)),
]


def cases():
    for machine in MACHINES:
        known = machine.get_params(deep=False)
        for name, value in REALS.items():
            if name in known:
                yield machine, name, value, FLOATS
        for name, value in COUNTS.items():
            if name in known:
                yield machine, name, value, INTEGERS


def fitted(machine, rows, **parameter):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        return clone(machine).set_params(**parameter).fit(rows, Y)


@pytest.mark.parametrize(
    ("machine", "name", "value", "types"),
    list(cases()),
    ids=lambda given: given if isinstance(given, str) else None,
)
def test_a_number_of_any_type_is_that_number(machine, name, value, types):
    for kind in types:
        number = kind(value)
        plain = fitted(machine, X, **{name: number.item() if kind is not np.longdouble else float(number)})
        typed = fitted(machine, X, **{name: number})
        assert getattr(typed, name) is number  # scikit-learn's rule: fits change no parameter
        np.testing.assert_array_equal(typed.decision_function(X), plain.decision_function(X))


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("factor", [1e-20, 1e25])
@pytest.mark.parametrize("machine", MACHINES[:8], ids=lambda machine: type(machine).__name__)
def test_a_small_type_overflows_on_no_rows(machine, factor, kind):
    assert np.isfinite(fitted(machine, factor * X, C=kind(0.5)).decision_function(factor * X)).all()


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_paths_and_criteria_take_any_type(kind):
    half = kind(0.5)
    np.testing.assert_array_equal(
        polymargin.sparse_path(X, Y, n_Cs=np.int8(3), eps=half, adaptive=True, initial_C=half).coefs,
        polymargin.sparse_path(X, Y, n_Cs=3, eps=0.5, adaptive=True, initial_C=0.5).coefs,
    )
    for criterion in (polymargin.loo, polymargin.gacv):
        typed, plain = (MulticategorySVC(C, kernel="rbf", loss="lee").fit(X, Y) for C in (half, 0.5))
        assert criterion(typed) == criterion(plain)
