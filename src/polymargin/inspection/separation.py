"""Which variable separates which classes (Figures 1 and 2 of Guo, 2010), and how coefficients grow with C."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.coding import class_pairs
from polymargin.estimators.sparse import SparseClassifier
from polymargin.inspection._plotting import new_axes
from polymargin.selection.sparse import SparsePath
from polymargin.selection.stability import Stability


class SeparationMapDisplay:
    """Map of variables (rows) by pairs of classes (columns): black where the variable separates the pair.

    Parameters
    ----------
    separations : ndarray of shape (n_pairs, n_variables)
        1 or True where a variable separates a pair, 0 where it does not; shares between them are drawn grey.
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

    def plot(self, ax: Any = None) -> "SeparationMapDisplay":
        """Draw the map.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None

        Returns
        -------
        self
        """
        own_figure = ax is None
        self.ax_ = new_axes(ax)
        self.figure_ = self.ax_.figure
        pairs = [f"{self.classes[a]}/{self.classes[b]}" for a, b in class_pairs(len(self.classes))]
        if own_figure:
            self.figure_.set_size_inches(2.5 + 0.45 * len(pairs), 1.2 + 0.22 * max(1, len(self.names)))
        self.image_ = self.ax_.imshow(
            np.asarray(self.separations, dtype=np.float64).T,
            cmap="Greys",
            vmin=0.0,
            vmax=1.0,
            aspect="auto",
            interpolation="nearest",
        )
        self.ax_.set_xticks(np.arange(len(pairs)), pairs, rotation=45, ha="right")
        self.ax_.set_yticks(np.arange(len(self.names)), [str(name) for name in self.names])
        self.ax_.set(xlabel="pair of classes", ylabel="variable")
        if own_figure:
            self.figure_.tight_layout()
        return self


class CoefficientPathDisplay:
    """Coefficients over C, one panel a class.

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
    def from_path(cls, path: SparsePath, *, max_variables: int = 10, axes: Any = None) -> "CoefficientPathDisplay":
        """Draw a path.

        Parameters
        ----------
        path : SparsePath
        max_variables : int, default=10
            Name only so many variables, those with the largest coefficients; the others are thin and grey.
        axes : sequence of matplotlib axes, one a class, or None, default=None

        Returns
        -------
        CoefficientPathDisplay
        """
        display = cls(Cs=path.Cs, coefs=path.coefs, classes=path.classes, names=path.feature_names)
        return display.plot(max_variables=max_variables, axes=axes)

    def plot(self, *, max_variables: int = 10, axes: Any = None) -> "CoefficientPathDisplay":
        """Draw the path.

        Parameters
        ----------
        max_variables : int, default=10
        axes : sequence of matplotlib axes, one a class, or None, default=None

        Returns
        -------
        self
        """
        k = len(self.classes)
        if axes is None:
            first = new_axes()
            self.figure_ = first.figure
            first.remove()
            self.figure_.set_size_inches(3.0 * k, 3.2)
            axes = self.figure_.subplots(1, k, sharex=True, sharey=True)
        self.axes_ = np.ravel(axes)
        if len(self.axes_) != k:
            raise ValueError(f"axes must hold one axes a class, {k}, got {len(self.axes_)}.")
        self.figure_ = self.axes_[0].figure
        sizes = np.abs(self.coefs).max(axis=(0, 1))
        drawn = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
        self.lines_ = {}
        for c, ax in enumerate(self.axes_):
            for rank, j in enumerate(drawn):
                named = rank < max_variables
                style = {"label": str(self.names[j])} if named else {"color": "0.8", "linewidth": 0.6}
                # coefficients are constant between breakpoints
                (line,) = ax.plot(self.Cs, self.coefs[:, c, j], drawstyle="steps-post", **style)
                self.lines_[self.classes[c], self.names[j]] = line
            ax.set(xscale="log", xlabel="C", title=str(self.classes[c]))
        self.axes_[0].set_ylabel("coefficient")
        if len(drawn):
            self.axes_[-1].legend(fontsize="small")
        return self
