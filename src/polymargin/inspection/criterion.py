"""The criterion of a search over C and the kernel width."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.inspection._plotting import new_axes
from polymargin.selection.multicategory import MarginSearch


class CriterionSurfaceDisplay:
    """Criterion over (C, gamma) as a heat map, with the chosen point.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,)
    gammas : ndarray of shape (n_gammas,)
    criterion : ndarray of shape (n_gammas, n_Cs)
    chosen : tuple of two float
        C and gamma of the winner.
    name : str, default="criterion"
        Label of the colours.

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
    ):
        self.Cs = Cs
        self.gammas = gammas
        self.criterion = criterion
        self.chosen = chosen
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: MarginSearch, *, criterion: str = "criterion", ax: Any = None, **mesh: Any
    ) -> "CriterionSurfaceDisplay":
        """Draw a column of the results of a fitted `MarginSearch`.

        Parameters
        ----------
        estimator : fitted MarginSearch
        criterion : str, default="criterion"
            The column: "criterion", or another such as "loo", "gacv" or "error".
        ax : matplotlib axes or None, default=None
        **mesh : passed on to `ax.pcolormesh`

        Returns
        -------
        CriterionSurfaceDisplay
        """
        results = estimator.results_
        if criterion not in results:
            raise ValueError(f"criterion must be one of {', '.join(map(repr, results))}, got {criterion!r}.")
        Cs, column = np.unique(results["C"], return_inverse=True)
        gammas, row = np.unique(results["gamma"], return_inverse=True)
        surface = np.full((len(gammas), len(Cs)), np.nan)
        surface[row, column] = results[criterion]
        chosen = (estimator.best_params_["C"], estimator.best_params_["gamma"])
        return cls(Cs=Cs, gammas=gammas, criterion=surface, chosen=chosen, name=criterion).plot(ax=ax, **mesh)

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
        columns, rows = np.arange(len(self.Cs)), np.arange(len(self.gammas))
        self.image_ = self.ax_.pcolormesh(columns, rows, self.criterion, shading="nearest", **mesh)
        self.figure_.colorbar(self.image_, ax=self.ax_, label=self.name)
        at = np.searchsorted(self.Cs, self.chosen[0]), np.searchsorted(self.gammas, self.chosen[1])
        (self.point_,) = self.ax_.plot(*at, "o", color="white", markeredgecolor="black", label="chosen")
        self.ax_.set_xticks(columns, [f"{C:.3g}" for C in self.Cs])
        self.ax_.set_yticks(rows, [f"{gamma:.3g}" for gamma in self.gammas])
        self.ax_.set(xlabel="C", ylabel="gamma")
        self.ax_.legend()
        return self
