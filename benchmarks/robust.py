"""The convex step of the robust SVM beside Clarabel and PIQP, and whole fits beside one step.

All solve the same problem to the same tolerance, 1e-8; the others are given the primal program with sparse
matrices, which serves them best.
"""

import argparse

import clarabel
import numpy as np
import piqp
from scipy import sparse

from benchmarks.common import Goals, Table, mixture, seconds_of
from polymargin import RobustSVC
from polymargin.estimators.robust import convex_solver
from polymargin.gram import DenseGram, FeatureGram, Kernel
from polymargin.problems.robust import RobustProblem
from polymargin.solvers.contract import Settings
from tests.oracles import hinge_program

TOL = 1e-8


def with_clarabel(P, q, A, b):
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOL
    cones = [clarabel.NonnegativeConeT(len(b))]
    return clarabel.DefaultSolver(sparse.triu(P, format="csc"), q, A, b, cones, settings).solve().obj_val


def with_piqp(P, q, A, b):
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = TOL
    solver.setup(P=P, c=q, G=A, h_u=b)
    solver.solve()
    return solver.result.info.primal_obj


def step_of(n, k, p, kernel):
    X, y = mixture(n, p, k, separation=2.0)
    gram = FeatureGram(X) if kernel == "linear" else DenseGram(Kernel("rbf", 1.0 / (p * X.var()))(X))
    return RobustProblem(gram, np.eye(k)[y], -1.0 / (k - 1)), X, y


def measure(n, k, p, kernel, table, goals, *, others):
    problem, X, y = step_of(n, k, p, kernel)
    step = problem.convex_step()
    ours, solution = seconds_of(lambda: convex_solver(problem).solve(step, Settings(TOL, 200)), repeats=2)
    row = {"kernel": kernel, "n": n, "k": k, "p": p, "ours_s": ours, "gap": solution.certificate.gap}
    if others:
        program = hinge_program(step)
        for name, solve in (("clarabel", with_clarabel), ("piqp", with_piqp)):
            seconds, optimum = seconds_of(lambda solve=solve: solve(*program), repeats=1)
            row[name] = seconds / ours
            row[f"{name[:4]}_err"] = abs(optimum - solution.certificate.primal) / max(1.0, abs(optimum))
    fit, _ = seconds_of(lambda: RobustSVC(kernel=kernel, utility=0.9 * np.eye(k) + 0.1).fit(X, y), repeats=1)
    plain, _ = seconds_of(
        lambda: RobustSVC(kernel=kernel, utility=0.9 * np.eye(k) + 0.1, truncation=-np.inf).fit(X, y), repeats=1
    )
    row["fit"] = fit / plain
    table.add(**row)
    if others and kernel == "linear" and (n, k) == (400, 3):
        goals.at_most(f"ours / best other, n=400, k=3, p={p}", 1 / min(row["clarabel"], row["piqp"]), 1 / 5)
    if others and kernel == "linear" and (n, k, p) == (5000, 10, 16):
        goals.at_most("ours / best other, n=5000, k=10, p=16", 1 / min(row["clarabel"], row["piqp"]), 1 / 20)
    goals.at_most(f"DC fit from two starts / one convex step, {kernel}, n={n}, k={k}, p={p}", row["fit"], 12.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the smaller sizes alone")
    quick = parser.parse_args().quick
    columns = ("kernel", "n", "k", "p", "ours_s", "gap", "clarabel", "clar_err", "piqp", "piqp_err", "fit")
    table, goals = Table(columns, width=9), Goals()
    sizes = [400, 1000] if quick else [400, 1000, 5000]
    for n in sizes:
        for k in (3,) if quick else (3, 5, 10):
            for p in (2, 16):
                measure(n, k, p, "linear", table, goals, others=True)
    for n in (200,) if quick else (200, 500, 1000, 2000):
        measure(n, 3, 2, "rbf", table, goals, others=n <= 500)
        measure(n, 5, 16, "rbf", table, goals, others=n <= 500)
    goals.report()


if __name__ == "__main__":
    main()
