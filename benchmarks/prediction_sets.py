"""Realised coverage and size of prediction sets over many splits, beside MAPIE's, and time as a ratio.

python -m benchmarks.prediction_sets [--quick] [--rows 300] [--splits 200] [--data NAME ...]

Machines: Weston & Watkins with an rbf kernel and C = 4; ours by the jackknife from one fit and by five folds
(CV+), MAPIE's cross-conformal classifier with five folds around our probabilities; least ambiguous sets.
"""

import argparse
import time
import warnings

import numpy as np

from benchmarks.common import Goals, Table, real_data
from polymargin import MulticategorySVC, PredictionSetClassifier, ProbabilityClassifier

DATA_SETS = ("waveform", "vehicle", "satimage", "segment")
LEVELS = (0.8, 0.9, 0.95)
TEST_ROWS = 1000


def machine() -> MulticategorySVC:
    """Return the classifier that all sets are made for."""
    return MulticategorySVC(C=4.0, loss="weston")


def sets_of(kind: str, level: float, X: np.ndarray, y: np.ndarray, fresh: np.ndarray) -> np.ndarray:
    """Return the sets (n, k) of fresh rows."""
    if kind == "mapie":
        from mapie.classification import CrossConformalClassifier

        model = CrossConformalClassifier(ProbabilityClassifier(machine()), confidence_level=level, cv=5)
        return model.fit_conformalize(X, y).predict_set(fresh)[1][:, :, 0]
    options = {"jackknife": {}, "by class": {"coverage_of": "class"}, "folds": {"cv": 5}}[kind]
    return PredictionSetClassifier(machine(), coverage=level, **options).fit(X, y).predict_set(fresh)


def main() -> None:
    """Print coverage, its standard error over the splits, set sizes and times relative to the jackknife."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two data sets, three splits")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--data", nargs="*", default=list(DATA_SETS))
    parser.add_argument("--kinds", nargs="*", default=["jackknife", "by class", "folds", "mapie"])
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.splits, arguments.data = 3, ["vehicle", "waveform"]
    warnings.simplefilter("ignore")
    goals = Goals()
    table = Table(("data", "level", "sets", "coverage", "error of it", "worst class", "size", "time"), width=12)
    for name in arguments.data:
        data = real_data(name)
        if data is None:
            print(f"{name}.npz is absent")
            continue
        X, labels = data[0], np.unique(data[1], return_inverse=True)[1]
        for level in LEVELS:
            first = None
            for kind in arguments.kinds:
                held, by_class, sizes, spent = [], [], [], 0.0
                for split in range(arguments.splits):
                    order = np.random.default_rng(split).permutation(len(labels))
                    train, test = np.split(order[: arguments.rows + TEST_ROWS], [arguments.rows])
                    started = time.process_time()
                    sets = sets_of(kind, level, X[train], labels[train], X[test])
                    spent += time.process_time() - started
                    within = sets[np.arange(len(test)), labels[test]]
                    held.append(within.mean())
                    by_class.append([within[labels[test] == j].mean() for j in np.unique(labels)])
                    sizes.append(sets.sum(axis=1).mean())
                first = first or spent
                mean, error = np.mean(held), np.std(held, ddof=1) / np.sqrt(len(held))
                classes = np.array(by_class)
                worst = int(np.nanmean(classes, axis=0).argmin())
                table.add(
                    data=name,
                    level=level,
                    sets=kind,
                    coverage=float(mean),
                    size=float(np.mean(sizes)),
                    time=spent / first,
                    **{"error of it": float(error), "worst class": float(np.nanmean(classes[:, worst]))},
                )
                if kind == "by class":
                    mean = np.nanmean(classes[:, worst])
                    error = np.nanstd(classes[:, worst], ddof=1) / np.sqrt(len(held))
                if kind != "mapie":
                    short = float((level - mean) / max(error, 1e-12))
                    goals.at_most(f"{name}, {level}, {kind}: standard errors below the level", short, 2.0)
    goals.report()


if __name__ == "__main__":
    main()
