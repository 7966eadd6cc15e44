"""Scores of training rows from machines fitted without them: from one fit where possible, by folds elsewhere.

Equal rows of a class leave together, with all their weight: otherwise the copy that stays would vouch for the one
left out. So a row of weight 2 and a row given twice are the same here, too.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.feature_selection import SelectorMixin, VarianceThreshold
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import has_fit_parameter

from polymargin.estimators import steps
from polymargin.gram import row_keys
from polymargin.selection.folds import folds_of

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

FOLDS = 5
"""Folds where left-out scores need refits and `cv` is not given."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Left-out scores.

    Attributes
    ----------
    rows : (m,) positions of the rows in the training data.
    labels : (m,) positions of their classes in `classes_`.
    weights : (m,) their weights, all positive.
    groups : (m,) the same number for equal rows of a class.
    scores : (m, k) scores of the classes.
    """

    rows: Rows
    labels: Rows
    weights: Array
    groups: Rows
    scores: Array

    def merged(self) -> "LeftOut":
        """Return one row for every group, with the weight of all of it, in the order of the groups' numbers."""
        _, first, place = np.unique(self.groups, return_index=True, return_inverse=True)
        weights = np.bincount(place, self.weights).astype(np.float64)
        return LeftOut(self.rows[first], self.labels[first], weights, self.groups[first], self.scores[first])

    def folds(self, most: int) -> Rows:
        """Return a fold for every one of merged rows, of at most so many, each with rows of every class."""
        return _dealt(self.labels, min(most, int(np.bincount(self.labels).min())))


def leave_out(
    estimator: Any,
    machine: Any,
    X: Any,
    y: NDArray,
    weights: Array | None,
    cv: Any,
    classes: NDArray,
    costs: Array | None = None,
) -> LeftOut:
    """Return the left-out scores of the rows of positive weight.

    Parameters
    ----------
    estimator : the classifier, to be fitted without some rows where there is no other way.
    machine : the same, fitted to all rows.
    X, y, weights : what it was fitted to; no weights are weights of one that are not passed on.
    cv : None for no refits where possible, and FOLDS folds elsewhere; or how to split.
    classes : the classes of the machine.
    costs : (n, k) what each class would cost each row, where the machine was fitted to such costs.
    """
    rows, labels, counts, groups = used_rows(X, y, weights, classes, steps.equal_rows(machine))
    if cv is None:
        # a fit keeps equal rows of other costs apart, so that it could not leave them out together
        leaves = costs is None or _agree(groups, costs[rows])
        scores = scores_without_refits(machine, X, y, weights, costs) if leaves else None
        if scores is not None:
            return LeftOut(rows, labels, counts, groups, scores)
        folds = deal(groups, labels, min(FOLDS, smallest_class(groups, labels)))
        splits = [(rows[folds != fold], rows[folds == fold]) for fold in np.unique(folds)]
    else:
        splits = [(train, test[np.isin(test, rows)]) for train, test in folds_of("cv", cv, X, y)]
    at, scores = scores_by_refits(
        estimator, X, y, weights, splits, lambda fitted, left: class_scores(fitted, left, classes), costs
    )
    place = np.searchsorted(rows, at)
    return LeftOut(at, labels[place], counts[place], groups[place], scores)


def leave_out_of_the_fit(
    machine: Any, X: Any, y: NDArray, weights: Array | None, classes: NDArray
) -> LeftOut | None:
    """Return the left-out scores that the fitted machine tells by itself; None where refits are needed."""
    if not can_leave_out(machine):
        return None
    rows, labels, counts, groups = used_rows(X, y, weights, classes)
    scores = scores_without_refits(machine, X, y, weights)
    return None if scores is None else LeftOut(rows, labels, counts, groups, scores)


