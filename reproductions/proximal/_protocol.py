"""The protocol of Tables 1 and 2: tenfold correctness, the parameters tuned on a tenth of every training part."""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.stats import ttest_1samp
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, train_test_split

from reproductions.declare import Band, Context, Key, Theirs

BUNDLED = {"Wine": load_wine, "Iris": load_iris}
FETCHED = {"Glass": "glass", "Vowel": "vowel", "Vehicle": "vehicle", "Segment": "segment"}


BANDS = {
    "train": Band.of_effect(5.35, "the mean gain of BR-MPSVM over MPSVM in Table 1, training"),
    "test": Band.of_effect(6.05, "the mean gain of BR-MPSVM over MPSVM in Table 1, testing"),
}
LARGEST, SMALLEST = (-1,), (1,)
"""How ties of C are broken."""

LABELS = {-1: ", ties to the largest nu", 1: ", ties to the smallest nu"}
"""What marks the numbers of either rule where both are shown."""


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
    """A classifier by its C and by what else is tuned with it, the preferred of equal points first.

    Attributes
    ----------
    make : returns the classifier for C and a point.
    Cs, points : the grid, every C with every point.
    path : fits the classifier of a point for all C at once, where that is cheaper than one by one.
    tuned_once : whether what the first fold chooses serves all folds, to save time.
    ties : how ties of C are broken: -1 towards the largest, 1 towards the smallest; the first counts.
    """

    make: Callable[..., Any]
    Cs: tuple[float, ...]
    points: tuple[Mapping[str, float], ...] = ({},)
    path: Callable[..., list] | None = None
    tuned_once: bool = False
    ties: tuple[int, ...] = SMALLEST

    def fitted(self, X: np.ndarray, y: np.ndarray, point: Mapping[str, float]) -> list:
        """Return the machines of all C."""
        if self.path is not None:
            return self.path(self.make(self.Cs[0], **point), X, y, self.Cs)
        return [self.make(C, **point).fit(X, y) for C in self.Cs]

    def tuned(self, X: np.ndarray, y: np.ndarray, kept: np.ndarray, tuning: np.ndarray) -> list:
        """Return the classifiers, not fitted, that are right most often on the tuning rows, by rule for ties."""
        scores = {
            (C, at): machine.score(X[tuning], y[tuning])
            for at, point in enumerate(self.points)
            for C, machine in zip(self.Cs, self.fitted(X[kept], y[kept], point), strict=True)
        }
        chosen = []
        for sign in self.ties:
            C, at = min(scores, key=lambda entry: (-scores[entry], sign * entry[0], entry[1]))
            chosen.append(self.make(C, **self.points[at]))
        return chosen


@dataclass
class Tenfold:
    """Correctness of the folds in percent, and the CPU seconds of the final fits."""

    train: list[float] = field(default_factory=list)
    test: list[float] = field(default_factory=list)
    seconds: float = 0.0


def tenfold(X: np.ndarray, y: np.ndarray, method: Method, folds: Iterable, seed: int) -> list[Tenfold]:
    """Return what the folds give, by rule for ties."""
    outcomes = [Tenfold() for _ in method.ties]
    finals: list = []
    for train, test in folds:
        # A class with one row in the training part cannot be split in proportion.
        kept, tuning = train_test_split(train, test_size=0.1, random_state=seed)
        with warnings.catch_warnings():
            # On raw data, variables of very different scales stop some fits short of their tolerance.
            warnings.simplefilter("ignore", ConvergenceWarning)
            if not finals or not method.tuned_once:
                finals = method.tuned(X, y, kept, tuning)
            for outcome, final in zip(outcomes, finals, strict=True):
                start = time.process_time()
                final.fit(X[train], y[train])
                outcome.seconds += time.process_time() - start
                outcome.train.append(100 * final.score(X[train], y[train]))
                outcome.test.append(100 * final.score(X[test], y[test]))
    return outcomes


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
    base: Tenfold | None = None
    for label, method in methods.items():
        outcomes = tenfold(X, y, method, folds, seed)
        outcome = outcomes[0]
        for rule, found in zip(method.ties, outcomes, strict=True):
            shown = label + LABELS[rule] if len(outcomes) > 1 else label
            values[name, shown, "train"] = float(np.mean(found.train))
            values[name, shown, "test"] = float(np.mean(found.test))
        if base is None:
            base = outcome
        else:
            values[name, label, "time ratio"] = outcome.seconds / base.seconds
            apart = np.subtract(outcome.test, base.test)
            # Where all folds differ alike there is no spread to test against.
            certain = 1.0 if np.allclose(apart, 0.0) else 0.0
            values[name, label, "p-value"] = (
                certain if np.allclose(apart, apart[0]) else ttest_1samp(apart, 0.0).pvalue
            )
    return values


def data_sets(context: Context) -> tuple[str, ...]:
    """Return what a repetition covers: the sets that scikit-learn bundles if it is to be quick."""
    return tuple(BUNDLED) if context.quick else (*BUNDLED, *FETCHED)
