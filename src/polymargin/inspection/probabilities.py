"""Whether probabilities come true, and how large sets of classes are."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.utils.validation import check_consistent_length, column_or_1d

from polymargin.checks import check_integer
from polymargin.inspection._plotting import class_colours, ink, label_text, new_axes, styled

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Reliability:
    """Rows of like probability of one class.

    Attributes
    ----------
    predicted : (m,) mean probability of the class in every bin that has rows, ascending.
    observed : (m,) share of the rows that are of the class.
    counts : (m,) rows.
    low, high : (m,) 95 % intervals of the share (Wilson's).
    """

    predicted: Array
    observed: Array
    counts: NDArray[np.intp]
    low: Array
    high: Array

    @classmethod
    def of(cls, probabilities: Array, is_class: NDArray[np.bool_], n_bins: int) -> "Reliability":
        """Sort rows into bins of equal width."""
        bins = np.minimum((probabilities * n_bins).astype(np.intp), n_bins - 1)
        counts = np.bincount(bins, minlength=n_bins)
        used = np.flatnonzero(counts)
        hits = np.bincount(bins, is_class, n_bins)[used]
        intervals = [
            binomtest(int(hit), int(count)).proportion_ci(0.95, method="wilson")
            for hit, count in zip(hits, counts[used], strict=True)
        ]
        return cls(
            np.bincount(bins, probabilities, n_bins)[used] / counts[used],
            hits / counts[used],
            counts[used],
            np.array([interval.low for interval in intervals]),
            np.array([interval.high for interval in intervals]),
        )

    @property
    def error(self) -> float:
        """Mean distance between what was predicted and what was observed, over the rows."""
        return float(np.average(np.abs(self.predicted - self.observed), weights=self.counts))


class ReliabilityDisplay:
    """Reliability diagram: of rows of like probability of a class, the share that are of the class.

    Probabilities that come true lie on the diagonal. Bars are 95 % intervals, and the area of a point is the
    number of its rows.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
    reliabilities : list of Reliability
        One per class.

    Attributes
    ----------
    ax_, figure_, lines_
        What `plot` drew.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import MulticategorySVC, ProbabilityClassifier
    >>> from polymargin.inspection import ReliabilityDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ProbabilityClassifier(MulticategorySVC()).fit(X[::2], y[::2])
    >>> display = ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2])  # doctest: +SKIP
    """

    def __init__(self, *, classes: NDArray, reliabilities: list[Reliability]):
        self.classes = classes
        self.reliabilities = reliabilities

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, n_bins: int = 10, ax: Any = None, **line: Any
    ) -> "ReliabilityDisplay":
        """Draw the diagram of a fitted classifier with probabilities.

        Parameters
        ----------
        estimator : fitted classifier with `predict_proba`
        X, y : test rows and their classes
        n_bins : int, default=10
            Bins of equal width that rows are sorted into by probability.
        ax : matplotlib axes or None, default=None
        **line : passed on to `ax.errorbar`

        Returns
        -------
        ReliabilityDisplay
        """
        y = column_or_1d(y)
        check_consistent_length(X, y)
        display = cls.from_probabilities(estimator.predict_proba(X), y, estimator.classes_, n_bins=n_bins)
        return display.plot(ax=ax, **line)

    @classmethod
    def from_probabilities(
        cls, probabilities: Array, y: NDArray, classes: NDArray, *, n_bins: int = 10
    ) -> "ReliabilityDisplay":
        """Prepare the diagram of probabilities that are at hand.

        Parameters
        ----------
        probabilities : ndarray of shape (n_samples, n_classes)
        y : ndarray of shape (n_samples,)
        classes : ndarray of shape (n_classes,)
        n_bins : int, default=10

        Returns
        -------
        ReliabilityDisplay
            Not drawn yet.
        """
        check_integer("n_bins", n_bins, at_least=1)
        probabilities = np.asarray(probabilities, dtype=np.float64)
        found = [Reliability.of(probabilities[:, j], y == label, n_bins) for j, label in enumerate(classes)]
        return cls(classes=classes, reliabilities=found)

    @property
    def description(self) -> str:
        """What the plot shows, in words."""
        errors = np.array([reliability.error for reliability in self.reliabilities])
        worst = int(errors.argmax())
        outside = sum(int(((r.predicted < r.low) | (r.predicted > r.high)).sum()) for r in self.reliabilities)
        points = sum(len(r.counts) for r in self.reliabilities)
        return (
            f"Reliability of the probabilities of {len(self.classes)} classes: predicted and observed shares "
            f"differ by {errors.mean():.3g} on average, most for {self.classes[worst]} ({errors[worst]:.3g}). The "
            f"diagonal is outside the 95 % interval of {outside} of {points} points."
        )

    @styled
    def plot(self, ax: Any = None, **line: Any) -> "ReliabilityDisplay":
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None
        **line : passed on to `ax.errorbar`

        Returns
        -------
        self
        """
        self.ax_ = new_axes(ax)
        self.figure_ = self.ax_.figure
        self.ax_.plot([0, 1], [0, 1], ":", color=ink(), linewidth=1)
        largest = max(int(r.counts.max()) for r in self.reliabilities)
        self.lines_ = []
        colours = class_colours(len(self.classes))
        for label, found, colour in zip(self.classes, self.reliabilities, colours, strict=True):
            whiskers = np.maximum([found.observed - found.low, found.high - found.observed], 0.0)
            options = {"color": colour, "elinewidth": 1, "linewidth": 1, "label": label_text(label)} | line
            self.lines_.append(self.ax_.errorbar(found.predicted, found.observed, yerr=whiskers, **options))
            self.ax_.scatter(found.predicted, found.observed, s=8 + 90 * found.counts / largest, color=colour)
        self.ax_.set(
            xlabel="probability of the class", ylabel="share of the class", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02)
        )
        self.ax_.legend()
        return self


