"""The label-noise display draws the margins that the fit reports."""

import matplotlib as mpl
import numpy as np
import pytest

from polymargin import RobustSVC
from polymargin.datasets import flip_labels, make_triangle
from polymargin.inspection import LabelNoiseDisplay

mpl.use("Agg")


def test_margins_truncation_and_known_errors():
    from matplotlib import pyplot

    sample = make_triangle(200, random_state=0)
    noisy = flip_labels(sample.target, 0.1, random_state=0)
    model = RobustSVC().fit(sample.data, noisy)
    plain = LabelNoiseDisplay.from_estimator(model, bins=20)
    assert plain.bars_[0].sum() == 200
    assert plain.line_.get_xdata()[0] == model.truncation_
    known = LabelNoiseDisplay.from_estimator(model, known=noisy != sample.target)
    assert known.bars_[0][-1].sum() == 200
    assert known.bars_[0][0].sum() == np.sum(noisy == sample.target)
    with pytest.raises(ValueError, match="known must have shape"):
        LabelNoiseDisplay.from_estimator(model, known=[True])
    pyplot.close("all")
