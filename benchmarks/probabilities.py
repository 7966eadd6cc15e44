"""Probabilities from one fit beside refits on folds: log loss, Brier score, calibration by class, and time.

python -m benchmarks.probabilities [--quick] [--rows 300 1000] [--draws 10] [--data NAME ...] [--keep FILE]

All SVMs have an rbf kernel, gamma="scale" and C = 4. Results are appended to FILE, one line of JSON for every data
set, number of rows and draw, and what FILE has already is not measured again. The constants of the maps were
chosen on waveform, satimage, letter, usps and covtype; the other data sets had no say.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from benchmarks.common import Table, real_data
from polymargin import MulticategorySVC, ProbabilityClassifier

DATA_SETS = (
    "waveform", "vehicle", "satimage", "segment", "pendigits", "letter", "usps", "vowel", "glass", "wine",
)  # fmt: skip
TEST_ROWS = 2000
BINS = 10


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
    return results


def main() -> None:
    """Measure what is missing, and print means over the draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three data sets, 300 rows, two draws")
    parser.add_argument("--rows", type=int, nargs="*", default=[300, 1000])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--data", nargs="*", default=list(DATA_SETS))
    parser.add_argument("--keep", type=Path, default=Path("probabilities.jsonl"))
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rows, arguments.draws, arguments.data = [300], 2, ["vehicle", "segment", "waveform"]
    warnings.simplefilter("ignore")
    kept = {}
    if arguments.keep.exists():
        for line in arguments.keep.read_text().splitlines():
            entry = json.loads(line)
            kept[tuple(entry["key"])] = entry["results"]
    reached = total = 0
    table = Table(("data", "rows", "model", "log loss", "error of it", "brier", "by class", "over fit"), width=19)
    for name in arguments.data:
        for rows in arguments.rows:
            draws = []
            for draw in range(arguments.draws):
                key = (name, rows, draw)
                if key not in kept:
                    kept[key] = measure(*key)
                    with arguments.keep.open("a") as file:
                        file.write(json.dumps({"key": key, "results": kept[key]}) + "\n")
                if kept[key] is not None:
                    draws.append(kept[key])
            if len(draws) < 2:
                print(f"{name}, {rows} rows: absent, or too few rows of a class")
                continue
            losses = {title: np.array([draw[title]["log loss"] for draw in draws]) for title in draws[0]}
            for title, loss in losses.items():
                means = {what: float(np.mean([draw[title][what] for draw in draws])) for what in draws[0][title]}
                error = float(loss.std(ddof=1) / np.sqrt(len(loss)))
                table.add(data=name, rows=rows, model=title, **{"error of it": error}, **means)
            rivals = [title for title in losses if title.endswith((", SVC", ", weston")) and "auto" not in title]
            best = min(rivals, key=lambda title: losses[title].mean())
            ours = min((title for title in losses if "auto" in title), key=lambda title: losses[title].mean())
            difference = losses["auto, weston"] - losses[best]
            reached += difference.mean() <= difference.std(ddof=1) / np.sqrt(len(difference))
            total += 1
            print(f"best rival: {best}; best of ours: {ours}")
    print(f"'auto, weston' is within one standard error of the best SVM-based rival in {reached} of {total}")


if __name__ == "__main__":
    main()
