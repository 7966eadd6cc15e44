"""Left-out scores of a machine of any convex loss from one fit: a step of Newton's method without each row.

With u the coefficients of the scores in features, and B_i the curvature that row i gives its scores f_i, the
matrix of Newton's method is ``A = I + sum_i x_i x_i' kron B_i``. S_i being the part of its inverse that f_i sees,
the step without row i moves f_i by ::

    (S_i^-1 - B_i)^-1 gradient of the row's loss = -S_i (I - B_i S_i)^-1 R_i.

For smooth losses this is the usual approximation, exact where they are quadratic. Of hinges, B_i is that of the
smooth problem of `general` at a small width: free dual variables are pinned, those at bounds stay there, which is
the frozen active set of `left_out`.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse

from polymargin.problems.hinge import HingePoint, HingeProblem
from polymargin.problems.hinge.losses import Losses
from polymargin.solvers.hinge.general import DEFAULTS, SmoothModel
from polymargin.solvers.hinge.settings import LEFT_OUT, LeftOutSettings
from polymargin.threads import cho_factor

Array = NDArray[np.float64]


def curved_left_out_scores(
    problem: HingeProblem, point: HingePoint, tuning: LeftOutSettings, scores: Array | None = None
) -> Array:
    """Scores (n, k) that every training row would get from a machine fitted without it.

    `scores` are those with all rows, where they are known.
    """
    if scores is None:
        scores = problem.gram.matmul(problem.model(point)) + point.intercept
    # a hinge that is tight has so much curvature that the damping of a fit would hold the intercepts
    model = SmoothModel(problem, replace(DEFAULTS, damping=tuning.rank), point)
    sizes = np.broadcast_to(problem.losses.sizes, point.dual.shape)
    heaviest = float(sizes.max(initial=0.0)) * max(float(problem.gram.diagonal().mean()), np.finfo(float).tiny)
    B = model.curvature(scores, tuning.width * min(heaviest, problem.losses.offset))
    factor = cho_factor(model.matrix(B))[0]
    lost = problem.coefficients(point.dual) @ model.basis
    moved, r = np.empty_like(lost), lost.shape[1]
    height = max(1, tuning.entries_at_a_time // (r * len(factor)))
    for first in range(0, len(lost), height):
        rows = slice(first, first + height)
        S = _seen(factor, model.X[rows], r)
        # rows that alone tell of a score leave a singular matrix: what nothing else tells is taken to stay
        rest = np.linalg.pinv(np.eye(r) - B[rows] @ S, rcond=tuning.rank)
        moved[rows] = np.einsum("icd,ide,ie->ic", S, rest, lost[rows])
    return scores - moved @ model.basis.T


def has_block_per_row(losses: Losses) -> bool:
    """Tell whether every row has one block of dual variables, which the smooth problem needs."""
    return losses.is_compiled or len(losses.resting_dual()) == losses.n_examples


def smooth_dual(problem: HingeProblem, R: Array, intercept: Array, tuning: LeftOutSettings = LEFT_OUT) -> Array:
    """Return the dual point of a solution by its scores, where the losses are smooth."""
    losses = problem.losses
    margins = losses.margins(problem.gram.matmul(R) + intercept)
    return losses.proximal(margins, losses.resting_dual(), tuning.ridge * losses.offset)


def _seen(factor: Array, X: Any, r: int) -> Array:
    """Return what rows (m, features) see of the inverse of the factorised matrix, (m, r, r)."""
    m, size = X.shape
    columns = X.T.toarray() if sparse.issparse(X) else X.T
    lifted = np.zeros((r, size, m, r))
    for c in range(r):
        lifted[c, :, :, c] = columns
    half = scipy.linalg.solve_triangular(
        factor, lifted.reshape(r * size, m * r), lower=True, overwrite_b=True, check_finite=False
    ).reshape(r * size, m, r)
    return np.einsum("aic,aid->icd", half, half, optimize=True)