def can_leave_out(machine: Any) -> bool:
    """Tell whether a fitted machine, perhaps found by a search or the last step of a pipeline, needs no refits.

    Steps before it that saw the classes would have to be fitted without the row as well.
    """
    if isinstance(machine, Pipeline):
        return can_leave_out(machine.steps[-1][1]) and not any(
            _uses_classes(step) for _, step in machine.steps[:-1]
        )
    if hasattr(machine, "best_estimator_"):
        return can_leave_out(machine.best_estimator_)
    return hasattr(machine, "_left_out_scores")


def class_scores(machine: Any, X: Any, classes: NDArray) -> Array:
    """Return the scores (n, k) of all `classes`: those of `decision_function`, or logarithms of probabilities.

    A class that the machine has not seen has a score of minus infinity; one whose rows had no weight is not among
    `classes`, though scikit-learn's machines have a score for it.
    """
    if hasattr(machine, "decision_function"):
        scores = np.asarray(machine.decision_function(X), dtype=np.float64)
    else:
        probabilities = np.asarray(machine.predict_proba(X), dtype=np.float64)
        scores = np.log(np.maximum(probabilities, np.finfo(np.float64).eps))
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    if scores.shape[1] != len(machine.classes_):
        raise ValueError(
            f"The decision_function of the estimator must give one score per class, got {scores.shape[1]} columns "
            f"for {len(machine.classes_)} classes; SVC does so with decision_function_shape='ovr'."
        )
    if not np.isfinite(scores).all():
        raise ValueError(f"estimator must give finite scores, got NaN or infinity from {machine!r}; scale X.")
    aligned = np.full((len(scores), len(classes)), -np.inf)
    asked = np.isin(machine.classes_, classes)
    aligned[:, np.searchsorted(classes, machine.classes_[asked])] = scores[:, asked]
    return aligned


def fitted_clone(
    estimator: Any,
    X: Any,
    y: NDArray,
    weights: Array | None,
    costs: Array | None = None,
    *,
    hands_on: bool = False,
) -> Any:
    """Fit a copy; weights and costs of rows are passed on only where there are some.

    With `hands_on`, for `leave_out` right after, which then need not state the problem again.
    """
    given = {"sample_weight": weights, "costs": costs}
    copy = clone(estimator)
    if hands_on and costs is None and can_leave_out(copy):
        steps.hand_on(copy.steps[-1][1] if isinstance(copy, Pipeline) else copy)
    return copy.fit(X, y, **{name: value for name, value in given.items() if value is not None})


def check_takes_costs(estimator: Any) -> None:
    """Refuse a classifier that costs of rows cannot be passed on to; a pipeline says itself what it routes."""
    if not isinstance(estimator, Pipeline) and not has_fit_parameter(estimator, "costs"):
        raise TypeError(
            f"costs must be None with {type(estimator).__name__}, whose fit takes no costs of rows; "
            "MulticategorySVC, SparseSVC, RobustSVC and their searches do."
        )


def equal_rows(X: Any, labels: Rows, rows: Rows) -> Rows:
    """Return for each of the `rows` a number that equal rows of a class share, whatever their order."""
    keys = list(zip(labels.tolist(), _keys(X, rows), strict=True))
    position = {key: at for at, key in enumerate(sorted(set(keys)))}
    return np.array([position[key] for key in keys], dtype=np.intp)


def deal(groups: Rows, labels: Rows, n_folds: int) -> Rows:
    """Return a fold for every row: the groups of a class go round the folds in turn, on from the last class."""
    distinct, first = np.unique(groups, return_index=True)
    return _dealt(labels[first], n_folds)[np.searchsorted(distinct, groups)]


def _dealt(labels: Rows, n_folds: int) -> Rows:
    fold = np.empty(len(labels), dtype=np.intp)
    fold[np.argsort(labels, kind="stable")] = np.arange(len(labels)) % n_folds
    return fold


def smallest_class(groups: Rows, labels: Rows) -> int:
    """Return the number of distinct rows of the class that has the fewest."""
    first = np.unique(groups, return_index=True)[1]
    return int(np.bincount(labels[first]).min())


