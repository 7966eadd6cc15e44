"""The criterion surface shows the search's own table."""

import numpy as np
import pytest

from polymargin import MarginSearch
from polymargin.inspection import CriterionSurfaceDisplay
from tests.simulate import blobs


@pytest.fixture(scope="module")
def search():
    data = blobs(np.random.default_rng(0), 40, 2, 3)
    return MarginSearch(Cs=[1.0, 0.1, 10.0], gammas=[0.5, 2.0]).fit(*data)


@pytest.mark.parametrize("criterion", ["criterion", "gacv", "error"])
def test_surface(search, criterion):
    from matplotlib import pyplot

    display = CriterionSurfaceDisplay.from_estimator(search, criterion=criterion)
    assert display.criterion.shape == (2, 3)
    for C, gamma, value in zip(*(search.results_[name] for name in ("C", "gamma", criterion)), strict=True):
        assert display.criterion[list(display.gammas).index(gamma), list(display.Cs).index(C)] == value
    (x,), (y,) = display.point_.get_data()
    assert display.Cs[x] == search.best_params_["C"]
    assert display.gammas[y] == search.best_params_["gamma"]
    pyplot.close(display.figure_)


def test_unknown_column(search):
    with pytest.raises(ValueError, match=r"criterion must be one of 'C', .* got 'aic'"):
        CriterionSurfaceDisplay.from_estimator(search, criterion="aic")
