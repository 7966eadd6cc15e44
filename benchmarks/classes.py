"""Machines of many classes: python -m benchmarks.classes [--quick].

100 classes of two rows each, overlapping and apart in 5, 20 and 100 variables, and along a curve where neighbours
overlap; 50 classes of 20 rows; 300 classes of two rows. Every loss, linear and RBF kernel, C = 1 and 100,
tolerance 1e-4, CPU seconds of one fit after a small one. Goals: 100 classes under one second, 1,000 rows under 10,
300 classes under 60, all solved. With `--memory`, 300 classes are fitted again for the traced peak of memory, and
100 to 600 classes of two rows show how it grows: with the pairs of a row and a class, a dual variable each.
"""

import argparse
import time
import tracemalloc
import warnings

import numpy as np
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.common import Goals, Table, machine, markdown_option, mixture, revision, write_tables
from polymargin import MulticategorySVC, RobustSVC

LOSSES, KERNELS, CS = ("lee", "weston", "crammer"), ("linear", "rbf"), (1.0, 100.0)
HUNDRED, ROWS, THREE_HUNDRED = "100 classes", "1,000 rows, 50 classes", "300 classes"
GOALS = {HUNDRED: 1.0, ROWS: 10.0, THREE_HUNDRED: 60.0}
GROWING = (100, 200, 300, 600)
STEEPEST = 1.1
GROWTH_LIMIT = 8.0
COLUMNS = ("data", "machine", "kernel", "C", "seconds", "gap", "counted", "methods", "megabytes")


def even(n: int, p: int, k: int, separation: float) -> tuple[np.ndarray, np.ndarray]:
    """Return a mixture with as many rows in every class."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    centres = rng.normal(size=(k, p)) * separation / np.sqrt(2)
    return centres[y] + rng.normal(size=(n, p)), y


def curve(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return classes along a closed curve in five variables, of which neighbours overlap."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    t = 2 * np.pi * (y + 0.5 * rng.normal(size=n)) / k
    X = np.column_stack([np.sin(t), np.cos(t), t, np.sin(3 * t), np.cos(3 * t)])
    return X + 0.01 * rng.normal(size=X.shape), y


def data_sets(quick: bool) -> dict[str, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """Return the data by group and name."""
    hundred = {f"overlapping {p}": even(200, p, 100, 1.0) for p in (5, 20, 100)}
    hundred |= {f"apart {p}": even(200, p, 100, 4.0) for p in (5, 20, 100)}
    found = {HUNDRED: hundred | {"curve": curve(200, 100)}}
    if not quick:
        found[ROWS] = {"mixture 5": even(1000, 5, 50, 2.0), "mixture 20": even(1000, 20, 50, 1.0)}
        found[THREE_HUNDRED] = {"mixture 3": even(600, 3, 300, 2.0)}
    scale = StandardScaler().fit_transform
    return {group: {name: (scale(X), y) for name, (X, y) in sets.items()} for group, sets in found.items()}


def machines(group: str) -> list[tuple[str, str, float, object]]:
    """Return name, kernel, C and estimator of what a group of data is given to."""
    kernels = KERNELS if group != ROWS else ("rbf",)
    found = [
        (loss, kernel, C, MulticategorySVC(loss=loss, kernel=kernel, C=C))
        for loss in LOSSES
        for kernel in kernels
        for C in CS
    ]
    return [*found, ("robust", "linear", 1.0, RobustSVC())] if group == THREE_HUNDRED else found


def peak_of(model: object, X: np.ndarray, y: np.ndarray) -> float:
    """Return the traced peak of memory of a fit, in megabytes."""
    tracemalloc.start()
    try:
        model.fit(X, y)
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def growth(goals: Goals) -> Table:
    """Fit ever more classes of two rows, and return the peaks of memory with their slopes over the pairs.

    A fit of many seconds ends early: what it has not met by then it meets at fewer classes.
    """
    sizes = {k: f"{k} classes" for k in GROWING}
    table = Table(("machine", "kernel", "C", *sizes.values(), "slope"), width=12)
    scale = StandardScaler().fit_transform
    pairs = np.log([2.0 * k * k for k in GROWING])
    for name, kernel, C, model in machines(THREE_HUNDRED):
        model.set_params(time_limit=GROWTH_LIMIT)
        peaks = {}
        for k, column in sizes.items():
            X, y = even(2 * k, 3, k, 2.0)
            peaks[column] = peak_of(model, scale(X), y)
        slope = float(np.polyfit(pairs, np.log(list(peaks.values())), 1)[0])
        table.add(machine=name, kernel=kernel, C=C, **peaks, slope=slope)
    steepest = max(row["slope"] for row in table.rows)
    goals.at_most("steepest growth of memory with the pairs of rows and classes", steepest, STEEPEST)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100 classes alone, a quarter of a minute")
    parser.add_argument("--memory", action="store_true", help="fit 300 classes again for the peak of memory")
    markdown_option(parser)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    MulticategorySVC().fit(*mixture(30, 2, 3, separation=1.0))
    goals, table = Goals(), Table(COLUMNS, width=12)
    with threadpool_limits(1):
        for group, sets in data_sets(options.quick).items():
            longest, widest = 0.0, 0.0
            for name, (X, y) in sets.items():
                for machine_name, kernel, C, model in machines(group):
                    began = time.process_time()
                    model.fit(X, y)
                    seconds = time.process_time() - began
                    trace, gap = model.trace_, model.certificate_.gap
                    longest, widest = max(longest, seconds), max(widest, gap)
                    row = {"data": f"{group}, {name}", "machine": machine_name, "kernel": kernel, "C": C}
                    row |= {"seconds": seconds, "gap": gap, "counted": sum(step.work or 0.0 for step in trace)}
                    row |= {"methods": ", ".join(dict.fromkeys(step.method for step in trace))}
                    if options.memory and group == THREE_HUNDRED:
                        row["megabytes"] = peak_of(model, X, y)
                    table.add(**row)
            goals.at_most(f"{group}: CPU seconds of the longest fit", longest, GOALS[group])
            goals.at_most(f"{group}: widest relative gap", widest, 1e-4)
        tables = [table, growth(goals)] if options.memory else [table]
    print()
    goals.report()
    write_tables(options.markdown, "python -m benchmarks.classes", tables, goals)
    if options.markdown is not None:
        with options.markdown.open("a", encoding="utf-8") as file:
            file.write(f"\n*Measured at {revision()}; {machine()}.*\n")


if __name__ == "__main__":
    main()
