"""Reliability diagrams and sizes of sets."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression

from polymargin import PredictionSetClassifier
from polymargin.inspection import ReliabilityDisplay, SetSizeDisplay
from tests.simulate import blobs


@pytest.fixture(scope="module")
def fitted():
    X, y = blobs(np.random.default_rng(0), 300, 2, 3, spread=1.5)
    names = np.array(["a$", "_b", "c"])[y]
    return (
        PredictionSetClassifier(LogisticRegression(), coverage=0.8).fit(X[:150], names[:150]),
        X[150:],
        names[150:],
    )


def test_points_are_those_of_scikit_learn(fitted):
    model, X, y = fitted
    display = ReliabilityDisplay.from_estimator(model, X, y, n_bins=7)
    P = model.predict_proba(X)
    for j, found in enumerate(display.reliabilities):
        observed, predicted = calibration_curve(y == model.classes_[j], P[:, j], n_bins=7)
        np.testing.assert_allclose(found.predicted, predicted)
        np.testing.assert_allclose(found.observed, observed)
        assert found.counts.sum() == len(y)
        hits = round(found.observed[0] * found.counts[0])
        interval = binomtest(hits, int(found.counts[0])).proportion_ci(0.95, method="wilson")
        assert (found.low[0], found.high[0]) == (interval.low, interval.high)
    assert len(display.lines_) == 3
    assert "of 3 classes" in display.description


def test_perfect_probabilities_have_no_error():
    P = np.repeat([[0.25, 0.75]], 8, axis=0)
    display = ReliabilityDisplay.from_probabilities(P, np.array([0, 0, 1, 1, 1, 1, 1, 1]), np.array([0, 1]))
    assert [found.error for found in display.reliabilities] == [0.0, 0.0]
    assert "0 of 2 points" in display.description
    with pytest.raises(ValueError, match="n_bins must be"):
        ReliabilityDisplay.from_probabilities(P, np.zeros(8), np.array([0, 1]), n_bins=0)


def test_sizes_by_hand(fitted):
    members = np.array([[True, False], [True, True], [False, False], [False, True]])
    display = SetSizeDisplay.from_sets(members, np.array([0, 1, 0, 0]), np.array([0, 1]), 0.9)
    assert display.counts.tolist() == [1, 2, 1]
    assert display.held.tolist() == [0, 1, 1]
    assert "50.0% have one class, 25.0% more, 25.0% none. 50.0% hold the true class" in display.description
    model, X, y = fitted
    drawn = SetSizeDisplay.from_estimator(model, X, y)
    assert drawn.counts.sum() == len(y)
    assert sum(bar.get_height() for bar in drawn.bars_) == pytest.approx(drawn.held.sum() / len(y))
