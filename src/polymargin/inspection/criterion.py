"""The criterion of a search: over C and a second parameter, or along paths over C."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from polymargin.inspection._plotting import heat_map, ink, label_text, new_axes, styled
from polymargin.selection.multicategory import MarginSearch
from polymargin.selection.proximal import ProximalSVCCV
from polymargin.selection.shared import SharedStructureSearch
from polymargin.selection.sparse import SparseSVCCV

Search = MarginSearch | ProximalSVCCV | SharedStructureSearch | SparseSVCCV


@dataclass(frozen=True, slots=True)
class SearchTable:
    """What a search tried: C, the second parameter, and the criterion, one entry per model."""

    C: NDArray[np.float64]
    second: NDArray
    second_name: str
    criterion: NDArray[np.float64]
    name: str
    chosen: int

    @classmethod
    def of(cls, search: Search, criterion: str | None = None) -> "SearchTable":
        """Read the table of a fitted search; `criterion` names another of its columns."""
        check_is_fitted(search)
        if not isinstance(search, Search):
            raise TypeError(f"estimator must be a search of Polymargin, got {search!r}.")
        results = search.cv_results_
        column = criterion
        if column is None:
            column = next(name for name in ("criterion", "cost", "mean_test_score") if name in results)
        if column not in results or column.startswith("param"):
            names = [name for name in results if not name.startswith("param")]
            raise ValueError(f"criterion must be one of {', '.join(map(repr, names))}, got {criterion!r}.")
        second, values = _second_parameter(search)
        kept = np.ones(len(values), dtype=bool)
        if second == "round" and search.best_params_["round"] >= 0:  # l2 fits only gave weights
            kept = values >= 0
        return cls(
            np.asarray(results["param_C"], dtype=np.float64)[kept],
            values[kept],
            {"relation_penalty": "relation penalty", "fraction": "relation penalty / largest"}.get(second, second),
            np.asarray(results[column], dtype=np.float64)[kept],
            _criterion_name(search, column),
            int(np.flatnonzero(kept).searchsorted(search.best_index_)),
        )

    @property
    def is_surface(self) -> bool:
        """Whether two parameters were searched over a grid, of which at least half of the points were fitted."""
        n_Cs, n_second = len(np.unique(self.C)), len(set(self.second.tolist()))
        return min(n_Cs, n_second) > 1 and n_Cs * n_second < 2 * len(self.C)


class CriterionSurfaceDisplay:
    """Criterion over C and a second parameter as a heat map, with the chosen point.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,)
    gammas : ndarray of shape (n_gammas,)
        Values of the second parameter.
    criterion : ndarray of shape (n_gammas, n_Cs)
    chosen : tuple of two float
        C and the second parameter of the winner.
    name : str, default="criterion"
        Label of the colours.
    second_name : str, default="gamma"
        Name of the second parameter.

    Attributes
    ----------
    ax_, figure_, image_, point_
        What `plot` drew.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import MarginSearch
    >>> from polymargin.inspection import CriterionSurfaceDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> search = MarginSearch(Cs=[0.1, 1.0], gammas=[0.1, 1.0]).fit(X, y)
    >>> display = CriterionSurfaceDisplay.from_estimator(search)  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        Cs: NDArray[np.float64],
        gammas: NDArray[np.float64],
        criterion: NDArray[np.float64],
        chosen: tuple[float, float],
        name: str = "criterion",
        second_name: str = "gamma",
    ):
        self.Cs = Cs
        self.gammas = gammas
        self.criterion = criterion
        self.chosen = chosen
        self.name = name
        self.second_name = second_name

    @classmethod
    def from_estimator(
        cls, estimator: Search, *, criterion: str | None = None, ax: Any = None, **mesh: Any
    ) -> "CriterionSurfaceDisplay":
        """Draw a column of the results of a fitted search.

        Parameters
        ----------
        estimator : fitted MarginSearch, ProximalSVCCV or SharedStructureSearch
        criterion : str or None, default=None
            The column, such as "cost", "loo", "gacv" or "error"; None for the one that the search chose by.
        ax : matplotlib axes or None, default=None
        **mesh : passed on to `ax.pcolormesh`

        Returns
        -------
        CriterionSurfaceDisplay
        """
        table = SearchTable.of(estimator, criterion)
        Cs, column = np.unique(table.C, return_inverse=True)
        if any(isinstance(value, str) for value in table.second.tolist()):
            raise ValueError("A surface needs a search over two parameters, got one over C: CriterionPathDisplay.")
        gammas, row = np.unique(np.asarray(table.second, dtype=np.float64), return_inverse=True)
        surface = np.full((len(gammas), len(Cs)), np.nan)
        surface[row, column] = table.criterion
        chosen = (float(table.C[table.chosen]), float(table.second[table.chosen]))
        display = cls(
            Cs=Cs, gammas=gammas, criterion=surface, chosen=chosen, name=table.name, second_name=table.second_name
        )
        return display.plot(ax=ax, **mesh)

    @property
    def description(self) -> str:
        """What the plot shows, in words."""
        at = np.searchsorted(self.gammas, self.chosen[1]), np.searchsorted(self.Cs, self.chosen[0])
        low, high, second = np.nanmin(self.criterion), np.nanmax(self.criterion), self.second_name
        return (
            f"Heat map of {self.name} over {len(self.Cs)} values of C and {len(self.gammas)} of {second}, from "
            f"{low:.4g} to {high:.4g}. Chosen: C = {self.chosen[0]:.4g}, {second} = {self.chosen[1]:.4g}, "
            f"where it is {self.criterion[at]:.4g}."
        )

    @styled
    def plot(self, ax: Any = None, **mesh: Any) -> "CriterionSurfaceDisplay":
        """Draw the surface.

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
        columns, rows = [f"{C:.3g}" for C in self.Cs], [f"{gamma:.3g}" for gamma in self.gammas]
        self.image_ = heat_map(self.ax_, self.criterion, columns=columns, rows=rows, **mesh)
        self.ax_.invert_yaxis()  # upwards, as an axis of numbers goes
        self.figure_.colorbar(self.image_, ax=self.ax_, label=self.name).outline.set_visible(False)
        at = np.searchsorted(self.Cs, self.chosen[0]), np.searchsorted(self.gammas, self.chosen[1])
        (self.point_,) = self.ax_.plot(
            *at, "o", color="white", markeredgecolor="black", markersize=9, label="chosen", clip_on=False
        )
        self.ax_.set(xlabel="C", ylabel=self.second_name)
        self.ax_.set_title("○ chosen", fontsize="small", loc="left")
        return self


class CriterionPathDisplay:
    """Criterion along C, one line a value of the second parameter, with the chosen point.

    Parameters
    ----------
    paths : dict of str to tuple of two ndarrays
        Values of C and of the criterion by the name of the line.
    chosen : tuple of two float
        C and criterion of the winner.
    name : str, default="criterion"

    Attributes
    ----------
    ax_, figure_, lines_, point_
        What `plot` drew.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from polymargin import ProximalSVCCV
    >>> from polymargin.inspection import CriterionPathDisplay
    >>> search = ProximalSVCCV().fit(*load_wine(return_X_y=True))
    >>> display = CriterionPathDisplay.from_estimator(search)  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        paths: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]],
        chosen: tuple[float, float],
        name: str = "criterion",
    ):
        self.paths = paths
        self.chosen = chosen
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: Search, *, criterion: str | None = None, ax: Any = None, **line: Any
    ) -> "CriterionPathDisplay":
        """Draw the results of a fitted search along C.

        Parameters
        ----------
        estimator : fitted SparseSVCCV, MarginSearch, ProximalSVCCV or SharedStructureSearch
        criterion : str or None, default=None
            The column of the results; None for the one that the search chose by.
        ax : matplotlib axes or None, default=None
        **line : passed on to `ax.plot`

        Returns
        -------
        CriterionPathDisplay
        """
        table = SearchTable.of(estimator, criterion)
        paths = {}
        for value in dict.fromkeys(table.second.tolist()):
            at = np.flatnonzero([other == value for other in table.second.tolist()])
            at = at[np.argsort(table.C[at], kind="stable")]
            paths[_line_name(table.second_name, value)] = (table.C[at], table.criterion[at])
        chosen = (float(table.C[table.chosen]), float(table.criterion[table.chosen]))
        return cls(paths=paths, chosen=chosen, name=table.name).plot(ax=ax, **line)

    @property
    def description(self) -> str:
        """What the plot shows, in words."""
        values = np.concatenate([criterion for _, criterion in self.paths.values()])
        lines = "a line" if len(self.paths) == 1 else f"{len(self.paths)} lines ({', '.join(self.paths)})"
        return (
            f"{self.name[0].upper() + self.name[1:]} along C, {lines}, from {values.min():.4g} to "
            f"{values.max():.4g}. Chosen: C = {self.chosen[0]:.4g}, where it is {self.chosen[1]:.4g}."
        )

    @styled
    def plot(self, ax: Any = None, **line: Any) -> "CriterionPathDisplay":
        """Draw the paths.

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
        options = {"marker": ".", **line}
        self.lines_ = {
            name: self.ax_.plot(Cs, criterion, label=label_text(name), **options)[0]
            for name, (Cs, criterion) in self.paths.items()
        }
        (self.point_,) = self.ax_.plot(
            *self.chosen, "o", markerfacecolor="none", markeredgecolor=ink(), markersize=11, label="chosen"
        )
        self.ax_.set(xscale="log", xlabel="C", ylabel=self.name)
        self.ax_.legend()
        return self


def _second_parameter(search: Search) -> tuple[str, NDArray]:
    """Return the parameter beside C that a search has tried, and its values."""
    results = search.cv_results_
    (name,) = set(search.best_params_) - {"C"}
    values = results[f"param_{name}"]
    if name == "relation_penalty":
        if search.relation_penalties is None:
            name, values = "fraction", results["fraction"]
        # the same value at another C differs by rounding
        values = np.array([float(f"{value:.10g}") for value in values])
    return name, values


def _criterion_name(search: Search, column: str) -> str:
    """Say what a column of the results of a search holds."""
    if isinstance(search, MarginSearch) and column == "criterion":
        column = search.criterion if isinstance(search.criterion, str) else "cost over the folds"
    if isinstance(search, MarginSearch) and column == "cost":
        return "left-out cost"
    names = {
        "loo": "leave-one-out loss",
        "loo_exact": "exact leave-one-out loss",
        "gacv": "GACV",
        "mean_test_score": "accuracy of left-out rows",
        "cost": "validation cost",
    }
    return names.get(column, column)


def _line_name(parameter: str, value: Any) -> str:
    if parameter == "round":
        return {-1: "l2 fits", 0: "plain path"}.get(int(value), f"round {int(value)}")
    return "all models" if isinstance(value, str) else f"{parameter} = {value:.3g}"
