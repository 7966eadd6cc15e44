"""Probabilities from one fit beside refits on folds: log loss, Brier score, calibration by class, and time.

python -m benchmarks.probabilities [--quick] [--rows 300 1000] [--draws 10] [--data NAME ...] [--models MODEL ...]
    [--refits] [--time] [--stored] [--markdown FILE]

All SVMs have an rbf kernel, gamma="scale" and C = 4. The constants of the maps were chosen on waveform, satimage,
letter, usps and covtype; the other data sets had no say. Results are kept in benchmarks/results, so that a run can
be stopped and taken up; --stored measures nothing. --refits: beside frozen left-out scores those of n exact refits
on three small data sets. --time: CPU time over that of the fit alone, measured anew by every run, in a quarter of
an hour. The constants behind it, from how many free multipliers on every class is taken by itself and what pivots
single precision may have, were looked at on letter, vowel, vehicle and satimage; where the time goes, on waveform,
usps, pendigits and vowel.
"""

import argparse
import itertools
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneOut
from sklearn.svm import SVC

from benchmarks.common import Goals, Kept, Table, markdown_option, real_data, write_tables
from polymargin import MulticategorySVC, ProbabilityClassifier
from polymargin.selection.calibration import CANDIDATES, JUDGING_FOLDS, choose_map, fit_map

DATA_SETS = (
    "waveform", "vehicle", "satimage", "segment", "pendigits", "letter", "usps", "vowel", "glass", "wine", "iris",
)  # fmt: skip
ROWS = (300, 1000)
OURS = ("auto, lee", "auto, weston")
SHOWN = (*OURS, "sigmoid, SVC", "temperature, weston")
CHOOSING = ("waveform", "satimage", "letter", "usps", "covtype")
TIME_CHOOSING = ("letter", "vowel", "vehicle", "satimage")
FEWEST = 5
TEST_ROWS = 2000
BINS = 10
ROUNDS, LEAST_SECONDS = 5, 0.5
TIMED_ROWS = (500, 1000)
TIME_GOAL = 1.3
SETTINGS = {"version": 2, "test rows": TEST_ROWS, "bins": BINS, "C": 4.0, "boosting": 50}
SMALL = (("wine", 120), ("glass", 140), ("vehicle", 150))


def models() -> dict[str, object]:
    """Return the classifiers by name; labels are positions, as scikit-learn's temperature needs them."""
    ours = {
        f"auto, {loss}": ProbabilityClassifier(MulticategorySVC(C=4.0, loss=loss)) for loss in ("lee", "weston")
    }
    rivals = {
        f"{method}, {name}": CalibratedClassifierCV(machine, method=method, cv=5, ensemble=False)
        for name, machine in (("SVC", SVC(C=4.0)), ("weston", MulticategorySVC(C=4.0, loss="weston")))
        for method in ("sigmoid", "isotonic", "temperature")
    }
    others = {
        "logistic": LogisticRegression(max_iter=2000),
        "boosting": HistGradientBoostingClassifier(max_iter=50),
    }
    return ours | rivals | others


