"""The convex step of the robust SVM beside Clarabel and PIQP, and whole fits beside one step.

All solve the same problem (utilities the identity) to the same tolerance, 1e-8; the others are given the primal
program with sparse matrices, which serves them best, and at least `RIVAL_LIMIT` seconds, after which they are
stopped: then the ratio is a lower bound, marked by ">".
Whole fits have the utilities (16) of Liu, Wu & He, 0.4 for taking the first class for the second or third.

`python -m benchmarks.robust small large rbf search svc [--markdown FILE]` runs all parts, which can also be run
one by one: "search" is RobustSearch beside GridSearchCV with five folds on the same grid, in CPU seconds, with the
utilities of test rows; "svc" a fit with the rbf kernel to 600 digits beside scikit-learn's SVC.
"""

import argparse
import multiprocessing
import time

import clarabel
import numpy as np
import piqp
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from benchmarks.common import Goals, Table, markdown_option, mixture, seconds_of, write_tables
from polymargin import RobustSearch, RobustSVC, expected_utility, make_utility_scorer
from polymargin.gram import DenseGram, FeatureGram, Kernel
from polymargin.problems.robust import RobustProblem
from polymargin.solvers.contract import Settings
from polymargin.solvers.robust.dc import convex_solver
from tests.oracles import hinge_program

CONTEXT = multiprocessing.get_context("fork")
TOL = 1e-8
REPEATS = 20
"""Times that everything is run, of which the best counts, unless two seconds are over before."""

SEARCHED = 2
"""Times that both searches are run in turn, of which the shorter counts for each."""

SVC_ROUNDS = 9
"""Fits of every machine beside SVC, in turn, of which the median counts: a fit of SVC takes 10 to 20 ms."""

RIVAL_LIMIT, RIVAL_RATIO = 15.0, 22.0
"""Seconds that another solver gets for one problem, and multiples of our time, whichever is more."""

PARTS = {
    "small": [("linear", n, k, p) for n in (400, 1000) for k in (3, 5, 10) for p in (2, 16)],
    "large": [("linear", 5000, k, p) for k in (10, 5, 3) for p in (16, 2)],
    "rbf": [("rbf", n, k, p) for n in (200, 500, 1000, 2000) for k, p in ((3, 2), (5, 16))],
}
QUICK = [("linear", 400, 3, 2), ("linear", 400, 3, 16), ("linear", 1000, 3, 16), ("rbf", 200, 3, 2)]


def with_clarabel(P, q, A, b):
    """Solve by Clarabel."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOL
    cones = [clarabel.NonnegativeConeT(len(b))]
    solution = clarabel.DefaultSolver(sparse.triu(P, format="csc"), q, A, b, cones, settings).solve()
    return solution.obj_val if "Solved" in str(solution.status) else np.nan


def with_piqp(P, q, A, b):
    """Solve by PIQP."""
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = TOL
    solver.setup(P=P, c=q, G=A, h_u=b)
    status = solver.solve()
    return solver.result.info.primal_obj if status == piqp.PIQP_SOLVED else np.nan


def measured(solve, program, limit):
    """Return a solver's best time and its optimum, from a process that is stopped at the limit."""
    receiver, sender = CONTEXT.Pipe(duplex=False)
    worker = CONTEXT.Process(
        target=lambda: sender.send(seconds_of(lambda: solve(*program), repeats=REPEATS, at_most=2.0)), daemon=True
    )
    worker.start()
    answer = receiver.recv() if receiver.poll(limit) else (limit, np.nan)
    worker.kill()
    worker.join()
    return answer


def rivals(problem, ours, optimum):
    """Return the others' times over ours with the distances of their optima, and the smallest ratio."""
    program = hinge_program(problem)
    row, ratios = {}, []
    for name, solve in (("clarabel", with_clarabel), ("piqp", with_piqp)):
        seconds, value = measured(solve, program, max(RIVAL_LIMIT, RIVAL_RATIO * ours))
        row[name] = f"{'>' if np.isnan(value) else ''}{seconds / ours:.3g}"
        row[f"{name[:4]}_err"] = abs(value - optimum) / max(1.0, abs(optimum))
        ratios.append(seconds / ours)
    return row, min(ratios)


def step_of(n, k, p, kernel):
    """Return a convex step on Gaussian classes, and the data."""
    X, y = mixture(n, p, k, separation=2.0)
    gram = FeatureGram(X) if kernel == "linear" else DenseGram(Kernel("rbf", 1.0 / (p * X.var()))(X))
    return RobustProblem(gram, np.eye(k)[y], -1.0 / (k - 1)), X, y


def measure(kernel, n, k, p, table, goals):
    """Measure one configuration."""
    problem, X, y = step_of(n, k, p, kernel)
    step = problem.convex_step()
    ours, solution = seconds_of(
        lambda: convex_solver(problem).solve(step, Settings(TOL, 200)), repeats=REPEATS, at_most=2.0
    )
    row = {"kernel": kernel, "n": n, "k": k, "p": p, "ours_s": ours, "gap": solution.certificate.gap}
    ratios, least = rivals(step, ours, solution.certificate.primal)
    utility = np.eye(k)
    utility[0, 1:3] = 0.4
    model = RobustSVC(kernel=kernel, utility=utility)
    fit, fitted = seconds_of(lambda: model.fit(X, y), repeats=REPEATS, at_most=2.0)
    steps = sum(len(history) for history in fitted.dc_history_.values())
    plain = RobustSVC(kernel=kernel, utility=utility, truncation=-np.inf)
    one, _ = seconds_of(lambda: plain.fit(X, y), repeats=REPEATS, at_most=2.0)
    table.add(**row, **ratios, steps=steps, fit=fit / one)
    if (kernel, n, k) == ("linear", 400, 3):
        goals.at_most(f"our time / that of the best other, n=400, k=3, p={p}", 1 / least, 1 / 5)
    if (kernel, n, k, p) == ("linear", 5000, 10, 16):
        goals.at_most("our time / that of the best other, n=5000, k=10, p=16", 1 / least, 1 / 20)
    goals.at_most(f"DC fit from two starts / one convex step, {kernel}, n={n}, k={k}, p={p}", fit / one, 12.0)


