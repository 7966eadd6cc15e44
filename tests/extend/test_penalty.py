"""A penalty of one's own: what is verified, what is refused, and that it takes the same door as ours."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

from polymargin import ElasticNetPenalty, GroupLassoPenalty, SparseSVC, SparseSVCCV, sparse_path
from polymargin.extend import Atoms, Penalty, check_penalty
from polymargin.problems.penalties import PENALTIES, FusionPenalty, LassoPenalty, SupnormPenalty


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("name", PENALTIES)
def test_ours_keep_the_contract(name, k):
    check_penalty(PENALTIES[name], n_classes=k)


@pytest.mark.parametrize("seed", range(3))
def test_weighted_ones_keep_the_contract(seed):
    rng = np.random.default_rng(seed)
    tau = rng.uniform(0.2, 5.0, size=(4, 6))
    for penalty in (
        LassoPenalty(tau),
        SupnormPenalty(tau),
        ElasticNetPenalty(0.3, tau),
        GroupLassoPenalty(tau[:1]),
    ):
        check_penalty(penalty, seed=seed)
    check_penalty(FusionPenalty(rng.uniform(0.2, 5.0, size=(6, 6))), seed=seed)


@dataclass(frozen=True)
class Doubled(Penalty):
    """Twice the group lasso, written anew; the parameters break one part each."""

    even: bool = True
    price: float = 1.0
    cost: float = 1.0
    aim: float = 1.0
    shape: bool = True
    nan: bool = False
    shift: float = 0.0

    def value(self, coef):
        if self.nan:
            return float("nan")
        total = 2.0 * float(np.sum(np.linalg.norm(coef, axis=0)))
        return total + self.shift + (0.0 if self.even else float(np.maximum(coef, 0.0).max(axis=0).sum()))

    def polars(self, G, *, above=1.0):
        lengths = np.linalg.norm(G - G.mean(axis=0), axis=0) / 2.0 * self.price
        return lengths if self.shape else lengths[:, None]

    def best_atoms(self, G, variables):
        directions = (G[:, variables] - G[:, variables].mean(axis=0)).T
        directions[:, 0] *= self.aim
        directions -= directions.mean(axis=1)[:, None]
        directions[~directions.any(axis=1), :2] = 1.0, -1.0
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        return Atoms(variables, directions, np.full(len(variables), 2.0 * self.cost))


@dataclass(frozen=True)
class Power(Penalty):
    """``sum_j ||w_j||^1.5``: no norm, nor one near zero, so that every variable is in."""

    is_norm: ClassVar[bool] = False

    def value(self, coef):
        return float(np.sum(np.linalg.norm(coef, axis=0) ** 1.5))

    def conjugates(self, G):
        return np.linalg.norm(G - G.mean(axis=0), axis=0) ** 3 * 4.0 / 27.0

    def best_atoms(self, G, variables):
        centred = (G[:, variables] - G[:, variables].mean(axis=0)).T
        directions = centred * np.linalg.norm(centred, axis=1)[:, None] * 4.0 / 9.0
        return Atoms(variables, directions, np.linalg.norm(directions, axis=1) ** 1.5)


def test_ones_own_keep_the_contract():
    check_penalty(Doubled())
    check_penalty(Power())


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"even": False}, r"Doubled: value\(-W\) differs from value\(W\)"),
        ({"price": 0.5}, "Doubled: Fenchel and Young's inequality fails"),
        ({"price": 2.0}, "Doubled: best_atoms do not attain the polars"),
        ({"aim": 0.0}, "Doubled: best_atoms do not attain the polars"),
        ({"cost": 2.0}, "Doubled: costs of the atoms differ from value"),
        ({"cost": -1.0}, "costs must not be negative"),
        ({"price": -1.0}, r"Doubled.polars\(G\) must not be negative"),
        ({"shape": False}, r"Doubled.polars\(G\) must have shape \(6,\), got \(6, 1\)"),
        ({"nan": True}, r"Doubled.value\(W\) must be a finite number, got nan"),
        ({"shift": 1.0}, r"Doubled.value\(W\) must be 0 where all coefficients are 0"),
    ],
)
def test_what_breaks_the_contract_is_named(broken, message):
    with pytest.raises(ValueError, match=message):
        check_penalty(replace(Doubled(), **broken))


@pytest.mark.parametrize(
    ("penalty", "message"),
    [
        (Doubled, "got the class Doubled instead of an object of it"),
        (3.0, "got 3.0, which lacks value, best_atoms, polars"),
        (replace(Doubled(), nan=True), r"Doubled.value\(W\) must be a finite number"),
        (replace(Doubled(), shape=False), r"must have shape \(4,\), got \(4, 1\)"),
    ],
)
def test_a_fit_refuses_a_broken_penalty_before_any_work(penalty, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises((TypeError, ValueError), match=message):
        SparseSVC(penalty=penalty).fit(X, y)


def test_an_object_takes_the_same_door_as_a_name():
    X, y = load_iris(return_X_y=True)
    ours = SparseSVC(C=0.2, penalty="group").fit(X, y)
    own = SparseSVC(C=0.4, penalty=Doubled()).fit(X, y)
    assert own.converged_
    assert own.certificate_.primal == pytest.approx(2 * ours.certificate_.primal, rel=1e-7)
    np.testing.assert_allclose(own.coef_, ours.coef_, atol=1e-4)
    assert clone(own).get_params()["penalty"] == Doubled()
    path = sparse_path(X, y, penalty=Doubled(), n_Cs=5)
    assert path.n_selected[0] == 0 < path.n_selected[-1]
    search = SparseSVCCV(penalty=Doubled(), n_Cs=5, cv=2).fit(X, y)
    assert search.score(X, y) > 0.8
    with pytest.raises(ValueError, match="adaptive must be False with penalty=Doubled, which has no weights"):
        SparseSVC(penalty=Doubled(), adaptive=True).fit(X, y)


def test_a_penalty_that_is_no_norm_near_zero_fits_but_has_no_path():
    X, y = load_iris(return_X_y=True)
    model = SparseSVC(C=0.1, penalty=Power(), tol=1e-6).fit(X, y)
    assert model.converged_
    assert len(model.selected_features_) == 4
    with pytest.raises(ValueError, match=r"penalty must be a norm near zero for a path, .* got Power"):
        sparse_path(X, y, penalty=Power())


def test_adaptive_weights_reach_the_new_penalties():
    X, y = load_iris(return_X_y=True)
    group = SparseSVC(penalty="group", adaptive=True).fit(X, y)
    assert group.weights_.shape == (1, 4)
    net = SparseSVC(penalty=ElasticNetPenalty(0.9), adaptive=True).fit(X, y)
    assert net.weights_.shape == (3, 4)
    assert group.converged_
    assert net.converged_
    with pytest.raises(ValueError, match="l1_ratio must be below 1"):
        ElasticNetPenalty(1.0)
