"""Independent solutions of the problems by general-purpose solvers, for the reference tests."""

import clarabel
import numpy as np
from scipy import sparse

from polymargin.problems.hinge import BoxLosses, HingeProblem


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
