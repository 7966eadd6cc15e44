"""Cut generation for the sparse machines: the dual linear program with only the rows that matter.

Every variable stands for exponentially many rows ``|a.G_j| <= cost(a)`` of the dual (`problems.sparse`), one an
atom. The master program holds few of them; HiGHS solves it by the dual simplex method, all p variables are
priced by one matrix product and their polars, the best atoms of violated variables become rows, until none is
violated. When C grows the last vertex is followed to its new place (`solvers.homotopy`), where HiGHS starts and
mostly finds nothing left to do. The multipliers of the rows are the coefficients of the atoms.
"""

from dataclasses import dataclass, replace
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from polymargin.problems.sparse import SparsePoint, SparseProblem
from polymargin.solvers.contract import Accepted, Observer, Progress, Settings, Solution, Status, accepts_kinds
from polymargin.solvers.sparse.hinge_columns import HingeColumns
from polymargin.solvers.sparse.homotopy import Homotopy, Vertex
from polymargin.solvers.sparse.master_program import FEASIBILITY, Master, add_rows

VIOLATED = 1e-9
"""Relative excess of a polar over 1 that makes a cut."""
ROUNDING_OF_MARGINS = 1e-7
"""Hinges below this fraction of the margin may be rounding errors of HiGHS."""
ROUNDING = 1e-13
"""Correlations below this fraction of their terms are zero, as those of constant variables."""
NEW_CUTS = 100
"""Cuts added at a time: the most violated ones."""
MOST_WATCHED = 500
"""Variables that may enter while a vertex is followed: those with the largest polars."""


def _most_violated(polars: NDArray[np.float64], bound: float) -> NDArray[np.intp]:
    violated = np.flatnonzero(polars > bound)
    if len(violated) > NEW_CUTS:
        violated = violated[np.argpartition(-polars[violated], NEW_CUTS)[:NEW_CUTS]]
    return violated


@dataclass(frozen=True, slots=True)
class _Solved:
    """What is remembered of the last problem that was solved: C, solution and polars of all variables."""

    C: float
    point: SparsePoint
    polars: NDArray[np.float64]


class CuttingPlanes:
    """Solver of the sparse machines.

    It remembers the master of its last problem: one that differs in C alone continues from there, so a path over
    ascending C is solved in one sweep.
    """

    name = "cutting_planes"

    def __init__(self) -> None:
        self._data: tuple[Any, ...] = ()
        self._master: Master | None = None
        self._last: _Solved | None = None

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        return accepts_kinds(problem, SparseProblem)

    def solve(
        self, problem: SparseProblem, settings: Settings, *, observer: Observer | None = None
    ) -> Solution[SparsePoint]:
        """Add cuts until the gap of the full problem is within the tolerance or nothing is violated."""
        self._forget_other_data(problem)
        point = self._still_optimal(problem, settings.tol)
        if point is not None:
            with Progress(settings, observer, method=self.name) as progress:
                progress.iteration = 1
                return progress.finish(point, problem.certify(point))
        master = self._continue_or_start(problem)
        point = _zero_point(problem)
        best_primal, best_dual = np.inf, -np.inf
        with Progress(settings, observer, method=self.name) as progress:
            for _ in progress:
                if not master.run(progress.seconds_left):
                    progress.status = Status.NUMERICAL_ERROR
                    progress.out_of_time()
                    break
                proposal = _stretched(problem, master.point(problem))
                G = problem.correlations(proposal.dual)
                polars = problem.penalty.polars(G)
                primal, dual = problem.primal(proposal), problem.dual(proposal.dual, float(polars.max()))
                # neither is monotone: the certificate may combine a W and a dual point of different rounds
                if primal <= best_primal:
                    best_primal, point = primal, SparsePoint(proposal.coef, proposal.intercept, point.dual)
                if dual >= best_dual:
                    best_dual, point = dual, SparsePoint(point.coef, point.intercept, proposal.dual)
                if progress.record(best_primal, best_dual).gap <= settings.tol:
                    self._last = _Solved(problem.C, point, polars)
                    break
                violated = _most_violated(polars, 1.0 + VIOLATED)
                added = master.add(problem.penalty.best_atoms(G, violated))
                if added == 0 and not master.tighten():
                    progress.status = Status.STALLED
                    break
            return progress.finish(point, problem.certify(point))

    def _forget_other_data(self, problem: SparseProblem) -> None:
        data = (problem.X, problem.losses, problem.penalty)
        if len(self._data) != len(data) or any(a is not b for a, b in zip(self._data, data, strict=True)):
            self._data, self._master, self._last = data, None, None

    def _still_optimal(self, problem: SparseProblem, tol: float) -> SparsePoint | None:
        """Return the last solution if no example has a loss under it: it is then optimal for every larger C."""
        last = self._last
        if last is None or problem.C < last.C or problem.losses.value(problem.scores(last.point)) > 0.0:
            return None
        hinges = HingeColumns.of(problem.losses)
        multipliers = last.C / problem.C * last.point.dual[hinges.example, hinges.slot]
        point = replace(last.point, dual=hinges.dual(multipliers))
        return point if problem.certify(point).within(tol) else None

    def _continue_or_start(self, problem: SparseProblem) -> Master:
        """Return a master for the problem that starts from what is known of its solution."""
        last, self._last = self._last, None
        vertex = None
        if self._master is not None and last is not None and problem.C > last.C:
            vertex = _followed(problem, self._master, last)
        if self._master is None or self._master.is_too_fine_for(problem):
            self._master = Master(problem)
        else:
            self._master.purge()
        self._master.set_weight(problem.C)
        if vertex is not None:
            self._master.start_at(vertex)
        return self._master


