"""Left-out scores of a hinge machine from refits without some rows, each from the solution with all of them."""

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from polymargin.gram import restricted
from polymargin.problems.hinge import HingePoint, HingeProblem, polyhedral
from polymargin.solvers.contract import Settings
from polymargin.solvers.hinge.left_out import frozen_left_out_scores
from polymargin.solvers.hinge.left_out_by_curvature import curved_left_out_scores
from polymargin.solvers.hinge.portfolio import Portfolio
from polymargin.solvers.hinge.settings import ROUGHLY, LeftOutSettings


def left_out_scores(
    problem: HingeProblem,
    point: HingePoint,
    settings: Settings,
    tuning: LeftOutSettings = ROUGHLY,
    *,
    scores: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Scores (n, k) that every training row would get from a machine fitted without it.

    They are those of the frozen active set, for losses that the compiled loops do not know those of a Newton step.
    In a small sample, where each row counts, the system of the set is solved whole, and some rows move a score of
    theirs by a whole margin: others then cross their hinges, and the set changes. Without these few there are
    refits. `scores` are those with all rows, where they are known.
    """
    if scores is None:
        scores = problem.gram.matmul(problem.model(point)) + point.intercept
    if not problem.losses.is_compiled:
        return curved_left_out_scores(problem, point, tuning, scores)
    is_small = len(scores) <= tuning.refitted_rows
    whole = replace(tuning, by_score=math.inf) if is_small else tuning
    left_out = frozen_left_out_scores(problem, point, whole, scores)
    if is_small:
        far = np.flatnonzero(np.abs(left_out - scores).max(axis=1) > tuning.far)
        left_out[far] = refitted_left_out_scores(problem, point, far, settings)
    return left_out


def refitted_left_out_scores(
    problem: HingeProblem, point: HingePoint, rows: Iterable[int], settings: Settings
) -> NDArray[np.float64]:
    """Scores that each of some rows gets from a machine refitted without it.

    C weighs the sum of the losses, so that it stays as it is: lambda' = lambda n/(n-1) in the paper's terms.
    """
    losses = polyhedral(problem.losses, "Refits without a row")
    R = problem.coefficients(point.dual)
    everyone = np.arange(problem.gram.n)
    scores = []
    for row in rows:
        rest = np.delete(everyone, row)
        of_rest = losses.restricted(rest)
        smaller = HingeProblem(restricted(problem.gram, rest), of_rest, problem.fit_intercept)
        start = HingePoint(of_rest.dual_of(R[rest]), point.intercept)
        refit = Portfolio().solve(smaller, settings, start=start).point
        to_rest = problem.gram.block(np.array([row]), rest)[0]
        scores.append(to_rest @ smaller.model(refit) + refit.intercept)
    return np.reshape(scores, (-1, losses.n_classes))
