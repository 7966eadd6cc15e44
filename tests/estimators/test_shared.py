"""SharedStructureSVC: what it computes, reductions, streams, prior knowledge, errors."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge

from polymargin import SharedStructureSVC
from polymargin.coding import class_pairs, one_vs_rest_signs
from polymargin.gram import Kernel
from tests.simulate import blobs

CONFIGURATIONS = {
    "original": {},
    "unconstrained": {"bounds": None},
    "fast": {"formulation": "fast"},
    "sum_to_zero": {"formulation": "sum_to_zero"},
    "symmetric": {"constraint": "symmetric"},
    "psd": {"constraint": "psd"},
    "nonnegative": {"constraint": "nonnegative"},
    "fewer bases": {"n_base": 2},
    "one-vs-one": {"scheme": "ovo"},
    "one-vs-one, fewer bases": {"scheme": "ovo", "n_base": 3},
    "one-vs-one, unconstrained": {"scheme": "ovo", "bounds": None},
    "rbf": {"kernel": "rbf", "gamma": 0.2},
    "rbf, one-vs-one": {"kernel": "rbf", "gamma": 0.2, "scheme": "ovo"},
}
every_configuration = pytest.mark.parametrize("options", CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())


@pytest.fixture
def data():
    return blobs(np.random.default_rng(0), 80, 5, 4, spread=1.5)


def ridge_one_vs_rest(X, y, C):
    A = np.column_stack([X, -np.ones(len(X))])
    return Ridge(alpha=1 / C, fit_intercept=False).fit(A, one_vs_rest_signs(y, y.max() + 1)).coef_


def final_classifiers(model):
    return np.column_stack([model.coef_, -model.intercept_])


@every_configuration
def test_weights_equal_repeated_rows(data, options):
    X, y = data
    weights = np.random.default_rng(1).integers(0, 3, len(y))
    weights[:4] = 1
    options = {"class_weight": "balanced", **options}
    weighted = SharedStructureSVC(0.1, **options).fit(X, y, sample_weight=weights)
    repeated = SharedStructureSVC(0.1, **options).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-8)


@every_configuration
def test_rotating_the_features_rotates_the_classifiers(data, options):
    X, y = data
    rotation = np.linalg.qr(np.random.default_rng(2).normal(size=(5, 5)))[0]
    straight, rotated = (SharedStructureSVC(0.1, **options).fit(Z, y) for Z in (X, X @ rotation))
    np.testing.assert_allclose(
        straight.decision_function(X), rotated.decision_function(X @ rotation), rtol=0, atol=1e-7
    )


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_sparse_rows_and_wide_rows_equal_dense_ones(scheme):
    X, y = blobs(np.random.default_rng(3), 30, 40, 4)
    X[np.abs(X) < 0.7] = 0.0
    wide = SharedStructureSVC(0.1, scheme=scheme).fit(X, y)
    assert wide.moments_ is None
    thin = SharedStructureSVC(0.1, scheme=scheme).partial_fit(X, y, classes=np.arange(4))
    rows = sparse.csr_array(X)
    from_sparse = SharedStructureSVC(0.1, scheme=scheme).fit(rows, y)
    for model in (thin, from_sparse):
        np.testing.assert_allclose(model.coef_, wide.coef_, atol=1e-9)
        assert model.certificate_.primal == pytest.approx(wide.certificate_.primal)
    np.testing.assert_allclose(wide.decision_function(rows), wide.decision_function(X), atol=1e-12)


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
@pytest.mark.parametrize("kernel", [{}, {"kernel": "rbf", "gamma": 0.2}])
def test_partial_fit_equals_fit(data, scheme, kernel):
    X, y = data
    if kernel:
        kernel = {**kernel, "landmarks": X[:15]}
    options = {"scheme": scheme, "class_weight": "balanced", **kernel}
    stream = SharedStructureSVC(0.5, **options)
    for rows in np.array_split(np.arange(len(y)), 5):
        stream.partial_fit(X[rows], y[rows], classes=np.arange(4))
    whole = SharedStructureSVC(0.5, **options).fit(X, y)
    np.testing.assert_allclose(stream.decision_function(X), whole.decision_function(X), atol=1e-9)


def test_fast_ending_on_a_w_step_is_one_vs_rest_ridge_and_on_an_m_step_is_not(data):
    X, y = data
    ridge = ridge_one_vs_rest(X, y, 0.3)
    # an M-step that may only return the M it was given ends the fit where the W-step left it
    for M in (np.eye(4), np.random.default_rng(4).uniform(-1, 1, (4, 4))):
        ends_on_w = SharedStructureSVC(0.3, formulation="fast", fixed_relations=M).fit(X, y)
        np.testing.assert_allclose(final_classifiers(ends_on_w), ridge, rtol=0, atol=1e-9)
    ends_on_m = SharedStructureSVC(0.3, formulation="fast").fit(X, y)
    assert np.abs(final_classifiers(ends_on_m) - ridge).max() > 1e-2


def test_second_stage_mixing_of_the_fast_formulation(data):
    X, y = data
    A, Y = np.column_stack([X, -np.ones(len(X))]), one_vs_rest_signs(y, 4)
    C, nu = 0.3, 2.0
    Z = ridge_one_vs_rest(X, y, C).T
    F = A @ Z
    model = SharedStructureSVC(C, nu, formulation="fast", bounds=None, max_iter=1).fit(X, y)
    mixed = Z @ np.linalg.solve(F.T @ F + nu / C * np.eye(4), F.T @ Y)
    np.testing.assert_allclose(final_classifiers(model).T, mixed, atol=1e-9)


def test_identity_relations_are_independent_classifiers(data):
    X, y = data
    ovr = SharedStructureSVC(0.3, fixed_relations=np.eye(4)).fit(X, y)
    np.testing.assert_allclose(final_classifiers(ovr), ridge_one_vs_rest(X, y, 0.3), atol=1e-9)
    ovo = SharedStructureSVC(0.3, scheme="ovo", fixed_relations=np.eye(6)).fit(X, y)
    for row, (i, j) in zip(final_classifiers(ovo), class_pairs(4), strict=True):
        pair = (y == i) | (y == j)
        reference = ridge_one_vs_rest(X[pair], (y[pair] == i).astype(int), 0.3)[1]
        np.testing.assert_allclose(row, reference, atol=1e-9)


def test_votes_decide_and_ties_go_to_the_larger_sum_of_tanh(data):
    X, y = data
    model = SharedStructureSVC(0.3, scheme="ovo").fit(X, y)
    tasks = X @ model.coef_.T + model.intercept_
    scores = model.decision_function(X)
    votes, strength = np.zeros((len(y), 4)), np.zeros((len(y), 4))
    for task, (i, j) in zip(tasks.T, class_pairs(4), strict=True):
        votes[task > 0, i] += 1
        votes[task <= 0, j] += 1
        strength[:, i] += np.tanh(task)
        strength[:, j] -= np.tanh(task)
    np.testing.assert_array_equal(np.round(scores), votes)
    expected = [max(range(4), key=lambda c: (v[c], s[c])) for v, s in zip(votes, strength, strict=True)]
    np.testing.assert_array_equal(model.predict(X), expected)


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_two_classes_have_one_score_whose_sign_decides(scheme):
    X, y = blobs(np.random.default_rng(5), 40, 3, 2)
    model = SharedStructureSVC(0.3, scheme=scheme).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (40,)
    np.testing.assert_array_equal(model.predict(X), (scores > 0).astype(int))
    swapped = SharedStructureSVC(0.3, scheme=scheme).fit(X, 1 - y)
    np.testing.assert_allclose(swapped.decision_function(X), -scores, atol=1e-10)


def test_without_constraints_the_optimum_is_global_and_balanced(data):
    X, y = data
    model = SharedStructureSVC(0.05, 3.0, bounds=None, tol=1e-11).fit(X, y)
    assert model.certificate_.kind == "global"
    assert model.converged_
    W = np.column_stack([model.base_coef_, -model.base_intercept_]).T
    np.testing.assert_allclose(W.T @ W, 3.0 * model.relation_ @ model.relation_.T, atol=1e-9)
    boxed = SharedStructureSVC(0.05, 3.0, bounds=(-50, 50), max_iter=-1, tol=1e-11).fit(X, y)
    assert boxed.certificate_.primal == pytest.approx(model.certificate_.primal, rel=1e-8)
    np.testing.assert_allclose(boxed.coef_, model.coef_, atol=1e-3)


def test_early_stop_is_told_without_a_warning_and_may_be_continued(data):
    X, y = data
    short = SharedStructureSVC(0.5, 20.0, max_iter=5).fit(X, y)
    assert (short.n_iter_, short.converged_, short.certificate_.kind) == (5, False, "stationary")
    assert np.all(np.diff(short.history_) <= 0)
    long = SharedStructureSVC(0.5, 20.0, max_iter=-1, tol=1e-6).fit(X, y)
    assert long.converged_
    assert long.certificate_.primal < short.certificate_.primal


@pytest.mark.parametrize(
    "options",
    [{}, {"scheme": "ovo"}, {"constraint": "symmetric"}, {"constraint": "psd"}, {"bounds": (0, 1)}, {"n_base": 4}],
    ids=str,
)
def test_defaults_reach_their_tolerance_on_the_digits(options):
    X, y = load_digits(return_X_y=True)
    model = SharedStructureSVC(**options).fit(X[::3] / 16, y[::3])
    assert model.converged_
    assert model.certificate_.gap <= 1e-8
    assert np.all(np.diff(model.history_) <= 1e-14 * model.history_[0])


@pytest.mark.parametrize("constraint", [None, "symmetric", "psd", "nonnegative"])
def test_relations_are_what_they_were_asked_to_be(data, constraint):
    X, y = data
    names = np.array(["a", "b", "c", "d"])[y]
    known = {("a", "b"): 0.2, ("b", "a"): 0.2}
    M = SharedStructureSVC(0.5, constraint=constraint, fixed_relations=known).fit(X, names).relation_
    np.testing.assert_allclose([M[0, 1], M[1, 0]], 0.2, atol=1e-10)
    assert np.abs(M).max() <= 1 + 1e-10
    if constraint in ("symmetric", "psd"):
        np.testing.assert_allclose(M, M.T, atol=1e-12)
    if constraint == "psd":
        assert np.linalg.eigvalsh(M)[0] >= -1e-10
    if constraint == "nonnegative":
        assert M.min() >= 0


def test_bounds_for_every_entry(data):
    X, y = data
    lower, upper = np.full((4, 4), -0.01), np.full((4, 4), 0.02)
    np.fill_diagonal(upper, 0.7)
    M = SharedStructureSVC(0.5, bounds=(lower, upper)).fit(X, y).relation_
    assert np.all((lower <= M) & (upper >= M))
    assert np.any(upper == M)


def test_more_starts_are_never_worse(data):
    X, y = data
    options = {"scheme": "ovo", "n_base": 2, "random_state": 0}
    one, four = (SharedStructureSVC(0.5, n_init=n, **options).fit(X, y).certificate_.primal for n in (1, 4))
    assert four <= one


def test_kernel_scores_are_those_of_the_basis_and_precomputed_agrees(data):
    X, y = data
    model = SharedStructureSVC(0.5, kernel="rbf", gamma=0.3).fit(X, y)
    K = Kernel("rbf", 0.3)(X)
    np.testing.assert_allclose(
        model.decision_function(X), Kernel("rbf", 0.3)(X, model.landmarks_) @ model.dual_coef_.T + model.intercept_
    )
    weights = np.ones(len(y))
    weights[::7] = 0
    given = SharedStructureSVC(0.5, kernel="precomputed").fit(K, y, sample_weight=weights)
    rows = SharedStructureSVC(0.5, kernel="rbf", gamma=0.3).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(given.decision_function(K), rows.decision_function(X), atol=1e-7)
    assert not hasattr(rows, "coef_")
    assert not hasattr(rows, "partial_fit")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 0}, "C must be"),
        ({"relation_penalty": -1.0}, "relation_penalty must be"),
        ({"formulation": "slow"}, "formulation must be one of"),
        ({"scheme": "all"}, "scheme must be one of"),
        ({"n_base": 5}, "n_base must be at most the number of final classifiers, 4"),
        ({"scheme": "ovo", "n_base": 7}, "n_base must be at most the number of final classifiers, 6"),
        ({"n_base": 0}, "n_base must be an integer of at least 1"),
        ({"bounds": (1, -1)}, "lower <= upper"),
        ({"bounds": (0, 1, 2)}, "bounds must be None or a pair"),
        ({"bounds": (np.nan, 1)}, "bounds must not be NaN"),
        ({"bounds": (-1e300, 1e300)}, "bounds must be at most 1e\\+15 in size, or infinite"),
        ({"bounds": (np.zeros((2, 2)), 1)}, "bounds must be None or a pair"),
        ({"bounds": (-2, -1), "constraint": "nonnegative"}, "contradicts upper bounds"),
        ({"fixed_relations": {(0, 1): 2.0}}, "fixed_relations must lie within the bounds, got 2"),
        ({"fixed_relations": {(0, 9): 0.5}}, "keys must be pairs of the classes"),
        ({"fixed_relations": np.zeros((2, 2))}, "fixed_relations must have shape"),
        ({"fixed_relations": {(0, 1): 0.5}, "scheme": "ovo"}, "needs scheme='ovr'"),
        ({"fixed_relations": {(0, 1): 0.5, (1, 0): 0.1}, "constraint": "symmetric"}, "must be symmetric"),
        ({"constraint": "square"}, "constraint must be one of"),
        ({"constraint": "psd", "n_base": 3}, "needs a square matrix"),
        ({"constraint": "symmetric", "scheme": "ovo"}, "needs scheme='ovr'"),
        ({"formulation": "fast", "scheme": "ovo"}, "needs scheme='ovr'"),
        ({"formulation": "sum_to_zero", "max_iter": -1}, "max_iter must be at least 1"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
        ({"n_init": 0}, "n_init must be"),
        ({"class_weight": "even"}, "class_weight must be"),
        ({"kernel": "precomputed", "landmarks": 3}, "landmarks must be None"),
    ],
)
def test_bad_arguments_are_named(data, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        SharedStructureSVC(**options).fit(*data)


def test_streams_must_announce_their_classes(data):
    X, y = data
    with pytest.raises(ValueError, match="classes must be given in the first call"):
        SharedStructureSVC().partial_fit(X, y)
    model = SharedStructureSVC().partial_fit(X, y, classes=np.arange(4))
    with pytest.raises(ValueError, match="classes must be those of the first call"):
        model.partial_fit(X, y, classes=np.arange(5))
