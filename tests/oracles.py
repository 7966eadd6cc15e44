"""Independent solutions of the problems by general-purpose solvers, for the reference tests."""

import clarabel
import numpy as np
import piqp
import scipy.optimize
from scipy import sparse

from polymargin.coding import class_pairs
from polymargin.gram import FeatureGram, Gram
from polymargin.problems.hinge import BoxLosses, HingeProblem
from polymargin.problems.penalties import LassoPenalty, Penalty, SupnormPenalty
from polymargin.problems.sparse import SparseProblem


def hinge_program(problem: HingeProblem) -> tuple:
    """Return a hinge machine as ``min 1/2 x'Px + q'x, Ax <= b`` in features, intercepts and epigraph variables.

    Features come from the eigenvectors of the kernel matrix, whatever the gram; the last class's function is minus
    the sum of the others.
    """
    losses = problem.losses
    n, k = losses.n_examples, losses.n_classes
    features = features_of_gram(problem.gram)
    rank = features.shape[1]
    if problem.fit_intercept:
        features = np.hstack([features, np.ones((n, 1))])
    spread = np.vstack([np.eye(k - 1), -np.ones((1, k - 1))])
    scores = sparse.csr_matrix(np.kron(features, spread))

    if isinstance(losses, BoxLosses):
        example, hinge = np.nonzero(losses.upper)
        weight = losses.upper[example, hinge]
        blocks = np.arange(len(weight))
        rows, offsets = losses.table.directions[losses.labels[example], hinge], np.full(len(weight), losses.offset)
    else:
        weight = losses.weight
        blocks = np.repeat(np.arange(len(weight)), k)
        slot, anchor = np.tile(np.arange(k), len(weight)), np.repeat(losses.anchor, k)
        example = np.repeat(losses.example, k)
        rows, offsets = np.eye(k)[slot] - np.eye(k)[anchor], losses.offset * (slot != anchor)
    picks = sparse.csr_matrix(
        (rows.ravel(), ((np.repeat(np.arange(len(rows)), k)), (example[:, None] * k + np.arange(k)).ravel())),
        shape=(len(rows), n * k),
    )
    epigraph = sparse.csr_matrix(
        (np.ones(len(rows)), (np.arange(len(rows)), blocks)), shape=(len(rows), len(weight))
    )
    A = sparse.hstack([picks @ scores, -epigraph])
    b = -offsets
    if isinstance(losses, BoxLosses):
        nothing = sparse.csr_matrix((len(weight), scores.shape[1]))
        A = sparse.vstack([A, sparse.hstack([nothing, -sparse.eye(len(weight))])])
        b = np.concatenate([b, np.zeros(len(weight))])
    penalty = np.zeros((features.shape[1],) * 2)
    penalty[:rank, :rank] = np.eye(rank)
    P = sparse.block_diag([np.kron(penalty, spread.T @ spread), sparse.csr_matrix((len(weight), len(weight)))])
    tilt = np.zeros(scores.shape[1]) if problem.tilt is None else scores.T @ problem.tilt.ravel()
    return sparse.csc_matrix(P), np.concatenate([tilt, weight]), sparse.csc_matrix(A), b


def features_of_gram(gram: Gram) -> np.ndarray:
    """Return orthogonal features of a gram: its eigenvectors, from the features it has where there are few."""
    if isinstance(gram, FeatureGram) and isinstance(gram.features, np.ndarray) and gram.features.shape[1] < gram.n:
        vectors, roots, _ = np.linalg.svd(gram.features, full_matrices=False)
        keep = roots > roots[0] * gram.n * np.finfo(float).eps
        return vectors[:, keep] * roots[keep]
    values, vectors = np.linalg.eigh(gram.block(np.arange(gram.n)))
    keep = values > values[-1] * gram.n * np.finfo(float).eps
    return vectors[:, keep] * np.sqrt(values[keep])


def hinge_optimum(problem: HingeProblem, solver: str = "clarabel") -> float:
    """Optimal value of a hinge machine: its primal as one QP, solved by Clarabel or PIQP.

    The objective is divided by the largest weight, so that the solver's tolerances mean the same for every C.
    """
    P, q, A, b = hinge_program(problem)
    scale = max(1.0, np.abs(q).max())
    solve = {"clarabel": _solved_by_clarabel, "piqp": _solved_by_piqp}[solver]
    return scale * solve(P / scale, q / scale, A, b)


def _solved_by_clarabel(P: sparse.csc_matrix, q: np.ndarray, A: sparse.csc_matrix, b: np.ndarray) -> float:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    settings.max_iter = 400
    cones = [clarabel.NonnegativeConeT(len(b))]
    solution = clarabel.DefaultSolver(sparse.triu(P, format="csc"), q, A, b, cones, settings).solve()
    status = str(solution.status)
    assert status in ("Solved", "AlmostSolved"), f"the reference solver says {status}"
    return solution.obj_val


