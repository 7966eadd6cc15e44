"""MarginSearch beside ten-fold grid searches: time, and the test error of what is chosen.

python -m benchmarks.selection [--quick]
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from benchmarks.common import Goals, Table, real_data
from polymargin import MarginSearch, MulticategorySVC

FOLDS = StratifiedKFold(10, shuffle=True, random_state=0)


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return those of the three data sets that are at hand."""
    found = {name: real_data(name) for name in ("vehicle", "segment")}
    digits = load_digits()
    found["digits"] = (scale(digits.data), digits.target)
    return {name: data for name, data in found.items() if data is not None}


def timed(search, X: np.ndarray, y: np.ndarray) -> float:
    """Fit a search and return the seconds it took, as clocked once: grids are long."""
    start = time.perf_counter()
    search.fit(X, y)
    return time.perf_counter() - start


def compare(Cs: np.ndarray, widths: np.ndarray, rows: int | None, goals: Goals) -> None:
    """Search every data set four ways on the same grid."""
    print(f"{len(Cs)} values of C, {len(widths)} widths; a third of the rows is for testing")
    table = Table(("data", "rows", "search", "seconds", "C", "gamma", "test error"), width=16)
    for name, (X, y) in data_sets().items():
        if rows is not None and rows < len(y):
            X, _, y, _ = train_test_split(X, y, train_size=rows, stratify=y, random_state=0)
        X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)
        gammas = widths / X.shape[1]
        grid = {"C": Cs, "gamma": gammas}
        searches = {
            "loo (and GACV)": MarginSearch(Cs=Cs, gammas=gammas),
            "GACV": None,
            "10-fold": GridSearchCV(MulticategorySVC(), grid, cv=FOLDS),
            "10-fold SVC": GridSearchCV(SVC(), grid, cv=FOLDS),
        }
        seconds = {kind: timed(search, X, y) for kind, search in searches.items() if search is not None}
        errors = {}
        for kind, search in searches.items():
            if search is None:
                chosen, model = chosen_by_gacv(searches["loo (and GACV)"], X, y)
            else:
                chosen, model = search.best_params_, search
            errors[kind] = 1.0 - float(model.score(X_test, y_test))
            row = {"C": float(chosen["C"]), "gamma": float(chosen["gamma"]), "test error": errors[kind]}
            spent = seconds.get(kind, "")
            table.add(data=name, rows=len(y), search=kind, seconds=spent, **row)
        ours = seconds["loo (and GACV)"]
        goals.at_most(f"{name}: MarginSearch / 10-fold MulticategorySVC, seconds", ours / seconds["10-fold"], 0.1)
        goals.at_most(f"{name}: MarginSearch / 10-fold SVC, seconds", ours / seconds["10-fold SVC"], 1.0)


def chosen_by_gacv(search: MarginSearch, X: np.ndarray, y: np.ndarray) -> tuple[dict, MulticategorySVC]:
    """Return what GACV chooses of a finished search, and its fit."""
    best = search.results_["gacv"].argmin()
    chosen = {name: search.results_[name][best] for name in ("C", "gamma")}
    return chosen, MulticategorySVC(**chosen).fit(X, y)


def main() -> None:
    """Run the searches and print which goals hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a 4 x 3 grid on 300 rows")
    quick = parser.parse_args().quick
    goals = Goals()
    warnings.simplefilter("ignore", UserWarning)
    if quick:
        compare(2.0 ** np.arange(-4, 9, 4), 2.0 ** np.arange(-3, 2, 2), 300, goals)
    else:
        compare(2.0 ** np.linspace(-6, 10, 20), 2.0 ** np.linspace(-6, 3, 10), None, goals)
    goals.report()


if __name__ == "__main__":
    main()
