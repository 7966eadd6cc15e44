"""Structured primal-dual interior point for the hinge machines on few features.

The losses are blocks of slots (see `_slots`): with margins ``m(F)``, epigraph variables xi and slacks
``s = xi - m(F) >= 0``, the conditions of optimality are

    [W; 0] = X'R(alpha) in the zero-sum basis,   sum of alpha over a block = weight,   alpha s = 0.

Eliminating alpha, s and xi leaves a system in the few unknowns Z of ``F = X Z B'`` (B the zero-sum basis, X with a
column of ones for the intercept), whose matrix ``I + sum_t (B'a_t)(B'a_t)' kron X' diag(w_t) X`` is a sum over the
atoms a_t of the losses, assembled by weighted products of the features with themselves. The blocks' sums and the
definition of s hold from the start; the first condition holds in the limit, and to rounding in the point returned.

Reference: Mehrotra, S. (1992). On the implementation of a primal-dual interior point method. SIAM J. Optimization.
"""

from typing import Any

import numpy as np

from polymargin._native.dense_system import DenseSystem
from polymargin.gram import FeatureGram
from polymargin.problems.hinge import HingeProblem, PartitionedHinge
from polymargin.solvers.contract import Accepted, Observer, Progress, Settings, Solution, Status, accepts_kinds
from polymargin.solvers.hinge._blocks import SimplexBlocks
from polymargin.solvers.hinge._models import Judged, Model, NearKinks, PartitionedModel
from polymargin.solvers.hinge._newton_system import NewtonSystem
from polymargin.threads import large_products

CORRECTIONS = 2
"""Centrality corrections (Gondzio, 1996) tried in an iteration whose step is short."""

FEW_FEATURES = 5
"""Features up to which a matrix is assembled as quickly as a correction is found, so that none are tried."""

STRETCH, NARROWEST, WIDEST = 20.0, 0.03, 1.0
"""A tilt moved by a part t of all weights is answered from the last solution's scores with a relative gap of
`STRETCH` t, at least `NARROWEST`; where that is more than `WIDEST`, a start from afar is nearer."""

CAUTIOUS, BOLD = 0.995, 0.9999
"""Parts of the way to the boundary that a step goes at least, and at most."""

REFINEMENTS = 5
"""Most times that a direction is solved for again to remove rounding."""

PATIENCE = 20
"""Iterations near the solution without progress after which rounding is taken to allow no more."""

MOST_STEPS_WITHOUT_GAIN = 50
"""Steps that need not lower the gap by a tenth; where rows have lost their digits steps can go in circles."""

MOST_SHORT_STEPS = 30
"""Short steps in a row after which the iterate is taken to be stuck; curved losses take some on their way."""


MOST_SHORT_STEPS_NEARBY = 8
"""The same of a start at the last solution's scores."""

SHARE = 0.25
"""Part of the losses, those nearest to a kink, that a problem near the last one is restricted to."""

MOST_FAILURES = 6
"""Times in a row that such a restriction may turn out to be too tight, after which there is none."""

ENTRIES_VISITED = 20
"""Times that an iteration goes over all slots, about."""

PROMISE = 0.3
"""Part of the improvement foretold by the losses near a kink that all losses together must show."""


