"""Which variable separates which classes (Figures 1 and 2 of Guo, 2010), and how coefficients grow with C."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.coding import class_pairs
from polymargin.estimators.sparse import SparseClassifier
from polymargin.inspection._plotting import (
    background,
    heat_map,
    ink,
    label_text,
    new_axes,
    new_panels,
    shades,
    styled,
)
from polymargin.selection.sparse import SparsePath
from polymargin.selection.stability import Stability


class SeparationMapDisplay:
    """Map of variables (rows) by pairs of classes (columns): filled where the variable separates the pair.

    Parameters
    ----------
    separations : ndarray of shape (n_pairs, n_variables)
        1 or True where a variable separates a pair, 0 where it does not; shares between them are drawn paler.
    classes : ndarray of shape (n_classes,)
    names : ndarray of shape (n_variables,)
        Names of the variables.

    Attributes
    ----------
    ax_, figure_, image_
        What `plot` drew.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import SparseSVC
    >>> from polymargin.inspection import SeparationMapDisplay
    >>> model = SparseSVC(C=0.05).fit(*load_iris(return_X_y=True))
    >>> display = SeparationMapDisplay.from_estimator(model)  # doctest: +SKIP
    """

    def __init__(self, *, separations: NDArray, classes: NDArray, names: NDArray):
        self.separations = separations
        self.classes = classes
        self.names = names

    @classmethod
    def from_estimator(
        cls, estimator: SparseClassifier, *, names: Any = None, max_variables: int | None = None, ax: Any = None
    ) -> "SeparationMapDisplay":
        """Draw the map of the variables that a fitted model selected.

        Parameters
        ----------
        estimator : fitted SparseSVC or SparseSVCCV
        names : array-like of shape (n_features,) or None, default=None
            Names of all variables; None for `feature_names_in_`, or their positions.
        max_variables : int or None, default=None
            Draw only so many, those with the widest range of coefficients.
        ax : matplotlib axes or None, default=None

        Returns
        -------
        SeparationMapDisplay
        """
        selected = estimator.selected_features_
        order = np.argsort(-np.ptp(estimator.coef_[:, selected], axis=0), kind="stable")
        rows = selected[order][:max_variables]
        if names is None:
            names = getattr(estimator, "feature_names_in_", np.arange(estimator.n_features_in_))
        separations = ~estimator.fused_pairs_[:, rows]
        return cls(separations=separations, classes=estimator.classes_, names=np.asarray(names)[rows]).plot(ax=ax)

    @classmethod
    def from_stability(
        cls, stability: Stability, *, at_least: float = 0.5, ax: Any = None
    ) -> "SeparationMapDisplay":
        """Draw how often variables separated pairs of classes over resamples, as shades of grey.

        Parameters
        ----------
        stability : Stability
        at_least : float, default=0.5
            Draw the variables that were selected at least so often.
        ax : matplotlib axes or None, default=None

        Returns
        -------
        SeparationMapDisplay
        """
        order = np.argsort(-stability.features, kind="stable")
        rows = order[stability.features[order] >= at_least]
        names = np.asarray(stability.feature_names)[rows]
        return cls(separations=stability.separations[:, rows], classes=stability.classes, names=names).plot(ax=ax)

    @property
    def description(self) -> str:
        """What the plot shows, in words."""
        pairs = len(class_pairs(len(self.classes)))
        words = f"Map of {len(self.names)} variables by {pairs} pairs of classes, filled where they are separated."
        if len(self.names):
            counts = np.asarray(self.separations, dtype=np.float64).sum(axis=0)
            most = int(np.argmax(counts))
            words += (
                f" {self.names[most]} separates most pairs, {counts[most]:g} of {pairs}; on average a variable "
                f"separates {counts.mean():.2g}."
            )
        return words

    @styled
    def plot(self, ax: Any = None) -> "SeparationMapDisplay":
        """Draw the map.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None

        Returns
        -------
        self
        """
        pairs = [(self.classes[a], self.classes[b]) for a, b in class_pairs(len(self.classes))]
        self.ax_ = new_axes(ax, (2.5 + 0.5 * len(pairs), 1.4 + 0.25 * max(1, len(self.names))))
        self.figure_ = self.ax_.figure
        self.image_ = heat_map(
            self.ax_,
            np.asarray(self.separations, dtype=np.float64).T,
            columns=[f"{a}/{b}" for a, b in pairs],
            rows=[str(name) for name in self.names],
            cmap=shades(ink()),
            vmin=0.0,
            vmax=1.0,
        )
        for line in range(1, len(pairs)):
            self.ax_.axvline(line - 0.5, color=background(), linewidth=3.0)
        for line in range(1, len(self.names)):
            self.ax_.axhline(line - 0.5, color=background(), linewidth=3.0)
        self.ax_.set(xlabel="pair of classes", ylabel="variable")
        return self


class CoefficientPathDisplay:
    """Coefficients over C, one panel per class.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,)
    coefs : ndarray of shape (n_Cs, n_classes, n_features)
    classes : ndarray of shape (n_classes,)
    names : ndarray of shape (n_features,)

    Attributes
    ----------
    axes_, figure_
        What `plot` drew.
    lines_ : dict
        The line of every drawn variable by (class, name).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import sparse_path
    >>> from polymargin.inspection import CoefficientPathDisplay
    >>> path = sparse_path(*load_iris(return_X_y=True), n_Cs=20)
    >>> display = CoefficientPathDisplay.from_path(path)  # doctest: +SKIP
    """

    def __init__(self, *, Cs: NDArray[np.float64], coefs: NDArray[np.float64], classes: NDArray, names: NDArray):
        self.Cs = Cs
        self.coefs = coefs
        self.classes = classes
        self.names = names

    @classmethod
    def from_path(cls, path: SparsePath, *, max_variables: int = 10, ax: Any = None) -> "CoefficientPathDisplay":
        """Draw a path.

        Parameters
        ----------
        path : SparsePath
        max_variables : int, default=10
            Name only so many variables, those with the largest coefficients; the others are thin and grey.
        ax : matplotlib axes, an array of one axes a class, or None, default=None

        Returns
        -------
        CoefficientPathDisplay
        """
        display = cls(Cs=path.Cs, coefs=path.coefs, classes=path.classes, names=path.feature_names)
        return display.plot(max_variables=max_variables, ax=ax)

    @styled
    def plot(self, *, max_variables: int = 10, ax: Any = None) -> "CoefficientPathDisplay":
        """Draw the path.

        Parameters
        ----------
        max_variables : int, default=10
        ax : matplotlib axes, an array of one axes a class, or None, default=None

        Returns
        -------
        self
        """
        k = len(self.classes)
        self.axes_ = new_panels(ax, (1, k), (3.0 * k, 3.2), sharex=True, sharey=True)[0]
        self.figure_ = self.axes_[0].figure
        sizes = np.abs(self.coefs).max(axis=(0, 1))
        drawn = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
        self.lines_ = {}
        for c, panel in enumerate(self.axes_):
            for rank, j in enumerate(drawn):
                named = rank < max_variables
                style = {"label": label_text(self.names[j])} if named else {"color": "0.6", "linewidth": 0.5}
                # coefficients are constant between breakpoints
                (line,) = panel.plot(self.Cs, self.coefs[:, c, j], drawstyle="steps-post", **style)
                self.lines_[self.classes[c], self.names[j]] = line
            panel.set(xscale="log", xlabel="C", title=label_text(self.classes[c]))
        self.axes_[0].set_ylabel("coefficient")
        if len(drawn):
            self.axes_[-1].legend()
        return self
