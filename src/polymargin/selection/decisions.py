"""Deciding by probabilities: the class of least expected cost, under what was not known in training."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog
from sklearn.utils.validation import check_array

from polymargin.checks import check_integer
from polymargin.costs import resolve_cost_matrix, resolve_priors

Array = NDArray[np.float64]

SUM_TOLERANCE = 1e-6
"""How far from one the probabilities of a row may sum to."""


def expected_costs(probabilities: Array, costs: Array) -> Array:
    """Return the expected cost (n, k) of predicting every class, ``sum_i p_i cost[i, j]``."""
    return probabilities @ costs


def least_costly(probabilities: Array, costs: Array | None) -> NDArray[np.intp]:
    """Return the position of the class of least expected cost; without costs, of the most probable one."""
    if costs is None:
        return probabilities.argmax(axis=1)
    return expected_costs(probabilities, costs).argmin(axis=1)


class Decider:
    """Decides again, by the probabilities of a fitted classifier, without a refit.

    Every row gets the class of least expected cost ``sum_i p_i(x) cost[i, j]``. Other shares of the classes change
    the probabilities by Bayes' rule, ``p_i priors_i / sample_priors_i`` made to sum to one. With a capacity the
    decisions are those of least total cost over all rows among those that keep to it.

    Parameters
    ----------
    model : fitted classifier with `predict_proba`
        Ours are wrapped in a :class:`ProbabilityClassifier`.
    cost_matrix : array-like, DataFrame, dict, "ordinal" or None, default=None
        Cost of predicting class j for class i: (n_classes, n_classes) in the order of `classes_`, a DataFrame
        labelled by classes, ``{(true, predicted): cost}`` (others 1), "ordinal" (``|i - j|``), or None (all
        errors cost 1).
    priors : array-like, dict or None, default=None
        Shares of the classes among the rows to decide on, where the training rows do not have them.
    sample_priors : array-like, dict or None, default=None
        Shares that the probabilities speak of; None: those of the training rows of a `ProbabilityClassifier`.
    capacity : dict or None, default=None
        ``{class: count}``: how many of the rows decided on together may get a class at most.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import Decider, MulticategorySVC, ProbabilityClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ProbabilityClassifier(MulticategorySVC(C=4.0)).fit(X, y)
    >>> flagged = Decider(model, cost_matrix={(2, 1): 20}, capacity={2: 30}).predict(X)
    >>> int((flagged == 2).sum())
    30
    """

    def __init__(
        self,
        model: Any,
        *,
        cost_matrix: Any = None,
        priors: Any = None,
        sample_priors: Any = None,
        capacity: Mapping | None = None,
    ):
        if not hasattr(model, "predict_proba"):
            raise TypeError(
                f"model must have predict_proba, got {type(model).__name__}, which has not: wrap it in a "
                "ProbabilityClassifier."
            )
        if not hasattr(model, "classes_"):
            raise ValueError("model must be fitted, got one that is not.")
        self.model = model
        self.classes_: NDArray = np.asarray(model.classes_)
        self._costs = resolve_cost_matrix(cost_matrix, self.classes_)
        self._factors = self._prior_factors(priors, sample_priors)
        self._capacity = self._resolve_capacity(capacity)

    def predict(self, X: Any, costs: Any = None) -> NDArray:
        """Decide on rows.

        Parameters
        ----------
        X : whatever the classifier takes, of n_samples rows
        costs : array-like of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_classes, n_classes), or \
                None, default=None
            Amounts that multiply the costs of the rows; or what predicting each class costs a row where it is
            wrong; or a cost matrix of its own for every row.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.decide(self.model.predict_proba(X), costs)

    def decide(self, probabilities: Any, costs: Any = None) -> NDArray:
        """Decide by probabilities that are at hand.

        Parameters
        ----------
        probabilities : array-like of shape (n_samples, n_classes)
        costs : as of `predict`

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.classes_[_within(self.expected_costs(probabilities, costs), self._capacity)]

    def expected_costs(self, probabilities: Any, costs: Any = None) -> Array:
        """Return what every class would cost every row, in expectation.

        Parameters
        ----------
        probabilities : array-like of shape (n_samples, n_classes)
        costs : as of `predict`

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        P = self._checked(probabilities) * self._factors
        P = P / P.sum(axis=1, keepdims=True)
        if costs is None:
            return expected_costs(P, self._costs)
        k = len(self.classes_)
        given = check_array(costs, allow_nd=True, ensure_2d=False, dtype=np.float64, input_name="costs")
        if given.shape not in ((len(P),), (len(P), k), (len(P), k, k)):
            raise ValueError(
                f"costs must have shape ({len(P)},), an amount per row, ({len(P)}, {k}), what each class "
                f"costs a row where it is wrong, or ({len(P)}, {k}, {k}), a matrix per row, got {given.shape}."
            )
        if (given < 0).any():
            row = int(np.argwhere(given < 0)[0][0])
            raise ValueError(f"costs must be non-negative, got {given[row].min():g} in row {row}.")
        if given.ndim == 1:
            return given[:, None] * expected_costs(P, self._costs)
        if given.ndim == 2:
            return given * (1.0 - P)
        return np.einsum("ni,nij->nj", P, given)

    def _checked(self, probabilities: Any) -> Array:
        P = check_array(probabilities, dtype=np.float64, input_name="probabilities")
        if P.shape[1] != len(self.classes_):
            raise ValueError(
                f"probabilities must have {len(self.classes_)} columns, one per class, got {P.shape[1]}."
            )
        off = (P < 0).any(axis=1) | (np.abs(P.sum(axis=1) - 1.0) > SUM_TOLERANCE)
        if off.any():
            row = int(off.argmax())
            raise ValueError(f"probabilities must be at least 0 and sum to 1, got {P[row].tolist()} in row {row}.")
        return P

    def _prior_factors(self, priors: Any, sample_priors: Any) -> Array:
        wanted = resolve_priors(priors, self.classes_)
        if wanted is None:
            return np.ones(len(self.classes_))
        sample = resolve_priors(sample_priors, self.classes_)
        if sample is not None:
            return wanted / sample
        left_out = getattr(self.model, "left_out_", None)
        if left_out is None:
            raise ValueError(
                "sample_priors must be given with priors: what shares the probabilities speak of is known "
                f"of a ProbabilityClassifier only, got a {type(self.model).__name__}."
            )
        totals = np.bincount(left_out.labels, left_out.weights, len(self.classes_))
        return wanted * totals.sum() / totals

    def _resolve_capacity(self, capacity: Mapping | None) -> dict[int, int]:
        if capacity is None:
            return {}
        if not isinstance(capacity, Mapping):
            raise TypeError(f"capacity must be a dict {{class: count}} or None, got {capacity!r}.")
        position = {label: at for at, label in enumerate(self.classes_.tolist())}
        unknown = [label for label in capacity if label not in position]
        if unknown:
            raise ValueError(f"capacity names {unknown}, not among the classes {self.classes_.tolist()}.")
        return {
            position[label]: check_integer(f"capacity of {label}", count, at_least=0)
            for label, count in capacity.items()
        }


