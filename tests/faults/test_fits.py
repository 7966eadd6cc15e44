"""Fits that fail, in threads and in other processes: an estimator is fitted or as it was; equal fits are equal."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from polymargin import MulticategorySVC, ProximalSVC, RobustSVC, SharedStructureSVC, SparseSVC, TraceNormSVC
from tests.simulate import blobs

X, Y = blobs(np.random.default_rng(0), 60, 3, 3)
MACHINES = [
    MulticategorySVC(),
    MulticategorySVC(kernel="linear", loss="weston"),
    ProximalSVC(kernel="rbf"),
    RobustSVC(),
    SharedStructureSVC(),
    SparseSVC(),
    TraceNormSVC(),
]


class KernelError(RuntimeError):
    """What a kernel of a user may raise."""


def failing(A, B):
    """Fail as a kernel of a user may fail."""
    raise KernelError("no such luck")


def scores_of(machine):
    """Fit and score in a process of its own."""
    return machine.fit(X, Y).decision_function(X)


@pytest.mark.parametrize("machine", [MulticategorySVC, ProximalSVC, RobustSVC, SharedStructureSVC, TraceNormSVC])
def test_an_exception_from_a_kernel_is_passed_on_and_nothing_is_fitted(machine):
    model = machine(kernel=failing)
    with pytest.raises(KernelError, match="no such luck"):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


class Raises:
    """A callback of scikit-learn's that fails when the first iteration ends."""

    def setup(self, estimator, context):
        """Begin."""

    def teardown(self, estimator, context):
        """End."""

    def on_fit_task_begin(self, estimator, context, **named):
        """Nothing yet."""

    def on_fit_task_end(self, estimator, context, **named):
        """Fail."""
        raise KernelError("no such luck")


@pytest.mark.parametrize(
    "machine", [machine for machine in MACHINES if hasattr(machine, "set_callbacks")], ids=repr
)
def test_an_exception_from_a_callback_is_passed_on_and_nothing_is_fitted(machine):
    model = clone(machine).set_callbacks(Raises())
    with pytest.raises(KernelError, match="no such luck"):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    fresh = clone(machine).fit(X, Y)
    np.testing.assert_array_equal(fresh.decision_function(X), scores_of(clone(machine)))


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
@pytest.mark.parametrize("wrong", [{"X": X[:, :0]}, {"y": Y[:-1]}, {"sample_weight": -np.ones(60)}], ids=str)
def test_a_failed_fit_leaves_the_model_as_it_was(machine, wrong):
    machine.fit(X, Y)
    before = machine.decision_function(X)
    with pytest.raises(ValueError, match=r"."):
        machine.fit(**({"X": X, "y": Y} | wrong))
    np.testing.assert_array_equal(machine.decision_function(X), before)


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_eight_threads_fit_and_predict_the_same(machine):
    expected = scores_of(machine)
    with ThreadPoolExecutor(8) as pool:
        fits = list(pool.map(lambda _: scores_of(type(machine)(**machine.get_params())), range(8)))
        shared = list(pool.map(lambda _: machine.decision_function(X), range(8)))
    for scores in fits + shared:
        np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_fit_the_same(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this system")
    expected = scores_of(MACHINES[0])
    with multiprocessing.get_context(method).Pool(2) as pool:
        for scores in pool.map(scores_of, [MACHINES[0]] * 2):
            np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"C": 1e300}, "C must be"),
        ({"C": 0.0}, "C must be"),
        ({"X": 1e200 * X}, "X must have entries of absolute value at most 1e.30"),
        ({"sample_weight": np.full(60, 1e300)}, "sample_weight must be 0 or between 1e-15 and 1e.15"),
        ({"cost_matrix": {(0, 1): 1e300}}, "cost_matrix must be 0 or between"),
        ({"y": np.array(["a", 1, 2] * 20, dtype=object)}, "y must hold labels of one type"),
        ({"gamma": 1e300}, "gamma must be"),
    ],
)
def test_what_cannot_be_represented_is_refused_beforehand(arguments, word):
    given = {"X": X, "y": Y} | {name: arguments[name] for name in ("X", "y", "sample_weight") if name in arguments}
    parameters = {name: value for name, value in arguments.items() if name not in ("X", "y", "sample_weight")}
    with pytest.raises((ValueError, TypeError), match=word):
        MulticategorySVC(**parameters).fit(**given)


def test_a_fit_whose_numbers_are_not_finite_raises(monkeypatch):
    from polymargin.solvers.ridge.exact import NormalEquationsSolver

    solve = NormalEquationsSolver.solve

    def poisoned(self, *arguments, **named):
        solution = solve(self, *arguments, **named)
        solution.point[0, 0] = np.nan
        return solution

    monkeypatch.setattr(NormalEquationsSolver, "solve", poisoned)
    model = ProximalSVC(refine=False)
    with pytest.raises(FloatingPointError, match="coef_ would not be finite"):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)
