"""Sets of classes: their coverage over many samples, by hand where that is possible, and what is refused."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from polymargin import MulticategorySVC, PredictionSetClassifier, ProbabilityClassifier, persistence
from polymargin.selection.prediction_sets import misfits
from tests.simulate import blobs


@pytest.fixture(scope="module")
def data():
    return blobs(np.random.default_rng(0), 90, 4, 3)


def test_misfits_by_hand():
    P = np.array([[0.5, 0.2, 0.3]])
    np.testing.assert_allclose(misfits(P, "lac"), [[0.5, 0.8, 0.7]])
    np.testing.assert_allclose(misfits(P, "aps"), [[0.5, 1.0, 0.8]])
    np.testing.assert_allclose(misfits(P, "raps"), [[0.5, 1.05, 0.8]])


@pytest.mark.parametrize("coverage_of", ["all", "class"])
@pytest.mark.parametrize(("misfit", "cv"), [("lac", None), ("aps", None), ("raps", None), ("lac", 3)])
def test_sets_hold_the_true_class_as_often_as_promised(misfit, coverage_of, cv):
    """Over 15 samples of 90 rows: at most three standard errors below, marginally or for every class."""
    X, y = blobs(np.random.default_rng(1), 15 * 90 + 600, 2, 3)
    fresh, truth = X[-600:], y[-600:]
    held = []
    for part in range(15):
        rows = slice(90 * part, 90 * part + 90)
        model = PredictionSetClassifier(
            LogisticRegression() if cv else MulticategorySVC(gamma=0.2),
            coverage=0.8,
            coverage_of=coverage_of,
            misfit=misfit,
            method="vector",
            cv=cv,
        ).fit(X[rows], y[rows])
        within = model.predict_set(fresh)[np.arange(600), truth]
        held.append([within.mean()] if coverage_of == "all" else [within[truth == j].mean() for j in range(3)])
    held = np.array(held)
    error = held.std(axis=0, ddof=1) / np.sqrt(15)
    assert (held.mean(axis=0) >= 0.8 - 3 * error).all()


def test_weights_are_repetition(data):
    X, y = data
    times = np.random.default_rng(1).integers(0, 3, len(y))
    for coverage_of in ("all", "class"):
        options = {"coverage": 0.8, "coverage_of": coverage_of, "method": "vector"}
        weighted = PredictionSetClassifier(LogisticRegression(), **options).fit(X, y, sample_weight=times)
        repeated = PredictionSetClassifier(LogisticRegression(), **options).fit(
            X.repeat(times, axis=0), y.repeat(times)
        )
        np.testing.assert_allclose(weighted.thresholds_, repeated.thresholds_, atol=1e-4)


def test_a_class_of_too_few_rows_is_in_every_set(data):
    X, y = data
    kept = np.concatenate([np.flatnonzero(y != 2), np.flatnonzero(y == 2)[:4]])
    for cv in (None, 2):
        model = PredictionSetClassifier(LogisticRegression(), coverage_of="class", cv=cv).fit(X[kept], y[kept])
        assert model.predict_set(X)[:, 2].all()


@pytest.mark.parametrize("coverage_of", ["all", "class"])
@pytest.mark.parametrize("cv", [None, 3])
def test_another_coverage_needs_no_refit(data, cv, coverage_of):
    X, y = data
    options = {"coverage_of": coverage_of, "method": "vector", "cv": cv}
    model = PredictionSetClassifier(LogisticRegression(), coverage=0.9, **options).fit(X, y)
    other = PredictionSetClassifier(LogisticRegression(), coverage=0.6, **options).fit(X, y)
    sets = other.predict_set(X)
    np.testing.assert_array_equal(model.predict_set(X, coverage=0.6), sets)
    assert model.predict_set(X).sum() > sets.sum()
    with pytest.raises(ValueError, match="coverage must be"):
        model.predict_set(X, coverage=1.0)


def test_the_min_max_form_by_its_definition(data):
    """A class is in the set unless every classifier finds it worse than the share of left-out rows allows."""
    X, y = data
    folds = [(np.flatnonzero(np.arange(90) % 3 != f), np.flatnonzero(np.arange(90) % 3 == f)) for f in range(3)]
    options = {"coverage": 0.8, "method": "vector", "cv": folds}
    fresh = np.random.default_rng(1).normal(size=(200, X.shape[1]))
    own, best = np.empty(90), np.full((200, 3), np.inf)
    for train, test in folds:
        part = ProbabilityClassifier(LogisticRegression(), method="vector").fit(X[train], y[train])
        own[test] = 1.0 - part.predict_proba(X[test])[np.arange(len(test)), y[test]]
        best = np.minimum(best, 1.0 - part.predict_proba(fresh))
    sets = PredictionSetClassifier(LogisticRegression(), form="minmax", **options).fit(X, y).predict_set(fresh)
    np.testing.assert_array_equal(sets, best <= np.sort(own)[int(np.ceil(91 * 0.8)) - 1])
    smaller = PredictionSetClassifier(LogisticRegression(), **options).fit(X, y).predict_set(fresh)
    assert (sets | ~smaller).all()
    assert sets.sum() > smaller.sum()
    with pytest.raises(ValueError, match="form must be one of"):
        PredictionSetClassifier(LogisticRegression(), form="max").fit(X, y)
    with pytest.raises(ValueError, match="give cv, got cv=None"):
        PredictionSetClassifier(LogisticRegression(), form="minmax").fit(X, y)


def test_words_for_sets(data):
    X, y = data
    model = PredictionSetClassifier(MulticategorySVC(), coverage=0.7).fit(X, y)
    labels, reasons = model.predict_with_reason(X)
    sizes = model.predict_set(X).sum(axis=1)
    np.testing.assert_array_equal(labels, model.classes_[model.predict_proba(X).argmax(axis=1)])
    for word, holds in (("novel", sizes == 0), ("certain", sizes == 1), ("ambiguous", sizes > 1)):
        np.testing.assert_array_equal(reasons == word, holds)


def test_saving(data, tmp_path):
    X, y = data
    for cv in (None, 3):
        model = PredictionSetClassifier(MulticategorySVC(), cv=cv).fit(X, y)
        persistence.save(model, tmp_path / "model.skops")
        again = persistence.load(tmp_path / "model.skops").model
        np.testing.assert_array_equal(again.predict_set(X), model.predict_set(X))


def test_bad_input(data):
    X, y = data
    for coverage in (0.0, 1.0, 1.5, -1):
        with pytest.raises(ValueError, match="coverage must be"):
            PredictionSetClassifier(MulticategorySVC(), coverage=coverage).fit(X, y)
    with pytest.raises(TypeError, match="coverage must be"):
        PredictionSetClassifier(MulticategorySVC(), coverage="high").fit(X, y)
    with pytest.raises(ValueError, match="coverage_of must be one of"):
        PredictionSetClassifier(MulticategorySVC(), coverage_of="row").fit(X, y)
    with pytest.raises(ValueError, match="misfit must be one of"):
        PredictionSetClassifier(MulticategorySVC(), misfit="best").fit(X, y)
    with pytest.raises(ValueError, match="got 1 of class 9"):
        PredictionSetClassifier(MulticategorySVC()).fit(X, np.where(np.arange(90) == 3, 9, y))
    split = [(np.flatnonzero(y != 0), np.flatnonzero(y == 0))]
    with pytest.raises(ValueError, match="class 0 is missing"):
        PredictionSetClassifier(MulticategorySVC(), cv=split).fit(X, y)
