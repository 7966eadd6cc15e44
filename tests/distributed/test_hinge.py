"""The hinge machines on Dask reach the optimum of one machine, and prove it."""

import dask.array as da
import numpy as np
import pytest

from polymargin import MulticategorySVC, RobustSVC
from tests.distributed.samples import UNEVEN, assert_same_optimum, chunked, fresh, make_sample

MACHINES = {
    "lee": MulticategorySVC(kernel="linear", tol=1e-7),
    "weston with costs": MulticategorySVC(
        kernel="linear", loss="weston", cost_matrix={("red", "blue"): 3.0}, tol=1e-7, class_weight="balanced"
    ),
    "crammer at landmarks": MulticategorySVC(loss="crammer", landmarks=15, random_state=0, tol=1e-7),
    "no intercept": MulticategorySVC(kernel="linear", fit_intercept=False, tol=1e-7),
    "a class that costs nothing": MulticategorySVC(
        kernel="linear",
        loss="weston",
        cost_matrix={("blue", "red"): 0.0, ("blue", "green"): 0.0},
        fit_intercept=False,
        tol=1e-7,
    ),
    "robust": RobustSVC(tol=1e-7),
    "robust with utilities": RobustSVC(tol=1e-7, C=0.1, utility={("red", "blue"): 0.4}, starts=("identity",)),
    "logistic at landmarks": RobustSVC(
        tol=1e-6, C=0.1, loss="logistic", kernel="rbf", landmarks=make_sample()[0][::40], starts=("utility",)
    ),
}


@pytest.fixture(scope="module")
def sample():
    return make_sample()


@pytest.mark.parametrize("name", MACHINES)
def test_reaches_the_optimum_in_memory(name, sample, threads):
    X, y, weights = sample
    machine = MACHINES[name]
    ours, other = fresh(machine).fit(*chunked(X, y, weights)), fresh(machine).fit(X, y, weights)
    assert_same_optimum(ours, other)
    expected = other.decision_function(X)
    np.testing.assert_allclose(ours.decision_function(X), expected, rtol=0, atol=1e-2 * np.abs(expected).max())
    assert ours.support_ is None


@pytest.mark.parametrize("name", ["lee", "robust"])
def test_reaches_the_optimum_on_worker_processes(name, sample, client):
    X, y, weights = sample
    machine = fresh(MACHINES[name], tol=1e-6)
    if name == "robust":  # of one convex step
        machine.set_params(truncation=-np.inf, C=0.01)
    with client.as_current():
        ours = fresh(machine).fit(*chunked(X, y, weights, chunks=(150, 0, 250)))
    assert_same_optimum(ours, fresh(machine).fit(X, y, weights))


def test_single_precision(sample, threads):
    X, y, _ = sample
    X = X.astype(np.float32)
    machine = MACHINES["lee"]
    assert_same_optimum(fresh(machine).fit(*chunked(X, y)), fresh(machine).fit(X, y))


def test_too_many_unknowns(threads):
    X, y = np.random.default_rng(0).normal(size=(40, 6000)), np.arange(40) % 3
    with pytest.raises(ValueError, match="12002 unknowns"):
        MulticategorySVC(kernel="linear").fit(*chunked(X, y, chunks=(20, 20)))


@pytest.mark.parametrize(
    "machine", [MACHINES["lee"], RobustSVC(tol=1e-7, truncation=-np.inf)], ids=["lee", "robust"]
)
def test_costs_of_rows(machine, sample, threads):
    X, y, weights = sample
    rng = np.random.default_rng(1)
    costs = np.where(np.sort(np.unique(y)) == y[:, None], 0.0, rng.integers(0, 3, (400, 3)))
    costs[:37] = 0.0  # the whole of a chunk
    collections = chunked(X, y, weights)
    lazy = da.from_array(costs, chunks=(UNEVEN, (1, 2)))
    free = int((~costs.any(axis=1) & (weights > 0)).sum())
    with pytest.warns(UserWarning, match=f"zero for every class in {free} rows"):
        ours = fresh(machine).fit(*collections, costs=lazy)
    with pytest.warns(UserWarning, match="zero for every class"):
        in_memory = fresh(machine).fit(X, y, weights, costs=costs)
    with pytest.warns(UserWarning, match="zero for every class"):
        given_as_array = fresh(machine).fit(*collections, costs=costs)
    assert_same_optimum(ours, in_memory)
    np.testing.assert_array_equal(given_as_array.coef_, ours.coef_)
    costs[-1] = -1.0
    with (
        pytest.warns(UserWarning, match="zero for every class"),
        pytest.raises(ValueError, match="In partition 4: costs must be finite and non-negative"),
    ):
        fresh(machine).fit(*collections, costs=costs)
