"""Paths and searches of the proximal machine against the refits that they save."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold, cross_val_score

from polymargin import ProximalSVC, ProximalSVCCV, proximal_path
from polymargin.selection.proximal import _leave_one_out
from polymargin.solvers.ridge.left_out import LeftOutSides, left_out_scores
from tests.simulate import blobs

CS = 2.0 ** np.array([0, 8, 16, 24, 30])


def parameters(model):
    V = model.coef_ if hasattr(model, "coef_") else model.dual_coef_
    return np.column_stack([V, model.intercept_])


def machine(kind, X, **options):
    if kind == "linear":
        return ProximalSVC(**options)
    landmarks = {"rbf": None, "reduced": X[:8], "many landmarks": np.vstack([X, X + 0.1])}[kind]
    return ProximalSVC(kernel="rbf", gamma=0.3, landmarks=landmarks, **options)


@pytest.mark.parametrize("refine", [True, False])
@pytest.mark.parametrize("balance", [True, False])
@pytest.mark.parametrize("kind", ["linear", "rbf", "reduced"])
def test_paths_are_fits(kind, balance, refine):
    rng = np.random.default_rng(0)
    X, y = blobs(rng, 60, 4, 3)
    w = rng.uniform(0.5, 2.0, len(X))
    base = machine(kind, X, balance=balance, refine=refine)
    for model, C in zip(proximal_path(base, X, y, CS, sample_weight=w), CS, strict=True):
        fitted = clone(base).set_params(C=C).fit(X, y, w)
        assert np.abs(parameters(model) - parameters(fitted)).max() <= 1e-7 * np.abs(parameters(fitted)).max()
        assert model.certificate_.primal == pytest.approx(fitted.certificate_.primal, rel=1e-7)
        assert (model.C, model.converged_) == (C, True)
        np.testing.assert_array_equal(model.predict(X), fitted.predict(X))


def refits(base, X, y, C):
    """Scores (n, k) of every row by the machine fitted to the others, with the same landmarks."""
    scores = np.empty((len(X), y.max() + 1))
    for i in range(len(X)):
        rest = np.delete(np.arange(len(X)), i)
        model = clone(base).set_params(C=C).fit(X[rest], y[rest])
        row = model.decision_function(X[[i]])
        scores[i] = row if row.ndim == 2 else [-row[0], row[0]]
    return scores


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("balance", [True, False])
@pytest.mark.parametrize("kind", ["linear", "rbf", "reduced", "many landmarks"])
def test_closed_form_leave_one_out_equals_refits(kind, balance, n_classes):
    rng = np.random.default_rng(1)
    X, y = blobs(rng, 24, 3, n_classes)
    base = machine(kind, X, balance=balance, refine=False)
    if kind == "rbf":
        base.set_params(landmarks=X)
    data = clone(base)._training_set(X, y)
    moments, problem, rows, _ = base._state(data, base._features(data))
    sides = LeftOutSides.of(np.bincount(y).astype(float), balance)
    ((_, scores),) = left_out_scores(rows, None if problem is None else moments, sides, CS)
    for at, C in enumerate(CS):
        expected = refits(base, X, y, C)
        np.testing.assert_allclose(scores[at], expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("kind", ["linear", "many landmarks"])
def test_the_only_row_of_a_class_is_left_out_like_any_other(kind):
    rng = np.random.default_rng(2)
    X, y = blobs(rng, 30, 3, 2)
    y[7] = 2
    base = machine(kind, X, refine=False)
    data = clone(base)._training_set(X, y)
    moments, problem, rows, _ = base._state(data, base._features(data))
    sides = LeftOutSides.of(np.bincount(y).astype(float), True)
    ((_, scores),) = left_out_scores(rows, None if problem is None else moments, sides, CS[:2])
    rest = np.delete(np.arange(30), 7)
    for at, C in enumerate(CS[:2]):
        model = clone(base).set_params(C=C)
        if kind == "linear":
            model.partial_fit(X[rest], y[rest], classes=[0, 1, 2])
        else:
            B = rbf_kernel(X, model.landmarks, gamma=0.3)
            model = ProximalSVC(C, refine=False).partial_fit(B[rest], y[rest], classes=[0, 1, 2])
        expected = model.decision_function((X if kind == "linear" else B)[[7]])[0]
        np.testing.assert_allclose(scores[at, 7], expected, rtol=1e-7)


@pytest.mark.parametrize("kind", ["linear", "many landmarks"])
def test_weights_of_left_out_rows_count_repetitions(kind):
    rng = np.random.default_rng(3)
    X, y = blobs(rng, 25, 3, 3)
    times = rng.integers(1, 4, len(X))
    base = machine(kind, X, refine=False)
    weighted, repeated = (
        _leave_one_out(base, data, base._features(data), CS[:3])
        for data in (
            clone(base)._training_set(X, y, times.astype(float)),
            clone(base)._training_set(np.repeat(X, times, axis=0), np.repeat(y, times)),
        )
    )
    for name, values in weighted.items():
        np.testing.assert_allclose(values, repeated[name], rtol=1e-7)


def test_the_search_keeps_the_best_by_leave_one_out():
    rng = np.random.default_rng(4)
    X, y = blobs(rng, 40, 3, 3)
    base = ProximalSVC(refine=False)
    search = ProximalSVCCV(base, Cs=CS).fit(X, y)
    accuracies = [np.mean(refits(base, X, y, C).argmax(axis=1) == y) for C in CS]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], accuracies)
    assert search.best_score_ == max(accuracies)
    assert search.cv_results_["rank_test_score"][search.best_index_] == 1
    assert search.best_params_["C"] == CS[search.best_index_]
    fitted = ProximalSVC(search.best_params_["C"], refine=False).fit(X, y)
    np.testing.assert_allclose(search.decision_function(X), fitted.decision_function(X))


@pytest.mark.parametrize("kind", ["linear", "rbf", "precomputed"])
def test_folds_give_the_scores_of_cross_validation(kind):
    rng = np.random.default_rng(5)
    X, y = blobs(rng, 60, 3, 3)
    if kind == "precomputed":
        X = rbf_kernel(X, gamma=0.3)
    base = ProximalSVC(kernel=kind, **({"gamma": 0.3} if kind == "rbf" else {}))
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    gammas = [0.1, 1.0] if kind == "rbf" else None
    search = ProximalSVCCV(base, Cs=CS[:3], gammas=gammas, criterion=folds).fit(X, y)
    results = search.cv_results_
    for at in range(len(results["param_C"])):
        model = clone(base).set_params(C=results["param_C"][at])
        if gammas:
            model.set_params(gamma=results["param_gamma"][at])
        expected = cross_val_score(model, X, y, cv=folds)
        found = [results[f"split{fold}_test_score"][at] for fold in range(4)]
        np.testing.assert_allclose(found, expected)


def test_kernel_widths_are_searched_around_the_scale():
    rng = np.random.default_rng(6)
    X, y = blobs(rng, 40, 3, 3)
    search = ProximalSVCCV(ProximalSVC(kernel="rbf", landmarks=0.5, random_state=0), Cs=CS[:2]).fit(X, y)
    assert len(search.cv_results_["param_C"]) == 18
    assert search.best_estimator_.gamma == search.best_params_["gamma"]
    assert search.predict(X).shape == (40,)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"estimator": "linear"}, TypeError, "estimator must be a ProximalSVC"),
        ({"Cs": []}, ValueError, "Cs must hold at least one"),
        ({"Cs": [1.0, -1.0]}, ValueError, "every entry of Cs must be"),
        ({"gammas": [1.0]}, ValueError, "gammas must be None with kernel='linear'"),
        ({"criterion": "aic"}, ValueError, "criterion must be one of 'loo'"),
    ],
)
def test_wrong_arguments_of_the_search_are_named(options, error, message):
    X, y = blobs(np.random.default_rng(0), 30, 2, 3)
    if options.get("estimator") == "linear":
        options = {"estimator": clone(ProximalSVCCV())}
    with pytest.raises(error, match=message):
        ProximalSVCCV(**options).fit(X, y)


def test_weights_below_one_are_refused_where_rows_are_left_out():
    X, y = blobs(np.random.default_rng(0), 30, 2, 3)
    with pytest.raises(ValueError, match="sample_weight must not be below 1"):
        ProximalSVCCV().fit(X, y, np.full(30, 0.5))
    ProximalSVCCV(criterion=3).fit(X, y, np.full(30, 0.5))
