"""The search over C and the kernel width."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import scale

from polymargin import MarginSearch, MulticategorySVC, ProbabilityClassifier
from polymargin.estimators import steps
from polymargin.gram import draw_landmarks
from polymargin.selection.criteria import gacv, loo
from polymargin.solvers.hinge.settings import LEFT_OUT
from tests.simulate import blobs


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return scale(X), y


@pytest.mark.parametrize("criterion", ["cost", "loo", "gacv"])
def test_the_table_holds_what_single_fits_give(criterion):
    data = blobs(np.random.default_rng(0), 40, 2, 3)
    machine = MulticategorySVC(tol=1e-8)
    search = MarginSearch(machine, Cs=[1.0, 0.1], gammas=[0.5, 2.0], criterion=criterion, search_tol=None)
    results = search.fit(*data).cv_results_
    assert list(results["param_C"]) == [0.1, 1.0, 0.1, 1.0]
    for at in range(4):
        model = MulticategorySVC(**results["params"][at], tol=1e-8).fit(*data)
        assert results["loo"][at] == pytest.approx(loo(model), rel=1e-4)
        scores = steps.left_out_scores(model, *data)
        assert results["error"][at] == np.mean(scores.argmax(axis=1) != data[1])
        assert results["gacv"][at] == pytest.approx(gacv(model), rel=1e-4)
        assert results["n_support"][at] == len(model.support_)
    assert -search.best_score_ == results["criterion"].min() == results[criterion].min()


@pytest.mark.parametrize("loss", ["lee", "weston"])
def test_log_loss_is_that_of_the_probabilities_of_single_fits(loss):
    """Of samples that are not so small that `ProbabilityClassifier` refits without some rows."""
    X, y = blobs(np.random.default_rng(0), LEFT_OUT.refitted_rows + 10, 2, 3)
    machine = MulticategorySVC(loss=loss, tol=1e-8)
    search = MarginSearch(machine, Cs=[1.0, 0.1], gammas=[0.5, 4.0], criterion="log_loss", search_tol=None)
    results = search.fit(X, y).cv_results_
    for at in range(4):
        model = ProbabilityClassifier(machine.set_params(**results["params"][at])).fit(X, y)
        assert results["log_loss"][at] == pytest.approx(min(model.method_losses_.values()), rel=1e-3)
    assert -search.best_score_ == results["log_loss"].min()
    times = np.random.default_rng(1).integers(1, 3, len(y))
    weighted = search.fit(X, y, sample_weight=times).cv_results_["log_loss"]
    repeated = search.fit(X.repeat(times, axis=0), y.repeat(times)).cv_results_["log_loss"]
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9)
    with pytest.raises(ValueError, match="can be left out, got 1 of class 7"):
        search.fit(X, np.where(np.arange(len(y)) == 3, 7, y))


def test_the_winner_is_as_if_fitted_alone(iris):
    search = MarginSearch(MulticategorySVC(tol=1e-8), Cs=[0.1, 1.0], gammas=[0.2]).fit(*iris)
    alone = MulticategorySVC(**search.best_params_, tol=1e-8).fit(*iris)
    np.testing.assert_allclose(search.decision_function(iris[0]), alone.decision_function(iris[0]), atol=1e-5)
    assert search.certificate_ == search.best_estimator_.certificate_
    assert search.converged_


def test_folds_agree_with_grid_search(iris):
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    grid = {"C": [0.05, 1.0], "gamma": [0.05, 1.0]}
    ours = MarginSearch(
        MulticategorySVC(tol=1e-6), Cs=grid["C"], gammas=grid["gamma"], criterion=folds, search_tol=None
    ).fit(*iris)
    theirs = GridSearchCV(MulticategorySVC(tol=1e-6), grid, cv=folds).fit(*iris).cv_results_
    errors = {
        (p["C"], p["gamma"]): 1 - s for p, s in zip(theirs["params"], theirs["mean_test_score"], strict=True)
    }
    for C, gamma, error in zip(
        *(ours.cv_results_[name] for name in ("param_C", "param_gamma", "error")), strict=True
    ):
        # fold sizes differ by one, so the mean over folds and the mean over rows do by a little
        assert error == pytest.approx(errors[C, gamma], abs=2e-3)


def test_exact_leave_one_out(iris):
    X, y = iris[0][::7], iris[1][::7]
    machine = MulticategorySVC(tol=1e-8)
    search = MarginSearch(machine, Cs=[0.5], gammas=[0.3], criterion="loo_exact", search_tol=None).fit(X, y)
    losses = []
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        f = MulticategorySVC(C=0.5, gamma=0.3, tol=1e-8).fit(X[rest], y[rest]).decision_function(X[[i]])[0]
        losses.append(np.maximum(f + 0.5, 0)[np.arange(3) != y[i]].sum())
    assert -search.best_score_ == pytest.approx(np.mean(losses), rel=1e-5)


def test_default_grid_and_progress(iris, capsys, caplog):
    X, y = iris[0][::3], iris[1][::3]
    with caplog.at_level("INFO", logger="polymargin"):
        search = MarginSearch(exhaustive=True, verbose=True).fit(X, y)
    assert len(search.cv_results_["param_C"]) == 8 * 7
    assert "7 of 7" in caplog.messages[-1]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"Cs": []}, "Cs must hold at least one value"),
        ({"Cs": [1.0, -1.0]}, "Cs must be a finite number of at least 1e-15 .*, got -1.0"),
        ({"gammas": [0.0]}, "gammas must be a finite number of at least 1e-65"),
        ({"search_tol": 0.0}, "search_tol must be a finite number greater than 0"),
        ({"criterion": "aic"}, "criterion must be one of 'cost', 'loo', 'log_loss', .*, got 'aic'"),
        ({"estimator": MulticategorySVC(kernel="linear"), "gammas": [1.0]}, "gammas must be None"),
        ({"estimator": MulticategorySVC(loss="weston"), "criterion": "gacv"}, "'gacv' is defined for loss='lee'"),
    ],
)
def test_bad_input(iris, arguments, message):
    with pytest.raises(ValueError, match=message):
        MarginSearch(**arguments).fit(*iris)


@pytest.mark.parametrize("search_tol", [1e-3, None])
@pytest.mark.parametrize("loss", ["lee", "weston", "crammer"])
def test_a_weight_means_repetition_for_the_choice_too(loss, search_tol):
    """To the last bit, and in whatever order: repeated rows are made one before anything is solved."""
    rng = np.random.default_rng(5)
    X, y = blobs(rng, 30, 2, 3)
    weight = rng.integers(1, 4, len(y))
    search = MarginSearch(
        MulticategorySVC(loss=loss, tol=1e-6), Cs=[0.1, 1.0], gammas=[0.3], search_tol=search_tol
    )
    weighted = search.fit(X, y, sample_weight=weight).cv_results_
    copies = rng.permutation(np.repeat(np.arange(len(y)), weight))
    repeated = search.fit(X[copies], y[copies]).cv_results_
    for name in weighted.keys() - {"seconds"}:
        np.testing.assert_array_equal(weighted[name], repeated[name], err_msg=name)


@pytest.mark.parametrize("criterion", ["cost", "loo", "loo_exact", 3])
def test_kernels_in_whatever_form_give_the_same_table(criterion):
    """The linear kernel as features, as a precomputed matrix, and with every row a landmark."""
    X, y = blobs(np.random.default_rng(6), 30, 3, 3)
    tables = []
    for options, data in (
        ({"kernel": "linear"}, X),
        ({"kernel": "precomputed"}, X @ X.T),
        ({"kernel": "linear", "landmarks": X}, X),
    ):
        machine = MulticategorySVC(tol=1e-9, **options)
        search = MarginSearch(machine, Cs=[0.1, 1.0], criterion=criterion, search_tol=None)
        tables.append(search.fit(data, y).cv_results_)
    for other in tables[1:]:
        np.testing.assert_allclose(other["criterion"], tables[0]["criterion"], rtol=1e-4)


@pytest.mark.parametrize("loss", ["lee", "weston", "crammer"])
def test_the_search_tolerance_is_fine_enough_for_the_criteria(loss):
    X, y = blobs(np.random.default_rng(7), 150, 3, 4, spread=1.5)
    machine = MulticategorySVC(loss=loss, tol=1e-8)
    Cs, gammas = 4.0 ** np.arange(-3, 6), [0.1, 1.0]
    brief, tight = (
        MarginSearch(machine, Cs=Cs, gammas=gammas, search_tol=search_tol).fit(X, y)
        for search_tol in ("auto", None)
    )
    np.testing.assert_allclose(brief.cv_results_["loo"], tight.cv_results_["loo"], rtol=0.01)
    np.testing.assert_allclose(brief.cv_results_["error"], tight.cv_results_["error"], atol=2.5 / len(y))
    assert np.mean(np.abs(brief.cv_results_["loo"] / tight.cv_results_["loo"] - 1)) < 0.005
    assert brief.best_params_ == tight.best_params_
    np.testing.assert_array_less(brief.cv_results_["gap"], 1.000001e-4)
    assert brief.certificate_.gap <= 1e-8


def test_a_larger_C_changes_nothing_once_no_multiplier_is_at_its_bound():
    X, y = blobs(np.random.default_rng(1), 60, 2, 3, spread=1.0)
    search = MarginSearch(Cs=[1.0, 1e3, 1e4, 1e5], gammas=[3.0]).fit(X, y)
    results = search.cv_results_
    fit = MulticategorySVC(C=1e5, gamma=3.0, tol=1e-8).fit(X, y)
    assert fit.dual_coef_.max() < 1e3
    assert len(set(results["loo"][1:])) == 1
    assert results["loo"][3] == pytest.approx(loo(fit), rel=1e-3)
    assert (results["gap"] <= 1e-3).all()


@pytest.mark.parametrize(("n_Cs", "n_gammas", "is_whole"), [(40, 1, True), (10, 3, True), (11, 3, False)])
def test_small_grids_and_curves_are_fitted_whole(n_Cs, n_gammas, is_whole):
    X, y = blobs(np.random.default_rng(2), 40, 2, 3)
    Cs, gammas = 1.2 ** np.arange(n_Cs), 2.0 ** np.arange(n_gammas)
    fitted = len(MarginSearch(Cs=Cs, gammas=gammas).fit(X, y).cv_results_["params"])
    assert (fitted == n_Cs * n_gammas) == is_whole


def test_exhaustive_is_a_truth_value_or_auto():
    X, y = blobs(np.random.default_rng(2), 40, 2, 3)
    with pytest.raises(ValueError, match="exhaustive must be True, False or 'auto', got 'sometimes'"):
        MarginSearch(exhaustive="sometimes").fit(X, y)


@pytest.mark.parametrize("loss", ["lee", "weston"])
def test_a_search_from_coarse_to_fine_agrees_with_the_whole_grid_where_it_looks(loss):
    X, y = blobs(np.random.default_rng(2), 120, 3, 4, spread=1.5)
    machine = MulticategorySVC(loss=loss, tol=1e-8)
    Cs, gammas = 2.0 ** np.arange(-4, 8), [1.0, 0.125, 0.25, 0.5, 0.0625]  # in any order
    few, all_of_them = (
        MarginSearch(machine, Cs=Cs, gammas=gammas, exhaustive=exhaustive, search_tol=None).fit(X, y)
        for exhaustive in (False, True)
    )
    whole = dict(zip(map(str, all_of_them.cv_results_["params"]), all_of_them.cv_results_["cost"], strict=True))
    assert len(few.cv_results_["cost"]) < len(whole) == len(Cs) * len(gammas)
    for params, cost in zip(few.cv_results_["params"], few.cv_results_["cost"], strict=True):
        assert cost == pytest.approx(whole[str(params)], rel=1e-3)
    assert -few.best_score_ < 1.1 * min(whole.values())


def test_landmarks_stay_the_same_from_round_to_round(monkeypatch):
    X, y = blobs(np.random.default_rng(3), 60, 2, 3)
    drawn = []

    def draw(*arguments, **options):
        drawn.append(draw_landmarks(*arguments, **options))
        return drawn[-1]

    monkeypatch.setattr("polymargin.selection.multicategory.draw_landmarks", draw)
    machine = MulticategorySVC(landmarks=15)
    Cs = 2.0 ** np.arange(-4, 6)
    search = MarginSearch(machine, Cs=Cs, gammas=[0.25, 0.5, 1.0], exhaustive=False).fit(X, y)
    assert len(drawn) == len(set(search.cv_results_["param_gamma"]))
    assert len(set(search.cv_results_["param_C"])) > 4  # so that there were further rounds
    assert any(search.best_estimator_.landmarks_ is one for one in drawn)
