"""ProximalSVC: streams, forgetting, kernels, weights, refinement and errors."""

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold, cross_val_score

from polymargin import ProximalSVC, ProximalSVCCV
from tests.simulate import blobs

CLASSES = np.array(["ash", "birch", "cedar", "dogwood"])


@pytest.fixture
def data():
    rng = np.random.default_rng(5)
    X, labels = blobs(rng, 400, 6, len(CLASSES))
    return X, CLASSES[labels], rng.uniform(0.2, 3.0, len(X))


def parameters(model):
    V = model.coef_ if hasattr(model, "coef_") else model.dual_coef_
    return np.column_stack([V, model.intercept_])


def assert_same(model, other, tolerance):
    mine, others = parameters(model), parameters(other)
    assert np.abs(mine - others).max() <= tolerance * np.abs(others).max()


def assert_refused(model, method, arguments, message):
    before = joblib.hash(model)
    with pytest.raises(ValueError, match=message):
        method(*arguments)
    assert joblib.hash(model) == before


def stream(model, X, y, w, cuts):
    for rows in np.split(np.arange(len(X)), cuts):
        model.partial_fit(X[rows], y[rows], classes=CLASSES, sample_weight=w[rows])
    return model


@pytest.mark.parametrize(("C", "tolerance"), [(1.0, 1e-9), (2.0**10, 1e-9), (2.0**25, 1e-7)])
@pytest.mark.parametrize("balance", [True, False])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_any_chunking_of_a_stream_equals_one_fit(data, kernel, balance, C, tolerance):
    X, y, w = data
    landmarks = X[::20] if kernel == "rbf" else None
    model = ProximalSVC(C, kernel=kernel, gamma=0.2, landmarks=landmarks, balance=balance, refine=False)
    whole = clone(model).fit(X, y, w)
    by_class = np.argsort(y)
    for order, cuts in ((slice(None), [1, 7, 30, 399]), (slice(None), []), (by_class, [100, 200, 300])):
        streamed = stream(clone(model), X[order], y[order], w[order], cuts)
        assert_same(streamed, whole, tolerance)
        assert streamed.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-9)
    continued = clone(model).fit(X[:250], y[:250], w[:250]).partial_fit(X[250:], y[250:], sample_weight=w[250:])
    assert_same(continued, whole, tolerance)


@pytest.mark.parametrize(("C", "tolerance"), [(1.0, 1e-9), (2.0**25, 1e-7)])
@pytest.mark.parametrize("balance", [True, False])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_forgetting_undoes_learning(data, kernel, balance, C, tolerance):
    X, y, w = data
    landmarks = X[::20] if kernel == "rbf" else None
    model = ProximalSVC(C, kernel=kernel, gamma=0.2, landmarks=landmarks, balance=balance, refine=False)
    part = clone(model).fit(X[:150], y[:150], w[:150])
    model.fit(X, y, w).forget(X[150:], y[150:], w[150:])
    assert_same(model, part, tolerance)


def test_a_forgotten_class_leaves_nothing_but_its_name(data):
    X, y, w = data
    gone = y == "birch"
    model = ProximalSVC(refine=False).fit(X, y, w).forget(X[gone], y[gone], w[gone])
    assert model.moments_.totals[1] == 0
    assert not model.moments_.grams[1].any()
    rest = ProximalSVC(refine=False).partial_fit(X[~gone], y[~gone], classes=CLASSES, sample_weight=w[~gone])
    assert_same(model, rest, 1e-9)