def _solved_by_piqp(P: sparse.csc_matrix, q: np.ndarray, A: sparse.csc_matrix, b: np.ndarray) -> float:
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
    solver.settings.max_iter = 400
    solver.setup(P=sparse.csc_matrix(P), c=q, G=A, h_u=b)
    status = solver.solve()
    assert status == piqp.PIQP_SOLVED, f"the reference solver says {status}"
    return solver.result.info.primal_obj


def sparse_optimum(problem: SparseProblem) -> float:
    """Optimal value of a sparse machine: the whole primal (7) of Guo as one linear program, solved by HiGHS.

    Variables: W by classes, b, the values xi of the losses, and the terms t of the penalty.
    """
    X, losses = np.asarray(problem.X), problem.losses
    p, k = X.shape[1], losses.n_classes
    if isinstance(losses, BoxLosses):
        example, slot = np.nonzero(losses.upper)
        directions = losses.table.directions[losses.labels[example], slot]
        xi, xi_cost = np.arange(len(example)), losses.upper[example, slot]
    else:
        example, slot = np.nonzero(losses.anchor[:, None] != np.arange(k))
        directions = np.eye(k)[slot] - np.eye(k)[losses.anchor[example]]
        xi, xi_cost = example, losses.weight
    terms, t, t_cost = penalty_terms(problem.penalty, k, p)
    n_hinges, n_xi, n_terms, n_t = len(example), len(xi_cost), terms.shape[0], len(t_cost)
    hinge_rows = sparse.hstack(
        [
            np.hstack([directions[:, [c]] * X[example] for c in range(k)]),
            directions,
            sparse.csr_array((-np.ones(n_hinges), (np.arange(n_hinges), xi)), shape=(n_hinges, n_xi)),
            sparse.csr_array((n_hinges, n_t)),
        ]
    )
    between = sparse.csr_array((n_terms, k + n_xi))
    below = sparse.csr_array((-np.ones(n_terms), (np.arange(n_terms), t)), shape=(n_terms, n_t))
    zero_sums = sparse.block_diag([sparse.kron(np.ones((1, k)), sparse.eye(p)), np.ones((1, k))])
    program = {
        "c": np.concatenate([np.zeros(k * p + k), problem.C * xi_cost, t_cost]),
        "A_ub": sparse.vstack(
            [hinge_rows, sparse.hstack([terms, between, below]), sparse.hstack([-terms, between, below])]
        ).tocsr(),
        "b_ub": np.concatenate([np.full(n_hinges, -losses.offset), np.zeros(2 * n_terms)]),
        "A_eq": sparse.hstack([zero_sums, sparse.csr_array((p + 1, n_xi + n_t))]).tocsr(),
        "b_eq": np.zeros(p + 1),
        "bounds": [(None, None)] * (k * p + k) + [(0, None)] * (n_xi + n_t),
        "options": {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    }
    for method in ("highs-ds", "highs-ipm"):
        result = scipy.optimize.linprog(**program, method=method)
        if result.status == 0:
            break
    assert result.status == 0, f"the reference solver says {result.message}"
    return result.fun


def penalty_terms(penalty: Penalty, k: int, p: int) -> tuple[sparse.sparray, np.ndarray, np.ndarray]:
    """Rows A over vec(W) with ``J(W) = min cost.t`` subject to ``|A vec(W)| <= t[index]``: A, index, cost."""
    if isinstance(penalty, LassoPenalty):
        return sparse.eye_array(k * p), np.arange(k * p), penalty.weights.ravel()
    if isinstance(penalty, SupnormPenalty):
        return sparse.diags_array(penalty.weights.ravel()), np.tile(np.arange(p), k), np.ones(p)
    pairs = class_pairs(k)
    differences = np.eye(k)[pairs[:, 0]] - np.eye(k)[pairs[:, 1]]
    weights = np.ones((len(pairs), p)) if penalty.weights is None else penalty.weights
    return sparse.kron(differences, sparse.eye(p)), np.arange(weights.size), weights.ravel()


def polar_by_program(penalty: Penalty, g: np.ndarray) -> float:
    """``max {g.w : 1'w = 0, P(w) <= 1}`` of a penalty on one variable."""
    k = len(g)
    terms, t, t_cost = penalty_terms(penalty, k, 1)
    below = sparse.csr_array((-np.ones(len(t)), (np.arange(len(t)), t)), shape=(len(t), len(t_cost)))
    budget = np.append(np.zeros(k), t_cost)[None]
    result = scipy.optimize.linprog(
        np.append(-g, np.zeros(len(t_cost))),
        A_ub=sparse.vstack([sparse.hstack([terms, below]), sparse.hstack([-terms, below]), budget]).tocsr(),
        b_ub=np.append(np.zeros(2 * len(t)), 1.0),
        A_eq=np.append(np.ones(k), np.zeros(len(t_cost)))[None],
        b_eq=[0.0],
        bounds=[(None, None)] * k + [(0, None)] * len(t_cost),
    )
    assert result.status == 0, f"the reference solver says {result.message}"
    return -result.fun
