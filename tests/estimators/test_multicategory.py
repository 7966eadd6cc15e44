"""MulticategorySVC: what it refuses, and what its parameters do."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from polymargin import MulticategorySVC
from polymargin.gram import ranked_rows
from tests.simulate import blobs


@pytest.fixture(scope="module")
def data():
    X, labels = blobs(np.random.default_rng(0), 60, 4, 3)
    return X, np.array(["a", "b", "c"])[labels]


def costs_with(value, at=(0, 1)):
    costs = 1.0 - np.eye(3)
    costs[at] = value
    return costs


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"C": 0.0}, ValueError, r"C must be .* at least 1e-15 and at most 1e\+15, got 0\.0"),
        ({"C": -1}, ValueError, "C must be .* got -1"),
        ({"C": np.nan}, ValueError, "C must be .* got nan"),
        ({"C": "1"}, TypeError, "C must be .* got '1' of type str"),
        ({"loss": "hinge"}, ValueError, "loss must be one of 'lee', 'weston', 'crammer', .* got 'hinge'"),
        ({"kernel": "gauss"}, ValueError, "kernel must be one of .* got 'gauss'"),
        ({"gamma": -0.5}, ValueError, r"gamma must be .* at least 1e-65 and at most 1e\+65, got -0\.5"),
        ({"gamma": "wide"}, ValueError, "gamma must be 'scale', 'auto' or a positive number, got 'wide'"),
        ({"tol": 0}, ValueError, "tol must be .* got 0"),
        ({"max_iter": 1.5}, TypeError, r"max_iter must be an integer .* got 1\.5"),
        ({"time_limit": -1}, ValueError, "time_limit must be .* got -1"),
        ({"cache_size": 0}, ValueError, "cache_size must be .* got 0"),
        ({"fit_intercept": "yes"}, TypeError, "fit_intercept must be True or False, got 'yes'"),
        ({"landmarks": 0}, ValueError, "landmarks must be .* got 0"),
        ({"landmarks": 1000}, ValueError, "landmarks must be at most the number of samples, 60, got 1000"),
        ({"landmarks": 1.5}, ValueError, r"landmarks must be .* at most 1, got 1\.5"),
        ({"landmarks": np.ones((3, 2))}, ValueError, r"landmarks .* shape \(m, 4\), .* got \(3, 2\)"),
        ({"cost_matrix": costs_with(-2.0)}, ValueError, r"cost_matrix .* non-negative entries, got -2\.0"),
        ({"cost_matrix": costs_with(np.nan)}, ValueError, "cost_matrix .* non-negative entries, got nan"),
        ({"cost_matrix": costs_with(np.inf)}, ValueError, "cost_matrix must have finite .* got inf"),
        ({"cost_matrix": costs_with(1.0, (1, 1))}, ValueError, "cost_matrix must have a zero diagonal.* class b"),
        ({"cost_matrix": np.zeros((3, 3))}, ValueError, "cost_matrix must have at least one positive entry"),
        ({"cost_matrix": 1 - np.eye(4)}, ValueError, r"cost_matrix must have shape \(3, 3\).* got \(4, 4\)"),
        ({"cost_matrix": {("a", "d"): 2}}, ValueError, "cost_matrix names the class 'd', .* among the classes"),
        ({"cost_matrix": {"a": 2}}, ValueError, "cost_matrix: keys must be pairs"),
        ({"cost_matrix": "zero-one"}, ValueError, "cost_matrix must be .* got 'zero-one'"),
        ({"cost_matrix": pd.DataFrame(1 - np.eye(3))}, ValueError, "cost_matrix: the rows of the DataFrame"),
        ({"loss": "crammer", "cost_matrix": "ordinal"}, ValueError, "cost_matrix must have equal costs"),
        ({"priors": [0.5, 0.5, 0.5]}, ValueError, r"priors must sum to one, got a sum of 1\.5"),
        ({"priors": [0.5, 0.5]}, ValueError, r"priors must have shape \(3,\).* got \(2,\)"),
        ({"priors": {"a": 0.5, "b": 0.5}}, ValueError, "priors must give a value for every class, missing: "),
        ({"priors": [1.0, 0.0, 0.0]}, ValueError, "priors must be positive for every class"),
        ({"class_weight": "even"}, ValueError, "class_weight must be 'balanced', a dict or None, got 'even'"),
        ({"class_weight": {"d": 1.0}}, ValueError, "class_weight names the class 'd'"),
        ({"class_weight": {"a": -1.0}}, ValueError, "class_weight must be positive"),
    ],
)
def test_bad_parameters(data, options, error, message):
    with pytest.raises(error, match=message):
        MulticategorySVC(**options).fit(*data)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_bad_numbers_in_the_data(data, storage, bad):
    X = data[0].copy()
    X[3, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        MulticategorySVC().fit(storage(X), data[1])


def test_one_class(data):
    with pytest.raises(ValueError, match=r"y must hold at least two classes .* got 1 class: "):
        MulticategorySVC().fit(data[0], np.full(60, "a"))
    with pytest.raises(ValueError, match="with positive sample_weight, got 1 class"):
        MulticategorySVC().fit(*data, sample_weight=(data[1] == "a").astype(float))


def test_bad_weights(data):
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        MulticategorySVC().fit(*data, sample_weight=-np.ones(60))


def test_bad_precomputed_kernels(data):
    X, y = data
    K = X @ X.T
    machine = MulticategorySVC(kernel="precomputed")
    with pytest.raises(ValueError, match=r"square matrix .* got \(60, 59\)"):
        machine.fit(K[:, :-1], y)
    with pytest.raises(ValueError, match="must be symmetric, but it differs from its transpose by 1"):
        machine.fit(K + np.eye(60, k=1), y)
    with pytest.raises(ValueError, match="landmarks must be None with kernel='precomputed'"):
        MulticategorySVC(kernel="precomputed", landmarks=5).fit(K, y)


@pytest.mark.parametrize("loss", ["lee", "weston", "crammer"])
def test_indefinite_kernels_are_found_out(data, loss):
    X, y = data
    indefinite = X @ X.T - 5.0 * np.eye(60)
    with pytest.raises(ValueError, match=r"positive semi-?definite|negative curvature|indefinite"):
        MulticategorySVC(kernel="precomputed", loss=loss).fit(indefinite, y)


def test_a_callable_kernel_equals_its_name(data):
    X, y = data
    named = MulticategorySVC(kernel="linear", tol=1e-10).fit(X, y)
    called = MulticategorySVC(kernel=lambda A, B: A @ B.T, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(called.decision_function(X), named.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("loss", ["lee", "weston", "crammer"])
def test_all_rows_as_landmarks_equal_the_kernel(data, loss):
    X, y = data
    whole = MulticategorySVC(loss=loss, gamma=0.3, tol=1e-9).fit(X, y)
    reduced = MulticategorySVC(loss=loss, gamma=0.3, tol=1e-9, landmarks=X).fit(X, y)
    np.testing.assert_allclose(reduced.decision_function(X), whole.decision_function(X), atol=1e-4)
    assert reduced.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-6)


def test_costs_are_given_in_any_form(data):
    X, y = data
    array = costs_with(4.0)
    forms = [array, pd.DataFrame(array, index=list("abc"), columns=list("abc")).iloc[::-1], {("a", "b"): 4.0}]
    scores = [MulticategorySVC(cost_matrix=form).fit(X, y).decision_function(X) for form in forms]
    np.testing.assert_array_equal(scores[1], scores[0])
    np.testing.assert_array_equal(scores[2], scores[0])


def test_costly_mistakes_become_rarer(data):
    X, y = data
    plain = MulticategorySVC(C=0.1).fit(X, y).predict(X)
    careful = MulticategorySVC(C=0.1, cost_matrix={("a", "b"): 20.0, ("a", "c"): 20.0}).fit(X, y).predict(X)
    assert np.sum((y == "a") & (careful != "a")) < np.sum((y == "a") & (plain != "a"))


def test_priors_equal_class_weights(data):
    X, y = data
    shares = {label: float(np.mean(y == label)) for label in "abc"}
    priors = {"a": 0.6, "b": 0.3, "c": 0.1}
    by_priors = MulticategorySVC(priors=priors, gamma=0.3).fit(X, y)
    by_weight = MulticategorySVC(class_weight={c: priors[c] / shares[c] for c in "abc"}, gamma=0.3).fit(X, y)
    np.testing.assert_allclose(by_priors.decision_function(X), by_weight.decision_function(X), atol=1e-8)


@pytest.mark.parametrize(
    "options", [{"kernel": "linear"}, {"kernel": "rbf"}, {"landmarks": 10, "random_state": 0}]
)
def test_single_precision_is_accepted(data, options):
    X, y = data
    X = X.astype(np.float32)
    single = MulticategorySVC(gamma=0.3, **options).fit(X, y)
    double = MulticategorySVC(gamma=0.3, **options).fit(X.astype(np.float64), y)
    np.testing.assert_allclose(single.decision_function(X), double.decision_function(X), atol=2e-2)


def test_rows_computed_on_demand_give_the_same_machine(data):
    X, y = data
    whole = MulticategorySVC(gamma=0.3, tol=1e-8).fit(X, y)
    by_rows = MulticategorySVC(gamma=0.3, tol=1e-8, cache_size=0.01).fit(X, y)
    np.testing.assert_allclose(by_rows.decision_function(X), whole.decision_function(X), atol=1e-5)


def test_verbose_logs_a_line_an_iteration(data, capsys, caplog):
    with caplog.at_level("INFO", logger="polymargin"):
        MulticategorySVC(verbose=True).fit(*data)
    assert caplog.records[0].name == "polymargin"
    assert caplog.messages[0].startswith("[MulticategorySVC] iteration 1: primal")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("loss", ["lee", "weston", "crammer"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_weights_repetition_and_order_are_the_same_problem_to_the_last_bit_at_any_tolerance(loss, kernel):
    rng = np.random.default_rng(0)
    X, y = blobs(rng, 90, 3, 3)
    weight = rng.integers(0, 4, len(y))
    model = MulticategorySVC(loss=loss, kernel=kernel, tol=0.1)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    order = rng.permutation(int(weight.sum()))
    repeated = clone(model).fit(np.repeat(X, weight, axis=0)[order], np.repeat(y, weight)[order])
    np.testing.assert_array_equal(weighted.decision_function(X), repeated.decision_function(X))
    assert weighted.certificate_ == repeated.certificate_


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_and_bound_are_those_of_their_coefficients(weighted):
    """Splitting's scores are not those of its dual point: each is stored, and the certificate is that of both."""
    rng = np.random.default_rng(3)
    X, y = blobs(rng, 240, 4, 4, spread=1.5)
    weight = rng.integers(1, 4, len(y)).astype(float) if weighted else np.ones(len(y))
    C, gamma = 30.0, 0.2
    model = MulticategorySVC(C=C, gamma=gamma, solver="splitting", tol=1e-3).fit(X, y, sample_weight=weight)
    assert model.converged_
    assert (model.dual_coef_ != model.bound_coef_).any()
    support = X[model.support_]
    K = rbf_kernel(support, gamma=gamma)
    bounds = C * weight[:, None] * (np.arange(4) != y[:, None])
    primal = 0.5 * np.vdot(model.dual_coef_, model.dual_coef_ @ K)
    primal += np.vdot(bounds, np.maximum(model.decision_function(X) + 1 / 3, 0.0))
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-9)
    B = model.bound_coef_.T
    u = B[np.arange(len(support)), y[model.support_]][:, None] - B
    assert u.min() >= -1e-9
    assert (u <= bounds[model.support_] + 1e-9).all()
    assert np.abs(B.sum(axis=0)).max() <= 1e-9 * np.abs(B).sum()
    assert model.certificate_.dual == pytest.approx(u.sum() / 3 - 0.5 * np.vdot(B, K @ B), rel=1e-9)


