"""MarginSearch beside ten-fold grid searches: time, and the test error of what is chosen.

python -m benchmarks.selection [--quick] [--data NAME ...] [--sample N] [--whole]

Seconds are the processor's.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, ParameterSampler, StratifiedKFold, train_test_split
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from benchmarks.common import Goals, Table, real_data
from polymargin import MarginSearch, MulticategorySVC

DATA_SETS = ["vehicle", "segment", "digits"]
FOLDS = StratifiedKFold(10, shuffle=True, random_state=0)


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return those of the three data sets that are at hand."""
    found = {name: real_data(name) for name in ("vehicle", "segment")}
    digits = load_digits()
    found["digits"] = (scale(digits.data), digits.target)
    return {name: data for name, data in found.items() if data is not None}


def timed(search, X: np.ndarray, y: np.ndarray) -> float:
    """Fit a search and return the processor's seconds it took, once: grids are long."""
    start = time.process_time()
    search.fit(X, y)
    return time.process_time() - start


@dataclass(frozen=True)
class Split:
    """Rows to search on and to test on."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def row(self, search: str, seconds: float | str, chosen: dict, model) -> dict:
        """Return what a search chose, and the error of its choice."""
        error = 1.0 - float(model.score(self.X_test, self.y_test))
        chosen = {"C": float(chosen["C"]), "gamma": float(chosen["gamma"]), "test error": error}
        return {"data": self.name, "rows": len(self.y), "search": search, "seconds": seconds, **chosen}


def splits(names: list[str], rows: int | None) -> Iterator[Split]:
    """Yield the data sets of these names, a third of their rows (or of so many drawn) for testing."""
    for name, (X, y) in data_sets().items():
        if name not in names:
            continue
        if rows is not None and rows < len(y):
            X, _, y, _ = train_test_split(X, y, train_size=rows, stratify=y, random_state=0)
        X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)
        yield Split(name, X, y, X_test, y_test)


def compare(
    data: Iterator[Split], Cs: np.ndarray, widths: np.ndarray, goals: Goals, *, sample: int | None, whole: bool
) -> None:
    """Search every data set in several ways on the same grid."""
    print(f"{len(Cs)} values of C, {len(widths)} widths; a third of the rows is for testing")
    table = Table(("data", "rows", "search", "seconds", "C", "gamma", "test error"), width=16)
    for split in data:
        X, y = split.X, split.y
        grid = {"C": Cs, "gamma": widths / X.shape[1]}
        search = MarginSearch(Cs=Cs, gammas=grid["gamma"])
        ours = timed(search, X, y)
        table.add(**split.row("cost", ours, search.best_params_, search))
        if whole:
            every = MarginSearch(Cs=Cs, gammas=grid["gamma"], exhaustive=True)
            table.add(**split.row("cost, whole grid", timed(every, X, y), every.best_params_, every))
            for criterion in ("loo", "gacv"):
                table.add(**split.row(criterion, "", *chosen_by(criterion, every, X, y)))
        theirs = GridSearchCV(SVC(), grid, cv=FOLDS)
        seconds = timed(theirs, X, y)
        table.add(**split.row("10-fold SVC", seconds, theirs.best_params_, theirs))
        goals.at_most(f"{split.name}: MarginSearch / 10-fold SVC, seconds", ours / seconds, 0.7)
        if sample is None:
            folds = GridSearchCV(MulticategorySVC(), grid, cv=FOLDS)
            seconds = timed(folds, X, y)
            table.add(**split.row("10-fold", seconds, folds.best_params_, folds))
        else:
            seconds = sampled_seconds(grid, sample, X, y)
            table.add(data=split.name, rows=len(y), search=f"10-fold by {sample}", seconds=seconds)
        goals.at_most(f"{split.name}: MarginSearch / 10-fold MulticategorySVC, seconds", ours / seconds, 0.1)


def sampled_seconds(grid: dict[str, np.ndarray], sample: int, X: np.ndarray, y: np.ndarray) -> float:
    """Return about what ten folds take on a grid: one fold at points drawn from it, times what is left out."""
    points = list(ParameterSampler(grid, sample, random_state=0))
    train, _ = next(FOLDS.split(X, y))
    spent = sum(timed(MulticategorySVC(**point), X[train], y[train]) for point in points)
    return spent * FOLDS.n_splits * len(grid["C"]) * len(grid["gamma"]) / sample


def chosen_by(criterion: str, search: MarginSearch, X: np.ndarray, y: np.ndarray) -> tuple[dict, MulticategorySVC]:
    """Return what another criterion chooses of a finished search, and its fit."""
    best = search.cv_results_[criterion].argmin()
    chosen = search.cv_results_["params"][best]
    return chosen, MulticategorySVC(**chosen).fit(X, y)


def main() -> None:
    """Run the searches and print which goals hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a 4 x 3 grid on 300 rows")
    parser.add_argument("--data", nargs="+", choices=DATA_SETS, default=DATA_SETS, help="which data sets")
    parser.add_argument(
        "--sample", type=int, help="clock ten folds of ours by one fold at so many grid points (they take hours)"
    )
    parser.add_argument("--whole", action="store_true", help="also search the whole grid, and by other criteria")
    arguments = parser.parse_args()
    goals = Goals()
    warnings.simplefilter("ignore", UserWarning)
    data = splits(arguments.data, 300 if arguments.quick else None)
    if arguments.quick:
        Cs, widths = 2.0 ** np.arange(-4, 9, 4), 2.0 ** np.arange(-3, 2, 2)
    else:
        Cs, widths = 2.0 ** np.linspace(-6, 10, 20), 2.0 ** np.linspace(-6, 3, 10)
    compare(data, Cs, widths, goals, sample=arguments.sample, whole=arguments.whole)
    goals.report()


if __name__ == "__main__":
    main()