class SetSizeDisplay:
    """How many classes the sets of rows have, and how often sets of each size hold the true class.

    Parameters
    ----------
    counts : ndarray of shape (n_classes + 1,)
        Rows whose set has 0, 1, ... classes.
    held : ndarray of shape (n_classes + 1,)
        Those of them whose set holds the true class.
    coverage : float
        How often sets are to hold it.

    Attributes
    ----------
    ax_, figure_, bars_
        What `plot` drew.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import MulticategorySVC, PredictionSetClassifier
    >>> from polymargin.inspection import SetSizeDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PredictionSetClassifier(MulticategorySVC()).fit(X[::2], y[::2])
    >>> display = SetSizeDisplay.from_estimator(model, X[1::2], y[1::2])  # doctest: +SKIP
    """

    def __init__(self, *, counts: NDArray[np.intp], held: NDArray[np.intp], coverage: float):
        self.counts = counts
        self.held = held
        self.coverage = coverage

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Any = None, **bars: Any) -> "SetSizeDisplay":
        """Draw the sizes of the sets of a fitted `PredictionSetClassifier`.

        Parameters
        ----------
        estimator : fitted PredictionSetClassifier
        X, y : test rows and their classes
        ax : matplotlib axes or None, default=None
        **bars : passed on to `ax.bar`

        Returns
        -------
        SetSizeDisplay
        """
        y = column_or_1d(y)
        check_consistent_length(X, y)
        members = estimator.predict_set(X)
        return cls.from_sets(members, y, estimator.classes_, estimator.coverage).plot(ax=ax, **bars)

    @classmethod
    def from_sets(
        cls, members: NDArray[np.bool_], y: NDArray, classes: NDArray, coverage: float
    ) -> "SetSizeDisplay":
        """Prepare the display of sets that are at hand.

        Parameters
        ----------
        members : ndarray of bool of shape (n_samples, n_classes)
        y : ndarray of shape (n_samples,)
        classes : ndarray of shape (n_classes,)
        coverage : float

        Returns
        -------
        SetSizeDisplay
            Not drawn yet.
        """
        sizes = members.sum(axis=1)
        within = (members & (np.asarray(y)[:, None] == classes)).any(axis=1)
        width = len(classes) + 1
        return cls(
            counts=np.bincount(sizes, minlength=width),
            held=np.bincount(sizes[within], minlength=width),
            coverage=coverage,
        )

    @property
    def description(self) -> str:
        """What the plot shows, in words."""
        n = int(self.counts.sum())
        several = int(self.counts[2:].sum())
        return (
            f"Sizes of {n} sets: {self.counts[1] / n:.1%} have one class, {several / n:.1%} more, "
            f"{self.counts[0] / n:.1%} none. {self.held.sum() / n:.1%} hold the true class, asked for "
            f"{self.coverage:.1%}; the mean size is {self.counts @ np.arange(len(self.counts)) / n:.3g}."
        )

    @styled
    def plot(self, ax: Any = None, **bars: Any) -> "SetSizeDisplay":
        """Draw bars of the sizes, and what of them holds the true class.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None
        **bars : passed on to `ax.bar`

        Returns
        -------
        self
        """
        self.ax_ = new_axes(ax)
        self.figure_ = self.ax_.figure
        sizes = np.arange(int(np.flatnonzero(self.counts).max()) + 1)
        hit, missed = (values[: len(sizes)] / self.counts.sum() for values in (self.held, self.counts - self.held))
        right, wrong = class_colours(4)[2], class_colours(4)[3]
        self.bars_ = self.ax_.bar(sizes, hit, color=right, label="holds the true class", **bars)
        self.ax_.bar(sizes, missed, bottom=hit, color=wrong, label="does not", **bars)
        self.ax_.set_xticks(sizes)
        self.ax_.set(xlabel="classes in the set", ylabel="share of the rows")
        self.ax_.legend()
        return self
