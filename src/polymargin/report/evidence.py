"""What a report is about: the parts of a model, and what it does on held-out rows; numbers, no markup."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _num_samples, check_is_fitted, column_or_1d

from polymargin.costs import resolve_cost_matrix, resolve_row_costs
from polymargin.estimators.parts import MarginClassifier
from polymargin.estimators.refinement import NewtonRefinement
from polymargin.report.calibration import Calibration, cross_fitted
from polymargin.selection.decisions import least_costly
from polymargin.selection.left_out import class_scores
from polymargin.selection.prediction_sets import PredictionSetClassifier
from polymargin.selection.probabilities import ProbabilityClassifier
from polymargin.selection.rejection import (
    DEFAULT_QUANTILE,
    RejectOptionClassifier,
)
from polymargin.selection.thresholds import Tally, find_threshold
from polymargin.selection.weakness import prediction_losses

WEIGHING = ("cost_matrix", "utility", "priors", "class_weight")
"""Parameters of machines that weigh classes unequally."""


@dataclass(frozen=True, slots=True)
class Probable:
    """A model's own probabilities.

    Attributes
    ----------
    model : what made them, from left-out scores of the training rows.
    probabilities : (n, k), of the given rows.
    decided : (n,) positions of the classes that it decides for.
    sets, coverage : (n, k) which classes are in the sets, and how often they are to hold the true one; or None.
    """

    model: ProbabilityClassifier
    probabilities: NDArray[np.float64]
    decided: NDArray[np.intp]
    sets: NDArray[np.bool_] | None
    coverage: float | None

    @classmethod
    def of(cls, model: ProbabilityClassifier | PredictionSetClassifier, X: Any) -> "Probable":
        """Ask a fitted model for them."""
        check_is_fitted(model)
        inner = model.model_ if isinstance(model, PredictionSetClassifier) else model
        P = inner.predict_proba(X)
        decided = least_costly(P, inner._costs)
        if isinstance(model, PredictionSetClassifier):
            return cls(inner, P, decided, model.predict_set(X), float(model.coverage))
        return cls(inner, P, decided, None, None)


@dataclass(frozen=True, slots=True)
class Parts:
    """A model taken apart, from outside to inside.

    Attributes
    ----------
    steps : names and fitted transformers that rows go through.
    rejector, search, probable : what is wrapped around the machine, where there is such a thing.
    machine : the fitted machine itself.
    rows : the given rows as the machine sees them.
    features : names of their columns.
    """

    steps: tuple[tuple[str, Any], ...]
    rejector: RejectOptionClassifier | None
    search: Any
    probable: Probable | None
    machine: Any
    rows: Any
    features: tuple[str, ...]

    @classmethod
    def of(cls, model: Any, X: Any) -> "Parts":
        """Take a fitted model apart and send rows through it, up to the machine."""
        steps: list[tuple[str, Any]] = []
        rejector = search = probable = None
        names = _column_names(X)
        while not isinstance(model, MarginClassifier | NewtonRefinement) or hasattr(model, "best_estimator_"):
            if isinstance(model, Pipeline):
                check_is_fitted(model)
                for name, step in model.steps[:-1]:
                    if step is None or isinstance(step, str):
                        continue
                    steps.append((name, step))
                    names = _names_after(step, names)
                    X = step.transform(X)
                model = model.steps[-1][1]
            elif isinstance(model, RejectOptionClassifier):
                check_is_fitted(model)
                rejector, model = model, model.estimator_
            elif isinstance(model, ProbabilityClassifier | PredictionSetClassifier):
                probable = Probable.of(model, X)
                model = probable.model.estimator_
            elif hasattr(model, "best_estimator_"):
                search, model = model, model.best_estimator_
            else:
                raise TypeError(
                    "model must be a fitted classifier of Polymargin, or a pipeline, a search, a "
                    "RejectOptionClassifier, a ProbabilityClassifier or a PredictionSetClassifier around one, got "
                    f"{model!r}."
                )
        check_is_fitted(model)
        if names is None or len(names) != model.n_features_in_:
            own = getattr(model, "feature_names_in_", [f"variable {j}" for j in range(model.n_features_in_)])
            names = [str(name) for name in own]
        return cls(tuple(steps), rejector, search, probable, model, X, tuple(names))


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a model does on n held-out rows of k classes; labels are positions in `classes`.

    Attributes
    ----------
    names : the classes as text.
    rows : names of the held-out rows.
    labels, predicted, accepted, scores, losses : true class, the model's decision (the highest score, where it
        has no probabilities), whether it is accepted, all scores, and the loss of the highest.
    threshold, threshold_is_left_out : highest accepted loss, and whether left-out training rows set it.
    costs, costs_given : (k, k), and whether anybody gave them.
    prices : (n, k) what every class costs every row, where rows have costs of their own; else None.
    calibration, probabilities : how scores become probabilities, and these, in single precision as the page stores
        them; those of the model itself or, where it has none, from a calibration on other held-out rows.
    """

    parts: Parts
    classes: NDArray
    names: tuple[str, ...]
    rows: tuple[str, ...]
    labels: NDArray[np.intp]
    predicted: NDArray[np.intp]
    accepted: NDArray[np.bool_]
    scores: NDArray[np.float64]
    losses: NDArray[np.float64]
    threshold: float
    threshold_is_left_out: bool
    costs: NDArray[np.float64]
    costs_given: bool
    prices: NDArray[np.float64] | None
    calibration: Calibration
    probabilities: NDArray[np.float32]

    @classmethod
    def of(cls, model: Any, X: Any, y: Any, cost_matrix: Any = None, row_costs: Any = None) -> "Evidence":
        """Check the held-out data and score it."""
        if cost_matrix is not None and row_costs is not None:
            raise ValueError("costs and cost_matrix are two ways to price errors, got both: give one.")
        y = column_or_1d(y)
        if len(y) == 0 or _num_samples(X) != len(y):
            raise ValueError(f"X and y must hold the same rows, at least one, got {_num_samples(X)} and {len(y)}.")
        parts = Parts.of(model, X)
        machine, classes = parts.machine, parts.machine.classes_
        labels = _positions(y, classes)
        prices = None if row_costs is None else resolve_row_costs(row_costs, labels, classes)
        probable = parts.probable
        own_costs = getattr(machine, "cost_matrix", None)
        if probable is not None and probable.model.cost_matrix is not None:
            own_costs = probable.model.cost_matrix
        given = own_costs if cost_matrix is None else cost_matrix
        costs = resolve_cost_matrix(given, classes)
        scores = class_scores(machine, parts.rows, classes)
        predicted = scores.argmax(axis=1) if probable is None else probable.decided
        losses = prediction_losses(machine, scores)
        if parts.rejector is not None:
            threshold = parts.rejector._one_threshold("The report")
            accepted = losses <= threshold
        else:
            tally = Tally.of(losses, predicted == labels, np.ones(len(labels)))
            threshold = find_threshold(tally, "quantile", DEFAULT_QUANTILE)
            accepted = np.ones(len(labels), dtype=bool)
        calibration = Calibration.fit(scores, labels, with_offsets=weighs_classes(machine))
        if probable is None:
            probabilities = cross_fitted(scores, labels, with_offsets=weighs_classes(machine))
        else:
            probabilities = probable.probabilities
        return cls(
            parts,
            classes,
            tuple(map(str, classes.tolist())),
            _row_names(X, len(y)),
            labels,
            predicted,
            accepted,
            scores,
            losses,
            float(threshold),
            parts.rejector is not None,
            costs,
            given is not None,
            prices,
            calibration,
            probabilities.astype(np.float32),
        )

    @property
    def costs_differ(self) -> bool:
        """Whether some errors cost more than others."""
        off_diagonal = self.costs[~np.eye(len(self.costs), dtype=bool)]
        return bool(np.ptp(off_diagonal) > 0)

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which accepted predictions are wrong."""
        return self.accepted & (self.predicted != self.labels)

    @property
    def error(self) -> float:
        """Share of errors among the accepted predictions."""
        return float(self.wrong.sum() / max(1, self.accepted.sum()))

    @property
    def row_costs(self) -> NDArray[np.float64]:
        """Cost of every prediction; not a number where it was rejected."""
        return np.where(self.accepted, self._charges(self.predicted), np.nan)

    @property
    def recalls(self) -> NDArray[np.float64]:
        """Share of every class that is found; not a number where no row has the class."""
        true = np.bincount(self.labels, minlength=len(self.classes))
        right = np.bincount(self.labels[self.accepted & ~self.wrong], minlength=len(self.classes))
        return np.divide(right, true, out=np.full(len(true), np.nan), where=true > 0)

    @property
    def expected_cost(self) -> float:
        """Mean cost of the accepted predictions."""
        return float(self._charges(self.predicted) @ self.accepted / max(1, self.accepted.sum()))

    @property
    def cost_of_the_most_probable(self) -> float:
        """Mean cost of the accepted rows if the most probable class were predicted, costs ignored."""
        charged = self._charges(self.probabilities.argmax(axis=1))
        return float(charged @ self.accepted / max(1, self.accepted.sum()))

    @property
    def total_costs(self) -> NDArray[np.float64]:
        """Summed costs (k, k) of the accepted predictions, by true and predicted class."""
        table = np.zeros(self.costs.shape)
        charged = self._charges(self.predicted)
        np.add.at(table, (self.labels[self.accepted], self.predicted[self.accepted]), charged[self.accepted])
        return table

    def _charges(self, decided: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return what decisions cost, by the costs of the rows where there are some."""
        if self.prices is not None:
            return self.prices[np.arange(len(decided)), decided]
        return self.costs[self.labels, decided]

    @property
    def confusion(self) -> NDArray[np.intp]:
        """Counts (k, k + 1) of true by predicted classes; the last column counts rejections."""
        k = len(self.classes)
        table = np.zeros((k, k + 1), dtype=np.intp)
        np.add.at(table, (self.labels, np.where(self.accepted, self.predicted, k)), 1)
        return table


