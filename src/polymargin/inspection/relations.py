"""What a fitted SharedStructureSVC says of its classes: who is related to whom."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform
from sklearn.utils.validation import check_is_fitted

from polymargin.checks import check_integer
from polymargin.coding import class_pairs
from polymargin.estimators.shared import SharedStructureSVC
from polymargin.inspection._plotting import PALETTE, heat_map, ink, label_text, new_axes, shades, styled


def related_classes(estimator: SharedStructureSVC, n_pairs: int | None = None) -> Any:
    """Tell which pairs of classes share most.

    Column j of M mixes the base classifiers into the final classifier of class j, so ``M[i, j]`` is what class j
    takes from the base of class i.

    Parameters
    ----------
    estimator : fitted SharedStructureSVC
        With ``scheme="ovr"`` and as many base classifiers as classes.
    n_pairs : int or None, default=None
        Number of pairs; None for all.

    Returns
    -------
    pandas.DataFrame, or a list of dicts where pandas is not installed
        One row per pair, strongest first: `class_a`, `class_b`, `strength` (``|M[a, b]| + |M[b, a]|``), `b_from_a`
        (``M[a, b]``) and `a_from_b` (``M[b, a]``).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import SharedStructureSVC
    >>> from polymargin.inspection import related_classes
    >>> X, y = load_iris(return_X_y=True)
    >>> table = related_classes(SharedStructureSVC().fit(X, y), n_pairs=1)
    >>> table[["class_a", "class_b"]].to_numpy()
    array([[1, 2]])
    """
    M, classes = _square_relations(estimator), estimator.classes_.tolist()
    pairs = class_pairs(len(classes))
    strengths = np.abs(M) + np.abs(M.T)
    order = np.argsort(-strengths[pairs[:, 0], pairs[:, 1]], kind="stable")
    if n_pairs is not None:
        order = order[: check_integer("n_pairs", n_pairs, at_least=1)]
    rows = [
        {
            "class_a": classes[a],
            "class_b": classes[b],
            "strength": float(strengths[a, b]),
            "b_from_a": float(M[a, b]),
            "a_from_b": float(M[b, a]),
        }
        for a, b in pairs[order]
    ]
    try:
        import pandas as pd
    except ImportError:
        return rows
    return pd.DataFrame(rows, columns=["class_a", "class_b", "strength", "b_from_a", "a_from_b"])


class ClassRelationDisplay:
    """Heat map of the relation matrix M, and a dendrogram of the classes.

    Parameters
    ----------
    relation : ndarray of shape (n_base, n_final)
        The matrix M.
    base_names : list of str
        Names of its rows.
    final_names : list of str
        Names of its columns.

    Attributes
    ----------
    ax_, figure_, image_ : what `plot` drew.
    dendrogram_ax_, dendrogram_ : what `plot_dendrogram` drew, and SciPy's description of it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import SharedStructureSVC
    >>> from polymargin.inspection import ClassRelationDisplay
    >>> iris = load_iris()
    >>> model = SharedStructureSVC().fit(iris.data, iris.target_names[iris.target])
    >>> display = ClassRelationDisplay.from_estimator(model)  # doctest: +SKIP
    >>> display.plot_dendrogram()  # doctest: +SKIP
    """

    def __init__(self, *, relation: NDArray[np.float64], base_names: list[str], final_names: list[str]):
        self.relation = relation
        self.base_names = base_names
        self.final_names = final_names

    @classmethod
    def from_estimator(
        cls, estimator: SharedStructureSVC, *, ax: Any = None, **mesh: Any
    ) -> "ClassRelationDisplay":
        """Draw the heat map of a fitted machine.

        Parameters
        ----------
        estimator : fitted SharedStructureSVC
        ax : matplotlib axes or None, default=None
        **mesh : passed on to `ax.pcolormesh`

        Returns
        -------
        ClassRelationDisplay
        """
        return cls.of(estimator).plot(ax, **mesh)

    @classmethod
    def of(cls, estimator: SharedStructureSVC) -> "ClassRelationDisplay":
        """Return the display of a fitted machine, nothing drawn yet."""
        check_is_fitted(estimator)
        names = [str(label) for label in estimator.classes_]
        n_base, n_final = estimator.relation_.shape
        finals = names
        if estimator.scheme == "ovo":
            finals = [f"{names[i]} / {names[j]}" for i, j in class_pairs(len(names))]
        bases = finals if n_base == n_final else [f"base {row}" for row in range(n_base)]
        return cls(relation=estimator.relation_, base_names=bases, final_names=finals)

    @property
    def description(self) -> str:
        """What the plot shows, in words."""
        shape = " by ".join(map(str, self.relation.shape))
        low, high = self.relation.min(), self.relation.max()
        words = f"Heat map of the {shape} relation matrix, from {low:.3g} to {high:.3g}."
        if self.base_names == self.final_names:
            apart = np.where(np.eye(len(self.relation), dtype=bool), 0.0, np.abs(self.relation))
            row, column = np.unravel_index(apart.argmax(), apart.shape)
            words += (
                f" Off the diagonal {self.final_names[column]} takes most from {self.base_names[row]}, "
                f"{self.relation[row, column]:.3g}."
            )
        return words

    @property
    def dendrogram_description(self) -> str:
        """What the tree shows, in words."""
        return f"Tree that joins the classes that share most, in the order {', '.join(self.dendrogram_['ivl'])}."

    @styled
    def plot(self, ax: Any = None, **mesh: Any) -> "ClassRelationDisplay":
        """Draw M as it is, signs included, zero in the middle of the colours.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None
        **mesh : passed on to `ax.pcolormesh`

        Returns
        -------
        self
        """
        self.ax_ = new_axes(ax)
        self.figure_ = self.ax_.figure
        largest = float(np.abs(self.relation).max()) or 1.0
        options = {"cmap": shades(PALETTE[0], PALETTE[1]), "vmin": -largest, "vmax": largest, **mesh}
        self.image_ = heat_map(self.ax_, self.relation, columns=self.final_names, rows=self.base_names, **options)
        self.ax_.set(xlabel="final classifier", ylabel="base classifier")
        self.figure_.colorbar(self.image_, ax=self.ax_).outline.set_visible(False)
        return self

    @styled
    def plot_dendrogram(self, ax: Any = None) -> "ClassRelationDisplay":
        """Draw the classes as a tree: those that share most, by ``|M| + |M|'``, are joined first.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None

        Returns
        -------
        self
        """
        if self.base_names != self.final_names:
            raise ValueError(
                f"A dendrogram needs as many base as final classifiers, got {len(self.base_names)} and "
                f"{len(self.final_names)}."
            )
        self.dendrogram_ax_ = new_axes(ax)
        strengths = np.abs(self.relation) + np.abs(self.relation.T)
        np.fill_diagonal(strengths, 0.0)
        distances = strengths.max() - strengths
        np.fill_diagonal(distances, 0.0)
        tree = hierarchy.linkage(squareform(distances, checks=False), method="average")
        with warnings.catch_warnings():
            # Where all pairs share the same every join is at zero, which SciPy makes the limits of the axis.
            warnings.filterwarnings("ignore", message="Attempting to set identical low and high")
            self.dendrogram_ = hierarchy.dendrogram(
                tree,
                labels=[label_text(name) for name in self.final_names],
                orientation="right",
                link_color_func=lambda _: ink(),
                leaf_font_size="small",
                ax=self.dendrogram_ax_,
            )
        self.dendrogram_ax_.spines[["left", "right", "top"]].set_visible(False)
        self.dendrogram_ax_.tick_params(axis="y", length=0)
        furthest = float(tree[:, 2].max()) or 1.0
        self.dendrogram_ax_.set_xlim(-0.02 * furthest, 1.05 * furthest)
        self.dendrogram_ax_.set(xlabel="distance (largest strength less strength)")
        return self


def _square_relations(estimator: SharedStructureSVC) -> NDArray[np.float64]:
    check_is_fitted(estimator)
    if estimator.scheme != "ovr" or len(estimator.relation_) != len(estimator.classes_):
        raise ValueError(
            "Classes are related through M with scheme='ovr' and n_base = n_classes, got "
            f"scheme={estimator.scheme!r} and {len(estimator.relation_)} base classifiers."
        )
    return estimator.relation_
