"""Independent solutions of the problems by general-purpose solvers, for the reference tests."""

import clarabel
import numpy as np
from scipy import sparse

from polymargin.problems.hinge import BoxLosses, HingeProblem


def hinge_program(problem: HingeProblem) -> tuple:
    """Return a hinge machine as ``min 1/2 x'Px + q'x, Ax <= b`` in features, intercepts and epigraph variables.

    Features come from the eigenvectors of the kernel matrix, whatever the gram; the last class's function is minus
    the sum of the others.
    """
    losses = problem.losses
    n, k = losses.n_examples, losses.n_classes
    values, vectors = np.linalg.eigh(problem.gram.block(np.arange(n)))
    keep = values > values[-1] * n * np.finfo(float).eps
    features = vectors[:, keep] * np.sqrt(values[keep])
    rank = features.shape[1]
    if problem.fit_intercept:
        features = np.hstack([features, np.ones((n, 1))])
    spread = np.vstack([np.eye(k - 1), -np.ones((1, k - 1))])
    scores = sparse.csr_matrix(np.kron(features, spread))

    if isinstance(losses, BoxLosses):
        example, hinge = np.nonzero(losses.upper)
        weight = losses.upper[example, hinge]
        blocks = np.arange(len(weight))
        rows, offsets = losses.directions[losses.labels[example], hinge], np.full(len(weight), losses.offset)
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


def hinge_optimum(problem: HingeProblem) -> float:
    """Optimal value of a hinge machine: its primal as one QP, solved by Clarabel.

    The objective is divided by the largest weight, so that the solver's tolerances mean the same for every C.
    """
    P, q, A, b = hinge_program(problem)
    scale = max(1.0, np.abs(q).max())
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    settings.max_iter = 400
    cones = [clarabel.NonnegativeConeT(len(b))]
    solution = clarabel.DefaultSolver(
        sparse.triu(P / scale, format="csc"), q / scale, A, b, cones, settings
    ).solve()
    status = str(solution.status)
    assert status in ("Solved", "AlmostSolved"), f"the reference solver says {status}"
    return scale * solution.obj_val
