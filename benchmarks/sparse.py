"""SparseSVC beside the full linear program in HiGHS, and beside the l1 models of scikit-learn that users pick.

``python -m benchmarks.sparse [single many classes paths arrays users] [--quick]``. The full program is (7) of Guo
(2010), solved by HiGHS's simplex and interior-point methods, of which the faster counts; a path is warm-started.
Where it is given up after the seconds stated below, times and ratios are "more than" (>). Times are of one run.
"""

import argparse
import time
import warnings
from dataclasses import replace

import highspy
import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from benchmarks.common import Goals, Table, real_data, seconds_of
from polymargin import SparseSVC, sparse_path
from polymargin.coding import class_pairs
from polymargin.problems.hinge import weston_watkins
from polymargin.problems.penalties import FusionPenalty, LassoPenalty, Penalty, SupnormPenalty
from polymargin.problems.sparse import SparseProblem
from polymargin.solvers.contract import Settings
from polymargin.solvers.sparse.cutting_plane import CuttingPlanes, largest_penalty_weight

SETTINGS = Settings(tol=1e-8, max_iter=100_000)
LIMIT = 10.0
"""Seconds after which a full program is given up, by each method; ratios are then lower bounds."""
PATH_LIMIT = 30.0
"""The same for a path of full programs."""
LARGEST_FULL_PROGRAM = 25_000
"""Coefficients beyond which the full program is not even stated."""