def measures(P: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return log loss, Brier score and the mean over classes of the binned calibration error."""
    truth = np.eye(P.shape[1])[labels]
    bins = np.minimum((P * BINS).astype(int), BINS - 1)
    errors = [
        sum(abs((P[bins[:, j] == b, j] - truth[bins[:, j] == b, j]).sum()) for b in range(BINS)) / len(P)
        for j in range(P.shape[1])
    ]
    own = np.maximum(P[np.arange(len(labels)), labels], np.finfo(float).eps)
    return {
        "log loss": float(-np.log(own).mean()),
        "brier": float(((P - truth) ** 2).sum(axis=1).mean()),
        "by class": float(np.mean(errors)),
    }


def divided(name: str, rows: int, draw: int) -> tuple[np.ndarray, ...] | None:
    """Return rows and labels to train and to test on; None where there are too few of a class."""
    data = real_data(name)
    if data is None:
        return None
    X, labels = data[0], np.unique(data[1], return_inverse=True)[1]
    order = np.random.default_rng(draw).permutation(len(labels))
    cut = min(rows, 2 * len(labels) // 3)
    train, test = order[:cut], order[cut : cut + TEST_ROWS]
    few = np.bincount(labels[train], minlength=labels.max() + 1).min() < FEWEST
    return None if few else (X[train], labels[train], X[test], labels[test])


def measure(name: str, rows: int, draw: int, title: str) -> dict[str, float] | None:
    """Return the measures of a model on one draw; None where there are too few rows, in all or of a class."""
    parts = divided(name, rows, draw)
    if parts is None or (rows > ROWS[0] and len(parts[0]) <= ROWS[0]):
        return None
    X, labels, X_test, labels_test = parts
    model = models()[title]
    started = time.process_time()
    model.fit(X, labels)
    seconds = time.process_time() - started
    result = measures(model.predict_proba(X_test), labels_test) | {"seconds": seconds, "rows": len(X)}
    if title in OURS:
        result |= agreement(model, X_test) | of_maps(model, X_test, labels_test)
    return result


class TimedSVC(MulticategorySVC):
    """The machine, with the CPU time of its last fit."""

    def fit(self, *rows, **others) -> "TimedSVC":
        started = time.process_time()
        super().fit(*rows, **others)
        self.seconds_ = time.process_time() - started
        return self


def over_fit(model: ProbabilityClassifier, X: np.ndarray, labels: np.ndarray) -> float:
    """Return the CPU time of a model over that of its machine's fit, which is a part of it: the median of runs.

    Both times of a run are lengthened alike by what else the computer does.
    """
    timed = clone(model).set_params(estimator=TimedSVC(**model.estimator.get_params()))
    ratios, spent = [], 0.0
    while len(ratios) < ROUNDS or spent < LEAST_SECONDS:
        started = time.process_time()
        timed.fit(X, labels)
        seconds = time.process_time() - started
        ratios.append(seconds / timed.estimator_.seconds_)
        spent += seconds
    return float(np.median(ratios))


def of_maps(model: ProbabilityClassifier, X: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return the log loss of every map of the left-out scores, and of the simplest one that is as good as any."""
    rows, scores = model.left_out_.merged(), model.estimator_.decision_function(X)
    folds = rows.folds(JUDGING_FOLDS)
    choice = choose_map(rows.scores, rows.labels, rows.weights, folds)
    maps = {method: fit_map(method, rows.scores, rows.labels, rows.weights) for method in CANDIDATES}
    losses = {method: measures(found.probabilities(scores), labels)["log loss"] for method, found in maps.items()}
    return losses | {"simplest": losses[choice.as_good[0]], "richest": losses[choice.as_good[-1]]}


def agreement(model: ProbabilityClassifier, X: np.ndarray) -> dict[str, float]:
    """Return how many rows have the most probable class predicted, and the class of least expected cost."""
    rng = np.random.default_rng(0)
    k = len(model.classes_)
    costs = np.exp(rng.normal(size=(k, k))) * (1.0 - np.eye(k))
    P = model.predict_proba(X)
    return {
        "argmax": float((model.predict(X) == model.classes_[P.argmax(axis=1)]).mean()),
        "least cost": float((model.predict(X, costs) == model.classes_[(P @ costs).argmin(axis=1)]).mean()),
    }


def against_refits(name: str, rows: int) -> dict[str, float] | None:
    """Return how far probabilities from frozen left-out scores are from those of n exact refits, on other rows."""
    data = real_data(name)
    if data is None:
        return None
    X, labels = data[0], np.unique(data[1], return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(len(labels))
    train, test = order[:rows], order[rows : rows + TEST_ROWS]
    result = {}
    for loss in ("lee", "weston"):
        machine = MulticategorySVC(C=4.0, loss=loss)
        frozen = ProbabilityClassifier(machine).fit(X[train], labels[train])
        exact = ProbabilityClassifier(machine, method=frozen.method_, cv=LeaveOneOut()).fit(
            X[train], labels[train]
        )
        difference = np.abs(frozen.predict_proba(X[test]) - exact.predict_proba(X[test]))
        result |= {f"{loss}, mean": float(difference.mean()), f"{loss}, largest": float(difference.max())}
    return result


def show_refits(kept: Kept, markdown: Path | None) -> None:
    """Print the differences from exact refits."""
    goals = Goals()
    table = Table(("data", "rows", "machine", "mean difference", "largest"), width=16)
    for name, rows in SMALL:
        found = kept.of(("refits", name, rows), lambda name=name, rows=rows: against_refits(name, rows)) or {}
        for loss in ("lee", "weston") if found else ():
            mean, largest = found[f"{loss}, mean"], found[f"{loss}, largest"]
            table.add(data=name, rows=rows, machine=loss, **{"mean difference": mean, "largest": largest})
            goals.at_most(f"{name}, {loss}: mean difference from n refits", mean, 0.01)
    goals.report()
    table.write(markdown, "python -m benchmarks.probabilities --refits --stored", goals)


def show_times(names: list[str], draws: int, markdown: Path | None) -> None:
    """Print the CPU time over that of the fit alone."""
    goals, largest = Goals(), 0.0
    table = Table(("data", "rows", "machine", "half", "median", "largest"), width=14)
    for name, rows, title in itertools.product(names, TIMED_ROWS, OURS):
        parts = [found for draw in range(draws) if (found := divided(name, rows, draw)) is not None]
        if not parts or len(parts[0][0]) < TIMED_ROWS[0]:
            continue
        ratios = [over_fit(models()[title], X, labels) for X, labels, *_ in parts]
        n, median = len(parts[0][0]), float(np.median(ratios))
        half = "choosing" if name in TIME_CHOOSING else "other"
        table.add(data=name, rows=n, machine=title, half=half, median=median, largest=max(ratios))
        goals.at_most(f"{name}, {n} rows: CPU time of {title} over that of the fit", median, TIME_GOAL)
        largest = max(largest, *ratios)
    goals.at_most("largest of all draws", largest, TIME_GOAL)
    goals.report()
    table.write(markdown, f"python -m benchmarks.probabilities --time --draws {draws}", goals)


def main() -> None:
    """Measure what is missing, and print means over the draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three data sets, 300 rows, two draws")
    parser.add_argument("--rows", type=int, nargs="*", default=list(ROWS))
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--data", nargs="*", default=list(DATA_SETS))
    parser.add_argument("--models", nargs="*", metavar="MODEL", help="measure only these; default: all")
    parser.add_argument("--refits", action="store_true", help="frozen left-out scores beside n exact refits")
    parser.add_argument("--time", action="store_true", help="CPU time over that of the fit alone")
    parser.add_argument("--stored", action="store_true", help="measure nothing")
    markdown_option(parser)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rows, arguments.draws, arguments.data = [300], 2, ["vehicle", "segment", "waveform"]
    warnings.simplefilter("ignore")
    if arguments.time:
        show_times(arguments.data, arguments.draws, arguments.markdown)
        return
    kept = Kept("probabilities", SETTINGS, only_stored=arguments.stored)
    if arguments.refits:
        show_refits(kept, arguments.markdown)
        return
    # draw by draw, so that a run that is stopped has as many of every data set
    cases = itertools.product(range(arguments.draws), arguments.rows, arguments.data, models())
    for draw, rows, name, title in cases:
        if arguments.models is None or title in arguments.models:
            case = (name, rows, draw, title)
            kept.of(case, lambda case=case: measure(*case))
    show(kept, arguments)


def show(kept: Kept, arguments: argparse.Namespace) -> None:
    """Print means over the draws, and what was aimed for."""
    goals, within, simpler = Goals(), [], []
    columns = ("data, rows", "draws", *SHOWN, "best SVM rival", "its log loss", "behind", "logistic", "boosting")
    losses = Table(columns, width=14, first=18)
    others = Table(("data, rows", "model", "log loss", "error of it", "brier", "by class", "time"), width=20)
    for name, rows in itertools.product(arguments.data, arguments.rows):
        draws = drawn(kept, name, rows, arguments.draws)
        if len(draws) < 2:
            print(f"{name}, {rows} rows: absent, not measured, or too few rows")
            continue
        found = {title: averages([draw[title] for draw in draws]) for title in models()}
        rivals = [title for title in found if title.endswith((", SVC", ", weston")) and title not in OURS]
        best = min(rivals, key=lambda title: found[title]["log loss"])
        line = f"{name}, {rows}"
        behind = standard_errors(draws, "auto, weston", best)
        within.append(behind <= 1.0)
        losses.add(
            **{"data, rows": line, "draws": len(draws), "best SVM rival": best, "behind": behind},
            **{"its log loss": found[best]["log loss"]},
            **{title: found[title]["log loss"] for title in (*SHOWN, "logistic", "boosting")},
        )
        shortest = found["auto, weston"]["seconds"]
        for title in (*OURS, best, "logistic", "boosting"):
            others.add(
                **{"data, rows": line, "model": title, "time": found[title]["seconds"] / shortest},
                **{what: found[title][what] for what in ("log loss", "error of it", "brier", "by class")},
            )
        for title in OURS:
            agrees = min(min(draw[title]["argmax"], draw[title]["least cost"]) for draw in draws)
            goals.at_most(f"{line}: share of rows where predict is not that of {title}", 1.0 - agrees, 0.0)
            difference = found[title]["simplest"] - found[title]["richest"]
            simpler.append((name in CHOOSING, difference))
    goals.at_most("share of lines where 'auto, weston' is behind by over one error", 1.0 - np.mean(within), 0.2)
    for half, chosen in (("choosing", True), ("other", False)):
        gained = [difference for of_half, difference in simpler if of_half is chosen]
        goals.at_most(f"{half} half: log loss of the richest less the simplest map", -np.mean(gained), 0.0)
    goals.report()
    write_tables(arguments.markdown, "python -m benchmarks.probabilities --stored", [losses, others], goals)


def drawn(kept: Kept, name: str, rows: int, count: int) -> list[dict[str, dict[str, float]]]:
    """Return the draws of which all models are measured, by model."""
    draws = ({title: kept.results.get((name, rows, draw, title)) for title in models()} for draw in range(count))
    return [draw for draw in draws if all(found is not None for found in draw.values())]


def averages(results: list[dict[str, float]]) -> dict[str, float]:
    """Return means over the draws, and the standard error of the log loss."""
    losses = np.array([result["log loss"] for result in results])
    means = {what: float(np.mean([result[what] for result in results])) for what in results[0]}
    return means | {"error of it": float(losses.std(ddof=1) / np.sqrt(len(losses)))}


def standard_errors(draws: list[dict[str, dict[str, float]]], title: str, other: str) -> float:
    """Return how much higher the log loss of a model is than another's, in standard errors of the difference."""
    difference = np.array([draw[title]["log loss"] - draw[other]["log loss"] for draw in draws])
    return float(difference.mean() / (difference.std(ddof=1) / np.sqrt(len(difference))))


if __name__ == "__main__":
    main()