@pytest.mark.parametrize("refine_weights", ["uniform", "balanced"])
def test_streams_are_refined_by_passing_over_the_chunks(data, refine_weights):
    X, y, w = data
    model = ProximalSVC(4.0, refine_weights=refine_weights)
    whole = clone(model).fit(X, y, w)
    streamed = stream(clone(model), X, y, w, [100, 333])
    assert streamed.refinement_ is None
    chunks = [(X[rows], y[rows], w[rows]) for rows in np.split(np.arange(len(X)), [50, 60])]
    streamed.refine_on(chunks)
    assert_same(streamed, whole, 1e-9)
    np.testing.assert_array_equal(streamed.refinement_.n_iter, whole.refinement_.n_iter)
    with pytest.raises(TypeError, match="iterable again and again"):
        streamed.refine_on(iter(chunks))


def test_support_vectors_are_the_rows_within_a_margin(data):
    X, y, w = data
    w = np.where(np.arange(len(X)) % 5 == 0, 0.0, w)
    model = ProximalSVC(4.0).fit(X, y, w)
    signs = np.where(y[:, None] == CLASSES, 1.0, -1.0)
    within = (signs * model.decision_function(X) < 1.0).any(axis=1) & (w > 0)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(within))
    others = np.setdiff1d(np.flatnonzero(w), model.support_)
    heavier = np.where(np.isin(np.arange(len(X)), others), 3.0 * w, w)
    again = ProximalSVC(4.0, refine=False).fit(X, y, w).refine_on([(X, y, heavier)])
    assert_same(again, model, 1e-12)  # a row without multiplier does not matter


@pytest.mark.parametrize("balance", [True, False])
def test_two_classes_are_mirror_images_and_ridge_regression(data, balance):
    X, y, _ = data
    binary = np.where(y == "ash", "ash", "other")
    model = ProximalSVC(3.0, balance=balance, refine=False).fit(X, binary)
    np.testing.assert_allclose(model.coef_[0], -model.coef_[1], rtol=1e-9, atol=1e-13)
    share = np.where(binary == "ash", 1 / (binary == "ash").sum(), 1 / (binary != "ash").sum())
    E = np.column_stack([X, -np.ones(len(X))])
    ridge = Ridge(alpha=1 / 3.0, fit_intercept=False)
    ridge.fit(E, np.where(binary == "other", 1.0, -1.0), sample_weight=share if balance else None)
    np.testing.assert_allclose(model.decision_function(X), E @ ridge.coef_, rtol=1e-9, atol=1e-11)
    refined = ProximalSVC(3.0, balance=balance).fit(X, binary).refinement_
    np.testing.assert_allclose(refined.scale[0], refined.scale[1])
    np.testing.assert_allclose(refined.offset[0], -refined.offset[1])


@pytest.mark.parametrize(
    "options", [{}, {"kernel": "rbf"}, {"kernel": "rbf", "landmarks": 0.3, "random_state": 0}]
)
def test_sparse_and_single_precision_rows_give_the_same_machine(data, options):
    X, y, w = data
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    model = ProximalSVC(2.0, **options).fit(X, y, w)
    for form in (sparse.csr_array, sparse.csc_matrix):
        assert_same(ProximalSVC(2.0, **options).fit(form(X), y, w), model, 1e-9)
    indices = sparse.csr_array(X)
    indices.indices, indices.indptr = indices.indices.astype(np.int64), indices.indptr.astype(np.int64)
    assert_same(ProximalSVC(2.0, **options).fit(indices, y, w), model, 1e-9)
    single = ProximalSVC(2.0, **options).fit(X.astype(np.float32), y, w)
    assert_same(single, model, 1e-4)
    if not options:
        rounded = ProximalSVC(2.0).fit(X.astype(np.float32).astype(np.float64), y, w)
        assert_same(single, rounded, 1e-12)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian"])
def test_integer_weights_are_repetitions_for_every_kernel(data, kernel):
    X, y, _ = data
    X, y = X[:80], y[:80]
    times = np.random.default_rng(0).integers(0, 4, len(X))
    model = ProximalSVC(2.0, kernel=kernel)
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    weighted = clone(model).fit(X, y, times.astype(float))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-8, atol=1e-8)


