"""`check_loss` and `check_solver`: what is right passes, what is wrong is refused by name."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from polymargin import MarginSearch, MulticategorySVC, ProbabilityClassifier, RobustSVC, loo
from polymargin.extend import Loss, check_loss, check_solver
from polymargin.problems.hinge import LOSSES
from polymargin.problems.hinge.squares import SquaredHinges
from polymargin.problems.hinge.tables import SingleScores
from polymargin.solvers.hinge.decomposition import Decomposition
from polymargin.solvers.hinge.general import GeneralNewton
from tests.simulate import blobs


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("loss", LOSSES)
def test_losses_with_a_name_keep_the_contract(loss, k):
    check_loss(LOSSES[loss], n_classes=k)


@dataclass(frozen=True, slots=True)
class Broken(SquaredHinges):
    """Squared hinges with one thing wrong."""

    fault: str = ""

    def margins(self, F):
        margins = SquaredHinges.margins(self, F)
        return margins[:, :-1] if self.fault == "shape" else margins

    def coefficients(self, dual):
        R = SquaredHinges.coefficients(self, dual)
        return {"adjoint": -R, "centre": R + 0.1}.get(self.fault, R)

    def value(self, F):
        value = SquaredHinges.value(self, F)
        return {"finite": np.nan, "young": 0.5 * value, "convex": -value}.get(self.fault, value)

    def dual_value(self, dual):
        value = SquaredHinges.dual_value(self, dual)
        return {"dual": 2.0 * value, "weak": value - 0.1 * float(np.abs(dual).sum())}.get(self.fault, value)

    def proximal(self, margins, centre, width):
        dual = SquaredHinges.proximal(self, margins, centre, width)
        return {"sign": -dual, "maximiser": 0.9 * dual}.get(self.fault, dual)

    @property
    def sizes(self):
        return -self.weights if self.fault == "sizes" else self.weights


@dataclass(frozen=True)
class BrokenLoss(Loss):
    fault: str = ""

    def over(self, labels, costs):
        k = costs.shape[1]
        return Broken(labels, costs, SingleScores(k), 1.0 / (k - 1), self.fault)


FAULTS = {
    "shape": "margins.F. must have shape",
    "adjoint": "not minus the adjoint",
    "centre": "rows that sum to zero",
    "finite": "value.F. must be a finite number",
    "young": "Fenchel and Young",
    "convex": "must be convex|Fenchel and Young",
    "dual": "Fenchel and Young",
    "weak": "no maximiser|not solved",
    "sign": "conjugate's domain",
    "maximiser": "no maximiser|differ from differences",
    "sizes": "sizes must not be negative",
}


def test_the_loss_behind_the_faults_is_right():
    check_loss(BrokenLoss())


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_broken_is_refused_by_name(fault):
    with pytest.raises(ValueError, match=f"BrokenLoss.*({FAULTS[fault]})"):
        check_loss(BrokenLoss(fault))


@pytest.mark.parametrize("fault", ["shape", "adjoint", "centre", "finite", "sign", "sizes"])
def test_a_fit_refuses_it_before_any_work(fault):
    X, y = blobs(np.random.default_rng(0), 30, 2, 3)
    with pytest.raises(ValueError, match=f"BrokenLoss.*({FAULTS[fault]})"):
        MulticategorySVC(loss=BrokenLoss(fault)).fit(X, y)


@pytest.mark.parametrize(
    ("loss", "error", "message"),
    [
        (BrokenLoss, TypeError, "the class BrokenLoss instead of an object"),
        ("hinge", ValueError, "loss must be one of 'lee'.*got 'hinge'"),
        (3, TypeError, "loss must be one of 'lee'.*got 3"),
    ],
)
def test_what_is_no_loss_is_refused(loss, error, message):
    X, y = blobs(np.random.default_rng(0), 30, 2, 3)
    with pytest.raises(error, match=message):
        MulticategorySVC(loss=loss).fit(X, y)


def test_an_object_is_cloned_pickled_and_searched():
    X, y = blobs(np.random.default_rng(1), 60, 2, 3)
    model = clone(MulticategorySVC(loss=BrokenLoss())).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    named = MulticategorySVC(loss="lee_squared").fit(X, y)
    np.testing.assert_allclose(named.decision_function(X), model.decision_function(X), atol=1e-6)
    search = GridSearchCV(MulticategorySVC(), {"loss": [BrokenLoss(), "lee"]}, cv=2).fit(X, y)
    assert search.best_estimator_.converged_
    with pytest.raises(ValueError, match="MarginSearch needs loss='lee'"):
        MarginSearch(MulticategorySVC(loss=BrokenLoss())).fit(X, y)
    with pytest.raises(ValueError, match="leave-one-out criteria need loss='lee'"):
        loo(model)


@pytest.mark.parametrize("solver", [GeneralNewton(), Decomposition()], ids=lambda solver: solver.name)
def test_our_solvers_keep_the_contract(solver):
    check_solver(solver)


class Forgetful(GeneralNewton):
    """Says what it did not do."""

    def solve(self, problem, settings, *, start=None, observer=None):
        from dataclasses import replace

        solution = GeneralNewton.solve(self, problem, settings, start=start, observer=observer)
        certificate = solution.certificate
        return replace(solution, certificate=replace(certificate, primal=certificate.primal + 1.0))


def test_a_solver_that_certifies_itself_is_refused():
    with pytest.raises(ValueError, match=r"general_newton: its certificate .* is not what the problem certifies"):
        check_solver(Forgetful())
    with pytest.raises(TypeError, match="name must be a word"):
        check_solver(RobustSVC())


@pytest.mark.parametrize("loss", ["mmr", "one_vs_rest", "adm", "logistic"])
def test_probabilities_of_losses_whose_left_out_scores_need_refits(loss):
    X, y = blobs(np.random.default_rng(3), 60, 2, 3)
    model = ProbabilityClassifier(MulticategorySVC(loss=loss)).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
