"""The portfolio beside every method that it could have chosen: python -m benchmarks.portfolio [--quick].

Hinge machines on real data, linear and RBF, and the stored fits of tests/golden: work predicted and counted of
every method that ran, and seconds of processor time of the portfolio beside those of the best single method.
Data sets are in two halves: thresholds of the policy are chosen on CHOSEN_ON alone, the others (REPORTED_ON) have
the say.
With --markdown FILE the tables are written for the documentation.
"""

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.common import Kept, real_data
from polymargin.estimators.multicategory import hinge_losses
from polymargin.gram import DenseGram, FeatureGram, resolve_kernel
from polymargin.problems.hinge import HingeProblem
from polymargin.solvers.contract import Record, Settings, Solution, Status
from polymargin.solvers.hinge.portfolio import Portfolio
from polymargin.solvers.policy import METHODS, Policy
from tests.golden.cases import hinge_cases

CHOSEN_ON = ("iris", "wine", "vehicle", "vowel", "satimage", "mnist", "letter")
REPORTED_ON = ("glass", "khan_srbct", "leukemia3", "nci60", "segment", "waveform", "pendigits", "usps", "covtype")
LOSSES = ("lee", "weston", "crammer")
TOL = 1e-3
CLOSE = 2.0
"""How many times the best method the portfolio may take."""
NOTHING = 5e-3
"""Seconds that no user notices: times are compared with so much added to both."""


POLICY = Policy(polish_share=0.0, shortest_polish=0.0)
"""No Newton steps beyond the tolerance, which no other method takes."""


class GivenUp(Exception):
    """A method has taken longer than the portfolio, so that it is not the best."""


@dataclass
class Tally:
    """What came out for one group of problems."""

    ratios: list[float] = field(default_factory=list)
    best: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    predictions: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @property
    def share(self) -> float:
        """Part of the problems on which the portfolio took at most `CLOSE` times the best method's time."""
        return float(np.mean(np.array(self.ratios) <= CLOSE))


def problems(name: str, rows: int) -> Iterator[tuple[str, HingeProblem]]:
    """Yield the machines on a data set, of which `rows` are drawn."""
    data = real_data(name)
    if data is None:
        print(f"{name}: skipped, not at hand")
        return
    X, y = data
    X, y = X[:, X.std(axis=0) > 0], np.unique(y, return_inverse=True)[1]
    drawn = np.random.default_rng(0).permutation(len(y))[:rows]
    X, y = X[drawn], np.unique(y[drawn], return_inverse=True)[1]
    k = y.max() + 1
    rbf = DenseGram(resolve_kernel("rbf", "scale", 3, 0.0, X, np.ones(len(X)))(X))
    for kernel, gram in (("linear", FeatureGram(X)), ("rbf", rbf)):
        for loss in LOSSES:
            for C in (0.03, 1.0, 100.0):
                losses = hinge_losses(loss, y, C * (1.0 - np.eye(k))[y])
                yield f"{name} {len(y)} {kernel} {loss} C={C:g}", HingeProblem(gram, losses)


def timed(solver: str, problem: HingeProblem, tol: float, most: float = np.inf) -> tuple[float, Solution]:
    """Return seconds of processor time, the lesser of two runs where they are short, and the solution.

    The limit is of processor time as well, looked at in every iteration: others may be at work on the machine.
    """
    best, solution = np.inf, None
    for _ in range(2):
        began = time.process_time()

        def watch(_record: Record, began: float = began) -> None:
            if time.process_time() - began > most:
                raise GivenUp

        solution = Portfolio(solver, POLICY).solve(problem, Settings(tol), observer=watch)
        best = min(best, time.process_time() - began)
        if best > 1.0:
            break
    return best, solution


def measured(problem: HingeProblem, tol: float) -> dict:
    """Solve a problem by the portfolio and by every method that accepts it, as long as it takes no longer."""
    seconds, solution = timed("auto", problem, tol)
    others = {}
    for method, kind in METHODS.items():
        if kind().accepts(problem) is True and not (method == "general_newton" and _is_large(problem)):
            try:
                taken, found = timed(method, problem, tol, seconds + NOTHING)
            except GivenUp:
                continue
            if found.status is Status.SOLVED:
                others[method] = taken
    trace = [(row.method, row.predicted, row.work) for row in solution.trace]
    return {"seconds": seconds, "status": solution.status.name, "trace": trace, "others": others}


def show(name: str, result: dict, tally: Tally) -> None:
    """Add what was measured on a problem to its group, and print it."""
    for method, predicted, work in result["trace"]:
        if predicted and work:
            tally.predictions[method].append(predicted / work)
    seconds, others = result["seconds"], result["others"]
    best = min(others, key=others.__getitem__, default="auto")
    if others.get(best, np.inf) > seconds:
        best = "auto"
    ratio = (seconds + NOTHING) / (others.get(best, seconds) + NOTHING)
    if result["status"] != "SOLVED":
        ratio = np.inf
    tally.ratios.append(ratio)
    tally.best[best] += 1
    ran = "+".join(method for method, *_ in result["trace"])
    print(f"{name:<38} {seconds:8.3f} s  {ratio:5.2f} x {best:<16} {ran}", flush=True)