def searches(goals, seed, table):
    """Compare RobustSearch with GridSearchCV over the same grid and folds: CPU time and utility of fresh rows."""
    for kernel, n, k, widths in (
        ("linear", 300, 3, None),
        ("linear", 600, 5, None),
        ("rbf", 150, 3, (0.5, 2.0)),
    ):
        X, y = mixture(n + 2000, 4, k, separation=1.5, seed=seed)
        rng = np.random.default_rng(seed)
        flipped = rng.random(n) < 0.1
        y[:n][flipped] = rng.integers(0, k, flipped.sum())
        utility = np.eye(k)
        utility[0, 1:3] = 0.4
        machine = RobustSVC(kernel=kernel, utility=utility)
        grid = {"C": [2.0**power for power in range(-6, 5, 2)], "truncation": ["auto", 0.0]}
        if kernel == "rbf":
            grid = {"C": [2.0**power for power in range(-4, 5, 4)], "truncation": ["auto"]}
        gammas = None if widths is None else [width / (4 * X.var()) for width in widths]
        if gammas is not None:
            grid["gamma"] = gammas
        ours = RobustSearch(machine, Cs=grid["C"], gammas=gammas, truncations=grid["truncation"])
        theirs = GridSearchCV(machine, grid, scoring=make_utility_scorer(utility), cv=5)
        seconds = np.full(2, np.inf)
        for _ in range(SEARCHED):
            for at, search in enumerate((ours, theirs)):
                started = time.process_time()
                search.fit(X[:n], y[:n])
                seconds[at] = min(seconds[at], time.process_time() - started)
        worth = [expected_utility(y[n:], search.predict(X[n:]), utility) for search in (ours, theirs)]
        size = int(np.prod([len(values) for values in grid.values()]))
        ratio = float(seconds[0] / seconds[1])
        row = dict(zip(("search_s", "grid_s", "ours", "theirs"), (*seconds.tolist(), *worth), strict=True))
        table.add(seed=seed, kernel=kernel, n=n, k=k, grid=size, ratio=ratio, **row)
        goals.at_most(f"RobustSearch / GridSearchCV, {kernel}, n={n}, k={k}, seed {seed}", ratio, 0.3)
        lost = f"utility lost against GridSearchCV, {kernel}, n={n}, k={k}, seed {seed}"
        goals.at_most(lost, worth[1] - worth[0], 0.01)


def warm_up():
    """Fit a few rows, so that no import is timed."""
    X, y = mixture(30, 2, 3, separation=2.0)
    RobustSearch(Cs=[0.1], cv=2).fit(X, y)
    GridSearchCV(RobustSVC(), {"C": [0.1]}, scoring=make_utility_scorer(np.eye(3)), cv=2).fit(X, y)
    for machine in (SVC(), RobustSVC(kernel="rbf")):
        machine.fit(X, y)


def beside_svc(goals, table):
    """Fit 600 digits with the rbf kernel, and compare the CPU time with that of scikit-learn's SVC."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:600] / 16.0, y[:600]
    machines = {
        "SVC": SVC(),
        "RobustSVC": RobustSVC(kernel="rbf"),
        "one start": RobustSVC(kernel="rbf", starts=("utility",)),
    }
    found = {name: [] for name in machines}
    for _ in range(SVC_ROUNDS):
        for name, machine in machines.items():
            started = time.process_time()
            machine.fit(X, y)
            found[name].append(time.process_time() - started)
    times = {name: float(np.median(seconds)) for name, seconds in found.items()}
    for name, seconds in times.items():
        table.add(machine=name, seconds=seconds, **{"over SVC": seconds / times["SVC"]})
    goals.at_most("RobustSVC, rbf, 600 digits, over SVC", times["RobustSVC"] / times["SVC"], 30.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}, search and svc; all by default")
    parser.add_argument("--quick", action="store_true", help="four small problems")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="draw the data of the searches")
    markdown_option(parser)
    arguments = parser.parse_args()
    parts = arguments.parts or [*PARTS, "search", "svc"]
    goals, tables = Goals(), []
    if "search" in parts or "svc" in parts:
        warm_up()
    if "search" in parts:
        columns = ("seed", "kernel", "n", "k", "grid", "search_s", "grid_s", "ratio", "ours", "theirs")
        tables.append(Table(columns, width=9))
        for seed in arguments.seeds:
            searches(goals, seed, tables[-1])
    if "svc" in parts:
        tables.append(Table(("machine", "seconds", "over SVC"), width=14))
        beside_svc(goals, tables[-1])
    problems = QUICK if arguments.quick else [problem for part in parts for problem in PARTS.get(part, ())]
    if problems:
        rivals_of_a_step = ("clarabel", "clar_err", "piqp", "piqp_err")
        columns = ("kernel", "n", "k", "p", "ours_s", "gap", *rivals_of_a_step, "steps", "fit")
        tables.append(Table(columns, width=9))
    for kernel, n, k, p in problems:
        measure(kernel, n, k, p, tables[-1], goals)
    goals.report()
    seeds = " ".join(map(str, arguments.seeds))
    command = f"python -m benchmarks.robust {' '.join(arguments.parts)} --seeds {seeds}"
    write_tables(arguments.markdown, command, tables, goals)


if __name__ == "__main__":
    main()