def check_two_rows(groups: Rows, labels: Rows, classes: NDArray) -> None:
    """Refuse a class of which nothing is left when a row leaves."""
    first = np.unique(groups, return_index=True)[1]
    counts = np.bincount(labels[first], minlength=len(classes))
    if counts.min() < 2:
        fewest = classes.tolist()[counts.argmin()]
        raise ValueError(
            "y must hold at least two distinct rows of every class with positive sample_weight, so that one can "
            f"be left out, got {counts.min()} of class {fewest!r}."
        )


def used_rows(
    X: Any, y: NDArray, weights: Array | None, classes: NDArray, groups: Rows | None = None
) -> tuple[Rows, Rows, Array, Rows]:
    """Return the rows of positive weight, their labels, weights and groups, if these are not known; check them.

    Every class must have two.
    """
    rows = np.arange(len(y)) if weights is None else np.flatnonzero(weights)
    labels = np.searchsorted(classes, y[rows])
    if groups is None:
        groups = equal_rows(X, labels, rows)
    check_two_rows(groups, labels, classes)
    return rows, labels, np.ones(len(rows)) if weights is None else weights[rows], groups


def _agree(groups: Rows, costs: Array) -> bool:
    """Tell whether all rows of a group have the same costs."""
    first = np.unique(groups, return_index=True)[1]
    return bool((costs == costs[first[np.searchsorted(groups[first], groups)]]).all())


def _uses_classes(step: Any) -> bool:
    """Tell whether a step of a pipeline learns from y; selectors of features do, but for that by variance."""
    if step is None or isinstance(step, str):
        return False
    containers = ("steps", "transformer_list", "transformers")  # of Pipeline, FeatureUnion and ColumnTransformer
    parts: list = next((getattr(step, name) for name in containers if hasattr(step, name)), [])
    if any(_uses_classes(part[1]) for part in parts):
        return True
    predicts = is_classifier(step) or is_regressor(step)
    selects = isinstance(step, SelectorMixin) and not isinstance(step, VarianceThreshold)
    return predicts or selects or get_tags(step).target_tags.required


def _keys(X: Any, rows: Rows) -> list:
    if sparse.issparse(X):
        return row_keys(sparse.csr_array(X)[rows])
    values = np.asarray(X)
    if values.dtype.kind in "biuf" and values.ndim == 2:
        return row_keys(values[rows])
    return [repr(value) for value in values[rows].tolist()]


def scores_without_refits(
    machine: Any, X: Any, y: NDArray, weights: Array | None, costs: Array | None = None
) -> Array | None:
    """Return the left-out scores of the rows of positive weight, None where the fit does not tell them."""
    if not can_leave_out(machine):
        return None
    if isinstance(machine, Pipeline):
        for _, step in machine.steps[:-1]:
            X = X if step in (None, "passthrough") else step.transform(X)
        return scores_without_refits(machine.steps[-1][1], X, y, weights, costs)
    if hasattr(machine, "best_estimator_"):
        return scores_without_refits(machine.best_estimator_, X, y, weights, costs)
    if costs is None:
        return steps.left_out_scores(machine, X, y, weights)
    return steps.left_out_scores(machine, X, y, weights, costs)


def scores_by_refits(
    estimator: Any,
    X: Any,
    y: NDArray,
    weights: Array | None,
    splits: Iterable[tuple[Rows, Rows]],
    scores_of: Callable[[Any, Any], Array],
    costs: Array | None = None,
) -> tuple[Rows, Array]:
    """Return rows and what `scores_of` says of them, (machine, X) given, with machines fitted without them."""
    rows, blocks = [], []
    for train, test in splits:
        X_train, y_train = _safe_split(estimator, X, y, train)
        X_test, _ = _safe_split(estimator, X, y, test, train)
        machine = fitted_clone(
            estimator,
            X_train,
            y_train,
            None if weights is None else weights[train],
            None if costs is None else costs[train],
        )
        rows.append(test)
        blocks.append(scores_of(machine, X_test))
    return np.concatenate(rows), np.vstack(blocks)
