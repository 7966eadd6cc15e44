"""Decision vectors and the strength of predictions (Figure 4 of Lee, Lin & Wahba, 2004)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from polymargin.checks import check_integer
from polymargin.inspection._plotting import class_colours, ink, label_text, new_panels, styled
from polymargin.selection.left_out import class_scores
from polymargin.selection.rejection import RejectOptionClassifier
from polymargin.selection.weakness import prediction_losses

LOSS_HEIGHT = 1.1
"""Inches of the panel of the losses."""


class DecisionVectorDisplay:
    """Scores of every class over the rows, and the loss of the predicted class: Figure 4 of Lee, Lin & Wahba.

    Rows are in the order of their classes and coloured by them. A good machine has, in the panel of a class, high
    scores for the rows of that class and low ones elsewhere; a row whose loss is above the threshold is predicted
    weakly.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_classes)
    losses : ndarray of shape (n_samples,)
        Loss of the predicted class, as `RejectOptionClassifier.prediction_loss` has it.
    classes : ndarray of shape (n_classes,)
    labels : ndarray of shape (n_samples,) or None, default=None
        True classes, or others than `classes` (drawn in grey); None: all rows look the same, in their own order.
    threshold : float or None, default=None
        The highest accepted loss.

    Attributes
    ----------
    axes_ : ndarray of axes of shape (n_classes + 1,)
        A panel per class, and that of the losses.
    figure_ : the figure
    order_ : ndarray
        The rows that were drawn, in the order in which they were.
    line_ : the threshold, or None

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import MulticategorySVC
    >>> from polymargin.inspection import DecisionVectorDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MulticategorySVC().fit(X[::2], y[::2])
    >>> display = DecisionVectorDisplay.from_estimator(model, X[1::2], y[1::2])  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        scores: NDArray[np.float64],
        losses: NDArray[np.float64],
        classes: NDArray,
        labels: NDArray | None = None,
        threshold: float | None = None,
    ):
        self.scores = scores
        self.losses = losses
        self.classes = classes
        self.labels = labels
        self.threshold = threshold

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, max_rows: int = 200, ax: Any = None
    ) -> "DecisionVectorDisplay":
        """Draw the scores that a fitted classifier gives.

        Parameters
        ----------
        estimator : fitted classifier with one score a class
            A `RejectOptionClassifier` adds its threshold.
        X : rows, as the classifier takes them
        y : array-like of shape (n_samples,) or None, default=None
            Their classes; labels that the classifier does not know are drawn in grey.
        max_rows : int, default=200
            Draw at most so many rows, evenly from each class.
        ax : matplotlib axes, an array of n_classes + 1 axes, or None, default=None
            One axes gives its place to the panels.

        Returns
        -------
        DecisionVectorDisplay
        """
        check_is_fitted(estimator)
        threshold = None
        machine = estimator
        if isinstance(estimator, RejectOptionClassifier):
            machine, threshold = estimator.estimator_, estimator._one_threshold("DecisionVectorDisplay")
        scores = class_scores(machine, X, estimator.classes_)
        if y is not None:
            y = column_or_1d(y)
            check_consistent_length(X, y)
        display = cls(
            scores=scores,
            losses=prediction_losses(machine, scores),
            classes=estimator.classes_,
            labels=y,
            threshold=threshold,
        )
        return display.plot(max_rows=max_rows, ax=ax)

    @property
    def description(self) -> str:
        """What the plot shows, in words."""
        words = [
            f"Bars: the scores of {len(self.classes)} classes for {len(self.order_)} of {len(self.scores)} rows, "
            "a panel per class, and below the loss of the predicted class."
        ]
        if self.labels is not None:
            right = self.classes[self.scores.argmax(axis=1)] == self.labels
            words.append(f"The highest score is that of the true class for {right.sum()} of {len(right)} rows.")
        if self.threshold is not None:
            weak = int(np.count_nonzero(self.losses > self.threshold))
            words.append(f"{weak} losses are above the threshold, {self.threshold:.3g}.")
        return " ".join(words)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches of a figure that shows it well."""
        return 7.0, self._panel_height * len(self.classes) + LOSS_HEIGHT + 0.8

    @property
    def _panel_height(self) -> float:
        return float(np.clip(4.5 / len(self.classes), 0.4, 0.9))

    @styled
    def plot(self, *, max_rows: int = 200, ax: Any = None) -> "DecisionVectorDisplay":
        """Draw the panels.

        Parameters
        ----------
        max_rows : int, default=200
        ax : matplotlib axes, an array of n_classes + 1 axes, or None, default=None

        Returns
        -------
        self
        """
        check_integer("max_rows", max_rows, at_least=1)
        k = len(self.classes)
        groups = self._groups(max_rows)
        self.order_ = np.concatenate([rows for rows, _ in groups])
        ratios = [self._panel_height] * k + [LOSS_HEIGHT]
        panels = new_panels(ax, (k + 1, 1), self.size, sharex=True, height_ratios=ratios)
        self.axes_ = panels[:, 0]
        self.figure_ = self.axes_[0].figure
        low, high = min(0.0, self.scores.min()), max(0.0, self.scores.max())
        room = 0.05 * (high - low) or 1.0  # all scores may be zero
        for j, panel in enumerate(self.axes_[:-1]):
            _draw_bars(panel, groups, self.scores[:, j])
            panel.set_ylim(low - room, high + room)
            panel.axhline(0.0, color=ink(), linewidth=0.6)
            panel.spines["bottom"].set_visible(False)
            panel.tick_params(bottom=False)
            name = panel.set_ylabel(label_text(self.classes[j]), rotation=0, ha="right", va="center")
            if self.labels is not None:
                name.set_color(class_colours(k)[j])
        self._draw_losses(groups)
        return self

    def _draw_losses(self, groups: list[tuple[NDArray[np.intp], Any]]) -> None:
        bottom = self.axes_[-1]
        _draw_bars(bottom, groups, self.losses)
        self.line_ = None
        if self.threshold is not None and np.isfinite(self.threshold):
            self.line_ = bottom.axhline(self.threshold, color=ink(), linestyle=":", linewidth=1.2)
            bottom.annotate(
                "threshold",
                (1.01, self.threshold),
                xycoords=("axes fraction", "data"),
                va="center",
                fontsize="small",
            )
        bottom.set_ylabel("loss", rotation=0, ha="right", va="center")
        order = "rows" if self.labels is None else "rows, in the order of their true classes"
        bottom.set(xlabel=order, xlim=(-0.8, len(self.order_) - 0.2))

    def _groups(self, max_rows: int) -> list[tuple[NDArray[np.intp], Any]]:
        """Return the rows to draw, class by class, and the colour of each class; unknown classes come last."""
        everyone = np.arange(len(self.scores))
        share = min(1.0, max_rows / max(1, len(everyone)))
        if self.labels is None:
            return [(_thinned(everyone, share), ink())]
        groups = []
        known = np.zeros(len(everyone), dtype=bool)
        for label, colour in zip(self.classes, class_colours(len(self.classes)), strict=True):
            of_class = self.labels == label
            known |= of_class
            groups.append((_thinned(np.flatnonzero(of_class), share), colour))
        groups.append((_thinned(np.flatnonzero(~known), share), ink()))
        return groups


def _thinned(rows: NDArray[np.intp], share: float) -> NDArray[np.intp]:
    """Return an even share of the rows, at least one of them where there are any."""
    kept = min(len(rows), max(1, int(len(rows) * share)))
    return rows[np.linspace(0, len(rows) - 1, kept).astype(np.intp)]


def _draw_bars(ax: Any, groups: list[tuple[NDArray[np.intp], Any]], values: NDArray[np.float64]) -> None:
    """Draw a bar per row, the bars of a class as one path: hundreds of bars stay one small object in a file."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    start = 0
    for rows, colour in groups:
        left = start + np.arange(len(rows)) - 0.4
        start += len(rows)
        if not len(rows):
            continue
        corners = np.zeros((len(rows), 5, 2))
        corners[:, :, 0] = left[:, None] + np.array([0.0, 0.0, 0.8, 0.8, 0.0])
        corners[:, 1:3, 1] = values[rows, None]
        codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(rows))
        ax.add_patch(PathPatch(Path(corners.reshape(-1, 2), codes), facecolor=colour, edgecolor="none"))
    ax.autoscale_view()
