"""Measure what operations take on one core: python -m benchmarks.calibrate [--write].

Prints the operations per second of every kind that solvers count, beside the rates that the policy uses now, and
with --write stores them in the package (`polymargin/solvers/effort.json`). CPU time, one thread, median of runs.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

from benchmarks.common import mixture
from polymargin.files import write_atomically
from polymargin.gram import FeatureGram
from polymargin.problems.hinge import HingeProblem, lee_lin_wahba
from polymargin.solvers import effort
from polymargin.solvers.contract import Settings
from polymargin.solvers.effort import RATES, Kind, Rates
from polymargin.solvers.hinge.block_descent import BlockDescent

REPEATS = 7
SECONDS = 0.1
"""CPU time of one measurement, at least."""


def per_second(run: Callable[[], float]) -> float:
    """Return the operations per second of a function that returns how many it did."""
    run()
    rates = []
    for _ in range(REPEATS):
        began, done = time.process_time(), 0.0
        while time.process_time() - began < SECONDS:
            done += run()
        rates.append(done / (time.process_time() - began))
    return median(rates)


def sweep() -> Callable[[], float]:
    """Return sweeps of block descent over rows so short that its steps are most of the work."""
    return descent(n_features=5)["sweep"]


def stream() -> Callable[[], float]:
    """Return the same over rows so long that products with them are."""
    return descent(n_features=600)["stream"]


def descent(n_features: int, n_classes: int = 10) -> dict[Kind, Callable[[], float]]:
    """Return sweeps of block descent that return their operations of a kind, as if others took no time."""
    X, y = mixture(2000, n_features, n_classes, separation=2.0 / np.sqrt(n_features))
    problem = HingeProblem(FeatureGram(X), lee_lin_wahba(y, (1.0 - np.eye(n_classes))[y]))

    def run(kind: Kind) -> float:
        (row,) = BlockDescent().solve(problem, Settings(tol=1e-15, max_iter=20)).trace
        return row.work * getattr(RATES, kind)

    return {kind: partial(run, kind) for kind in ("sweep", "stream")}


def product() -> Callable[[], float]:
    """Return products of features with themselves, as interior points form them."""
    X = np.random.default_rng(0).normal(size=(3000, 200))

    def run() -> float:
        np.dot(X.T, X)
        return float(X.size) * X.shape[1]

    return run


def factor() -> Callable[[], float]:
    """Return Cholesky factorisations."""
    X = np.random.default_rng(0).normal(size=(600, 600))
    matrix = X @ X.T + 600.0 * np.eye(600)

    def run() -> float:
        scipy.linalg.cholesky(matrix, lower=True, check_finite=False)
        return len(matrix) ** 3 / 3.0

    return run


def entry() -> Callable[[], float]:
    """Return expressions over tables of examples and classes."""
    table = np.random.default_rng(0).normal(size=(20_000, 10))

    def run() -> float:
        np.where(table > 0.0, table, 0.0).sum(axis=1)
        return float(table.size)

    return run


def call() -> Callable[[], float]:
    """Return expressions over a table so small that calls are all that they cost."""
    table = np.random.default_rng(0).normal(size=(5, 3))

    def run() -> float:
        for _ in range(100):
            np.where(table > 0.0, table, 0.0).sum(axis=1)
        return 300.0

    return run


def main() -> None:
    """Measure, print and, where asked to, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="store the rates in the package")
    write = parser.parse_args().write
    with threadpool_limits(1):
        measured = Rates(*(per_second(make()) for make in (sweep, stream, product, factor, entry, call)))
    print(f"{'kind':<10}{'measured':>12}{'stored':>12}{'ratio':>8}")
    for kind, rate in asdict(measured).items():
        stored = getattr(RATES, kind)
        print(f"{kind:<10}{rate:>12.2e}{stored:>12.2e}{rate / stored:>8.2f}")
    if write:
        rounded = {kind: float(f"{rate:.2g}") for kind, rate in asdict(measured).items()}
        path = Path(effort.__file__).with_name("effort.json")
        write_atomically(path, (json.dumps(rounded, indent=2) + "\n").encode())
        print(f"written to {path.name}")


if __name__ == "__main__":
    main()
