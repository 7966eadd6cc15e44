"""Seconds of shared structure beside ridge, one-vs-one and the trace norm, and of a whole grid of penalties."""

import argparse

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import ShuffleSplit, train_test_split

from benchmarks.common import Goals, Table, real_data, seconds_of
from polymargin import SharedStructureSearch, SharedStructureSVC, TraceNormSVC

C, PENALTY = 0.01, 1.0
ONE_SPLIT = ShuffleSplit(1, test_size=0.1, random_state=0)


def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def machines():
    """Machines by name, for fits at given parameters."""
    return {
        "ridge": RidgeClassifier(alpha=1 / C, solver="cholesky"),
        "fast": SharedStructureSVC(C, PENALTY, formulation="fast"),
        "original": SharedStructureSVC(C, PENALTY, max_iter=5),
        "to its tolerance": SharedStructureSVC(C, PENALTY),
        "symmetric": SharedStructureSVC(C, PENALTY, constraint="symmetric", max_iter=5),
        "trace norm": TraceNormSVC(C, PENALTY),
        "one-vs-one": SharedStructureSVC(C, PENALTY, scheme="ovo", fixed_relations=None, max_iter=5),
        "reduced": SharedStructureSVC(C, PENALTY, scheme="ovo", n_base=10, max_iter=5),
        "11 x 11 grid": SharedStructureSearch(cv=ONE_SPLIT),
    }


def measure(name, X, y, table, goals):
    """Time every machine on one data set."""
    k = len(np.unique(y))
    n_pairs = k * (k - 1) // 2
    seconds = {}
    for label, machine in machines().items():
        if label == "one-vs-one":
            machine.set_params(fixed_relations=np.eye(n_pairs))
        if label == "reduced":
            machine.set_params(n_base=min(10, n_pairs))
        seconds[label], fitted = seconds_of(lambda machine=machine: machine.fit(X, y), repeats=40, at_most=3.0)
        gap = getattr(getattr(fitted, "certificate_", None), "gap", float("nan"))
        table.add(
            data=name,
            machine=label,
            ms=1e3 * seconds[label],
            to_ridge=seconds[label] / seconds["ridge"],
            kind=fitted.certificate_.kind if hasattr(fitted, "certificate_") else "",
            gap=float(gap),
            train=float(fitted.score(X, y)),
        )
    goals.at_most(f"{name}: original / fast", seconds["original"] / seconds["fast"], 1.2)
    goals.at_most(f"{name}: original / one-vs-rest ridge", seconds["original"] / seconds["ridge"], 3.0)
    goals.at_most(f"{name}: 11 x 11 grid / one fit", seconds["11 x 11 grid"] / seconds["original"], 20.0)


def compare_reduced(name, X, y, table, n_train=800, n_trials=3):
    """Test accuracy and number of coefficients of one-vs-one with all base classifiers and with few."""
    k = len(np.unique(y))
    n_pairs = k * (k - 1) // 2
    rivals = {
        "one-vs-rest": SharedStructureSVC(class_weight="balanced", fixed_relations=np.eye(k)),
        f"{n_pairs} pairs": SharedStructureSVC(scheme="ovo", fixed_relations=np.eye(n_pairs)),
        "b = 10": SharedStructureSVC(scheme="ovo", n_base=10, max_iter=5),
        "b = 5": SharedStructureSVC(scheme="ovo", n_base=5, max_iter=5),
    }
    for label, machine in rivals.items():
        best = (0.0, 0.0)
        for C in (1e-3, 1e-2, 1e-1, 1.0):
            scores = []
            for seed in range(n_trials):
                train, test = train_test_split(np.arange(len(y)), train_size=n_train, random_state=seed)
                fitted = clone(machine).set_params(C=C, relation_penalty=PENALTY).fit(X[train], y[train])
                scores.append(fitted.score(X[test], y[test]))
            best = max(best, (float(np.mean(scores)), C))
        free = 0 if fitted.fixed_relations is not None else fitted.relation_.size
        coefficients = fitted.base_coef_.size + fitted.base_intercept_.size + free
        table.add(data=name, machine=label, test=best[0], best_C=best[1], numbers=coefficients)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="digits and vehicle alone")
    quick = parser.parse_args().quick
    names = ["vehicle"] if quick else ["vehicle", "letter", "usps"]
    table = Table(("data", "machine", "ms", "to_ridge", "kind", "gap", "train"), width=13)
    goals = Goals()
    measure("digits", *digits(), table, goals)
    for name in names:
        loaded = real_data(name)
        if loaded is None:
            print(f"{name}: no data, skipped")
            continue
        measure(name, *loaded, table, goals)
    goals.report()
    print("\nOne-vs-one, 800 training rows, the best of four values of C on the test rows for every machine")
    table = Table(("data", "machine", "test", "best_C", "numbers"), width=13)
    compare_reduced("digits", *digits(), table)
    usps = None if quick else real_data("usps")
    if usps is not None:
        compare_reduced("usps", *usps, table)


if __name__ == "__main__":
    main()
