"""How many errors remain among how many accepted predictions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d

from polymargin.inspection._plotting import label_text, new_axes, styled
from polymargin.selection.rejection import RejectOptionClassifier
from polymargin.selection.thresholds import Tally


class RiskCoverageDisplay:
    """Risk-coverage curve: the share of errors among the strongest predictions, over their share of all.

    Parameters
    ----------
    coverage : ndarray of shape (n_points,)
        Shares of accepted predictions, ascending.
    risk : ndarray of shape (n_points,)
        Shares of errors among them.
    chosen : tuple of two float or None, default=None
        Coverage and risk at the threshold of a fitted classifier.
    name : str or None, default=None
        Label of the curve.

    Attributes
    ----------
    ax_, figure_, line_, point_
        What `plot` drew; `point_` is None without a chosen point.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import LinearSVC
    >>> from polymargin.inspection import RiskCoverageDisplay
    >>> from polymargin import RejectOptionClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> careful = RejectOptionClassifier(LinearSVC(random_state=0), coverage=0.9).fit(X, y)
    >>> display = RiskCoverageDisplay.from_estimator(careful)  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        coverage: NDArray[np.float64],
        risk: NDArray[np.float64],
        chosen: tuple[float, float] | None = None,
        name: str | None = None,
    ):
        self.coverage = coverage
        self.risk = risk
        self.chosen = chosen
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: RejectOptionClassifier,
        X: Any = None,
        y: Any = None,
        *,
        name: str | None = None,
        ax: Any = None,
        **line: Any,
    ) -> "RiskCoverageDisplay":
        """Draw the curve of a fitted `RejectOptionClassifier`.

        Parameters
        ----------
        estimator : fitted RejectOptionClassifier
        X, y : test rows and their classes, or None
            None: the left-out predictions of the training rows.
        name : str or None, default=None
        ax : matplotlib axes or None, default=None
        **line : passed on to `ax.plot`

        Returns
        -------
        RiskCoverageDisplay
        """
        if (X is None) != (y is None):
            raise ValueError("X and y must be given together, or neither for the left-out predictions.")
        if X is None or y is None:
            curve = estimator.strength_curve_
            losses, coverage, risk = curve.loss, curve.coverage, curve.risk
        else:
            y = column_or_1d(y)
            check_consistent_length(X, y)
            scores = estimator._scores(X)
            right = estimator.classes_[scores.argmax(axis=1)] == y
            tally = Tally.of(estimator._losses(scores), right, np.ones(len(y)))
            losses, coverage, risk = tally.loss, tally.accepted / len(y), tally.errors / tally.accepted
        chosen = None
        if np.ndim(estimator.threshold_) == 0:
            last = int(np.searchsorted(losses, estimator.threshold_, side="right")) - 1
            chosen = (float(coverage[last]), float(risk[last])) if last >= 0 else None
        display = cls(
            coverage=coverage, risk=risk, chosen=chosen, name=name or type(estimator.estimator_).__name__
        )
        return display.plot(ax=ax, **line)

    @property
    def description(self) -> str:
        """What the plot shows, in words."""
        words = (
            f"Curve of the share of errors among the strongest predictions: {self.risk[-1]:.3g} if all are "
            f"accepted, {self.risk[np.searchsorted(self.coverage, 0.5)]:.3g} for the stronger half."
        )
        if self.chosen is not None:
            words += f" At the threshold {self.chosen[0]:.1%} are accepted, with a share of {self.chosen[1]:.3g}."
        return words

    @styled
    def plot(self, ax: Any = None, **line: Any) -> "RiskCoverageDisplay":
        """Draw the curve and, where there is one, the chosen point.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None
        **line : passed on to `ax.plot`

        Returns
        -------
        self
        """
        self.ax_ = new_axes(ax)
        self.figure_ = self.ax_.figure
        name = None if self.name is None else label_text(self.name)
        (self.line_,) = self.ax_.plot(self.coverage, self.risk, drawstyle="steps-post", label=name, **line)
        self.point_ = None
        if self.chosen is not None:
            (self.point_,) = self.ax_.plot(*self.chosen, "o", color=self.line_.get_color(), label="threshold")
        self.ax_.set(
            xlabel="accepted share of the predictions", ylabel="share of errors among them", xlim=(0, 1.02)
        )
        self.ax_.set_ylim(bottom=0)
        self.ax_.legend()
        return self
