"""Deciding again: least expected cost under other costs, other shares, limits and costs per row."""

from itertools import product

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from polymargin import Decider, MulticategorySVC, ProbabilityClassifier
from tests.simulate import blobs


class Known:
    """A classifier whose rows are their own probabilities."""

    classes_ = np.array(["ash", "beech", "cedar"])

    def predict_proba(self, X):
        return np.asarray(X)


def some_probabilities(n, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(3), n)


def test_least_expected_cost():
    P = some_probabilities(50)
    costs = np.array([[0.0, 5.0, 1.0], [1.0, 0.0, 3.0], [2.0, 1.0, 0.0]])
    decided = Decider(Known(), cost_matrix=costs).predict(P)
    np.testing.assert_array_equal(decided, Known.classes_[(P @ costs).argmin(axis=1)])
    np.testing.assert_array_equal(Decider(Known()).predict(P), Known.classes_[P.argmax(axis=1)])


def test_other_shares_are_those_of_bayes_rule():
    """Classes on a line with known densities: the rule for the new shares is exact."""
    x = np.linspace(-3, 5, 400)
    densities = np.column_stack([np.exp(-0.5 * (x - centre) ** 2) for centre in (0.0, 1.0, 2.0)])
    old, new = np.array([0.2, 0.5, 0.3]), np.array([0.7, 0.2, 0.1])
    P = densities * old / (densities @ old)[:, None]
    decided = Decider(Known(), priors=new, sample_priors=old).predict(P)
    np.testing.assert_array_equal(decided, Known.classes_[(densities * new).argmax(axis=1)])


def test_shares_of_the_sample_are_known_of_a_probability_classifier():
    X, y = blobs(np.random.default_rng(0), 90, 4, 3)
    model = ProbabilityClassifier(MulticategorySVC()).fit(X, y)
    shares = np.bincount(y) / len(y)
    new = [0.8, 0.1, 0.1]
    np.testing.assert_array_equal(
        Decider(model, priors=new).predict(X), Decider(model, priors=new, sample_priors=shares).predict(X)
    )


@pytest.mark.parametrize("capacity", [{"ash": 1}, {"ash": 0, "cedar": 2}, {"ash": 2, "beech": 2, "cedar": 2}])
def test_capacity_is_kept_at_the_least_cost_that_enumeration_finds(capacity):
    for seed in range(5):
        P = some_probabilities(6, seed)
        amounts = np.random.default_rng(seed).uniform(1, 10, 6)
        decider = Decider(Known(), cost_matrix={("ash", "beech"): 4.0}, capacity=capacity)
        expected = decider.expected_costs(P, amounts)
        position = {label: at for at, label in enumerate(Known.classes_)}
        most = {position[label]: count for label, count in capacity.items()}
        best = min(
            expected[np.arange(6), list(choice)].sum()
            for choice in product(range(3), repeat=6)
            if all(choice.count(j) <= count for j, count in most.items())
        )
        decided = np.searchsorted(Known.classes_, decider.predict(P, amounts))
        assert all((decided == j).sum() <= count for j, count in most.items())
        assert expected[np.arange(6), decided].sum() == pytest.approx(best, abs=1e-9)


def test_costs_per_row_decide_like_one_matrix_for_each():
    P = some_probabilities(30)
    costs = np.random.default_rng(1).uniform(0, 5, (30, 3, 3))
    costs[:, np.arange(3), np.arange(3)] = 0.0
    together = Decider(Known()).predict(P, costs)
    alone = [
        Decider(Known(), cost_matrix=matrix).predict(row[None])[0] for row, matrix in zip(P, costs, strict=True)
    ]
    np.testing.assert_array_equal(together, alone)


def test_any_classifier_of_scikit_learn_serves():
    X, y = blobs(np.random.default_rng(0), 90, 4, 3)
    model = LogisticRegression().fit(X, y)
    costs = {(0, 1): 9.0}
    matrix = np.array([[0, 9, 1], [1, 0, 1], [1, 1, 0]])
    expected = (model.predict_proba(X) @ matrix).argmin(axis=1)
    np.testing.assert_array_equal(Decider(model, cost_matrix=costs).predict(X), expected)
    with pytest.raises(ValueError, match="sample_priors must be given"):
        Decider(model, priors=[0.5, 0.3, 0.2])


def test_bad_input():
    P = some_probabilities(4)
    with pytest.raises(TypeError, match="predict_proba, got MulticategorySVC"):
        Decider(MulticategorySVC())
    with pytest.raises(ValueError, match="must be fitted"):
        Decider(LogisticRegression())
    with pytest.raises(ValueError, match=r"cost_matrix must have shape \(3, 3\)"):
        Decider(Known(), cost_matrix=np.ones((2, 2)))
    with pytest.raises(ValueError, match="capacity names"):
        Decider(Known(), capacity={"oak": 3})
    with pytest.raises(TypeError, match="capacity must be a dict"):
        Decider(Known(), capacity=3)
    with pytest.raises(ValueError, match="room for all rows, got 3 places for 4 rows"):
        Decider(Known(), capacity={"ash": 1, "beech": 1, "cedar": 1}).predict(P)
    with pytest.raises(ValueError, match="3 columns"):
        Decider(Known()).decide(P[:, :2])
    with pytest.raises(ValueError, match=r"sum to 1.* in row 0"):
        Decider(Known()).decide(2 * P)
    with pytest.raises(ValueError, match=r"costs must have shape \(4,\)"):
        Decider(Known()).decide(P, np.ones(3))
    with pytest.raises(ValueError, match="non-negative, got -1 in row 2"):
        Decider(Known()).decide(P, [1.0, 1.0, -1.0, 1.0])