def test_precomputed_kernels_equal_computed_ones(data):
    X, y, w = data
    w = np.where(np.arange(len(X)) % 7 == 0, 0.0, w)
    K = rbf_kernel(X, gamma=0.2)
    computed = ProximalSVC(8.0, kernel="rbf", gamma=0.2).fit(X, y, w)
    given = ProximalSVC(8.0, kernel="precomputed").fit(K, y, w)
    np.testing.assert_allclose(given.decision_function(K), computed.decision_function(X), rtol=1e-8, atol=1e-8)
    called = ProximalSVC(8.0, kernel=lambda A, B: rbf_kernel(A, B, gamma=0.2)).fit(X, y, w)
    assert_same(called, computed, 1e-9)


def test_landmarks_by_count_fraction_points_and_k_means(data):
    X, y, w = data
    for landmarks, method, expected in ((40, "sample", 40), (0.15, "sample", 0.15 * w.sum()), (40, "kmeans", 40)):
        model = ProximalSVC(kernel="rbf", landmarks=landmarks, landmark_method=method, random_state=0)
        model.fit(X, y, w)
        assert abs(model.landmarks_.shape[0] - expected) <= len(CLASSES)
        assert model.dual_coef_.shape == (len(CLASSES), model.landmarks_.shape[0])
        assert_same(clone(model).fit(X, y, w), model, 0.0)
        again = ProximalSVC(kernel="rbf", landmarks=model.landmarks_).fit(X, y, w)
        assert_same(again, model, 1e-10)
    drawn = ProximalSVC(kernel="rbf", landmarks=10, random_state=1).fit(X, y).landmarks_
    assert (drawn[:, None] == X[None]).all(axis=2).any(axis=1).all()


def test_the_order_of_rows_and_names_of_classes_do_not_matter(data):
    X, y, w = data
    model = ProximalSVC(2.0, kernel="rbf").fit(X, y, w)
    order = np.random.default_rng(2).permutation(len(X))
    renamed = np.array([3, 1, 0, 2])[np.searchsorted(CLASSES, y)]
    other = ProximalSVC(2.0, kernel="rbf").fit(X[order], renamed[order], w[order])
    scores = other.decision_function(X)[:, [3, 1, 0, 2]]
    np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-8, atol=1e-8)


def test_more_unknowns_than_rows_keep_no_large_moments():
    rng = np.random.default_rng(0)
    X, y = blobs(rng, 30, 2400, 3)
    model = ProximalSVC().fit(X, y)
    assert model.moments_ is None
    for method in (model.partial_fit, model.forget):
        with pytest.raises(ValueError, match="too many of those to keep moments"):
            method(X, y)
    small = ProximalSVC(refine=False).fit(X[:20, :50], y[:20]).partial_fit(X[20:, :50], y[20:])
    assert_same(small, ProximalSVC(refine=False).fit(X[:, :50], y), 1e-9)


def test_what_rounding_leaves_is_said_to_be_rounding(data):
    X, y, _ = data
    model = ProximalSVC(2.0**45, kernel="rbf", gamma=0.01, landmarks=X[::4], tol=1e-300)
    with pytest.warns(ConvergenceWarning, match="No further progress was possible in floating-point arithmetic"):
        model.partial_fit(X, y, classes=CLASSES)  # a stream has no rows left to correct the solution by
    assert not model.converged_


