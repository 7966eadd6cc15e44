"""Data and protocol of Figure 2 of Vural et al.: random training sets, a tenth of the rest to tune on."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from polymargin import MulticategorySVC, ProximalSVC, SharedStructureSearch, SharedStructureSVC, proximal_path
from reproductions.declare import Context

PENALTIES = 10.0 ** np.arange(-5, 6)
MOST_TUNING_ROWS = 500
MOST_TEST_ROWS = 4000


@dataclass(frozen=True)
class DataSet:
    """A data set of the figure: its kernel, and the sizes of its training sets."""

    kernel: dict[str, Any]
    sizes: tuple[int, ...]


DATA = {
    "Vehicle": DataSet({"kernel": "linear"}, (20, 60, 100, 200, 400)),
    "Digits": DataSet({"kernel": "linear"}, (40, 100, 200, 400)),
    "USPS": DataSet({"kernel": "rbf", "gamma": "scale"}, (100, 250, 500)),
    "Letter": DataSet({"kernel": "rbf", "gamma": 0.1}, (260, 520)),
}


@dataclass(frozen=True)
class Split:
    """Rows to train on, to tune on and to test on."""

    X: np.ndarray
    y: np.ndarray
    train: np.ndarray
    tuning: np.ndarray
    test: np.ndarray
    kernel: dict[str, Any] = field(default_factory=dict)

    def fit(self, machine: Any) -> Any:
        """Fit a machine to the training rows."""
        with warnings.catch_warnings():
            # A grid reaches to where fits are hard and useless.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return machine.fit(self.X[self.train], self.y[self.train])

    def tuned(self, machines: list) -> Any:
        """Return the first of the fitted machines that are right most often on the tuning rows."""
        return max(machines, key=lambda machine: machine.score(self.X[self.tuning], self.y[self.tuning]))

    def accuracy(self, machine: Any) -> float:
        """Return the share of test rows that are predicted right, in percent."""
        return 100.0 * machine.score(self.X[self.test], self.y[self.test])


def rows_of(name: str, context: Context) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows as the methods get them: standardised variables, or pixels between -1 and 1."""
    if name == "Digits":
        X, y = load_digits(return_X_y=True)
        return X / 8.0 - 1.0, y
    data = context.fetch(name.lower())
    return (data.data if name == "USPS" else StandardScaler().fit_transform(data.data)), data.target


def split(name: str, size: int, seed: int, context: Context) -> Split:
    """Draw a training set; a tenth of the rest, at most 500 rows, tunes and what is left, at most 4000, tests."""
    X, y = rows_of(name, context)
    train, rest = train_test_split(np.arange(len(y)), train_size=size, stratify=y, random_state=seed)
    tuning, test = train_test_split(rest, train_size=0.1, stratify=y[rest], random_state=seed)
    return Split(X, y, train, tuning[:MOST_TUNING_ROWS], test[:MOST_TEST_ROWS], DATA[name].kernel)


def sharing(rows: Split, penalties: np.ndarray, **options: Any) -> Any:
    """Return a shared-structure machine, both penalties chosen on the tuning rows."""
    together = np.concatenate([rows.train, rows.tuning])
    cut = len(rows.train)
    fold = (np.arange(cut), np.arange(cut, len(together)))
    machine = SharedStructureSVC(**{"max_iter": 5, **rows.kernel, **options})
    search = SharedStructureSearch(machine, Cs=penalties, relation_penalties=penalties, cv=[fold])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search.fit(rows.X[together], rows.y[together])
    return rows.fit(clone(search.best_estimator_))


def one_versus_rest(rows: Split, penalties: np.ndarray) -> Any:
    """Return independent least-squares machines, C chosen on the tuning rows."""
    machine = ProximalSVC(balance=False, refine=False, **rows.kernel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return rows.tuned(proximal_path(machine, rows.X[rows.train], rows.y[rows.train], penalties))


def exact(loss: str) -> Callable[[Split, np.ndarray], Any]:
    """Return what fits a multicategory machine, C from .001 to 1000 chosen on the tuning rows."""

    def machine(rows: Split, penalties: np.ndarray) -> Any:
        Cs = penalties[(penalties >= 1e-3) & (penalties <= 1e3)]
        return rows.tuned([rows.fit(MulticategorySVC(C, loss=loss, tol=1e-4, **rows.kernel)) for C in Cs])

    return machine


METHODS: dict[str, Callable[[Split, np.ndarray], Any]] = {
    "1vsrest": one_versus_rest,
    "original": sharing,
    "fast": lambda rows, penalties: sharing(rows, penalties, formulation="fast"),
    "traceNorm": lambda rows, penalties: sharing(rows, penalties, bounds=None),
    "Crammer-Singer": exact("crammer"),
    "Weston-Watkins": exact("weston"),
}