def _within(expected: Array, capacity: dict[int, int]) -> NDArray[np.intp]:
    """Return the assignment of least total cost that keeps to the capacities."""
    n, k = expected.shape
    winners = expected.argmin(axis=1)
    counts = np.bincount(winners, minlength=k)
    if all(counts[j] <= most for j, most in capacity.items()):
        return winners
    open_classes = [j for j in range(k) if j not in capacity]
    if len(capacity) == 1:
        ((j, most),) = capacity.items()
        second = np.array(open_classes)[expected[:, open_classes].argmin(axis=1)]
        savings = expected[np.arange(n), second] - expected[:, j]
        kept = np.argsort(-savings, kind="stable")[:most]
        winners = second.copy()
        winners[kept[savings[kept] >= 0]] = j
        return winners
    if not open_classes and sum(capacity.values()) < n:
        raise ValueError(
            f"capacity must leave room for all rows, got {sum(capacity.values())} places for {n} rows."
        )
    return _transported(expected, capacity)


def _transported(expected: Array, capacity: dict[int, int]) -> NDArray[np.intp]:
    """Solve the transportation problem; the simplex method ends in a vertex, and its vertices are assignments."""
    n, k = expected.shape
    one_each = sparse.kron(sparse.eye_array(n), np.ones((1, k)), format="csr")
    per_class = sparse.kron(np.ones((1, n)), sparse.eye_array(k), format="csr")
    capped = np.array(sorted(capacity))
    solution = linprog(
        expected.ravel(),
        A_ub=per_class[capped],
        b_ub=np.array([capacity[j] for j in capped], dtype=np.float64),
        A_eq=one_each,
        b_eq=np.ones(n),
        bounds=(0.0, 1.0),
        method="highs-ds",
    )
    if not solution.success:
        raise ArithmeticError(f"The decisions within the capacity were not found: {solution.message}")
    return solution.x.reshape(n, k).argmax(axis=1)


def own_costs(estimator: Any) -> Any:
    """Return the `cost_matrix` of an estimator, perhaps within a search or at the end of a pipeline, or None."""
    if hasattr(estimator, "steps"):
        return own_costs(estimator.steps[-1][1])
    found = getattr(estimator, "cost_matrix", None)
    inner = getattr(estimator, "estimator", None)
    return own_costs(inner) if found is None and inner is not None else found