def test_iris_is_classified_as_in_the_paper():
    X, y = load_iris(return_X_y=True)
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    refined = cross_val_score(ProximalSVC(2.0), X, y, cv=folds).mean()
    plain = cross_val_score(ProximalSVC(2.0, balance=False, refine=False), X, y, cv=folds).mean()
    assert refined >= 0.96
    assert plain <= 0.88


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"C": 0.0}, ValueError, "C must be"),
        ({"C": "1"}, TypeError, "C must be"),
        ({"landmarks": 0, "kernel": "rbf"}, ValueError, "landmarks must be an integer of at least 1"),
        ({"landmarks": 401, "kernel": "rbf"}, ValueError, "at most the number of samples, 400, got 401"),
        ({"landmarks": 1.5, "kernel": "rbf"}, ValueError, "landmarks must be"),
        ({"landmarks": np.ones((3, 2)), "kernel": "rbf"}, ValueError, "one column per feature"),
        ({"landmarks": 3, "kernel": "precomputed"}, ValueError, "landmarks must be None"),
        ({"landmark_method": "grid"}, ValueError, "landmark_method must be"),
        ({"balance": "yes"}, TypeError, "balance must be"),
        ({"refine": 1}, TypeError, "refine must be"),
        ({"refine_weights": "odd"}, ValueError, "refine_weights must be"),
        ({"kernel": "cosine"}, ValueError, "kernel must be"),
        ({"tol": 0.0}, ValueError, "tol must be"),
    ],
)
def test_wrong_arguments_are_named(data, options, error, message):
    X, y, _ = data
    with pytest.raises(error, match=message):
        ProximalSVC(**options).fit(X, y)


def test_wrong_chunks_leave_the_model_as_it_was(data):
    X, y, _ = data
    model = ProximalSVC(refine=False)
    with pytest.raises(ValueError, match="classes must be given in the first call"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="at least two classes"):
        model.partial_fit(X, y, classes=["ash"])
    with pytest.raises(ValueError, match="not among the classes"):
        model.partial_fit(X, y, classes=["ash", "birch"])
    assert not hasattr(model, "classes_")
    model.partial_fit(X[:200], y[:200], classes=CLASSES)
    wrong = [
        (model.partial_fit, (X, np.where(y == "ash", "elm", y)), "not among the classes"),
        (model.partial_fit, (X, y, ["ash", "birch"]), "classes must be those of the first call"),
        (model.partial_fit, (X[:, :3], y), "features"),
        (model.partial_fit, (X[:0], y[:0]), "0 sample"),
        (model.forget, (X[:0], y[:0]), "0 sample"),
        (model.forget, (X, y), "more than was seen"),
        (model.forget, (X[:200], np.full(200, "ash")), "more than was seen of class ash"),
        (model.forget, (X[:200], y[:200]), "must leave at least one row"),
        (model.forget, (10 * X[:3], y[:3]), "never given"),
        (model.forget, (X[:, :3], y), "features"),
    ]
    for method, arguments, message in wrong:
        assert_refused(model, method, arguments, message)
    with pytest.raises(ValueError, match="precomputed"):
        ProximalSVC(kernel="precomputed").partial_fit(X, y, classes=CLASSES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 0.0}, "C must be"),
        ({"C": -2.0}, "C must be"),
        ({"landmarks": 0}, "landmarks must be an integer of at least 1"),
        ({"landmarks": 9999}, "at most the number of samples, .*, got 9999"),
    ],
)
def test_a_refined_model_is_as_it_was_after_wrong_arguments(data, options, message):
    X, y, w = data
    model = ProximalSVC(kernel="rbf", landmarks=X[:50]).fit(X, y, w)
    assert_refused(model, model.forget, (X, y, 2.0 * w), "more than was seen")
    assert_refused(model, model.partial_fit, (X[:, :3], y), "features")
    model.set_params(**options)
    assert_refused(model, model.fit, (X, y, w), message)
    if "C" in options:
        assert_refused(model, model.partial_fit, (X, y), message)
        assert_refused(model, model.forget, (X[:3], y[:3], w[:3]), message)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(40, 5), (6, 50)])
