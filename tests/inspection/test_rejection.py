"""The risk-coverage display draws what the left-out, or given, predictions say."""

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from polymargin import RejectOptionClassifier
from polymargin.datasets import make_triangle
from polymargin.inspection import RiskCoverageDisplay

mpl.use("Agg")


@pytest.fixture
def model():
    sample = make_triangle(300, random_state=0)
    return RejectOptionClassifier(LinearDiscriminantAnalysis(), coverage=0.8).fit(sample.data, sample.target)


def test_left_out_curve(model):
    from matplotlib import pyplot

    display = RiskCoverageDisplay.from_estimator(model, name="LDA", color="green")
    np.testing.assert_array_equal(display.line_.get_xdata(), model.strength_curve_.coverage)
    np.testing.assert_array_equal(display.line_.get_ydata(), model.strength_curve_.risk)
    assert display.line_.get_color() == "green"
    assert display.chosen[0] == pytest.approx(np.ceil(301 * 0.8) / 300)
    assert display.figure_ is display.ax_.figure
    pyplot.close(display.figure_)


def test_test_curve_and_given_axes(model):
    from matplotlib import pyplot

    test = make_triangle(500, random_state=1)
    figure, ax = pyplot.subplots()
    display = RiskCoverageDisplay.from_estimator(model, test.data, test.target, ax=ax)
    assert display.ax_ is ax
    predicted = model.predict(test.data)
    accepted = predicted != -1
    realised = (accepted.mean(), np.mean(predicted[accepted] != test.target[accepted]))
    assert display.chosen == pytest.approx(realised)
    pyplot.close(figure)


def test_rows_need_their_classes(model):
    with pytest.raises(ValueError, match="given together"):
        RiskCoverageDisplay.from_estimator(model, [[0.0, 0.0]])