def weighs_classes(machine: Any) -> bool:
    """Tell whether the machine was trained with anything that shifts its scores towards some classes."""
    return any(getattr(machine, name, None) is not None for name in WEIGHING)


def _positions(y: NDArray, classes: NDArray) -> NDArray[np.intp]:
    position = {label: at for at, label in enumerate(classes.tolist())}
    unknown = [label for label in dict.fromkeys(y.tolist()) if label not in position]
    if unknown:
        shown = ", ".join(map(repr, unknown[:5])) + (", ..." if len(unknown) > 5 else "")
        raise ValueError(
            f"y holds labels that the model does not know: {shown}; its classes are {list(position)}."
        )
    return np.array([position[label] for label in y.tolist()], dtype=np.intp)


def _column_names(X: Any) -> list[str] | None:
    return [str(name) for name in X.columns] if hasattr(X, "columns") else None


def _row_names(X: Any, n: int) -> tuple[str, ...]:
    index = getattr(X, "index", None)
    return tuple(map(str, range(n) if index is None or callable(index) else index))


def _names_after(step: Any, names: list[str] | None) -> list[str] | None:
    """Return the names of the columns that a transformer makes, None where it cannot tell."""
    try:
        return [str(name) for name in step.get_feature_names_out(names)]
    except (AttributeError, ValueError, TypeError):
        return None
