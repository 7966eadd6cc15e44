"""Costs, priors and class weights: every specification a user may give, resolved to one checked array.

Rows of a cost matrix are true classes, columns predicted ones, both in the order of `classes_`. Costs of rows
(n, k) say what predicting each class would cost a row, whose true class is known.
"""

import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.checks import check_choice, check_magnitudes

CONVERSIONS = ("rows", "paper")

COST_FORMS = (
    "an array (n_classes, n_classes) in the order of classes_, a pandas DataFrame labelled by classes, "
    "a dict {(true, predicted): cost}, 'ordinal' or None"
)


def resolve_cost_matrix(cost_matrix: Any, classes: NDArray, *, name: str = "cost_matrix") -> NDArray[np.float64]:
    """Return the (k, k) matrix of misclassification costs with a zero diagonal.

    >>> resolve_cost_matrix({("a", "b"): 5}, np.array(["a", "b", "c"]))
    array([[0., 5., 1.],
           [1., 0., 1.],
           [1., 1., 0.]])
    """
    k = len(classes)
    if cost_matrix is None:
        return 1.0 - np.eye(k)
    if isinstance(cost_matrix, str):
        if cost_matrix != "ordinal":
            raise ValueError(f"{name} must be {COST_FORMS}, got {cost_matrix!r}.")
        return np.abs(np.subtract.outer(np.arange(k), np.arange(k))).astype(np.float64)
    costs = matrix_by_class(cost_matrix, classes, name=name, fill=1.0 - np.eye(k))
    if np.any(np.diag(costs) != 0):
        at = classes[np.flatnonzero(np.diag(costs))[0]]
        raise ValueError(f"{name} must have a zero diagonal, got a cost for predicting class {at} rightly.")
    if not costs.any():
        raise ValueError(f"{name} must have at least one positive entry, got only zeros.")
    return costs


def resolve_row_costs(
    costs: Any,
    labels: NDArray[np.intp],
    classes: NDArray,
    *,
    rows: NDArray[np.intp] | None = None,
    n_rows: int | None = None,
) -> NDArray[np.float64]:
    """Return what predicting each class costs each row, (n, k); the own class of a row costs nothing.

    Parameters
    ----------
    costs : array-like (n_rows, k) in the order of `classes`, or a DataFrame whose columns are the classes.
    labels : (n,) positions of the rows' classes.
    classes : (k,) the class labels, sorted.
    rows : (n,) which of the `n_rows` rows are asked for; None: all.

    Examples
    --------
    >>> resolve_row_costs([[0, 7.5], [0.2, 0]], np.array([0, 1]), np.array(["a", "b"]))
    array([[0. , 7.5],
           [0.2, 0. ]])
    """
    rows = np.arange(len(labels)) if rows is None else rows
    shape = len(labels) if n_rows is None else n_rows, len(classes)
    table = _by_class(costs, classes, shape)[rows]
    wrong = ~(np.isfinite(table) & (table >= 0))
    if wrong.any():
        at, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"costs must be finite and non-negative, got {table[at, column]!s} in row {rows[at]} for class "
            f"{classes[column]}."
        )
    check_magnitudes("costs", table)
    own = table[np.arange(len(labels)), labels]
    if own.any():
        at = int(np.flatnonzero(own)[0])
        raise ValueError(
            f"costs must be zero for the own class of a row, got {own[at]:g} in row {rows[at]} for class "
            f"{classes[labels[at]]}: subtract it from all costs of the row, and label the row by the class that "
            "costs least."
        )
    return table


