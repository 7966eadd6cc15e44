"""Probabilities from one fit beside refits on folds: log loss, Brier score, calibration by class, and time.

python -m benchmarks.probabilities [--quick] [--rows 300 1000] [--draws 10] [--data NAME ...] [--stored]

All SVMs have an rbf kernel, gamma="scale" and C = 4. The constants of the maps were chosen on waveform, satimage,
letter, usps and covtype; the other data sets had no say. Results are kept in benchmarks/results, so that a run can
be stopped and taken up; --stored measures nothing. --refits: beside frozen left-out scores those of n exact refits
on three small data sets.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneOut
from sklearn.svm import SVC

from benchmarks.common import Goals, Kept, Table, in_markdown, real_data
from polymargin import MulticategorySVC, ProbabilityClassifier

DATA_SETS = (
    "waveform", "vehicle", "satimage", "segment", "pendigits", "letter", "usps", "vowel", "glass", "wine",
)  # fmt: skip
TEST_ROWS = 2000
BINS = 10
SETTINGS = {"version": 1, "test rows": TEST_ROWS, "bins": BINS, "C": 4.0, "boosting": 50}
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


def measure(name: str, rows: int, draw: int) -> dict[str, dict[str, float]] | None:
    """Return the measures of every model on one draw; None where the data is absent or a class is too small."""
    data = real_data(name)
    if data is None:
        return None
    X, labels = data[0], np.unique(data[1], return_inverse=True)[1]
    order = np.random.default_rng(draw).permutation(len(labels))
    cut = min(rows, 2 * len(labels) // 3)
    train, test = order[:cut], order[cut : cut + TEST_ROWS]
    if np.bincount(labels[train], minlength=labels.max() + 1).min() < 5:
        return None
    results = {}
    for title, model in models().items():
        started = time.process_time()
        model.fit(X[train], labels[train])
        seconds = time.process_time() - started
        results[title] = measures(model.predict_proba(X[test]), labels[test]) | {"seconds": seconds}
        if title.startswith("auto"):
            started = time.process_time()
            model.estimator.fit(X[train], labels[train])
            results[title]["over fit"] = seconds / (time.process_time() - started)
            results[title] |= agreement(model, X[test])
    return results


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


def show_refits(kept: Kept) -> None:
    """Print the differences from exact refits."""
    goals = Goals()
    for name, rows in SMALL:
        found = kept.of(("refits", name, rows), lambda name=name, rows=rows: against_refits(name, rows))
        for what, value in (found or {}).items():
            print(f"{name}, {rows} rows, {what} difference from n refits: {value:.4f}")
            if what.endswith("mean"):
                goals.at_most(f"{name}, {what} difference", value, 0.01)
    goals.report()


def main() -> None:
    """Measure what is missing, and print means over the draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three data sets, 300 rows, two draws")
    parser.add_argument("--rows", type=int, nargs="*", default=[300, 1000])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--data", nargs="*", default=list(DATA_SETS))
    parser.add_argument("--refits", action="store_true", help="frozen left-out scores beside n exact refits")
    parser.add_argument("--stored", action="store_true", help="measure nothing")
    parser.add_argument("--markdown", action="store_true", help="print the table of the documentation")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rows, arguments.draws, arguments.data = [300], 2, ["vehicle", "segment", "waveform"]
    warnings.simplefilter("ignore")
    kept = Kept("probabilities", SETTINGS, only_stored=arguments.stored)
    if arguments.refits:
        show_refits(kept)
        return
    # draw by draw, so that a run that is stopped has as many of every data set
    for draw in range(arguments.draws):
        for rows in arguments.rows:
            for name in arguments.data:
                kept.of((name, rows, draw), lambda name=name, rows=rows, draw=draw: measure(name, rows, draw))
    show(kept, arguments)


def show(kept: Kept, arguments: argparse.Namespace) -> None:
    """Print means over the draws, and what was aimed for."""
    columns = ("data", "rows", "model", "draws", "log loss", "error of it", "brier", "by class", "over fit")
    table = Table(columns, width=19)
    lines = []
    goals = Goals()
    for name in arguments.data:
        for rows in arguments.rows:
            found = (kept.results.get((name, rows, draw)) for draw in range(arguments.draws))
            draws = [draw for draw in found if draw is not None]
            if len(draws) < 2:
                print(f"{name}, {rows} rows: absent, not measured, or too few rows of a class")
                continue
            losses = {title: np.array([draw[title]["log loss"] for draw in draws]) for title in draws[0]}
            for title, loss in losses.items():
                means = {what: float(np.mean([draw[title][what] for draw in draws])) for what in draws[0][title]}
                error = float(loss.std(ddof=1) / np.sqrt(len(loss)))
                table.add(data=name, rows=rows, model=title, draws=len(draws), **{"error of it": error}, **means)
            rivals = [title for title in losses if title.endswith((", SVC", ", weston")) and "auto" not in title]
            best = min(rivals, key=lambda title: losses[title].mean())
            difference = losses["auto, weston"] - losses[best]
            behind = float(difference.mean() / (difference.std(ddof=1) / np.sqrt(len(difference))))
            lines.append(
                {"data": f"{name}, {rows}", "draws": len(draws)}
                | {title: float(losses[title].mean()) for title in ("auto, lee", "auto, weston")}
                | {"best rival": best, "its log loss": float(losses[best].mean()), "behind": behind}
                | {title: float(losses[title].mean()) for title in ("logistic", "boosting")}
            )
            for title in ("auto, lee", "auto, weston"):
                agrees = min(min(draw[title]["argmax"], draw[title]["least cost"]) for draw in draws)
                goals.at_most(f"{name}, {rows}: share of rows where predict is not {title}", 1.0 - agrees, 0.0)
                if rows >= 500:
                    ratio = float(np.median([draw[title]["over fit"] for draw in draws]))
                    goals.at_most(f"{name}, {rows}: CPU time of {title} over that of the fit", ratio, 1.3)
    goals.report()
    within = sum(line["behind"] <= 1.0 for line in lines)
    print(f"'auto, weston' is within one standard error of the best SVM-based rival in {within} of {len(lines)}")
    if arguments.markdown:
        print(in_markdown(lines, tuple(lines[0])))


if __name__ == "__main__":
    main()
