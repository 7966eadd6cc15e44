"""The criterion surface shows the search's own table."""

import numpy as np
import pytest

from polymargin import MarginSearch, ProximalSVCCV, SharedStructureSearch, SparseSVCCV
from polymargin.inspection import CriterionPathDisplay, CriterionSurfaceDisplay
from polymargin.inspection.criterion import SearchTable
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
    for C, gamma, value in zip(
        *(search.cv_results_[name] for name in ("param_C", "param_gamma", criterion)), strict=True
    ):
        assert display.criterion[list(display.gammas).index(gamma), list(display.Cs).index(C)] == value
    (x,), (y,) = display.point_.get_data()
    assert display.Cs[x] == search.best_params_["C"]
    assert display.gammas[y] == search.best_params_["gamma"]
    pyplot.close(display.figure_)


def test_unknown_column(search):
    with pytest.raises(ValueError, match=r"criterion must be one of 'mean_test_score', .* got 'aic'"):
        CriterionSurfaceDisplay.from_estimator(search, criterion="aic")


def test_paths_of_a_sparse_search_have_a_line_a_round():
    X, y = blobs(np.random.default_rng(1), 60, 4, 3, spread=2.0)
    model = SparseSVCCV(n_Cs=5, cv=2, initial_Cs=[1.0]).fit(X, y)
    display = CriterionPathDisplay.from_estimator(model)
    assert list(display.lines_) == ["plain path", "round 1", "round 2", "round 3"]
    kept = model.cv_results_["param_round"] == 2
    np.testing.assert_array_equal(display.lines_["round 2"].get_ydata(), model.cv_results_["cost"][kept])
    assert display.chosen == pytest.approx((model.best_params_["C"], -model.best_score_))


def test_a_search_over_c_alone_has_a_path_and_no_surface():
    X, y = blobs(np.random.default_rng(1), 60, 4, 3, spread=2.0)
    search = ProximalSVCCV(Cs=[1.0, 8.0, 64.0]).fit(X, y)
    display = CriterionPathDisplay.from_estimator(search)
    (line,) = display.lines_.values()
    np.testing.assert_array_equal(line.get_ydata(), search.cv_results_["mean_test_score"])
    assert display.chosen == (search.best_params_["C"], search.best_score_)
    with pytest.raises(ValueError, match="CriterionPathDisplay"):
        CriterionSurfaceDisplay.from_estimator(search)
    with pytest.raises(TypeError, match="must be a search"):
        CriterionPathDisplay.from_estimator(search.best_estimator_)


def test_the_grid_of_a_shared_search_is_over_fractions():
    X, y = blobs(np.random.default_rng(1), 60, 4, 3, spread=2.0)
    search = SharedStructureSearch(Cs=[0.1, 1.0], penalty_fractions=[1e-5, 1e-3, 1e-1], cv=2).fit(X, y)
    display = CriterionSurfaceDisplay.from_estimator(search)
    assert display.criterion.shape == (3, 2)
    np.testing.assert_allclose(display.gammas, [1e-5, 1e-3, 1e-1])
    at = np.searchsorted(display.gammas, display.chosen[1]), np.searchsorted(display.Cs, display.chosen[0])
    assert display.criterion[at] == search.best_score_


def test_a_search_that_left_points_out_is_still_a_surface():
    from matplotlib import pyplot

    data = blobs(np.random.default_rng(0), 40, 2, 3)
    search = MarginSearch(Cs=2.0 ** np.arange(-2, 8), gammas=2.0 ** np.arange(-3, 4)).fit(*data)
    table = SearchTable.of(search)
    assert len(table.C) < len(np.unique(table.C)) * len(np.unique(table.second))
    assert table.is_surface
    display = CriterionSurfaceDisplay.from_estimator(search)
    assert np.isnan(display.criterion).any()
    assert "nan" not in display.description
    pyplot.close(display.figure_)