def test_numbers_that_are_none_are_found_wherever_the_rows_are_read(wrong, shape):
    X, y = blobs(np.random.default_rng(0), *shape, 2)
    X[shape[0] // 2, 1] = wrong
    for model in (ProximalSVC(), ProximalSVC(kernel="rbf"), ProximalSVC(landmarks=3)):
        with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
            model.fit(X, y)
        with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
            model.partial_fit(X, y, classes=[0, 1])


def test_labels_may_be_integers_of_any_kind_and_range():
    X, labels = blobs(np.random.default_rng(0), 60, 4, 3)
    expected = ProximalSVC().fit(X, np.array(["a", "b", "c"])[labels]).decision_function(X)
    for names in ([0, 1, 2], [-3, 5, 9], [7, 8, 9], [-(2**62), 0, 2**62]):
        model = ProximalSVC().fit(X, np.array(names)[labels])
        np.testing.assert_array_equal(model.classes_, names)
        np.testing.assert_array_equal(model.decision_function(X), expected)
    for dtype, names in (
        (np.int8, [-100, 0, 100]),
        (np.uint8, [1, 2, 200]),
        (np.uint64, [2**64 - 9, 2**64 - 8, 2**64 - 1]),
    ):
        names = np.array(names, dtype=dtype)
        model = ProximalSVC().fit(np.tile(X, (7, 1)), names[np.tile(labels, 7)])
        np.testing.assert_array_equal(model.classes_, names)
        assert model.classes_.dtype == dtype


@pytest.mark.parametrize("given", [{"kernel": "linear"}, {"kernel": "rbf"}, {"balance": False, "refine": False}])
def test_class_weights_are_sample_weights(given):
    X, y = load_iris(return_X_y=True)
    X, y = X[:130], y[:130]
    by_hand = np.array([3.0, 1.0, 0.5])[y]
    weighted = ProximalSVC(class_weight={0: 3.0, 2: 0.5}, **given).fit(X, y)
    same = ProximalSVC(**given).fit(X, y, sample_weight=by_hand)
    np.testing.assert_array_equal(weighted.decision_function(X), same.decision_function(X))
    counts = np.bincount(y)
    balanced = ProximalSVC(class_weight="balanced", **given).fit(X, y)
    same = ProximalSVC(**given).fit(X, y, sample_weight=(len(y) / (3 * counts))[y])
    np.testing.assert_array_equal(balanced.decision_function(X), same.decision_function(X))


def test_class_weights_in_streams():
    X, y = load_iris(return_X_y=True)
    weights = {0: 3.0, 2: 0.5}
    whole = ProximalSVC(class_weight=weights, refine=False).fit(X, y)
    stream = ProximalSVC(class_weight=weights, refine=False)
    for part in (slice(0, None, 2), slice(1, None, 2)):
        stream.partial_fit(X[part], y[part], classes=[0, 1, 2])
    np.testing.assert_allclose(stream.coef_, whole.coef_, rtol=1e-9)
    with pytest.raises(ValueError, match=r"partial_fit sees some of the rows .* got 'balanced'"):
        ProximalSVC(class_weight="balanced").partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="forget sees some"):
        ProximalSVC(class_weight="balanced").fit(X, y).forget(X[:3], y[:3])
    with pytest.raises(ValueError, match="must be None in ProximalSVCCV"):
        ProximalSVCCV(ProximalSVC(class_weight=weights)).fit(X, y)


@pytest.mark.parametrize("C", [1.0, 1e8, 1e12])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5])
@pytest.mark.parametrize(("n", "p"), [(30, 50), (60, 200), (200, 8)])
def test_offsets_and_large_C_are_certified(n, p, offset, C):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, p)), np.arange(n) % 3
    model = ProximalSVC(C, refine=False).fit(X + offset, y)
    assert model.converged_
    assert abs(model.certificate_.gap) <= model.tol


def test_a_row_that_alone_determines_its_score_cannot_be_left_out():
    X, y = np.vstack([1e8 * np.eye(3), np.zeros((5, 3))]), np.arange(8) % 2
    with pytest.raises(ValueError, match="X holds a row that alone determines its own score"):
        ProximalSVCCV(ProximalSVC(refine=False), Cs=[1e15]).fit(X, y)
