"""Independent solutions of the problems by general-purpose solvers, for the reference tests."""

import clarabel
import numpy as np
import scipy.optimize
from scipy import sparse

from polymargin.coding import class_pairs
from polymargin.problems.hinge import BoxLosses, HingeProblem
from polymargin.problems.penalties import LassoPenalty, Penalty, SupnormPenalty
from polymargin.problems.sparse import SparseProblem


def hinge_optimum(problem: HingeProblem) -> float:
    """Optimal value of a hinge machine: its dual as one dense QP, solved by Clarabel.

    ``min 1/2 tr(R'KR) - <offsets, a>`` over the dual variables a, with ``vec(R) = constant + matrix a``.
    """
    losses = problem.losses
    n, k = losses.n_examples, losses.n_classes
    if isinstance(losses, BoxLosses):
        example, column = np.nonzero(losses.upper)
        coefficients = -losses.directions[losses.labels[example], column]
        offsets = np.full(len(example), losses.offset)
        constant = np.zeros((n, k))
        n_variables = len(example)
        bounds = [
            (sparse.eye(n_variables), losses.upper[example, column], clarabel.NonnegativeConeT(n_variables)),
            (-sparse.eye(n_variables), np.zeros(n_variables), clarabel.NonnegativeConeT(n_variables)),
        ]
    else:
        n_pairs = len(losses.weight)
        example = np.repeat(losses.example, k)
        column = np.tile(np.arange(k), n_pairs)
        coefficients = -np.eye(k)[column]
        offsets = losses.offset * (column != np.repeat(losses.anchor, k))
        constant = losses.coefficients(np.zeros((n_pairs, k)))
        n_variables = n_pairs * k
        sums = sparse.kron(sparse.eye(n_pairs), np.ones((1, k)))
        bounds = [
            (sums, losses.weight, clarabel.ZeroConeT(n_pairs)),
            (-sparse.eye(n_variables), np.zeros(n_variables), clarabel.NonnegativeConeT(n_variables)),
        ]
    if problem.tilt is not None:
        constant = constant - problem.tilt

    K = problem.gram.block(np.arange(n))
    map_to_R = sparse.csc_array(
        (
            coefficients.ravel(),
            ((example[:, None] * k + np.arange(k)).ravel(), np.repeat(np.arange(n_variables), k)),
        ),
        shape=(n * k, n_variables),
    )
    weighted = (K @ (map_to_R.toarray().reshape(n, -1))).reshape(n * k, n_variables)
    quadratic = map_to_R.T @ weighted
    linear = weighted.T @ constant.ravel() - offsets
    rows, right_sides, cones = map(list, zip(*bounds, strict=True))
    if problem.fit_intercept:
        # the last class's sum follows from the others, as rows of R sum to zero
        class_sums = sparse.kron(np.ones((1, n)), sparse.eye(k)).tocsr()[: k - 1]
        rows.append(class_sums @ map_to_R)
        right_sides.append(-(class_sums @ constant.ravel()))
        cones.append(clarabel.ZeroConeT(k - 1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    settings.max_iter = 400
    symmetric = sparse.csc_matrix(np.triu((quadratic + quadratic.T) / 2))
    solution = clarabel.DefaultSolver(
        symmetric,
        linear,
        sparse.csc_matrix(sparse.vstack(rows)),
        np.concatenate(right_sides),
        cones,
        settings,
    ).solve()
    status = str(solution.status)
    assert status in ("Solved", "AlmostSolved"), f"the reference solver says {status}"
    return -(solution.obj_val + 0.5 * float(np.vdot(constant, K @ constant)))


def sparse_optimum(problem: SparseProblem) -> float:
    """Optimal value of a sparse machine: the whole primal (7) of Guo as one linear program, solved by HiGHS.

    Variables: W by classes, b, the values xi of the losses, and the terms t of the penalty.
    """
    X, losses = np.asarray(problem.X), problem.losses
    p, k = X.shape[1], losses.n_classes
    if isinstance(losses, BoxLosses):
        example, slot = np.nonzero(losses.upper)
        directions = losses.directions[losses.labels[example], slot]
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
