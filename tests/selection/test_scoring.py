"""Costs as scores."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

from polymargin import expected_cost, make_cost_scorer

COSTS = np.array([[0, 1, 4], [2, 0, 1], [1, 3, 0.0]])


def test_expected_cost_is_its_definition():
    rng = np.random.default_rng(0)
    true, predicted = rng.integers(0, 3, size=(2, 50))
    weights = rng.integers(0, 4, size=50)
    by_hand = np.mean([COSTS[a, b] for a, b in zip(true, predicted, strict=True)])
    assert expected_cost(true, predicted, COSTS) == pytest.approx(by_hand)
    repeated = expected_cost(np.repeat(true, weights), np.repeat(predicted, weights), COSTS, labels=[0, 1, 2])
    assert expected_cost(true, predicted, COSTS, sample_weight=weights) == pytest.approx(repeated)


def test_without_costs_it_is_the_error_rate():
    assert expected_cost(["a", "b", "c", "a"], ["a", "c", "c", "b"], None) == 0.5


def test_forms_of_costs_agree():
    true, predicted = ["c", "a", "b", "a"], ["a", "c", "c", "a"]
    frame = pd.DataFrame(COSTS, index=list("abc"), columns=list("abc"))
    pairs = {(a, b): COSTS[i, j] for i, a in enumerate("abc") for j, b in enumerate("abc") if i != j}
    expected = (COSTS[2, 0] + COSTS[0, 2] + COSTS[1, 2]) / 4
    for form in (COSTS, frame, frame.iloc[::-1], pairs):
        assert expected_cost(true, predicted, form) == pytest.approx(expected)
    assert expected_cost([0, 2], [2, 1], "ordinal", labels=[0, 1, 2]) == 1.5


def test_labels_matter_where_a_class_is_missing():
    assert expected_cost([0, 0], [2, 2], COSTS, labels=[0, 1, 2]) == 4.0
    with pytest.raises(ValueError, match=r"cost_matrix must have shape \(2, 2\)"):
        expected_cost([0, 0], [2, 2], COSTS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [0, 1, 1], None), "inconsistent numbers of samples"),
        (([0, 1], [0, 1], -COSTS[:2, :2]), "non-negative"),
        (([0, 1], [0, 1], np.ones((2, 2))), "zero diagonal"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        expected_cost(*arguments)
    with pytest.raises(ValueError, match="labels must hold every class"):
        expected_cost([0, 1], [0, 5], None, labels=[0, 1])
    with pytest.raises(ValueError, match="at least one non-zero"):
        expected_cost([0, 1], [0, 1], None, sample_weight=[0, 0])


def test_scorer_in_searches():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    scorer = pickle.loads(pickle.dumps(make_cost_scorer(COSTS)))
    model = LogisticRegression(max_iter=1000).fit(X, names)
    assert scorer(model, X, names) == -expected_cost(names, model.predict(X), COSTS)
    scores = cross_val_score(LogisticRegression(max_iter=1000), X, names, scoring=scorer)
    assert (scores <= 0).all()
    search = GridSearchCV(LogisticRegression(max_iter=1000), {"C": [1e-4, 1.0]}, scoring=scorer).fit(X, names)
    assert search.best_params_ == {"C": 1.0}
    # A test fold without a class is scored by the classes of the estimator.
    only = names == "setosa"
    assert scorer(model, X[only], names[only]) == 0.0
