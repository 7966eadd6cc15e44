import numpy as np
import pandas as pd
import pytest

from polymargin.costs import resolve_class_weight, resolve_cost_matrix, resolve_priors

CLASSES = np.array(["a", "b", "c"])


def test_forms_of_costs_agree():
    array = np.array([[0.0, 5.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    frame = pd.DataFrame(array, index=list("abc"), columns=list("abc"))
    for form in (array, array.tolist(), frame, frame.loc[::-1, ::-1], {("a", "b"): 5}):
        np.testing.assert_array_equal(resolve_cost_matrix(form, CLASSES), array)
    np.testing.assert_array_equal(resolve_cost_matrix(None, CLASSES), 1 - np.eye(3))
    assert resolve_cost_matrix("ordinal", CLASSES).tolist() == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]


def test_numeric_labels_name_pairs():
    costs = resolve_cost_matrix({(np.int64(1), 2): 7.0}, np.array([1, 2]))
    assert costs.tolist() == [[0.0, 7.0], [1.0, 0.0]]


def test_the_given_array_is_not_shared():
    array = 1.0 - np.eye(3)
    resolve_cost_matrix(array, CLASSES)[0, 1] = 9.0
    assert array[0, 1] == 1.0


@pytest.mark.parametrize(
    ("costs", "error", "message"),
    [
        ([["x"] * 3] * 3, TypeError, "cost_matrix must be an array of numbers"),
        ({("a", "b"): "much"}, TypeError, "cost_matrix must hold numbers, got 'much'"),
        ({("a", "b", "c"): 1}, ValueError, "keys must be pairs"),
        (np.ones(3), ValueError, r"shape \(3, 3\)"),
    ],
)
def test_bad_costs(costs, error, message):
    with pytest.raises(error, match=message):
        resolve_cost_matrix(costs, CLASSES)


def test_priors():
    assert resolve_priors(None, CLASSES) is None
    assert resolve_priors({"c": 0.5, "a": 0.3, "b": 0.2}, CLASSES).tolist() == [0.3, 0.2, 0.5]
    with pytest.raises(ValueError, match=r"missing: \['c'\]"):
        resolve_priors({"a": 0.5, "b": 0.5}, CLASSES)
    with pytest.raises(ValueError, match="priors must be finite"):
        resolve_priors([np.nan, 0.5, 0.5], CLASSES)


def test_class_weights():
    totals = np.array([30.0, 10.0, 20.0])
    assert resolve_class_weight(None, CLASSES, totals).tolist() == [1.0, 1.0, 1.0]
    np.testing.assert_allclose(resolve_class_weight("balanced", CLASSES, totals) * totals, 20.0)
    assert resolve_class_weight({"b": 4}, CLASSES, totals).tolist() == [1.0, 4.0, 1.0]
    with pytest.raises(TypeError, match="class_weight must be 'balanced', a dict or None"):
        resolve_class_weight([1, 2, 3], CLASSES, totals)