class InteriorPoint:
    """Predictor-corrector interior point; O(n p^2) an iteration for every atom of the losses.

    `features` stand for the problem's gram where that is no `FeatureGram`: rows whose inner products are the gram
    to rounding (a pivoted Cholesky factor). The certificate is the problem's own all the same.
    """

    name = "interior_point"

    def __init__(self, features: Any = None):
        self.features = features
        self._model: Model | None = None
        self._last: tuple[Any, Any, float] | None = None
        self._failures = 0

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        if isinstance(problem, HingeProblem) and problem.losses.shape == "other":
            return "its losses must be hinges or maxima."
        if isinstance(problem, HingeProblem) and self.features is None:
            return accepts_kinds(problem.gram, FeatureGram)
        return accepts_kinds(problem, HingeProblem, PartitionedHinge)

    def solve(
        self,
        problem: HingeProblem | PartitionedHinge,
        settings: Settings,
        *,
        start: Any = None,
        observer: Observer | None = None,
    ) -> Solution:
        """Solve `problem`; of a `start` the dual point is used, drawn into the interior.

        Start and solution are a `HingePoint`, or a `PartitionedPoint` of a problem in partitions. With a start, a
        problem that differs little from the last one by its tilt is solved from that one's solution instead, by
        the losses near a kink there; by all of them where those turn out to be too few.
        """
        model = self._model_of(problem)
        near = None if start is None else self._going_on(model)
        model, system = (model, model.first_system(start)) if near is None else near
        best: Judged | None = None
        idle = short = waited = 0
        least = np.inf
        restricted, worthwhile, too_tight = isinstance(model, NearKinks), False, False
        size = 0.0 if isinstance(model, PartitionedModel) else float(np.prod(model.features.shape))
        with large_products(size), Progress(settings, observer, method=self.name) as progress:
            for _ in progress:
                record = progress.record(*model.objectives(system))
                waited = 0 if record.gap < 0.9 * least else waited + 1
                least = min(least, record.gap)
                if record.gap <= settings.tolerance(record.primal):
                    previous = np.inf if best is None else best[1].gap
                    best = model.better(best, system)
                    if best[1].within(settings.tolerance(best[1].primal)):
                        break
                    too_tight = isinstance(model, NearKinks)
                    worthwhile = too_tight and _keeps_promise(settings, record.primal, best[1].primal)
                    if worthwhile:
                        break
                    idle = 0 if best[1].gap < 0.9 * previous else idle + 1
                if too_tight or (near is not None and short == MOST_SHORT_STEPS_NEARBY):
                    model, near, short, too_tight = model.whole, None, 0, False
                    system, least = model.first_system(start), np.inf
                    continue
                if idle == PATIENCE or short == MOST_SHORT_STEPS or waited >= MOST_STEPS_WITHOUT_GAIN:
                    progress.status = Status.STALLED
                    break
                _count_iteration(progress, model)
                try:
                    with np.errstate(over="raise", divide="raise", invalid="raise"):
                        short = short + 1 if _predictor_corrector(system) < 0.05 else 0
                except (np.linalg.LinAlgError, FloatingPointError):
                    too_tight = isinstance(model, NearKinks)
                    if not too_tight:
                        progress.status = Status.NUMERICAL_ERROR
                        break
            if best is None or not (worthwhile or best[1].within(settings.tolerance(best[1].primal))):
                best = model.better(best, system)
            solution = progress.finish(*best)
            if restricted:
                self._failures = 0 if isinstance(model, NearKinks) else self._failures + 1
            going_on = worthwhile or solution.status is Status.SOLVED
            self._last = (model, system, best[1].primal) if going_on else None
            return solution

    def _going_on(self, model: "Model | PartitionedModel") -> "tuple[Any, Any] | None":
        """Return model and system of the last problem where this is the same, or the losses near a kink there.

        Tilts in partitions are not compared.
        """
        if self._last is None or isinstance(model, PartitionedModel):
            return None
        last, system, primal = self._last
        moved = model.distance(last.whole)
        if moved == 0.0:
            return last, system
        width = max(STRETCH * moved, NARROWEST)
        if width > WIDEST or not model.is_plain:
            return None
        if self._failures < MOST_FAILURES:
            model = model.near_kinks(model.scores(system), SHARE)
        return model, model.central_system(system.Z, model.product_of(width, primal))

    def _model_of(self, problem: HingeProblem | PartitionedHinge) -> "Model | PartitionedModel":
        if isinstance(problem, PartitionedHinge):
            return PartitionedModel(problem)
        # what does not depend on the tilt is kept from one step of the DC algorithm to the next
        if self._model is None or not self._model.fits(problem):
            self._model = Model(problem, self.features)
        return self._model.tilted(problem)


def operations_per_iteration(n: int, p: int, n_classes: int, n_atoms: int) -> tuple[float, float]:
    """Return the operations of products and of factorisations, for n rows of p features, the constant included."""
    if n_atoms == n_classes:  # the classes fall apart but for their zero sum
        return float(n_atoms) * n * p**2, float(n_classes) * p**3
    unknowns = p * (n_classes - 1)
    return float(n_atoms) * (n * p**2 + unknowns**2), unknowns**3 / 3.0


def _count_iteration(progress: Progress, model: "Model | PartitionedModel") -> None:
    if isinstance(model, PartitionedModel):
        return
    (n, p), k = model.features.shape, len(model.unknowns.basis)
    products, factors = operations_per_iteration(n, p, k, len(model.slots.atoms))
    progress.count("product", products)
    progress.count("factor", factors)
    progress.count("entry", ENTRIES_VISITED * model.slots.offsets.size)


def _keeps_promise(settings: Settings, foretold: float, primal: float) -> bool:
    """Tell whether a step that may be inexact has lowered the objective about as much as was foretold."""
    if settings.reference is None:
        return False
    promise = settings.reference - foretold
    return promise > 0.0 and settings.reference - primal >= PROMISE * promise


def _predictor_corrector(system: "NewtonSystem | DenseSystem") -> float:
    """Move the iterate by one step of Mehrotra's method with Gondzio's corrections; return its length."""
    mu = system.linearise()
    length = min(1.0, system.predict())
    # a block's part in the products is that of its weight: so weights are repetition on the central path too
    aim = mu * (system.reached(length) / mu) ** 3
    length = system.correct(aim, REFINEMENTS)
    few_features = isinstance(system.blocks, SimplexBlocks) and system.Z.shape[1] <= FEW_FEATURES
    for _ in range(0 if few_features else CORRECTIONS):
        if length > 0.9:
            break
        corrected = system.recentre(min(1.0, length + 0.1), length + 0.01)
        if corrected is None:
            break
        length = corrected
    # the better the prediction, the nearer to the boundary
    fraction = min(max(CAUTIOUS, 1.0 - aim / mu), BOLD)
    length = system.blocks.trusted(min(1.0, fraction * length))
    system.advance(length)
    return length
