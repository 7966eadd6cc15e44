"""The only place that chooses: which methods a hinge problem is given to, in which order, with how much work each.

Every method has an estimate of its work (`solvers.effort` says what operations take). On features the cheapest is
tried first; one that has done its share of work without reaching the tolerance is left, and the next goes on from
the best point. Block descent, whose number of sweeps nobody can foretell, goes before them as long as its pace
promises to take less than the cheapest of the others.
On a kernel matrix the decomposition runs in slices, and its pace tells what it would still take: a method that is
expected to take less, or no more than was done already, has its turn.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin.gram import FeatureGram, LazyGram, as_features, kernel_root
from polymargin.problems.hinge import HingeProblem, polyhedral
from polymargin.solvers.choice import chosen
from polymargin.solvers.contract import Solver
from polymargin.solvers.hinge.active_set import ActiveSet
from polymargin.solvers.hinge.block_descent import BlockDescent, operations_per_epoch
from polymargin.solvers.hinge.decomposition import Decomposition
from polymargin.solvers.hinge.faces import is_tractable, operations_of_face
from polymargin.solvers.hinge.feature_newton import (
    FeatureNewton,
    operations_of_answer,
    operations_of_image,
    operations_of_preconditioner,
)
from polymargin.solvers.hinge.general import GeneralNewton
from polymargin.solvers.hinge.interior_point import InteriorPoint, Size, operations_per_iteration
from polymargin.solvers.hinge.kernel_interior import (
    InsidePoint,
    KernelInteriorPoint,
    operations_to_solve,
)
from polymargin.solvers.hinge.kernel_point import whole_matrix
from polymargin.solvers.hinge.relative_splitting import RelativeSplitting
from polymargin.solvers.hinge.splitting import (
    SplitSize,
    Splitting,
    operations_to_split,
    size_of,
)
from polymargin.solvers.hinge.state import Stage, State
from polymargin.solvers.policy_settings import PolicySettings
from polymargin.solvers.stagnation import Stagnation

ON_MATRIX: dict[str, type] = {
    method.name: method for method in (Decomposition, ActiveSet, Splitting, KernelInteriorPoint)
}
ON_FEATURES: dict[str, type] = {
    method.name: method for method in (InteriorPoint, FeatureNewton, BlockDescent, Splitting, RelativeSplitting)
}
METHODS: dict[str, type] = ON_MATRIX | ON_FEATURES | {GeneralNewton.name: GeneralNewton}
"""The methods that users may name."""


@dataclass(frozen=True, slots=True)
class Policy(PolicySettings):
    """The choices, by thresholds and expectations; an instance is passed to whoever needs other ones."""

    def chosen(self, solver: Any, problem: HingeProblem) -> Solver | None:
        """Return the method for `solver`, as `choice.chosen` takes it; refuse a problem that no method accepts."""
        asked = chosen(solver, (method() for method in METHODS.values()), problem)
        if asked is not None:
            return asked[0]
        if not any(method().accepts(problem) is True for method in METHODS.values()):
            raise ValueError(f"no solver takes this problem: {Decomposition().accepts(problem)}")
        return None

    def stages(self, state: State, chosen: Solver | None = None) -> Iterator[Stage]:
        """Name one method after the other, each by what those before it have left in `state`."""
        problem = state.problem
        if chosen is not None:
            yield Stage(chosen, on_matrix=_needs_matrix(chosen))
        elif Decomposition().accepts(problem) is True and self._is_small(problem):
            yield from self._turns(state, self._small_routes(problem, state.tol))
            yield from self._stages_on_matrix(state)
        else:
            yield from self._turns(state, self.routes(problem, state.tol))

    def _turns(self, state: State, routes: Sequence[Stage]) -> Iterator[Stage]:
        """Name one method after the other until one reaches the tolerance."""
        for stage, following in zip(routes, (*routes[1:], None), strict=False):
            if stage.on_matrix:
                rival = None if following is None else following.predicted
                budget = inf if stage.budget is None else max(stage.budget, rival or 0.0)
                yield from self._stages_on_matrix(state, state.work + budget, inf if rival is None else rival)
            else:
                yield stage
            if state.is_within:
                return

    def _is_small(self, problem: HingeProblem) -> bool:
        return not isinstance(problem.gram, FeatureGram) or problem.gram.n <= self.small_rows

    def _small_routes(self, problem: HingeProblem, tol: float) -> Sequence[Stage]:
        """Return what is tried before the methods on the matrix have no limit any more.

        Fine tolerances take block descent many sweeps, and Newton steps on faces hardly more than others.
        """
        if not isinstance(problem.gram, FeatureGram):
            return ()
        kinds = (Decomposition.name, InteriorPoint.name, RelativeSplitting.name)
        others = [stage for stage in self._by_work(problem, tol) if stage.method.name in kinds]
        return *(self._descent(problem, others) if tol > self.fine else ()), *others

    def routes(self, problem: HingeProblem, tol: float) -> Sequence[Stage]:
        """Return the methods for a problem, in the order in which to try them; the last has no limit."""
        found = [stage for stage in self._routes(problem, tol) if stage.method.accepts(problem) is True]
        if not found:
            fit = (method for method in METHODS.values() if method().accepts(problem) is True)
            found = [Stage(method()) for method in fit][:1]
        return *found[:-1], replace(found[-1], budget=None)

    def _routes(self, problem: HingeProblem, tol: float) -> Sequence[Stage]:
        if not problem.losses.is_compiled:
            on_features = self._candidates(problem, tol) if isinstance(problem.gram, FeatureGram) else ()
            special = [stage for stage in on_features if stage.method.name == InteriorPoint.name]
            # a small problem is solved to its last digits by the general method, mostly
            return (
                (Stage(GeneralNewton()), *special)
                if self._is_small(problem)
                else (*special, Stage(GeneralNewton()))
            )
        if self._is_small(problem):
            return ()
        others = self._by_work(problem, tol)
        to_the_end = Stage(BlockDescent(tuning=self.block_descent))
        return *self._descent(problem, others), *others, to_the_end

    def _descent(self, problem: HingeProblem, others: Sequence[Stage]) -> Iterator[Stage]:
        """Yield block descent with a part of the work of the best of others.

        Of a small problem that is little beside its start, so that easy ones must take it less than the others.
        """
        rival = others[0].predicted or 0.0 if others else inf
        tuning = self.block_descent
        features = as_features(problem.gram, "The policy of features").features
        calls = self.rates.seconds("call", tuning.start_calls + self.descent_sweeps * tuning.epoch_calls)
        epoch = self.rates.work(operations_per_epoch(features, problem.losses, tuning))
        predicted = calls + self.descent_sweeps * epoch
        if others and (predicted < rival or not self._is_small(problem)):
            # what begins where the descent ends has the less to do; others begin anew
            goes_on = others[0].method.name == FeatureNewton.name
            kind = 0 if problem.losses.sees_single_scores else 1
            if others[0].method.name in (Splitting.name, RelativeSplitting.name):
                rival *= self.split_pace[kind]
            trial = self.matrix_trial if others[0].on_matrix else self.descent_trial[kind]
            descent = BlockDescent(tuning=tuning, rival=rival, trial=trial, goes_on=goes_on)
            yield Stage(descent, predicted, self.patience * rival)

    def _work_on_matrix(self, problem: HingeProblem, tol: float) -> float:
        """Return the work of the methods on the kernel matrix of features, about, its own included."""
        n, k = problem.losses.n_examples, problem.losses.n_classes
        gram = self._work_of_gram(problem)
        if not problem.losses.sees_single_scores or n * (k - 1) <= self.root_unknowns:
            return gram + self.tail * self._passes(problem)
        interior = self.rates.work(operations_to_solve(n, k, self.kernel_interior))
        return gram + self.tail * min(interior, self._work_of_splitting(SplitSize(n, k), tol))

    def _work_of_gram(self, problem: HingeProblem) -> float:
        """Return the work of the kernel matrix of features; sparse rows meet only in the columns they share."""
        features = as_features(problem.gram, "The policy of features").features
        if sparse.issparse(features):
            return self.rates.seconds("sweep", self._meetings(features.tocsr().indices))
        return self.rates.seconds("product", float(len(features)) * features.size)

    def _meetings(self, columns: NDArray[np.integer]) -> float:
        """Return how many pairs of stored entries share a column, about: of many entries by pairs of a sample."""
        stored, drawn = columns.size, self.drawn_entries
        if stored <= drawn:
            shared = np.bincount(columns, minlength=1).astype(np.float64)
            return float(np.vdot(shared, shared))
        at = np.random.default_rng(0).integers(0, stored, drawn)
        shared = np.bincount(columns[at]).astype(np.float64)
        # every one drawn has met itself, too
        return (float(np.vdot(shared, shared)) - drawn) * stored**2 / (drawn * (drawn - 1.0))

    def _by_work(self, problem: HingeProblem, tol: float) -> Sequence[Stage]:
        """Return the candidates, the cheapest first; splitting, which knows its pace, has the patience for two.

        Relative splitting has none left where an interior point, whose iterations hardly vary, would be done.
        """
        stages = sorted(self._candidates(problem, tol), key=self._price)
        surely = min(
            (stage.predicted or 0.0 for stage in stages if stage.method.name == InteriorPoint.name), default=inf
        )
        for at, (stage, following) in enumerate(pairwise(stages)):
            budget = stage.budget or 0.0
            if stage.method.name == Splitting.name:
                stages[at] = replace(stage, budget=max(budget, self.patience * (following.predicted or 0.0)))
            if stage.method.name == RelativeSplitting.name:
                stages[at] = replace(stage, budget=min(budget, self.patience * surely))
        return stages

    def _price(self, stage: Stage) -> float:
        """Return what a method may take, by which those on features are put in order."""
        risk = self.split_risk if stage.method.name == Splitting.name else 1.0
        return risk * (stage.predicted or 0.0)

    def _candidates(self, problem: HingeProblem, tol: float) -> Sequence[Stage]:
        """Return the methods other than block descent that can take the features, with their work."""
        n, p, k = _shape(problem)
        digits = log(min(max(tol, self.exact), self.near)) / log(self.usual)
        single = problem.losses.sees_single_scores
        found: list[tuple[Solver, float]] = []
        falls_apart = single and p <= self.newton_features
        if falls_apart or (p + 1) * (k - 1) <= self.interior_unknowns:
            iterations = self.interior_iterations[0 if single else 1]
            work = digits**self.interior_growth * iterations * self._interior_iteration(problem, p + 1)
            found.append((InteriorPoint(tuning=self.interior_point), work))
        to_split = Splitting(self.splitting)
        can_split = p <= self.newton_features and to_split.accepts(problem) is True
        if can_split:
            found.append((to_split, self._work_of_splitting(size_of(problem), tol)))
        relative = RelativeSplitting(self.relative_splitting)
        can_split_differences = p <= self.newton_features and relative.accepts(problem) is True
        if can_split_differences:
            operations = self.relative_splitting.operations_to_solve((n, p, k), tol)
            found.append((relative, sum(map(self.rates.work, operations))))
        can_split |= can_split_differences
        if n <= self.gram_rows and (self._is_small(problem) or not can_split):
            found.append((Decomposition(self.decomposition), self._work_on_matrix(problem, tol)))
        if p <= min(n, self.newton_features):
            work = digits**self.newton_growth * self._newton_work(problem)
            found.append((FeatureNewton(self.feature_newton), work))
        return [self._stage(method, work) for method, work in found]

    def _newton_work(self, problem: HingeProblem) -> float:
        """Return the work of the proximal Newton method to a gap of 1e-3, about."""
        n, p, k = _shape(problem)
        tuning, work, kind = self.feature_newton, self.rates.work, 0 if problem.losses.sees_single_scores else 1
        rows = min(n, tuning.sampled_rows(p))
        of_no_rows = work(operations_of_image(0.0, 0, p, k, tuning))
        of_all_rows = work(operations_of_image(_stored(problem), n, p, k, tuning)) - of_no_rows
        total = (
            self.newton_preconditioners * work(operations_of_preconditioner(rows, p, k))
            + self.newton_answers * work(operations_of_answer(n * k, tuning))
            + self.newton_images[kind] * of_no_rows
            + self.newton_products[kind] * of_all_rows
        )
        return total * max(1.0, self.newton_rows_per_feature * p / n)

    def _stage(self, method: Solver, work: float) -> Stage:
        """Return a method with its budget; what the decomposition takes is not known well enough for patience."""
        on_matrix = _needs_matrix(method)
        patience = {
            InteriorPoint.name: self.interior_patience,
            FeatureNewton.name: self.newton_patience,
            RelativeSplitting.name: self.relative_patience,
        }.get(method.name, self.patience)
        budget = work if on_matrix else max(patience * work, self.shortest)
        return Stage(method, work, budget, on_matrix=on_matrix)

    def _interior_iteration(self, problem: HingeProblem, p: int) -> float:
        """Return the work of an iteration of an interior point on p features, the constant included."""
        losses, tuning = problem.losses, self.interior_point
        n, k, is_simplex = losses.n_examples, losses.n_classes, losses.shape == "simplex"
        atoms = k if losses.sees_single_scores else k * (k - 1) // 2
        is_compiled = is_simplex and p <= tuning.product_features
        size = Size(n, p, k, atoms, n * k if is_simplex else 2 * n * k, is_compiled)
        return self.rates.work(operations_per_iteration(size, tuning))

    def _passes(self, problem: HingeProblem) -> float:
        """Return the work of the decomposition, about."""
        losses, calls = problem.losses, self.judged_after * self.decomposition.round_calls
        n, k = float(losses.n_examples), losses.n_classes
        of_single_scores, of_others = (passes * n**2 * k for passes in self.working_set_passes)
        if losses.sees_single_scores:
            return self.rates.work({"sweep": of_single_scores, "call": calls})
        return self.rates.work({"sweep": of_others + self.pair_passes * k**2 * (n + k), "call": calls})

    def _stages_on_matrix(self, state: State, most: float = inf, rival: float = inf) -> Iterator[Stage]:
        """Name methods on the kernel matrix until the tolerance is reached, or so much work is done.

        They are left as soon as what is still to do takes longer than a rival, and where splitting has given up:
        behind it the interior point on the matrix took many times what it had been expected to.
        """
        while state.work < most and not (self._has_pace(state) and self._work_to_go(state) > rival):
            if rival < inf and state.has_run(Splitting.name) and not state.is_within:
                return
            stage = self._polish(state) if state.is_within else self._stage_on_matrix(state)
            if stage is None:
                return
            if stage.method.name == Splitting.name and rival < inf:  # what is behind it need not wait for long
                most_of_rival = self.split_before_rival * rival
                stage = replace(stage, budget=max(self.patience * (stage.predicted or 0.0), most_of_rival))
            yield replace(stage, on_matrix=True)

    def _work_to_go(self, state: State) -> float:
        """Return what the decomposition has still to do at its pace, or splitting, if that is to be tried."""
        to_split = self._split(state)
        predicted = None if to_split is None else to_split.predicted
        return min(state.work_to_go(self.exact), inf if predicted is None else predicted)

    def _has_pace(self, state: State) -> bool:
        """Tell whether the pace of the decomposition is known."""
        return not state.is_within and len(state.trail) >= self.judged_after

    def _stage_on_matrix(self, state: State) -> Stage | None:
        """Return what to try next; None where rounding allows no more."""
        offers = [stage for stage in (self._split(state), self._interior(state), self._newton(state)) if stage]
        if offers or state.stagnation.is_stuck:
            return min(offers, key=lambda stage: stage.predicted or 0.0, default=None)
        budget, tuning = max(self.slice_share * state.work, self.shortest_slice), self.decomposition
        short_rounds = self.judged_after if self._is_large_lee(state) else 1
        if len(state.trail) < short_rounds and self._is_lee(state):
            rows = tuning.working_set if state.trail else min(self.first_rows, tuning.working_set)
            steps = min(self.first_steps, *tuning.steps_per_example)
            tuning = replace(tuning, working_set=rows, steps_per_example=(steps, steps))
        return Stage(Decomposition(tuning), self._passes(state.problem), budget, goes_on=True)

    def _polish(self, state: State) -> Stage | None:
        """Return Newton steps beyond the tolerance where they cost little beside what it took to come near.

        Where features alone have led to a solution the matrix is not formed for them.
        """
        if state.is_settled and not state.has_matrix:
            return None
        short, long = self.shortest_polish
        at_least = min(long, state.work) if state.tol <= self.fine else 0.0
        if not state.is_settled:
            at_least = long
        work = max(self.polish_share * state.work, short, at_least)
        if state.last in (ActiveSet.name, KernelInteriorPoint.name):
            return None
        # a root of the matrix has led to a point beside its face, however small the gap
        is_exact = state.gap <= self.exact and state.last != InteriorPoint.name
        if is_exact or self._work_of_face(state, state.free()) > work:  # what is free is seen without scores
            return None
        if (predicted := self._work_of_faces(state)) > work:
            return None
        return self._faces(state, predicted, work)

    def _newton(self, state: State) -> Stage | None:
        """Return Newton steps on faces if they pay.

        That is: they and all before them cost no more than the work since the last ones, and a part of going on;
        they begin beside an interior point; or the decomposition is stuck.
        """
        is_lazy = isinstance(state.problem.gram, LazyGram)  # its steps pass over the whole matrix
        if self._is_finely_split(state) and not (
            state.has_run(KernelInteriorPoint.name) or state.stagnation.is_stuck
        ):
            return None  # splitting has not found the face, from where it stands they would end in vain
        # an interior point lies beside its face, which a few rounds find
        is_beside = state.last == KernelInteriorPoint.name and not state.stagnation.is_stuck
        if state.last == ActiveSet.name or is_beside or is_lazy:
            return None
        if (predicted := self._work_of_faces(state)) == inf:
            return None
        spent = state.work_since(ActiveSet.name)
        if state.stagnation.is_stuck or (state.last == InteriorPoint.name and state.gap <= self.near):
            return self._faces(state, predicted, max(spent, self.patience * predicted, self.cheap))
        if state.gap > self.near or (state.tol >= self.coarse and self._is_large_lee(state)):
            return None
        before = sum(row.work or 0.0 for row in state.progress.trace if row.method == ActiveSet.name)
        is_due = predicted + before <= max(spent, self.shortest_faces)
        # to fine tolerances they are taken in the end whatever they cost
        gain = 1.0 if state.tol <= self.fine else self.faces_gain
        pays = len(state.trail) > 1 and gain * predicted <= state.work_to_go(self.exact)
        return self._faces(state, predicted, self.patience * predicted) if is_due and pays else None

    def _faces(self, state: State, predicted: float, budget: float) -> Stage:
        tol = self.beyond * state.tol if state.tol > self.fine else self.exact
        has_been_inside = state.has_run(InteriorPoint.name) or state.has_run(KernelInteriorPoint.name)
        walk = self.active_set.max_walk if has_been_inside else self.far_walk
        return Stage(ActiveSet(replace(self.active_set, max_walk=walk)), predicted, budget, tol=tol)

    def _work_of_faces(self, state: State) -> float:
        """Return the work of Newton steps, from the size of the face."""
        return self._work_of_face(state, state.face())

    def _work_of_face(self, state: State, size: tuple[int, int]) -> float:
        """Return the work of Newton steps on faces of so many variables of so many examples."""
        losses, (free, rows) = polyhedral(state.problem.losses, "The size of a face"), size
        if not is_tractable(losses, max(free, 1), max(rows, 1), self.active_set):
            return inf
        return self.faces * self.rates.work(operations_of_face(losses, free, max(rows, 1), self.active_set))

    def _split(self, state: State) -> Stage | None:
        """Return splitting, once, if it takes no more than the decomposition has taken or has still to take.

        It takes its steps on the examples with variables above zero, about.
        """
        if state.has_run(Splitting.name) or not state.trail or not self._is_large_lee(state):
            return None
        n, k = state.problem.losses.n_examples, state.problem.losses.n_classes
        predicted = self._work_of_splitting(SplitSize(round(state.active_share() * n), k), state.tol)
        if self._work_of_faces(state) <= predicted:
            return None
        limit = state.progress.settings.time_limit
        to_go = state.work_to_go(self.exact)
        # where most variables end at their bounds the decomposition is slow only until they are there
        pays = state.bounded_share() < self.mostly_bounded and predicted <= self.tail * to_go
        is_due = predicted <= min(state.work, self.nearly_there * to_go)
        fits = limit is None or predicted <= self.split_share * limit
        if not (fits and (pays or is_due)):
            return None
        digits = max(log(max(state.tol, self.exact)) / log(self.usual), 1.0)
        others = digits**self.split_growth * self.rates.work(operations_to_solve(n, k, self.kernel_interior))
        if state.gap <= self.usual:  # with little to go for the decomposition, it is no use to wait for long
            others = min(others, self.nearly_there * to_go)
        return Stage(Splitting(self.splitting), predicted, max(self.patience * predicted, others))

    def _work_of_splitting(self, size: SplitSize, tol: float) -> float:
        return sum(map(self.rates.work, operations_to_split(size, tol, self.splitting)))

    def _interior(self, state: State) -> Stage | None:
        """Return an interior point, once, if it takes no more than the work so far or to come, or all is stuck."""
        if state.has_run(InteriorPoint.name) or state.has_run(KernelInteriorPoint.name):
            return None
        if state.stagnation.is_stuck and self._has_root(state):
            return self._on_root(state)
        n, k = state.problem.losses.n_examples, state.problem.losses.n_classes
        is_judged = state.has_run(ActiveSet.name) or len(state.trail) >= self.judged_after
        if self._is_large_lee(state):
            predicted = self.rates.work(operations_to_solve(n, k, self.kernel_interior))
            is_due = self.kernel_interior_share * predicted <= state.work
            is_worth = predicted <= self.tail * state.work_to_go(self.exact)
            # where splitting has given up near the end, the decomposition may still have little to do
            is_left = self._is_finely_split(state) and (is_worth or state.gap > self.usual)
            # what one has left is a start for the next
            if not ((is_judged and is_due and is_worth) or is_left or isinstance(state.start, InsidePoint)):
                return None
            tol = max(state.tol, min(self.kernel_interior_tol, self.nearer * state.gap))
            method = KernelInteriorPoint(self.kernel_interior)
            return Stage(method, predicted, None, tol=tol, from_inside=True)
        if not (self._has_root(state) and is_judged):
            return None
        most = min(max(state.work, self.shortest_faces), self.tail * state.work_to_go(self.exact))
        return self._on_root(state) if self._work_on_root(state) <= most else None

    def _has_root(self, state: State) -> bool:
        """Tell whether the problem is small enough for an interior point on a root of the matrix."""
        losses = state.problem.losses
        return losses.n_examples * (losses.n_classes - 1) <= self.root_unknowns

    def _work_on_root(self, state: State) -> float:
        return self.root_iterations * self._interior_iteration(state.problem, state.problem.losses.n_examples + 1)

    def _on_root(self, state: State) -> Stage:
        root = InteriorPoint(kernel_root(state.on_matrix.gram), self.interior_point)
        return Stage(root, self._work_on_root(state), None, tol=self.root_tol, from_inside=True)

    def _is_finely_split(self, state: State) -> bool:
        """Tell whether splitting on a matrix has given up on a fine tolerance."""
        return state.tol <= self.fine and state.has_run(Splitting.name) and self._is_large_lee(state)

    def _is_large_lee(self, state: State) -> bool:
        """Tell whether an interior point would be one on the matrix itself."""
        return not self._has_root(state) and self._is_lee(state)

    @staticmethod
    def _is_lee(state: State) -> bool:
        """Tell whether hinges see single scores and the matrix is in memory."""
        return state.problem.losses.sees_single_scores and whole_matrix(state.on_matrix.gram) is not None

    def stagnation(self) -> Stagnation:
        """Return what tells that the decomposition has come as far as rounding lets it."""
        tuning = self.decomposition
        return Stagnation(tuning.rounds_without_rise, tuning.rounds_without_gain, tuning.gain)


POLICY = Policy()
"""What every fit goes by."""


def _needs_matrix(method: Solver) -> bool:
    """Tell whether a method works on the kernel matrix alone, so that that of features is formed for it."""
    return method.name in ON_MATRIX and method.name not in ON_FEATURES


def _shape(problem: HingeProblem) -> tuple[int, int, int]:
    return *as_features(problem.gram, "The policy of features").features.shape, problem.losses.n_classes


def _stored(problem: HingeProblem) -> float:
    """Return the number of entries of the features that are stored."""
    features = as_features(problem.gram, "The policy of features").features
    return float(features.nnz if sparse.issparse(features) else features.size)
