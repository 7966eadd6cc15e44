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

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from polymargin._native.dense_system import DenseSystem
from polymargin._native.hinge_blocks import HingeBlocks
from polymargin.gram import FeatureGram
from polymargin.problems.hinge import HingeProblem, PartitionedHinge
from polymargin.solvers.contract import Accepted, Observer, Progress, Settings, Solution, Status, accepts_kinds
from polymargin.solvers.effort import RATES, Operations
from polymargin.solvers.hinge._blocks import SimplexBlocks
from polymargin.solvers.hinge._models import Iterate, Judged, Model, NearKinks, PartitionedModel
from polymargin.solvers.hinge._newton_system import NewtonSystem
from polymargin.solvers.hinge._rows import is_by_class
from polymargin.solvers.hinge.settings import INTERIOR, InteriorSettings


class InteriorPoint:
    """Predictor-corrector interior point; O(n p^2) an iteration for every atom of the losses.

    `features` stand for the problem's gram where that is no `FeatureGram`: rows whose inner products are the gram
    to rounding (a pivoted Cholesky factor). The certificate is the problem's own all the same.
    """

    name = "interior_point"

    def __init__(self, features: Any = None, tuning: InteriorSettings = INTERIOR):
        self.features, self.tuning = features, tuning

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

        Start and solution are a `HingePoint`, or a `PartitionedPoint` of a problem in partitions.
        """
        return InteriorSequence(self.features, self.tuning).solve(
            problem, settings, start=start, observer=observer
        )


class InteriorSequence(InteriorPoint):
    """The same for problems one after the other that differ little, by their tilt: it remembers the last one.

    With a start, such a problem is solved from the last one's solution instead, by the losses near a kink there;
    by all of them where those turn out to be too few.
    """

    def __init__(self, features: Any = None, tuning: InteriorSettings = INTERIOR):
        super().__init__(features, tuning)
        self._model: Model | None = None
        self._last: tuple[Any, Any, float] | None = None
        self._failures = 0

    def solve(
        self,
        problem: HingeProblem | PartitionedHinge,
        settings: Settings,
        *,
        start: Any = None,
        observer: Observer | None = None,
    ) -> Solution:
        """Solve the next problem."""
        tuning = self.tuning
        model = self._model_of(problem)
        near = None if start is None else self._warm_start(model)
        model, system = (model, model.first_system(start)) if near is None else near
        best: Judged | None = None
        nearest: Iterate | None = None
        idle = short = waited = 0
        least, is_cold = np.inf, start is None
        restricted, worthwhile, too_tight = isinstance(model, NearKinks), False, False
        with Progress(settings, observer, method=self.name) as progress:
            for _ in progress:
                record = progress.record(*model.objectives(system))
                gap = record.gap
                waited = 0 if gap < tuning.gain * least else waited + 1
                if gap < min(least, tuning.kept_gap):
                    nearest = _kept(model, system)
                least = min(least, gap)
                if gap <= settings.tolerance(record.primal):
                    previous = np.inf if best is None else best[1].gap
                    best = model.better(best, system)
                    if best[1].within(settings.tolerance(best[1].primal)):
                        break
                    too_tight = isinstance(model, NearKinks)
                    worthwhile = too_tight and _decreases_enough(
                        settings, record.primal, best[1].primal, tuning.min_decrease_ratio
                    )
                    if worthwhile:
                        break
                    idle = 0 if best[1].gap < tuning.gain * previous else idle + 1
                if too_tight or (near is not None and short == tuning.short_steps_nearby):
                    model, near, short, too_tight = model.whole, None, 0, False
                    system, least, nearest = model.first_system(start), np.inf, None
                    continue
                # an iterate that has been at the solution, by its own sums, is held there by rounding alone
                is_there = best is not None and not model.is_curved
                most_short = tuning.short_steps_nearby if is_there else tuning.short_steps
                if idle == tuning.patience or short >= most_short or waited >= tuning.steps_without_gain:
                    if is_cold or is_there or isinstance(model, PartitionedModel):
                        progress.status = Status.STALLED
                        break
                    # near another problem's solution the way may be too narrow: from the middle it is not
                    model, near, is_cold = model.whole, None, True
                    system, least, nearest = model.first_system(None), np.inf, None
                    idle = short = waited = 0
                    continue
                _count_iteration(progress, model, is_compiled=isinstance(system, DenseSystem))
                least_aim = tuning.centred * model.product_of(gap, record.primal) if model.is_curved else 0.0
                try:
                    with np.errstate(over="raise", divide="raise", invalid="raise"):
                        length = _predictor_corrector(system, tuning, least_aim)
                        short = short + 1 if length < tuning.short_step else 0
                except (np.linalg.LinAlgError, FloatingPointError):
                    too_tight = isinstance(model, NearKinks)
                    if not too_tight:
                        progress.status = Status.NUMERICAL_ERROR
                        break
            if best is None or not (worthwhile or best[1].within(settings.tolerance(best[1].primal))):
                best = model.better(best, system)
                if nearest is not None and isinstance(model, Model):
                    best = model.better_of(best, nearest)
            solution = progress.finish(*best)
            if restricted:
                self._failures = 0 if isinstance(model, NearKinks) else self._failures + 1
            is_a_start = worthwhile or solution.status is Status.SOLVED
            self._last = (model, system, best[1].primal) if is_a_start else None
            return solution

    def _warm_start(self, model: "Model | PartitionedModel") -> "tuple[Any, Any] | None":
        """Return model and system of the last problem where this is the same, or the losses near a kink there.

        Tilts in partitions are not compared.
        """
        if self._last is None or isinstance(model, PartitionedModel):
            return None
        last, system, primal = self._last
        moved = model.distance(last.whole)
        if moved == 0.0:
            return last, system
        width = max(self.tuning.stretch * moved, self.tuning.narrowest)
        if width > self.tuning.widest or not model.is_plain:
            return None
        if self._failures < self.tuning.failures:
            model = model.near_kinks(model.scores(system), self.tuning)
        return model, model.central_system(system.Z, model.product_of(width, primal))

    def _model_of(self, problem: HingeProblem | PartitionedHinge) -> "Model | PartitionedModel":
        if isinstance(problem, PartitionedHinge):
            return PartitionedModel(problem)
        # what does not depend on the tilt is kept from one step of the DC algorithm to the next
        if self._model is None or not self._model.fits(problem):
            self._model = Model(problem, self.features)
        return self._model.tilted(problem)


@dataclass(frozen=True, slots=True)
class Size:
    """What the work of an iteration depends on.

    Attributes
    ----------
    n, p : rows and features, the constant included.
    n_classes, n_atoms : of the losses.
    n_slots : of all losses.
    is_compiled : whether an iteration is compiled as a whole.
    """

    n: int
    p: int
    n_classes: int
    n_atoms: int
    n_slots: int
    is_compiled: bool = False


def operations_per_iteration(size: Size, tuning: InteriorSettings = INTERIOR) -> Operations:
    """Return the operations of an iteration."""
    n, p, k, of_classes = size.n, size.p, size.n_classes, 0.0
    if size.n_atoms == k:  # the classes fall apart but for their zero sum
        products, factors = float(k) * n * p**2, float(k) * p**3
        of_classes = float(tuning.class_products) * k * p**2
    elif is_by_class(size.n_atoms, k):
        products, factors = n * float(p * k) ** 2 + 2.0 * p**2 * float(k) ** 3, (p * (k - 1.0)) ** 3 / 3.0
    else:
        unknowns = p * (k - 1)
        products, factors = float(size.n_atoms) * (n * p**2 + unknowns**2), unknowns**3 / 3.0
    return {
        "product": products,
        "stream": float(tuning.thin_products) * n * p * k + of_classes,
        "factor": factors,
        "entry": float(tuning.entries_visited) * size.n_slots,
        "call": tuning.compiled_calls if size.is_compiled else tuning.calls,
    }


def _count_iteration(progress: Progress, model: "Model | PartitionedModel", *, is_compiled: bool) -> None:
    if isinstance(model, PartitionedModel):
        return
    (n, p), k, slots = model.features.shape, len(model.unknowns.basis), model.slots
    progress.work += _work_per_iteration(n, p, k, slots.atoms.shape[0], slots.offsets.size, is_compiled)


@lru_cache
def _work_per_iteration(*size: Any) -> float:
    """Return the work of an iteration by its size, which all iterations of a fit share."""
    return RATES.work(operations_per_iteration(Size(*size)))


def _kept(model: "Model | PartitionedModel", system: Any) -> Iterate | None:
    """Return a copy of an iterate near the solution: where rounding ruins the steps behind it, it is the best.

    None of rows in partitions, of which there are too many to copy.
    """
    return None if isinstance(model, PartitionedModel) else Iterate(*map(np.copy, model.iterate(system)))


def _decreases_enough(settings: Settings, foretold: float, primal: float, min_ratio: float) -> bool:
    """Tell whether a step that may be inexact has lowered the objective by this part of what was foretold."""
    if settings.reference is None:
        return False
    decrease = settings.reference - foretold
    return decrease > 0.0 and settings.reference - primal >= min_ratio * decrease


def _predictor_corrector(
    system: "NewtonSystem | DenseSystem", tuning: InteriorSettings, least_aim: float = 0.0
) -> float:
    """Move the iterate by one step of Mehrotra's method with Gondzio's corrections; return its length.

    Products of dual slots and slacks that have fallen below `least_aim` are aimed there.
    """
    mu = system.linearise()
    length = min(1.0, system.predict())
    # a block's part in the products is that of its weight: so weights are repetition on the central path too
    aim = mu * (system.reached(length) / mu) ** 3 if mu >= least_aim else least_aim
    length = system.correct(aim, tuning.refinements)
    corrections, hoped = _corrections(system, tuning)
    for _ in range(corrections):
        if length > tuning.good_step:
            break
        corrected = system.recentre(min(1.0, length + hoped), length + tuning.worth)
        if corrected is None:
            break
        length = corrected
    # the better the prediction, the nearer to the boundary
    fraction = min(max(tuning.cautious, 1.0 - aim / mu), tuning.bold)
    length = system.blocks.trusted(min(1.0, fraction * length))
    system.advance(length)
    return length


def _corrections(system: "NewtonSystem | DenseSystem", tuning: InteriorSettings) -> tuple[int, float]:
    """Return how many centrality corrections are tried, and what each is to add to the step.

    The longer a matrix takes beside them, the more of them pay.
    """
    n_features = system.Z.shape[1]
    if isinstance(system.blocks, SimplexBlocks):
        return (0 if n_features <= tuning.few_features else tuning.corrections), tuning.hoped
    if n_features >= tuning.many_features and isinstance(system.blocks, HingeBlocks):
        return tuning.many_corrections, tuning.far_hoped
    return tuning.corrections, tuning.hoped
