"""Suspect labels: planted flips are found, whatever the classifier; the noise matrix, cleaning, bad input."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import MulticategorySVC, ProximalSVC, SparseSVC, clean_and_refit, suspect_labels
from polymargin.selection.least_squares import leave_out_by_least_squares

NAMES = np.array(["ash", "beech", "cedar"])


@pytest.fixture(scope="module")
def planted():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 240)
    X = rng.normal(size=(240, 2)) + 5.0 * np.array([[0, 0], [1, 0], [0, 1]])[labels]
    noisy = labels.copy()
    wrong = rng.choice(240, 24, replace=False)
    noisy[wrong] = (labels[wrong] + 1) % 3
    return X, NAMES[noisy], NAMES[labels], np.sort(wrong)


ESTIMATORS = [
    None,
    MulticategorySVC(),
    ProximalSVC(),
    SparseSVC(),
    LogisticRegression(),
    GaussianNB(),
    make_pipeline(StandardScaler(), MulticategorySVC()),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_planted_flips_are_found_by_every_classifier(estimator, planted):
    X, y, clean, wrong = planted
    found = suspect_labels(X, y, estimator)
    first = found.rows[found.order][:24]
    assert np.isin(first, wrong).mean() > 0.8
    table = found.table()
    assert list(table.columns) == ["row", "was", "should_be", "sure", "own"]
    assert table["sure"].is_monotonic_decreasing
    assert table["sure"].between(0.5, 1.0).all()
    np.testing.assert_array_equal(table["was"], y[table["row"]])
    hits = table[table["row"].isin(wrong)]
    assert (hits["should_be"] == clean[hits["row"]]).mean() > 0.9
    assert len(found.table(everyone=True)) == 240


def test_the_noise_matrix_has_its_intervals(planted):
    X, y, _, _ = planted
    noise = suspect_labels(X, y, level=0.9).noise
    for i in range(3):
        for j in range(3):
            interval = binomtest(int(noise.counts[i, j]), int(noise.counts[:, j].sum())).proportion_ci(
                0.9, "exact"
            )
            assert noise.lower[i, j] == pytest.approx(interval.low, abs=1e-9)
            assert noise.upper[i, j] == pytest.approx(interval.high, abs=1e-9)
    # a tenth of each class is called the next one, none the one before
    for j in range(3):
        assert noise.lower[(j + 1) % 3, j] < 0.1 < noise.upper[(j + 1) % 3, j]
        assert noise.share[(j + 2) % 3, j] < 0.05
    np.testing.assert_allclose(noise.share.sum(axis=0), 1.0)


def test_rows_of_weight_zero_are_not_judged(planted):
    X, y, _, _ = planted
    weights = np.ones(240)
    weights[:10] = 0.0
    found = suspect_labels(X, y, sample_weight=weights)
    np.testing.assert_array_equal(np.sort(found.rows), np.arange(10, 240))
    without = suspect_labels(X[10:], y[10:])
    np.testing.assert_allclose(np.sort(found.log_odds), np.sort(without.log_odds), rtol=1e-6)


@pytest.mark.parametrize("cleaning", ["drop", "relabel"])
def test_cleaning_is_judged_on_rows_that_took_no_part(cleaning, planted):
    X, y, clean, wrong = planted
    effect = clean_and_refit(pd.DataFrame(X), y, cleaning=cleaning, at_least=0.7, random_state=1)
    assert not np.isin(effect.train, effect.held_out).any()
    assert len(effect.train) + len(effect.held_out) == 240
    touched = effect.train[effect.suspicion.rows[effect.suspicion.is_suspect & (effect.suspicion.sure >= 0.7)]]
    assert len(touched) == effect.n_cleaned > 10
    assert np.isin(touched, wrong).mean() > 0.8
    by_hand = np.mean(effect.after.predict(pd.DataFrame(X[effect.held_out])) != y[effect.held_out])
    assert effect.error_after == by_hand
    assert effect.difference == pytest.approx(effect.error_after - effect.error_before)
    right = np.mean(effect.after.predict(pd.DataFrame(X[effect.held_out])) == clean[effect.held_out])
    assert right > 0.93


def test_bad_input(planted):
    X, y, _, _ = planted
    with pytest.raises(ValueError, match="level must be below 1, got 1"):
        suspect_labels(X, y, level=1.0)
    with pytest.raises(TypeError, match="estimator must have a decision_function or predict_proba"):
        suspect_labels(X, y, StandardScaler())
    with pytest.raises(ValueError, match="at least two classes"):
        suspect_labels(X, np.repeat("ash", 240))
    with pytest.raises(ValueError, match="cleaning must be one of"):
        clean_and_refit(X, y, cleaning="scrub")
    with pytest.raises(ValueError, match="at_least must be"):
        clean_and_refit(X, y, at_least=0.2)
    with pytest.raises(ValueError, match="test_size must be"):
        clean_and_refit(X, y, test_size=1.5)


@pytest.fixture(scope="module")
def many_classes():
    rng = np.random.default_rng(3)
    labels = np.arange(132) % 11
    X = rng.normal(size=(132, 4)) + 4.0 * rng.normal(size=(11, 4))[labels]
    noisy = labels.copy()
    wrong = rng.choice(132, 12, replace=False)
    noisy[wrong] = (labels[wrong] + rng.integers(1, 11, 12)) % 11
    return X, noisy, wrong


def test_many_classes_are_judged_by_least_squares(many_classes):
    X, y, wrong = many_classes
    found = suspect_labels(X, y)
    assert np.isin(found.rows[found.order][:12], wrong).mean() > 0.8
    by_hinges = suspect_labels(X, y, MulticategorySVC(loss="weston", tol=1e-3))
    assert np.corrcoef(found.log_odds, by_hinges.log_odds)[0, 1] > 0.7
    folds = suspect_labels(X, y, cv=3)  # folds are of the machine that is named
    np.testing.assert_array_equal(
        folds.log_odds, suspect_labels(X, y, MulticategorySVC(loss="weston", tol=1e-3), cv=3).log_odds
    )


def test_a_weight_is_a_repetition_by_least_squares(many_classes):
    X, y, _ = many_classes
    weights = np.random.default_rng(4).integers(0, 3, len(y)).astype(float)
    weights[:22] = 1.0
    weighted = suspect_labels(X, y, sample_weight=weights)
    repeated = np.repeat(np.arange(len(y)), weights.astype(int))
    given = suspect_labels(X[repeated], y[repeated])
    place = {row: at for at, row in enumerate(weighted.rows)}
    at = [place[row] for row in repeated[given.rows]]
    np.testing.assert_allclose(given.log_odds, weighted.log_odds[at], rtol=1e-9)


def test_more_rows_than_landmarks(many_classes, monkeypatch):
    X, y, wrong = many_classes
    by_landmarks = partial(leave_out_by_least_squares, most_rows=66)
    monkeypatch.setattr("polymargin.selection.labels.leave_out_by_least_squares", by_landmarks)
    found = suspect_labels(X, y)
    assert np.isin(found.rows[found.order][:12], wrong).mean() > 0.7