def _is_large(problem: HingeProblem) -> bool:
    """Tell whether one step of the general method takes longer than others take at all."""
    gram, k = problem.gram, problem.losses.n_classes
    width = min(gram.n, gram.features.shape[1]) if isinstance(gram, FeatureGram) else gram.n
    return width * (k - 1) > 800


def stored_problems() -> Iterator[tuple[str, HingeProblem, float]]:
    """Yield the problems of the stored fits that have rows and a kernel of their own."""
    for name, case in hinge_cases():
        machine = case.estimator
        if machine.kernel == "precomputed" or machine.landmarks is not None:
            continue
        X, labels, weights = case.data()
        weights = np.ones(len(labels)) if weights is None else weights
        k = labels.max() + 1
        costs = 1.0 - np.eye(k) if machine.cost_matrix is None else machine.cost_matrix
        costs = machine.C * weights[:, None] * costs[labels]
        used = costs.any(axis=1)
        kernel = resolve_kernel(machine.kernel, "scale", 3, 0.0, X, weights)
        rows = X[np.flatnonzero(used)]
        gram = FeatureGram(rows) if machine.kernel == "linear" else DenseGram(np.ascontiguousarray(kernel(rows)))
        losses = hinge_losses(machine.loss, labels[used], costs[used])
        yield name, HingeProblem(gram, losses, machine.fit_intercept), case.tol


def lines_of(tallies: dict[str, Tally]) -> list[str]:
    """Return the tables as Markdown."""
    lines = ["| problems | fits | within 2x of the best | median ratio | 90 % below | best single methods |"]
    lines.append("|---|---|---|---|---|---|")
    for group, tally in tallies.items():
        ratios = np.array(tally.ratios)
        best = ", ".join(f"{name} {n}" for name, n in sorted(tally.best.items(), key=lambda item: -item[1]))
        lines.append(
            f"| {group} | {len(ratios)} | {tally.share:.0%} | {np.median(ratios):.2f} | "
            f"{np.quantile(ratios, 0.9):.2f} | {best} |"
        )
    lines += ["", "| method | turns | predicted / counted work: median | 10 % below | 90 % below |"]
    lines.append("|---|---|---|---|---|")
    together: dict[str, list[float]] = defaultdict(list)
    for tally in tallies.values():
        for method, ratios in tally.predictions.items():
            together[method] += ratios
    for method, ratios in sorted(together.items()):
        low, middle, high = np.quantile(ratios, (0.1, 0.5, 0.9))
        lines.append(f"| {method} | {len(ratios)} | {middle:.2f} | {low:.2f} | {high:.2f} |")
    return lines


def main() -> None:
    """Compare, print the tables and, where asked to, write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="300 rows per data set, without the stored fits")
    parser.add_argument("--half", choices=("chosen", "reported", "stored"), action="append", help="only these")
    parser.add_argument("--rows", type=int, help="rows drawn from every data set")
    parser.add_argument("--only-stored", action="store_true", help="tables of what was measured already")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="file to write the tables to")
    arguments = parser.parse_args()
    rows = arguments.rows or (300 if arguments.quick else 1500)
    halves = arguments.half or (["chosen", "reported"] if arguments.quick else ["chosen", "reported", "stored"])
    warnings.simplefilter("ignore", ConvergenceWarning)
    kept = Kept("portfolio", {"policy": repr(POLICY), "tol": TOL}, only_stored=arguments.only_stored)
    tallies: dict[str, Tally] = {}
    with threadpool_limits(1):
        for half, names in (("chosen", CHOSEN_ON), ("reported", REPORTED_ON)):
            if half in halves:
                tally = tallies[f"{half} on: {', '.join(names)}"] = Tally()
                for name in names:
                    for label, problem in problems(name, rows):
                        if result := kept.of((label,), partial(measured, problem, TOL)):
                            show(label, result, tally)
        if "stored" in halves:
            tally = tallies["stored fits"] = Tally()
            for label, problem, tol in stored_problems():
                if result := kept.of((label,), partial(measured, problem, tol)):
                    show(label, result, tally)
    lines = lines_of(tallies)
    print("", *lines, sep="\n")
    if arguments.markdown is not None:
        command = f"python -m benchmarks.portfolio --rows {rows}"
        written = [f"Written by `{command} --markdown {arguments.markdown}`.", "", *lines, ""]
        arguments.markdown.write_text("\n".join(written), "utf-8")


if __name__ == "__main__":
    main()
