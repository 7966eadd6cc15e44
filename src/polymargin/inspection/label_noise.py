"""Which labels a robust machine mistrusts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from polymargin.estimators.robust import RobustSVC
from polymargin.inspection._plotting import ink, new_axes, styled


class LabelNoiseDisplay:
    """Histogram of the margins of the training rows under their own labels, with the margin of truncation.

    Rows left of the line have no more say in the fit than any other error: outliers, or wrong labels.

    Parameters
    ----------
    margin : ndarray of shape (n_samples,)
        Margins ``f_y - max_{m != y} f_m``.
    truncation : float
        The margin from which on the loss is constant.
    known : ndarray of bool of shape (n_samples,) or None, default=None
        Which labels are known to be wrong, where that is known: they are drawn apart.

    Attributes
    ----------
    ax_, figure_, bars_, line_
        What `plot` drew.

    Examples
    --------
    >>> from polymargin import RobustSVC
    >>> from polymargin.datasets import make_triangle
    >>> from polymargin.inspection import LabelNoiseDisplay
    >>> sample = make_triangle(200, flip=0.15, random_state=0)
    >>> model = RobustSVC().fit(sample.data, sample.target)
    >>> display = LabelNoiseDisplay.from_estimator(model)  # doctest: +SKIP
    """

    def __init__(self, *, margin: NDArray[np.float64], truncation: float, known: NDArray[np.bool_] | None = None):
        self.margin = margin
        self.truncation = truncation
        self.known = known

    @classmethod
    def from_estimator(
        cls, estimator: RobustSVC, *, known: Any = None, ax: Any = None, **hist: Any
    ) -> "LabelNoiseDisplay":
        """Draw the margins of a fitted `RobustSVC`.

        Parameters
        ----------
        estimator : fitted RobustSVC
        known : array-like of bool of shape (n_samples,) or None, default=None
            Which training labels are known to be wrong.
        ax : matplotlib axes or None, default=None
        **hist : passed on to `ax.hist`

        Returns
        -------
        LabelNoiseDisplay
        """
        check_is_fitted(estimator)
        used = ~np.isnan(estimator.suspicion_)
        if known is not None:
            known = np.asarray(known, dtype=bool)
            if known.shape != used.shape:
                raise ValueError(
                    f"known must have shape {used.shape}, one entry a training row, got {known.shape}."
                )
            known = known[used]
        display = cls(margin=estimator.suspicion_[used], truncation=estimator.truncation_, known=known)
        return display.plot(ax=ax, **hist)

    @property
    def description(self) -> str:
        """What the plot shows, in words."""
        truncated = int(np.count_nonzero(self.margin < self.truncation))
        words = (
            f"Histogram of the margins of {len(self.margin)} training rows under their own labels, from "
            f"{self.margin.min():.3g} to {self.margin.max():.3g}; {truncated} are below {self.truncation:.3g}, "
            "where the loss is truncated."
        )
        if self.known is not None:
            words += f" {int(np.count_nonzero(self.known))} labels are known to be wrong."
        return words

    @styled
    def plot(self, ax: Any = None, **hist: Any) -> "LabelNoiseDisplay":
        """Draw the histogram.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None
        **hist : passed on to `ax.hist`

        Returns
        -------
        self
        """
        self.ax_ = new_axes(ax)
        self.figure_ = self.ax_.figure
        hist = {"bins": 40, "stacked": True} | hist
        if self.known is None:
            self.bars_ = self.ax_.hist(self.margin, label="training rows", **hist)
        else:
            groups = [self.margin[~self.known], self.margin[self.known]]
            self.bars_ = self.ax_.hist(groups, label=["right labels", "wrong labels"], **hist)
        self.line_ = None
        if np.isfinite(self.truncation):
            self.line_ = self.ax_.axvline(
                self.truncation, color=ink(), linestyle="--", linewidth=1.0, label="truncation"
            )
        self.ax_.set(xlabel="margin under the own label", ylabel="training rows")
        self.ax_.legend()
        return self
