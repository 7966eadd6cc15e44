"""First fits with one and with default threads, quiet and busy: python -m benchmarks.threads [--quick].

Every fit runs with OMP_NUM_THREADS=1 and with default threads, alone and beside two busy processes of the
benchmark's own, in some processes of either kind in turn. Wall time, the mean over the runs of a process, as a fit
shorter than a slice of the scheduler is interrupted or not, and the median over the processes. Goal: default
threads take at most 1.2 times as long as the better of the two, quiet and busy. Threads that spin show in the CPU
time as well, which what else runs on the machine changes less.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import fmean, median

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.preprocessing import StandardScaler

from benchmarks.common import Goals, Table, machine, markdown_option, mixture, real_data, revision, write_tables
from polymargin import MarginSearch, MulticategorySVC, ProximalSVC, RobustSVC, SharedStructureSVC, SparseSVC

GOAL = 1.2
SECONDS = 1.0
"""Of all runs of a fit together, at least: one of a few milliseconds tells of the scheduler alone."""
THREADS = {"one": {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}, "default": {}}


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return six data sets of at most 1000 rows; mixtures stand in for those that are not there."""
    found = {}
    for name, load in (("digits", load_digits), ("wine", load_wine), ("breast cancer", load_breast_cancer)):
        X, y = load(return_X_y=True)
        found[name] = StandardScaler().fit_transform(X)[:1000], y[:1000]
    for k, name in ((7, "segment"), (10, "pendigits"), (26, "letter")):
        loaded = real_data(name) or mixture(1000, 16, k, separation=1.0)
        rows = np.random.default_rng(0).permutation(len(loaded[1]))[:1000]
        found[name] = loaded[0][rows], loaded[1][rows]
    return found


def fits(quick: bool) -> dict[str, Callable[[], object]]:
    """Return the fits by name: all data sets with defaults, other estimators and a search, and large ones."""
    data = data_sets()
    first = [name for name, (_, y) in data.items() if not quick or len(y) < 600]
    found = {name: lambda name=name: MulticategorySVC().fit(*data[name]) for name in first}
    X, y = data["wine"] if quick else data["segment"]
    found["proximal, kernel"] = lambda: ProximalSVC(kernel="rbf").fit(X, y)
    found["shared structure"] = lambda: SharedStructureSVC().fit(X, y)
    found["search"] = lambda: MarginSearch(Cs=(1.0, 8.0), gammas=(0.02, 0.1)).fit(X[:300], y[:300])
    if not quick:
        found |= {name: lambda fit=fit: fit[0].fit(*fit[1]) for name, fit in large_fits().items()}
    wine = data["wine"]
    found["sparse"] = lambda: SparseSVC().fit(*wine)
    found["robust"] = lambda: RobustSVC().fit(*wine)
    found["weston, linear"] = lambda: MulticategorySVC(loss="weston", kernel="linear").fit(X, y)
    return found


def large_fits() -> dict[str, tuple[object, tuple[np.ndarray, np.ndarray]]]:
    """Return machines and rows whose products are large enough for more threads; mixtures where data lack."""

    def rows_of(name: str, n: int, otherwise: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        X, y = real_data(name) or mixture(n, *otherwise, separation=1.0)
        rows = np.random.default_rng(0).permutation(len(y))[:n]
        return X[rows], y[rows]

    pendigits, covtype = rows_of("pendigits", 4000, (16, 10)), rows_of("covtype", 20000, (54, 7))
    mnist = rows_of("mnist", 4000, (784, 10))
    return {
        "pendigits 4000": (MulticategorySVC(), pendigits),
        "pendigits 4000, C = 100": (MulticategorySVC(C=100.0), pendigits),
        "crammer, mnist 4000": (MulticategorySVC(loss="crammer"), mnist),
        "linear, covtype 20000": (MulticategorySVC(kernel="linear"), covtype),
        "weston, linear, covtype 20000": (MulticategorySVC(loss="weston", kernel="linear"), covtype),
        "linear, mnist 4000": (MulticategorySVC(kernel="linear"), mnist),
        "proximal, mnist 2000": (ProximalSVC(kernel="rbf"), tuple(array[:2000] for array in mnist)),
    }


def measure(quick: bool, repeats: int) -> None:
    """Print the wall and CPU seconds of every fit as JSON; what a process of the benchmark does."""
    warnings.simplefilter("ignore")
    seconds = {}
    for name, fit in fits(quick).items():
        fit()
        runs: list[tuple[float, float]] = []
        while len(runs) < repeats or sum(wall for wall, _ in runs) < SECONDS:
            wall, cpu = time.perf_counter(), time.process_time()
            fit()
            runs.append((time.perf_counter() - wall, time.process_time() - cpu))
        seconds[name] = tuple(fmean(run) for run in zip(*runs, strict=True))
    print(json.dumps(seconds))


def in_turn(turns: int, quick: bool, repeats: int) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the medians of what processes with one and with default threads measure, by threads and fit."""
    measured: dict[str, list] = {threads: [] for threads in THREADS}
    for _ in range(turns):
        for threads, seen in measured.items():
            seen.append(in_a_process(threads, quick, repeats))
    return {
        threads: {name: tuple(map(median, zip(*(run[name] for run in seen), strict=True))) for name in seen[0]}
        for threads, seen in measured.items()
    }


def in_a_process(threads: str, quick: bool, repeats: int) -> dict[str, tuple[float, float]]:
    """Return what a process with so many threads measures."""
    environment = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
    script = f"from benchmarks.threads import measure; measure({quick}, {repeats})"
    run = subprocess.run(
        [sys.executable, "-c", script],
        env=environment | THREADS[threads],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)


def _spin() -> None:
    while True:
        np.exp(np.ones(10_000))


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep so many processes busy."""
    others = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(count)]
    for other in others:
        other.start()
    try:
        yield
    finally:
        for other in others:
            other.terminate()
            other.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few fits, about a minute")
    parser.add_argument("--repeats", type=int, default=3, help="least runs of a fit in a process")
    parser.add_argument("--turns", type=int, default=3, help="processes with one and with default threads")
    markdown_option(parser)
    options = parser.parse_args()
    goals, tables = Goals(), []
    for load, count in (("quiet", 0), ("busy", 2)):
        with busy(count):
            seen = in_turn(options.turns, options.quick, options.repeats)
        print(f"\n{load}: {count} other processes of the benchmark; {os.cpu_count()} cores; wall seconds")
        columns = ("load", "fit", "one", "default", "CPU one", "CPU default", "ratio")
        tables.append(table := Table(columns, width=18))
        for name, (one, cpu_of_one) in seen["one"].items():
            default, cpu = seen["default"][name]
            ratio = default / min(one, default)
            table.add(**dict(zip(columns, (load, name, one, default, cpu_of_one, cpu, ratio), strict=True)))
            goals.at_most(f"{name}, {load}: default threads over the better", ratio, GOAL)
    print()
    goals.report()
    write_tables(options.markdown, "python -m benchmarks.threads", tables, goals)
    if options.markdown is not None:
        with options.markdown.open("a", encoding="utf-8") as file:
            file.write(f"\n*Measured at {revision()}; {machine()}.*\n")


if __name__ == "__main__":
    main()
