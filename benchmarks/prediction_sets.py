"""Realised coverage and size of prediction sets over many splits, beside MAPIE's, and time as a ratio.

python -m benchmarks.prediction_sets [--quick] [--rows 300] [--splits 200] [--data NAME ...] [--stored]
    [--markdown FILE]

Machines: Weston & Watkins with an rbf kernel and C = 4. Sets: least ambiguous ones; by the jackknife from one fit
("jackknife", and "by class" for every class by itself), by five folds (CV+, "folds"; "min-max", its min-max form),
and by MAPIE's cross-conformal classifier with five folds around our probabilities ("mapie").

Results are kept in benchmarks/results, so that a run can be stopped and taken up; --stored measures nothing.
"""

import argparse
import itertools
import time
import warnings
from collections.abc import Callable

import numpy as np

from benchmarks.common import Goals, Kept, Table, markdown_option, real_data
from polymargin import MulticategorySVC, PredictionSetClassifier, ProbabilityClassifier

DATA_SETS = ("waveform", "vehicle", "satimage", "segment")
LEVELS = (0.8, 0.9, 0.95)
KINDS = ("jackknife", "by class", "folds", "min-max", "mapie")
ALIKE = "MAPIE's at this coverage"
TEST_ROWS = 500
SETTINGS = {"version": 1, "test rows": TEST_ROWS, "levels": LEVELS, "C": 4.0, "loss": "weston"}


def machine() -> MulticategorySVC:
    """Return the classifier that all sets are made for."""
    return MulticategorySVC(C=SETTINGS["C"], loss=SETTINGS["loss"])


def fitted(kind: str, X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray, float], np.ndarray]:
    """Fit once for all levels; return what gives the sets (n, k) of fresh rows at a level."""
    if kind == "mapie":
        from mapie.classification import CrossConformalClassifier

        model = CrossConformalClassifier(ProbabilityClassifier(machine()), confidence_level=list(LEVELS), cv=5)
        model.fit_conformalize(X, y)
        kept: dict[int, np.ndarray] = {}

        def sets(fresh: np.ndarray, level: float) -> np.ndarray:
            if id(fresh) not in kept:
                kept[id(fresh)] = model.predict_set(fresh)[1]
            return kept[id(fresh)][:, :, LEVELS.index(level)]

        return sets
    options = {
        "jackknife": {},
        "by class": {"coverage_of": "class"},
        "folds": {"cv": 5},
        "min-max": {"cv": 5, "form": "minmax"},
    }[kind]
    ours = PredictionSetClassifier(machine(), **options).fit(X, y)
    return lambda fresh, level: ours.predict_set(fresh, coverage=level)


def measure(name: str, kind: str, rows: int, split: int) -> dict | None:
    """Return, for every level, coverage, that of every class and set size on one split, and the CPU time."""
    data = real_data(name)
    if data is None:
        return None
    X, labels = data[0], np.unique(data[1], return_inverse=True)[1]
    order = np.random.default_rng(split).permutation(len(labels))
    train, test = np.split(order[: rows + TEST_ROWS], [rows])
    started = time.process_time()
    sets_at, fresh = fitted(kind, X[train], labels[train]), X[test]
    sets = {level: sets_at(fresh, level) for level in LEVELS}
    seconds = time.process_time() - started
    result: dict = {"seconds": seconds}
    for level, members in sets.items():
        within = members[np.arange(len(test)), labels[test]]
        counts = np.bincount(labels[test], minlength=labels.max() + 1)
        held = np.bincount(labels[test], within, labels.max() + 1)
        result[str(level)] = {
            "coverage": float(within.mean()),
            "classes": [float(h / c) if c else None for h, c in zip(held, counts, strict=True)],
            "size": float(members.sum(axis=1).mean()),
        }
    return result


def summary(results: list[dict], level: float) -> dict[str, float]:
    """Return means and standard errors over the splits at one level; of the classes, those of the worst one."""
    at = [result[str(level)] for result in results]
    covered = np.array([entry["coverage"] for entry in at])
    classes = np.array([entry["classes"] for entry in at], dtype=np.float64)
    worst = int(np.nanmean(classes, axis=0).argmin())
    root = np.sqrt(len(at))
    return {
        "coverage": float(covered.mean()),
        "error of it": float(covered.std(ddof=1) / root),
        "worst class": float(np.nanmean(classes[:, worst])),
        "error of that": float(np.nanstd(classes[:, worst], ddof=1) / root),
        "size": float(np.mean([entry["size"] for entry in at])),
    }


def main() -> None:
    """Print coverage, its standard error over the splits, set sizes and times relative to the jackknife."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two data sets, three splits")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--data", nargs="*", default=list(DATA_SETS))
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--stored", action="store_true", help="measure nothing")
    markdown_option(parser)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.splits, arguments.data = 3, ["vehicle", "waveform"]
    warnings.simplefilter("ignore")
    kept = Kept("prediction_sets", SETTINGS, only_stored=arguments.stored)
    # split by split, so that a run that is stopped has as many of every kind
    for split in range(arguments.splits):
        for name in arguments.data:
            for kind in arguments.kinds:
                case = (name, kind, arguments.rows, split)
                kept.of(case, lambda case=case: measure(*case))
    show(kept, arguments)


def show(kept: Kept, arguments: argparse.Namespace) -> None:
    """Print coverage, sizes and times of all splits of which every kind is measured."""
    goals = Goals()
    columns = ("data", "level", "sets", "splits", "coverage", "error of it", "worst class", "size", ALIKE, "time")
    table = Table(columns, width=12)
    for name in arguments.data:
        results = measured(kept, name, arguments)
        if len(next(iter(results.values()))) < 2:
            print(f"{name}: not measured")
            continue
        seconds = {kind: np.mean([result["seconds"] for result in found]) for kind, found in results.items()}
        about = {(kind, level): summary(results[kind], level) for kind in results for level in LEVELS}
        for level, kind in itertools.product(LEVELS, results):
            found = about[kind, level]
            table.add(
                data=name,
                level=level,
                sets=kind,
                splits=len(results[kind]),
                **{column: found[column] for column in columns[4:8]},
                **{ALIKE: size_at(found["coverage"], [about["mapie", at] for at in LEVELS])}
                if "mapie" in results
                else {},
                time=float(seconds[kind] / seconds[arguments.kinds[0]]),
            )
            which = ("worst class", "error of that") if kind == "by class" else ("coverage", "error of it")
            if kind != "mapie":
                short = (level - found[which[0]]) / max(found[which[1]], 1e-12)
                goals.at_most(f"{name}, {level}, {kind}: standard errors below the level", short, 2.0)
    goals.report()
    table.write(arguments.markdown, "python -m benchmarks.prediction_sets --stored", goals)


def measured(kept: Kept, name: str, arguments: argparse.Namespace) -> dict[str, list[dict]]:
    """Return the results of every kind, of the splits that all kinds have."""
    splits = (
        [kept.results.get((name, kind, arguments.rows, split)) for kind in arguments.kinds]
        for split in range(arguments.splits)
    )
    whole = [split for split in splits if all(result is not None for result in split)]
    return {kind: [split[at] for split in whole] for at, kind in enumerate(arguments.kinds)}


def size_at(coverage: float, levels: list[dict[str, float]]) -> float:
    """Return the size of sets that cover so much, between the levels on a line; nothing is known beyond them."""
    covered, sizes = ([found[what] for found in levels] for what in ("coverage", "size"))
    return float(np.interp(coverage, covered, sizes, left=np.nan, right=np.nan))


if __name__ == "__main__":
    main()