@pytest.mark.parametrize("loss", ["lee", "weston", "crammer"])
@pytest.mark.parametrize("C", [1e-5, 1e-3])
def test_the_bound_of_block_descent_has_all_its_rows(loss, C):
    """Class sums are made right by rows that the scores do without, where all variables are at their bounds."""
    rng = np.random.default_rng(0)
    y = rng.choice(4, 400, p=[0.55, 0.25, 0.15, 0.05])
    X = 30.0 * rng.normal(size=(4, 20))[y] + 10.0 * rng.normal(size=(400, 20))
    model = MulticategorySVC(C=C, loss=loss, kernel="linear", solver="block_descent", tol=1e-3).fit(X, y)
    B = model.bound_coef_.T
    assert np.abs(B.sum(axis=0)).max() <= 1e-9 * np.abs(B).sum()
    problem, point = model._support_problem()
    bound = problem.losses.dual_value(point.dual) - 0.5 * np.square(X[model.support_].T @ B).sum()
    assert model.certificate_.dual == pytest.approx(bound, rel=1e-9)


def test_the_tolerance_is_what_is_solved_to():
    X, y = blobs(np.random.default_rng(0), 900, 3, 6)
    traces = [MulticategorySVC(tol=tol).fit(X, y).trace_ for tol in (1e-1, 1e-4, 1e-6)]
    with pytest.warns(ConvergenceWarning):
        first_round = MulticategorySVC(max_iter=1).fit(X, y).trace_[0]  # which every fit begins with
    rough, middling, fine = (sum(row.work for row in trace) - first_round.work for trace in traces)
    assert rough < 0.5 * middling
    assert middling < 0.5 * fine


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize("keeps_order", [True, False])
def test_support_vectors_are_nobody_elses(form, keeps_order):
    """Rows that a fit has copied are kept as they are where all are support vectors; those of the user are not."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 3
    if keeps_order:  # the fit takes no other one
        first, _ = ranked_rows(y, X)
        X, y = X[first], y[first]
    X = form(X)
    model = MulticategorySVC(C=1e-3, kernel="linear", loss="weston").fit(X, y)
    assert len(model.support_) == 60
    before, scores = model.support_vectors_.copy(), model.decision_function(X)
    entries = X.data if sparse.issparse(X) else X
    entries *= 2.0
    assert abs(model.support_vectors_ - before).max() == 0.0
    entries /= 2.0
    np.testing.assert_array_equal(model.decision_function(X), scores)
