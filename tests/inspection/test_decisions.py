"""Decision vectors are those of the estimator, in the order of the classes."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot

from polymargin import MulticategorySVC, RejectOptionClassifier
from polymargin.inspection import DecisionVectorDisplay
from polymargin.inspection._plotting import PALETTE
from tests.simulate import blobs

mpl.use("Agg")


@pytest.fixture(scope="module")
def data():
    return blobs(np.random.default_rng(1), 80, 2, 3, spread=2.0)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


def bars(panel):
    """Return positions, heights and colours of the bars of a panel."""
    found = []
    for patch in panel.patches:
        corners = patch.get_path().vertices.reshape(-1, 5, 2)
        colour = mpl.colors.to_hex(patch.get_facecolor())
        found += [(corner[:, 0].mean(), corner[1, 1], colour) for corner in corners]
    return sorted(found)


def test_a_bar_a_row_in_the_order_and_colour_of_the_classes(data):
    X, y = data
    model = RejectOptionClassifier(MulticategorySVC()).fit(X, y)
    display = DecisionVectorDisplay.from_estimator(model, X, y)
    order = np.argsort(y, kind="stable")
    np.testing.assert_array_equal(display.order_, order)
    scores = model.estimator_.decision_function(X)
    drawn = [scores[:, 0], scores[:, 1], scores[:, 2], model.prediction_loss(X)]
    for panel, values in zip(display.axes_, drawn, strict=True):
        found = bars(panel)
        np.testing.assert_array_equal([height for _, height, _ in found], values[order])
        assert [colour for _, _, colour in found] == [PALETTE[label] for label in y[order]]
    assert display.line_.get_ydata()[0] == model.threshold_ == display.threshold
    weak = np.sum(model.prediction_loss(X) > model.threshold_)
    assert f"{weak} losses are above the threshold" in display.description
    assert f"{np.sum(scores.argmax(axis=1) == y)} of 80 rows" in display.description


def test_unknown_classes_come_last_in_grey(data):
    X, y = data
    model = MulticategorySVC().fit(X, y)
    labels = y.copy()
    labels[:5] = 9
    display = DecisionVectorDisplay.from_estimator(model, X, labels)
    np.testing.assert_array_equal(display.order_[-5:], np.arange(5))
    assert bars(display.axes_[0])[-1][2] == mpl.colors.to_hex(mpl.rcParams["text.color"])
    assert display.line_ is None


def test_of_many_rows_an_even_share_of_each_class_is_drawn(data):
    X, y = data
    display = DecisionVectorDisplay.from_estimator(MulticategorySVC().fit(X, y), X, y, max_rows=20)
    counts, all_counts = np.bincount(y[display.order_]), np.bincount(y)
    np.testing.assert_array_equal(counts, (all_counts * 0.25).astype(int))
    assert "of 80 rows" in display.description


def test_without_labels_rows_keep_their_order(data):
    X, y = data
    display = DecisionVectorDisplay.from_estimator(MulticategorySVC().fit(X, y), X[:7])
    np.testing.assert_array_equal(display.order_, np.arange(7))
    assert len({colour for _, _, colour in bars(display.axes_[0])}) == 1


def test_scores_that_are_all_zero_are_drawn(data):
    X, y = data
    model = MulticategorySVC(fit_intercept=False).fit(X, y)
    model.dual_coef_ = np.zeros_like(model.dual_coef_)
    display = DecisionVectorDisplay.from_estimator(model, X, y)
    assert not display.scores.any()
    assert display.axes_[0].get_ylim() == (-1.0, 1.0)
