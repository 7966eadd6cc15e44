"""Wrong labels, start to end: suspects by left-out scores, a noise matrix, and the effect of cleaning."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, expit
from sklearn.base import clone
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import _safe_indexing

from polymargin.checks import check_choice, check_real, check_seed
from polymargin.estimators.multicategory import MulticategorySVC
from polymargin.selection.calibration import JUDGING_FOLDS, choose_map
from polymargin.selection.folds import asked_by
from polymargin.selection.least_squares import leave_out_by_least_squares
from polymargin.selection.left_out import LeftOut, fitted_clone, leave_out
from polymargin.selection.probabilities import check_all_seen, check_rows, classes_of

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

CLEANINGS = ("drop", "relabel")
MANY_CLASSES = 8
"""Classes above which least squares judge labels by default: the free multipliers of a hinge machine grow with the
classes, and what the left-out scores cost with their cube."""


@dataclass(frozen=True, slots=True)
class NoiseMatrix:
    """Of the rows believed to be of a class (columns), the shares labelled as each class (rows), with intervals.

    Attributes
    ----------
    classes : (k,)
    counts : (k, k) rows labelled i and believed to be j.
    share, lower, upper : (k, k) ``counts[i, j] / counts[:, j].sum()`` and its Clopper-Pearson interval.
    """

    classes: NDArray
    counts: Array
    share: Array
    lower: Array
    upper: Array

    @classmethod
    def of(cls, classes: NDArray, labels: Rows, believed: Rows, level: float) -> "NoiseMatrix":
        """Count the rows that are believed to be of some class (others have -1)."""
        k, known = len(classes), believed >= 0
        counts = np.zeros((k, k))
        np.add.at(counts, (labels[known], believed[known]), 1.0)
        totals = np.maximum(counts.sum(axis=0), 1.0)
        tail = 0.5 * (1.0 - level)
        with np.errstate(invalid="ignore"):
            lower = np.where(counts > 0, betaincinv(np.maximum(counts, 1e-300), totals - counts + 1.0, tail), 0.0)
            upper = np.where(
                counts < totals, betaincinv(counts + 1.0, np.maximum(totals - counts, 1e-300), 1.0 - tail), 1.0
            )
        return cls(classes, counts, counts / totals, lower, upper)


@dataclass(frozen=True, slots=True)
class LabelSuspicion:
    """What left-out predictions say of the labels of rows.

    Attributes
    ----------
    classes : (k,)
    rows : (m,) positions of the judged rows, those of positive weight, in the data.
    labels : (m,) their classes as given, positions in `classes`.
    believed : (m,) what they more probably are.
    probabilities : (m, k) left-out probabilities of the classes.
    log_odds : (m,) of the own class against the most probable other: the lowest is the most suspect.
    noise : how classes are mislabelled.
    """

    classes: NDArray
    rows: Rows
    labels: Rows
    believed: Rows
    probabilities: Array
    log_odds: Array
    noise: NoiseMatrix

    @property
    def order(self) -> Rows:
        """Places of the judged rows, the most suspect first."""
        return np.lexsort((self.rows, self.log_odds))

    @property
    def is_suspect(self) -> NDArray[np.bool_]:
        """Whether a class other than that of the label is more probable."""
        return self.log_odds < 0.0

    @property
    def suspects(self) -> Rows:
        """Positions in the data of the rows whose label is probably wrong, the most suspect first."""
        places = self.order
        return self.rows[places[self.is_suspect[places]]]

    @property
    def sure(self) -> Array:
        """Probability of the believed class, of that and the own class: how sure it is that the label is wrong."""
        return expit(-self.log_odds)

    def table(self, *, everyone: bool = False) -> Any:
        """Return the suspects as a ranked table.

        Parameters
        ----------
        everyone : bool, default=False
            Whether to list all judged rows, not the suspects alone.

        Returns
        -------
        pandas.DataFrame
            `row` (from 0), `was`, `should_be`, `sure` (probability of `should_be`, of the two), `own` (probability
            of the label given), the most suspect first.
        """
        import pandas as pd

        places = self.order
        places = places if everyone else places[self.is_suspect[places]]
        return pd.DataFrame(
            {
                "row": self.rows[places],
                "was": self.classes[self.labels[places]],
                "should_be": self.classes[self.believed[places]],
                "sure": self.sure[places],
                "own": self.probabilities[places, self.labels[places]],
            }
        )


def suspect_labels(
    X: Any, y: Any, estimator: Any = None, *, sample_weight: Any = None, cv: Any = None, level: float = 0.95
) -> LabelSuspicion:
    """Find labels that are probably wrong, by the left-out probabilities of any classifier.

    Every row is judged by a machine that has not seen it: without refits for `MulticategorySVC` and `ProximalSVC`,
    by folds for others. A map from its scores to probabilities is fitted as in `ProbabilityClassifier`. A row is a
    suspect if another class is more probable than its own. The noise matrix counts the rows of which a class is at
    least as probable as it is on average for the rows labelled so (confident learning, Northcutt, Jiang & Chuang
    2021).

    Parameters
    ----------
    X : whatever the classifier takes, of n_samples rows
    y : array-like of shape (n_samples,)
    estimator : classifier with a `decision_function` or with `predict_proba`, or None, default=None
        None for ``MulticategorySVC(loss="weston")`` with up to 8 classes. With more, for least squares with an rbf
        kernel, one class against the rest, whose left-out scores are in closed form; of more than 1000 rows the
        kernel at 1000 of them.
    sample_weight : array-like of shape (n_samples,) or None, default=None
    cv : int, splitter, iterable or None, default=None
        How rows are left out, as in `ProbabilityClassifier`.
    level : float, default=0.95
        Level of the intervals of the noise matrix.

    Returns
    -------
    LabelSuspicion

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import suspect_labels
    >>> X, y = load_iris(return_X_y=True)
    >>> y[[3, 77]] = 2, 0
    >>> found = suspect_labels(X, y)
    >>> sorted(found.suspects[:2].tolist())
    [3, 77]
    """
    check_real("level", level, above=0.0)
    if level >= 1.0:
        raise ValueError(f"level must be below 1, got {level!r}.")
    machine = _default() if estimator is None else estimator
    X, y, weights = check_rows(_Around(machine), X, y, sample_weight)
    classes = classes_of(y, weights)
    if estimator is None and cv is None and len(classes) > MANY_CLASSES:
        left_out = leave_out_by_least_squares(X, y, weights, classes)
    else:
        left_out = leave_out(
            machine, fitted_clone(machine, X, y, weights, hands_on=cv is None), X, y, weights, cv, classes
        )
    check_all_seen(left_out, classes)
    P = _probabilities(left_out)
    everyone, labels = np.arange(len(P)), left_out.labels
    own = P[everyone, labels]
    others = P.copy()
    others[everyone, labels] = -1.0
    smallest = np.finfo(np.float64).tiny
    log_odds = np.log(np.maximum(own, smallest)) - np.log(np.maximum(others.max(axis=1), smallest))
    counts = np.bincount(labels, left_out.weights, len(classes))
    typical = np.bincount(labels, left_out.weights * own, len(classes)) / counts
    confident = np.where(typical <= P, P, -1.0)
    confidently = np.where(confident.max(axis=1) > 0.0, confident.argmax(axis=1), -1)
    noise = NoiseMatrix.of(classes, labels, confidently, level)
    return LabelSuspicion(classes, left_out.rows, labels, others.argmax(axis=1), P, log_odds, noise)


@dataclass(frozen=True, slots=True)
class CleaningEffect:
    """What removing or correcting suspect labels does to held-out rows, whose labels are as they were given.

    Attributes
    ----------
    before, after : classifiers fitted to the training rows as given, and cleaned.
    error_before, error_after : their error rates on the held-out rows.
    difference, standard_error : ``error_after - error_before``, and its standard error, row by row.
    suspicion : of the training rows.
    train, held_out : positions of the rows.
    n_cleaned : training rows that were dropped or relabelled.
    """

    before: Any
    after: Any
    error_before: float
    error_after: float
    difference: float
    standard_error: float
    suspicion: LabelSuspicion
    train: Rows
    held_out: Rows
    n_cleaned: int


def clean_and_refit(
    X: Any,
    y: Any,
    estimator: Any = None,
    *,
    cleaning: str = "drop",
    at_least: float = 0.5,
    test_size: float = 0.25,
    cv: Any = None,
    random_state: Any = 0,
) -> CleaningEffect:
    """Clean the labels of a part of the rows, fit again, and compare both fits on the rows held out.

    Parameters
    ----------
    X : whatever the classifier takes, of n_samples rows
    y : array-like of shape (n_samples,)
    estimator : classifier or None, default=None
        As of :func:`suspect_labels`; it is also what is fitted. None fits ``MulticategorySVC(loss="weston")``,
        whatever judges.
    cleaning : {"drop", "relabel"}, default="drop"
        Whether suspects are left out, or given the label that they should have.
    at_least : float, default=0.5
        How sure a suspect must be to be touched, from 0.5 to 1.
    test_size : float, default=0.25
        Share of the rows held out.
    cv : as of :func:`suspect_labels`
    random_state : int, RandomState instance or None, default=0
        Draws the rows held out.

    Returns
    -------
    CleaningEffect

    Examples
    --------
    >>> from polymargin import clean_and_refit
    >>> from polymargin.datasets import make_triangle
    >>> sample = make_triangle(300, flip=0.2, random_state=0)
    >>> effect = clean_and_refit(sample.data, sample.target)
    >>> effect.n_cleaned > 0
    True
    """
    check_choice("cleaning", cleaning, CLEANINGS)
    check_real("at_least", at_least, at_least=0.5, at_most=1.0)
    check_real("test_size", test_size, above=0.0, at_most=0.9)
    check_seed("random_state", random_state)
    machine = _default() if estimator is None else estimator
    X, y, _ = check_rows(_Around(machine), X, y, None)
    splitter = StratifiedShuffleSplit(1, test_size=test_size, random_state=random_state)
    with asked_by("test_size", test_size, len(y)):
        train, held_out = next(splitter.split(np.zeros((len(y), 1)), y))
    suspicion = suspect_labels(_safe_indexing(X, train), y[train], estimator, cv=cv)
    touched = suspicion.is_suspect & (suspicion.sure >= at_least)
    rows, cleaned = train, y[train].copy()
    cleaned[suspicion.rows[touched]] = suspicion.classes[suspicion.believed[touched]]
    if cleaning == "drop":
        kept = np.setdiff1d(np.arange(len(train)), suspicion.rows[touched])
        rows, cleaned = train[kept], y[train][kept]
    before = clone(machine).fit(_safe_indexing(X, train), y[train])
    after = clone(machine).fit(_safe_indexing(X, rows), cleaned)
    wrong_before, wrong_after = (
        model.predict(_safe_indexing(X, held_out)) != y[held_out] for model in (before, after)
    )
    change = wrong_after.astype(float) - wrong_before
    return CleaningEffect(
        before,
        after,
        float(wrong_before.mean()),
        float(wrong_after.mean()),
        float(change.mean()),
        float(change.std(ddof=1) / np.sqrt(len(change))),
        suspicion,
        train,
        held_out,
        int(touched.sum()),
    )


def _default() -> MulticategorySVC:
    """Return the classifier that judges, and is fitted, where none is given."""
    return MulticategorySVC(loss="weston", tol=1e-3)


@dataclass(frozen=True, slots=True)
class _Around:
    """What `check_rows` asks a classifier around another one for."""

    estimator: Any


def _probabilities(left_out: LeftOut) -> Array:
    """Map left-out scores to probabilities; equal rows of a class count as one in fitting the map."""
    rows = left_out.merged()
    folds = rows.folds(JUDGING_FOLDS)
    choice = choose_map(rows.scores, rows.labels, rows.weights, folds)
    return choice.fitted.probabilities(left_out.scores)