def _by_class(costs: Any, classes: NDArray, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Return a table with a column per class; the columns of a DataFrame are found by name."""
    if hasattr(costs, "loc") and hasattr(costs, "columns"):
        columns = list(costs.columns)
        if len(columns) != shape[1] or set(columns) != set(classes.tolist()):
            raise ValueError(
                f"costs: the columns of the DataFrame must be the classes {classes.tolist()}, got {columns}."
            )
        costs = costs.loc[:, classes.tolist()].to_numpy()
    table = _as_array(costs, "costs")
    if table.shape != shape:
        hint = "; one amount per row is a sample_weight" if table.shape == shape[:1] else ""
        raise ValueError(
            f"costs must have shape {shape}, one row per row of the data and one column per class "
            f"{classes.tolist()}, got {table.shape}{hint}."
        )
    return table


def resolve_utility(utility: Any, classes: NDArray) -> NDArray[np.float64]:
    """Return the (k, k) matrix of utilities; None is the identity, and "ordinal" converts the ordinal costs.

    >>> resolve_utility({("a", "b"): 0.5}, np.array(["a", "b", "c"]))
    array([[1. , 0.5, 0. ],
           [0. , 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    k = len(classes)
    if utility is None:
        return np.eye(k)
    if isinstance(utility, str):
        return utility_of_costs(resolve_cost_matrix(utility, classes, name="utility"))
    matrix = matrix_by_class(utility, classes, name="utility", fill=np.eye(k))
    if not matrix.any():
        raise ValueError("utility must have at least one positive entry, got only zeros.")
    return matrix


def utility_of_costs(costs: NDArray[np.float64], conversion: str = "rows") -> NDArray[np.float64]:
    """Convert costs to utilities: the largest cost of each row, or by the paper's (9) of all, less the costs.

    Ours is (9) of Liu, Wu & He, ``max(costs) - costs``, less the minimum of each row. What is taken off a row
    changes no Bayes rule, and what is left draws the machine less towards zero scores.
    """
    largest = costs.max() if conversion == "paper" else costs.max(axis=1, keepdims=True)
    return largest - costs


def costs_to_utility(cost_matrix: Any, *, classes: Any = None, conversion: str = "rows") -> NDArray[np.float64]:
    """Convert costs of errors to utilities of predictions, which have the same Bayes rule.

    Parameters
    ----------
    cost_matrix : array-like, DataFrame, dict or "ordinal"
        Costs, as the estimators take them; a dict or "ordinal" needs `classes`.
    classes : array-like of shape (n_classes,) or None, default=None
        The classes; None: as many as the array has rows, or the rows of the DataFrame.
    conversion : {"rows", "paper"}, default="rows"
        "rows": the largest cost of each row less its costs, so that the worst prediction for a class is worth
        nothing. "paper": (9) of Liu, Wu & He, the largest of all costs less the costs.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)

    Examples
    --------
    >>> from polymargin import costs_to_utility, utility_to_costs
    >>> costs = [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [5.0, 1.0, 0.0]]
    >>> costs_to_utility(costs)
    array([[2., 1., 0.],
           [0., 1., 0.],
           [0., 4., 5.]])
    >>> costs_to_utility(costs, conversion="paper")[0]
    array([5., 4., 3.])
    >>> utility_to_costs(costs_to_utility(costs))
    array([[0., 1., 2.],
           [1., 0., 1.],
           [5., 1., 0.]])
    """
    check_choice("conversion", conversion, CONVERSIONS)
    known = _classes_of(cost_matrix, classes, "cost_matrix")
    return utility_of_costs(resolve_cost_matrix(cost_matrix, known), conversion)


def utility_to_costs(utility: Any, *, classes: Any = None) -> NDArray[np.float64]:
    """Convert utilities of predictions to costs of errors: what is lost against predicting the own class.

    It undoes both conversions of :func:`costs_to_utility`.

    Parameters
    ----------
    utility : array-like, DataFrame, dict or "ordinal"
        Utilities, as `RobustSVC` takes them; a dict or "ordinal" needs `classes`. None may be above that of the
        own class.
    classes : array-like of shape (n_classes,) or None, default=None
        The classes; None: as many as the array has rows, or the rows of the DataFrame.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
    """
    known = _classes_of(utility, classes, "utility")
    matrix = resolve_utility(utility, known)
    costs = matrix.diagonal()[:, None] - matrix
    if costs.min() < 0:
        true, predicted = np.argwhere(costs < 0)[0]
        raise ValueError(
            f"utility must be largest for the own class to be converted to costs, got {matrix[true, predicted]:g} "
            f"for predicting {known[predicted]} and {matrix[true, true]:g} for predicting {known[true]} rightly."
        )
    return costs


def _classes_of(matrix: Any, classes: Any, name: str) -> NDArray:
    if classes is not None:
        return np.unique(np.asarray(classes))
    if hasattr(matrix, "loc") and hasattr(matrix, "columns"):
        return np.unique(np.asarray(matrix.index))
    if isinstance(matrix, (str, Mapping)) or matrix is None:
        raise ValueError(f"classes must be given where {name} is no matrix, got {name}={matrix!r}.")
    return np.arange(len(_as_array(matrix, name)))


def matrix_by_class(values: Any, classes: NDArray, *, name: str, fill: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a non-negative (k, k) matrix in the order of `classes` from an array, DataFrame or dict.

    Pairs that a dict does not name take their value from `fill`.
    """
    k = len(classes)
    if isinstance(values, Mapping):
        matrix = fill.copy()
        position = {label: index for index, label in enumerate(classes.tolist())}
        for pair, value in values.items():
            if not (isinstance(pair, tuple) and len(pair) == 2):
                raise ValueError(f"{name}: keys must be pairs (true, predicted) of classes, got {pair!r}.")
            rows = [_position_of(label, position, name) for label in pair]
            matrix[rows[0], rows[1]] = _as_number(value, name)
    elif hasattr(values, "loc") and hasattr(values, "columns"):
        rows, columns = list(values.index), list(values.columns)
        for axis, labels in (("rows", rows), ("columns", columns)):
            if len(labels) != k or set(labels) != set(classes.tolist()):
                raise ValueError(
                    f"{name}: the {axis} of the DataFrame must be the classes {classes.tolist()}, got {labels}."
                )
        matrix = _as_array(values.loc[classes.tolist(), classes.tolist()].to_numpy(), name)
    else:
        matrix = _as_array(values, name)
        if matrix.shape != (k, k):
            raise ValueError(
                f"{name} must have shape ({k}, {k}), one row and column per class, got {matrix.shape}."
            )
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        bad = matrix[~(np.isfinite(matrix) & (matrix >= 0))][0]
        raise ValueError(f"{name} must have finite non-negative entries, got {bad!s}.")
    check_magnitudes(name, matrix)
    return matrix


def resolve_priors(priors: Any, classes: NDArray) -> NDArray[np.float64] | None:
    """Return the population proportions of the classes, or None if none were given.

    >>> resolve_priors({"a": 0.9, "b": 0.1}, np.array(["a", "b"]))
    array([0.9, 0.1])
    """
    if priors is None:
        return None
    proportions = _vector_by_class(priors, classes, "priors", required=True)
    if (proportions <= 0).any():
        raise ValueError(f"priors must be positive for every class, got {proportions.tolist()}.")
    if not np.isclose(proportions.sum(), 1.0, rtol=0, atol=1e-8):
        raise ValueError(f"priors must sum to one, got a sum of {proportions.sum():.10g}.")
    return proportions


def resolve_class_weight(
    class_weight: Any, classes: NDArray, class_totals: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return one factor per class; `class_totals` are the summed sample weights of the classes.

    >>> resolve_class_weight("balanced", np.array([0, 1]), np.array([30.0, 10.0]))
    array([0.66666667, 2.        ])
    """
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f"class_weight must be 'balanced', a dict or None, got {class_weight!r}.")
        return class_totals.sum() / (len(classes) * class_totals)
    if not isinstance(class_weight, Mapping):
        raise TypeError(f"class_weight must be 'balanced', a dict or None, got {class_weight!r}.")
    factors = _vector_by_class(class_weight, classes, "class_weight", required=False)
    if (factors <= 0).any():
        raise ValueError(f"class_weight must be positive for every class, got {factors.tolist()}.")
    return factors


def _vector_by_class(values: Any, classes: NDArray, name: str, *, required: bool) -> NDArray[np.float64]:
    if isinstance(values, Mapping):
        position = {label: index for index, label in enumerate(classes.tolist())}
        vector = np.ones(len(classes))
        for label, value in values.items():
            vector[_position_of(label, position, name)] = _as_number(value, name)
        missing = set(position) - {_plain(label) for label in values}
        if required and missing:
            raise ValueError(f"{name} must give a value for every class, missing: {sorted(missing, key=str)}.")
    else:
        vector = _as_array(values, name)
        if vector.shape != (len(classes),):
            raise ValueError(f"{name} must have shape ({len(classes)},), one entry per class, got {vector.shape}.")
    if not np.isfinite(vector).all():
        raise ValueError(f"{name} must be finite, got {vector.tolist()}.")
    check_magnitudes(name, np.abs(vector))
    return vector


def _position_of(label: Any, position: dict, name: str) -> int:
    label = _plain(label)
    if label not in position:
        raise ValueError(f"{name} names the class {label!r}, which is not among the classes {list(position)}.")
    return position[label]


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _as_number(value: Any, name: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} must hold numbers of moderate size, got {reprlib.repr(value)}.") from None
    except (TypeError, ValueError):
        raise TypeError(f"{name} must hold numbers, got {value!r}.") from None


def _as_array(values: Any, name: str) -> NDArray[np.float64]:
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"{name} must hold numbers of moderate size, got {reprlib.repr(values)}.") from None
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be an array of numbers, got {values!r}.") from None