def _followed(problem: SparseProblem, master: Master, last: _Solved) -> Vertex | None:
    """Follow the vertex of the last solution to the larger C of the problem.

    Only variables are watched whose polars would reach 1 if they changed as fast as C (the strong rule of
    Tibshirani et al., 2012), and not more than pays; all variables are priced afterwards.
    """
    vertex = master.vertex()
    if vertex is None:
        return None
    least = np.partition(last.polars, -MOST_WATCHED)[-MOST_WATCHED] if len(last.polars) > MOST_WATCHED else 0.0
    watched = last.polars >= max(float(least), 2.0 * last.C / problem.C - 1.0)
    watched[vertex.atoms.variables] = True
    variables = np.flatnonzero(watched)
    homotopy = Homotopy(master.hinges, master.columns[variables], problem.penalty.restricted(variables))
    inside = np.searchsorted(variables, vertex.atoms.variables)
    vertex = replace(vertex, atoms=replace(vertex.atoms, variables=inside))
    found = homotopy.follow(vertex, 1.0 / last.C, 1.0 / problem.C)
    return replace(found, atoms=replace(found.atoms, variables=variables[found.atoms.variables]))


def _stretched(problem: SparseProblem, point: SparsePoint) -> SparsePoint:
    """Stretch W and b where that zeroes hinges that are positive by rounding alone, which a large C makes dear."""
    margins = problem.losses.margins(problem.scores(point))
    offset = problem.losses.offset
    excess = float(margins[margins <= ROUNDING_OF_MARGINS * offset].max(initial=0.0))
    if excess <= 0.0:
        return point
    factor = 1.0 + 2.0 * excess / offset
    longer = replace(point, coef=factor * point.coef, intercept=factor * point.intercept)
    return longer if problem.primal(longer) < problem.primal(point) else point


def _zero_point(problem: SparseProblem) -> SparsePoint:
    k = problem.losses.n_classes
    hinges = HingeColumns.of(problem.losses)
    nothing = hinges.dual(np.zeros(len(hinges.upper)))
    return SparsePoint(np.zeros((k, problem.X.shape[1])), np.zeros(k), nothing)


def largest_penalty_weight(problem: SparseProblem, *, tol: float = 1e-10, max_iter: int = 1000) -> float:
    """Return lambda_max: W = 0 is optimal exactly if ``1/C >= lambda_max``; 0 if no variable ever enters.

    W = 0 is optimal iff some dual point that is optimal without variables has polars of at most 1/C: the smallest
    largest polar t over that face is a linear program, solved by the same cuts.
    """
    problem = SparseProblem(problem.X, problem.losses, problem.penalty)
    master = Master(problem)
    master.run(np.inf)
    dual = master.point(problem).dual
    G = problem.correlations(dual)
    if np.abs(G).max() <= ROUNDING * problem.correlation_scale(dual):
        return 0.0
    _restrict_to_face(master)
    highs, n_columns = master.highs, len(master.hinges.upper)
    highs.addCol(1.0, 0.0, highspy.kHighsInf, 0, [], [])
    lower, unit = 0.0, float(problem.penalty.polars(G, above=0.0).max())
    upper = unit
    for _ in range(max_iter):
        polars = problem.penalty.polars(G, above=lower)
        upper = min(upper, max(float(polars.max()), lower))
        if upper <= lower * (1.0 + tol):
            break
        violated = _most_violated(polars, lower * (1.0 + 0.1 * tol))
        atoms = master.cuts.unknown(problem.penalty.best_atoms(G, violated))
        if not len(atoms.variables):
            break
        rows, scales = master.rows_of(atoms)
        master.cuts.append(atoms, rows, scales)
        # |a.G_j| <= cost t, with t in units of the first polar
        rows /= (scales * atoms.costs * unit)[:, None]
        reach, infinite = np.ones((len(rows), 1)), np.full(len(rows), np.inf)
        add_rows(highs, np.hstack([rows, -reach]), -infinite, np.zeros(len(rows)))
        add_rows(highs, np.hstack([rows, reach]), np.zeros(len(rows)), infinite)
        if not master.run(np.inf):
            break
        values = np.asarray(highs.getSolution().col_value)
        lower = unit * values[-1]
        G = problem.correlations(master.dual(values[:n_columns], 1.0))
    # where one class outweighs the others its multipliers can cancel every correlation, to the tolerance of HiGHS
    return upper if lower > 10.0 * FEASIBILITY * unit else 0.0


def _restrict_to_face(master: Master) -> None:
    """Fix what every optimal solution has in common, and forget the objective."""
    highs = master.highs
    solution = highs.getSolution()
    n_columns = len(master.hinges.upper)
    values, reduced = np.asarray(solution.col_value), np.asarray(solution.col_dual)
    held = np.abs(reduced) > FEASIBILITY * master.hinges.offset
    indices = np.arange(n_columns, dtype=np.int32)
    lower, upper = np.where(held, values, 0.0), np.where(held, values, master.hinges.upper / master.unit)
    highs.changeColsBounds(n_columns, indices, lower, upper)
    highs.changeColsCost(n_columns, indices, np.zeros(n_columns))
    if master.hinges.weight is not None:
        n_examples, k = master.hinges.shape
        tight = np.abs(np.asarray(solution.row_dual)[k - 1 : k - 1 + n_examples]) > FEASIBILITY
        for i in np.flatnonzero(tight):
            weight = master.hinges.weight[i] / master.unit
            highs.changeRowBounds(int(k - 1 + i), weight, weight)
