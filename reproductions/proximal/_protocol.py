"""The protocol of Tables 1 and 2: tenfold correctness, the parameters tuned on a tenth of every training part."""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import ttest_rel
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, train_test_split

from reproductions.declare import Context, Key, Theirs

BUNDLED = {"Wine": load_wine, "Iris": load_iris}
FETCHED = {"Glass": "glass", "Vowel": "vowel", "Vehicle": "vehicle", "Segment": "segment"}


def printed_numbers(printed: Mapping[str, tuple], methods: tuple[str, ...]) -> dict[Key, Theirs]:
    """Return a table of the paper by key; its seconds as ratios to those of the first method."""
    numbers = {}
    for name, columns in printed.items():
        for method, column in zip(methods, columns, strict=True):
            numbers[name, method, "train"] = Theirs(column[0])
            numbers[name, method, "test"] = Theirs(column[1])
            if method != methods[0]:
                numbers[name, method, "time ratio"] = Theirs(column[2] / columns[0][2], judged=False)
                numbers[name, method, "p-value"] = Theirs(column[3], judged=False)
    return numbers


def rows_of(name: str, context: Context) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels; of Vowel the 528 training rows, as the paper does."""
    if name in BUNDLED:
        return BUNDLED[name](return_X_y=True)
    data = context.fetch(FETCHED[name])
    if name == "Vowel" and data.train_indices is not None:
        return data.data[data.train_indices], data.target[data.train_indices]
    return data.data, data.target


@dataclass(frozen=True)
class Method:
    """A classifier by its C and by what else is tuned with it, the preferred of equals first.

    Attributes
    ----------
    make : returns the classifier for C and a point.
    Cs, points : the grid, every C with every point.
    path : fits the classifier of a point for all C at once, where that is cheaper than one by one.
    tuned_once : whether what the first fold chooses serves all folds, to save time.
    """

    make: Callable[..., Any]
    Cs: tuple[float, ...]
    points: tuple[Mapping[str, float], ...] = ({},)
    path: Callable[..., list] | None = None
    tuned_once: bool = False

    def fitted(self, X: np.ndarray, y: np.ndarray, point: Mapping[str, float]) -> list:
        """Return the machines of all C."""
        if self.path is not None:
            return self.path(self.make(self.Cs[0], **point), X, y, self.Cs)
        return [self.make(C, **point).fit(X, y) for C in self.Cs]

    def tuned(self, X: np.ndarray, y: np.ndarray, kept: np.ndarray, tuning: np.ndarray) -> Any:
        """Return the classifier, not fitted, that is right most often on the tuning rows."""
        scores = {
            (C, at): machine.score(X[tuning], y[tuning])
            for at, point in enumerate(self.points)
            for C, machine in zip(self.Cs, self.fitted(X[kept], y[kept], point), strict=True)
        }
        C, at = min(scores, key=lambda entry: (-scores[entry], entry))
        return self.make(C, **self.points[at])


def tenfold(X: np.ndarray, y: np.ndarray, method: Method, folds: Iterable, seed: int) -> tuple[list, list, float]:
    """Return training and test correctness of the folds in percent, and the CPU seconds of the final fits."""
    train_scores, test_scores, seconds, final = [], [], 0.0, None
    for train, test in folds:
        # A class with one row in the training part cannot be split in proportion.
        kept, tuning = train_test_split(train, test_size=0.1, random_state=seed)
        with warnings.catch_warnings():
            # On raw data, variables of very different scales stop some fits short of their tolerance.
            warnings.simplefilter("ignore", ConvergenceWarning)
            if final is None or not method.tuned_once:
                final = method.tuned(X, y, kept, tuning)
            start = time.process_time()
            final.fit(X[train], y[train])
            seconds += time.process_time() - start
        train_scores.append(100 * final.score(X[train], y[train]))
        test_scores.append(100 * final.score(X[test], y[test]))
    return train_scores, test_scores, seconds


def compare(name: str, methods: Mapping[str, Method], context: Context) -> dict[Key, float]:
    """Return the numbers of one data set; p-values and times are against the first method, OFRQP."""
    X, y = rows_of(name, context)
    seed = context.seed % 2**32
    folds = list(StratifiedKFold(10, shuffle=True, random_state=seed).split(X, y))
    if context.quick:
        folds = folds[:2]
        methods = {
            label: replace(method, Cs=method.Cs[::5], points=method.points[:1])
            for label, method in methods.items()
        }
    values: dict[Key, float] = {}
    base: tuple[list, float] | None = None
    for label, method in methods.items():
        train, test, seconds = tenfold(X, y, method, folds, seed)
        values[name, label, "train"] = float(np.mean(train))
        values[name, label, "test"] = float(np.mean(test))
        if base is None:
            base = test, seconds
        else:
            values[name, label, "time ratio"] = seconds / base[1]
            # Where no fold differs there is nothing to test.
            equal = np.allclose(test, base[0])
            values[name, label, "p-value"] = 1.0 if equal else float(ttest_rel(test, base[0]).pvalue)
    return values


def data_sets(context: Context) -> tuple[str, ...]:
    """Return what a repetition covers: the sets that scikit-learn bundles if it is to be quick."""
    return tuple(BUNDLED) if context.quick else (*BUNDLED, *FETCHED)