def sample(n: int, p: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian classes that ten variables separate, standardised."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    X = rng.normal(size=(n, p))
    X[:, :10] += 0.8 * rng.normal(size=(k, 10))[y]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def penalty_of(name: str, X: np.ndarray, y: np.ndarray) -> Penalty:
    """Return a penalty by name; adaptive weights come from the l2 fit."""
    k = len(np.unique(y))
    match name:
        case "fusion":
            return FusionPenalty()
        case "adaptive":
            initial = SparseSVC(penalty="l2", C=0.01, tol=1e-4).fit(X, y).coef_
            pairs = class_pairs(k)
            sizes = np.abs(initial[pairs[:, 0]] - initial[pairs[:, 1]])
            return FusionPenalty(1.0 / np.maximum(sizes, 1e-6 * sizes.max()))
        case "supnorm":
            return SupnormPenalty()
        case "l1":
            return LassoPenalty()
    raise ValueError(f"no penalty is called {name!r}")


def state(X: np.ndarray, y: np.ndarray, penalty: str) -> SparseProblem:
    """State the machine with Weston and Watkins' loss."""
    labels = np.unique(y, return_inverse=True)[1]
    upper = 1.0 * (labels[:, None] != np.arange(labels.max() + 1))
    return SparseProblem(X, weston_watkins(labels, upper), penalty_of(penalty, X, y))


class FullProgram:
    """(7) of Guo for fusion in HiGHS: W, b free, losses xi and absolute differences t non-negative."""

    def __init__(self, problem: SparseProblem, method: str):
        X, losses = np.asarray(problem.X), problem.losses
        p, k = X.shape[1], losses.n_classes
        example, slot = np.nonzero(losses.upper)
        directions = losses.directions[losses.labels[example], slot]
        pairs = class_pairs(k)
        differences = np.eye(k)[pairs[:, 0]] - np.eye(k)[pairs[:, 1]]
        weights = problem.penalty.weights
        self.cost = np.ones(len(pairs) * p) if weights is None else weights.ravel()
        n_w, n_xi, n_t = k * p + k, len(example), len(self.cost)
        self.xi = np.arange(n_w, n_w + n_xi, dtype=np.int32)
        terms = sparse.kron(differences, sparse.eye(p))
        minus = -sparse.eye(n_t)
        hinges = [np.hstack([directions[:, [c]] * X[example] for c in range(k)]), directions, -sparse.eye(n_xi)]
        rows = sparse.vstack(
            [
                sparse.hstack([*hinges, sparse.csr_array((n_xi, n_t))]),
                sparse.hstack([terms, sparse.csr_array((n_t, k + n_xi)), minus]),
                sparse.hstack([-terms, sparse.csr_array((n_t, k + n_xi)), minus]),
                sparse.hstack(
                    [sparse.kron(np.ones((1, k)), sparse.eye(p)), sparse.csr_array((p, k + n_xi + n_t))]
                ),
                sparse.csr_array(
                    (np.ones(k), (np.zeros(k, int), np.arange(k * p, n_w))), shape=(1, n_w + n_xi + n_t)
                ),
            ]
        ).tocsr()
        upper = np.concatenate([np.full(n_xi, -losses.offset), np.zeros(2 * n_t + p + 1)])
        lower = np.concatenate([np.full(n_xi + 2 * n_t, -np.inf), np.zeros(p + 1)])
        self.highs = highspy.Highs()
        for option, value in (("output_flag", False), ("threads", 1), ("solver", method)):
            self.highs.setOptionValue(option, value)
        n = n_w + n_xi + n_t
        free = np.concatenate([np.full(n_w, -np.inf), np.zeros(n_xi + n_t)])
        costs = np.concatenate([np.zeros(n_w), losses.upper[example, slot], self.cost])
        self.weights = losses.upper[example, slot]
        self.highs.addCols(n, costs, free, np.full(n, np.inf), 0, [], [], [])
        self.highs.addRows(
            len(upper),
            lower,
            upper,
            rows.nnz,
            rows.indptr[:-1].astype(np.int32),
            rows.indices.astype(np.int32),
            rows.data,
        )

    def solve(self, C: float, seconds: float) -> float:
        """Return the optimum, or infinity when the time was up."""
        self.highs.changeColsCost(len(self.xi), self.xi, C * self.weights)
        self.highs.setOptionValue("time_limit", self.highs.getRunTime() + seconds)
        self.highs.run()
        solved = self.highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return self.highs.getInfo().objective_function_value if solved else np.inf


def full_seconds(problem: SparseProblem, Cs: list[float], limit: float) -> tuple[float, float]:
    """Return the better time of simplex and interior point and the last optimum, or the limit and infinity."""
    best, optimum = limit, np.inf
    for method in ("simplex", "ipm"):
        program = FullProgram(problem, method)
        start = time.perf_counter()
        for C in Cs:
            # the second method need not run for longer than the first took
            value = program.solve(C, max(best - (time.perf_counter() - start), 0.0))
            if not np.isfinite(value):
                break
        else:
            best, optimum = min(best, time.perf_counter() - start), value
    return best, optimum


def single_fits(quick: bool, goals: Goals) -> None:
    """One sparse model for every size, beside the full program where that fits into memory."""
    print("\nOne sparse model, penalty weight 0.5 lambda_max (adaptive: 0.2); '>': the full LP was given up")
    table = Table(("penalty", "n", "p", "K", "selected", "seconds", "gap", "full LP s", "ratio"))
    sizes = [(200, p, k) for p in (100, 1000, 5000, 20000) for k in (3, 4, 5, 10)] + [(2000, 1000, 5)]
    for n, p, k in [(200, 100, 4), (200, 1000, 4)] if quick else sizes:
        for penalty in ("fusion", "adaptive"):
            problem = state(*sample(n, p, k), penalty)
            fraction = 0.5 if penalty == "fusion" else 0.2
            at = replace(problem, C=1 / (fraction * largest_penalty_weight(problem)))
            seconds, solution = seconds_of(lambda at=at: CuttingPlanes().solve(at, SETTINGS), at_most=5.0)
            row = {"penalty": penalty, "n": n, "p": p, "K": k, "seconds": seconds}
            row |= {"selected": int(solution.point.coef.any(axis=0).sum()), "gap": solution.certificate.gap}
            if p * k <= LARGEST_FULL_PROGRAM and n <= 200:
                row |= beside_full(problem, solution, at.C, seconds, f"{penalty} p={p} K={k}", goals)
            table.add(**row)
            goals.at_most(f"gap, {penalty} n={n} p={p} K={k}", solution.certificate.gap, 1e-7)


def beside_full(problem, solution, C: float, seconds: float, what: str, goals: Goals) -> dict:
    """Solve the full program too; a ratio to a time at which it was given up is a lower bound."""
    full, optimum = full_seconds(problem, [C], LIMIT)
    given_up = "" if np.isfinite(optimum) else ">"
    if np.isfinite(optimum):
        difference = abs(solution.certificate.primal - optimum) / max(1.0, abs(optimum))
        goals.at_most(f"objective against the full LP, {what}", difference, 1e-6)
    if problem.X.shape[1] >= 1000:
        least = 100.0 if what.startswith("adaptive") else 30.0
        goals.at_most(f"1/ratio, {what}", seconds / full, 1 / least)
    return {"full LP s": f"{given_up}{full:.3g}", "ratio": f"{given_up}{full / seconds:.3g}"}


def many_variables(quick: bool, goals: Goals) -> None:
    """One C at p = 20000, K = 5, from few to more selected variables than examples."""
    p = 2000 if quick else 20000
    print(f"\nOne C, fusion, n=200, p={p}, K=5, cold, by penalty weight as a fraction of the largest")
    table = Table(("weight", "selected", "rounds", "seconds", "gap"))
    problem = state(*sample(200, p, 5), "fusion")
    largest = largest_penalty_weight(problem)
    for fraction in (0.5, 0.3, 0.2, 0.15, 0.1, 0.05):
        at = replace(problem, C=1 / (fraction * largest))
        seconds, solution = seconds_of(lambda at=at: CuttingPlanes().solve(at, SETTINGS), at_most=2.0)
        selected = int(solution.point.coef.any(axis=0).sum())
        table.add(
            weight=fraction,
            selected=selected,
            rounds=solution.n_iter,
            seconds=seconds,
            gap=solution.certificate.gap,
        )
        goals.at_most(f"seconds of one C, fusion p={p} K=5, {fraction} lambda_max", seconds, 2.0)
        goals.at_most(f"gap, {fraction} lambda_max", solution.certificate.gap, 1e-7)


def many_classes(quick: bool, goals: Goals) -> None:
    """Adaptive fusion of 20 and 26 classes: letters, and arrays of five samples per class and 2000 genes."""
    print("\nAdaptive fusion of many classes, by penalty weight as a fraction of the largest")
    table = Table(("data", "n", "p", "K", "weight", "selected", "rounds", "seconds", "gap", "full LP s", "ratio"))
    letters = real_data("letter")
    for k in (20,) if quick else (20, 26):
        cases = {"arrays": sample(5 * k, 2000, k)}
        if letters is not None:
            X, y = letters
            rows = np.concatenate([np.flatnonzero(y == label)[:10] for label in np.unique(y)[:k]])
            cases["letter"] = (X[rows], y[rows])
        for name, (X, y) in cases.items():
            problem = state(X, y, "adaptive")
            largest = largest_penalty_weight(problem)
            for fraction in (0.5, 0.2):
                at = replace(problem, C=1 / (fraction * largest))
                seconds, solution = seconds_of(lambda at=at: CuttingPlanes().solve(at, SETTINGS), at_most=1.0)
                row = {"data": name, "n": len(y), "p": X.shape[1], "K": k, "weight": fraction}
                row |= {"selected": int(solution.point.coef.any(axis=0).sum()), "rounds": solution.n_iter}
                row |= {"seconds": seconds, "gap": solution.certificate.gap}
                if X.shape[1] * k <= LARGEST_FULL_PROGRAM:
                    row |= beside_full(problem, solution, at.C, seconds, f"{name} K={k}, {fraction}", goals)
                table.add(**row)
                goals.at_most(f"gap, {name} K={k}, {fraction} lambda_max", solution.certificate.gap, 1e-7)


def paths(quick: bool, goals: Goals) -> None:
    """31 values of C down to 5 % of the largest penalty weight."""
    cases = [("simulated", *sample(200, 100, k), "fusion") for k in ((4,) if quick else (3, 4, 5, 10))]
    if not quick:
        cases += [("simulated", *sample(200, 1000, 5), name) for name in ("fusion", "supnorm", "l1")]
        cases += [("simulated", *sample(200, 20000, 5), "fusion")]
    solve_paths(cases, goals)


def arrays(quick: bool, goals: Goals) -> None:
    """Paths over all genes of the gene-expression sets; classes with one array are left out."""
    cases = []
    for name in ("khan_srbct",) if quick else ("khan_srbct", "leukemia3", "nci60"):
        data = real_data(name)
        if data is None:
            print(f"(skipped: {name} is not in the data folder)")
        else:
            frequent = np.isin(data[1], [c for c in np.unique(data[1]) if np.sum(data[1] == c) > 1])
            cases += [(name, data[0][frequent], data[1][frequent], "fusion")]
    solve_paths(cases, goals)


def solve_paths(cases: list, goals: Goals) -> None:
    """Solve paths, beside the full program where p is small."""
    print("\nPaths of 31 models down to 0.05 lambda_max; '>': the full LP was given up")
    table = Table(("data", "penalty", "n", "p", "K", "selected", "seconds", "worst gap", "full LP s", "ratio"))
    for data, X, y, penalty in cases:
        n, p, k = *X.shape, len(np.unique(y))
        seconds, path = seconds_of(
            lambda X=X, y=y, penalty=penalty: sparse_path(X, y, n_Cs=31, eps=0.05, penalty=penalty), at_most=2.0
        )
        gap = max(certificate.gap for certificate in path.certificates)
        row = {"data": data, "penalty": penalty, "n": n, "p": p, "K": k, "selected": int(path.n_selected[-1])}
        row |= {"seconds": seconds, "worst gap": gap}
        if p <= 100:
            full, last = full_seconds(state(X, y, penalty), path.Cs.tolist(), PATH_LIMIT)
            given_up = "" if np.isfinite(last) else ">"
            if np.isfinite(last):
                difference = abs(path.certificates[-1].primal - last) / max(1.0, abs(last))
                goals.at_most(f"last objective against the full LP, p={p} K={k}", difference, 1e-6)
            row |= {"full LP s": f"{given_up}{full:.3g}", "ratio": f"{given_up}{full / seconds:.3g}"}
            goals.at_most(f"1/ratio of the path, p={p} K={k}", seconds / full, 1 / 8)
        table.add(**row)
        goals.at_most(f"worst gap of the path, {data} {penalty} p={p} K={k}", gap, 1e-7)
        if p == 20000:
            goals.at_most("seconds of the path at p=20000, K=5", seconds, 120.0)


def what_users_pick(quick: bool, goals: Goals) -> None:
    """l1 models of scikit-learn at about as many selected variables."""
    print("\nBeside l1 models of scikit-learn, C such that about as many variables are selected")
    table = Table(("model", "p", "K", "selected", "seconds", "ratio", "test error"), width=14)
    for p, k in ((1000, 4),) if quick else ((1000, 4), (5000, 5), (20000, 5)):
        X, y = sample(1200, p, k)
        X, y, X_test, y_test = X[:200], y[:200], X[200:], y[200:]
        largest = sparse_path(X, y, n_Cs=1).largest_penalty_weight
        ours = SparseSVC(C=1 / (0.35 * largest))
        seconds, _ = seconds_of(lambda ours=ours, X=X, y=y: ours.fit(X, y))
        n_selected = len(ours.selected_features_)
        error = 1 - ours.score(X_test, y_test)
        table.add(
            model="SparseSVC", p=p, K=k, selected=n_selected, seconds=seconds, ratio=1.0, **{"test error": error}
        )
        rivals = {
            "LinearSVC l1": lambda C: LinearSVC(C=C, penalty="l1", dual=False, max_iter=5000),
            "Logistic l1": lambda C: OneVsRestClassifier(LogisticRegression(C=C, l1_ratio=1, solver="liblinear")),
        }
        for name, rival in rivals.items():
            best = None
            for C in np.geomspace(0.003, 1, 12):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    spent, model = seconds_of(lambda rival=rival, C=C, X=X, y=y: rival(C).fit(X, y), repeats=1)
                coef = model.coef_ if hasattr(model, "coef_") else np.vstack([e.coef_ for e in model.estimators_])
                count = int(coef.any(axis=0).sum())
                if best is None or abs(count - n_selected) < abs(best[0] - n_selected):
                    best = (count, spent, 1 - model.score(X_test, y_test))
            row = {"selected": best[0], "seconds": best[1], "ratio": best[1] / seconds, "test error": best[2]}
            table.add(model=name, p=p, K=k, **row)


PARTS = {
    "single": single_fits,
    "many": many_variables,
    "classes": many_classes,
    "paths": paths,
    "arrays": arrays,
    "users": what_users_pick,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all if none is named")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"parts are {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    goals = Goals()
    for name in options.parts or PARTS:
        PARTS[name](options.quick, goals)
    print()
    goals.report()


if __name__ == "__main__":
    main()
