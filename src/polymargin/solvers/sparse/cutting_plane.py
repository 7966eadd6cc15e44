"""Cut generation for the sparse machines: the dual linear program with only the rows that matter.

Every variable stands for very many rows ``|a.G_j| <= cost(a)`` of the dual (`problems.sparse`), one per atom a.
The master program holds few of them; HiGHS solves it by the dual simplex method, all p variables are priced by one
matrix product and their polars, the best atoms of violated variables become rows, until none is violated. Of a
penalty that is no norm the rows bound the conjugates from below instead. The multipliers of the rows are the
coefficients of the atoms.

When C grows and the penalty has a price rule, the last vertex is followed to its new place
(`solvers.sparse.homotopy`), where HiGHS starts and mostly finds nothing left to do. Penalties without such a rule
may have a curved unit ball, which takes tens of rounds of ever closer tangents; old ones are dropped on the way.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import highspy
import numpy as np
from numpy.typing import NDArray

from polymargin.problems.sparse import SparsePoint, SparseProblem
from polymargin.solvers.contract import Accepted, Observer, Progress, Settings, Solution, Status, accepts_kinds
from polymargin.solvers.sparse.hinge_columns import HingeColumns
from polymargin.solvers.sparse.homotopy import Homotopy, Vertex, has_price_rule
from polymargin.solvers.sparse.master_program import Master, add_rows
from polymargin.solvers.sparse.settings import DEFAULTS, CuttingSettings


@dataclass(frozen=True, slots=True)
class CuttingPlanes:
    """Solver of the sparse machines, with any penalty.

    Attributes
    ----------
    tuning : see `CuttingSettings`.
    """

    name: ClassVar[str] = "cutting_planes"
    tuning: CuttingSettings = DEFAULTS

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        return accepts_kinds(problem, SparseProblem)

    def solve(
        self,
        problem: SparseProblem,
        settings: Settings,
        *,
        start: SparsePoint | None = None,
        observer: Observer | None = None,
    ) -> Solution[SparsePoint]:
        """Add cuts until the gap of the full problem is within the tolerance or nothing is violated.

        The atoms that are best at the dual point of `start` are the first cuts.
        """
        return Sweep(problem, self.tuning).solve(problem.C, settings, start=start, observer=observer)

    def path(
        self, problem: SparseProblem, Cs: Iterable[float], settings: Settings
    ) -> Iterator[Solution[SparsePoint]]:
        """Solve for a sequence of C, each from what is known of the one before; ascending C save most."""
        sweep = Sweep(problem, self.tuning)
        for C in Cs:
            yield sweep.solve(float(C), settings)


@dataclass(frozen=True, slots=True)
class _Solved:
    """What is remembered of the last C that was solved: the solution and the prices of all variables."""

    C: float
    point: SparsePoint
    prices: NDArray[np.float64]


class Sweep:
    """One sparse machine at one C after another; the master program and its last vertex serve the next C.

    Parameters
    ----------
    problem : the machine, of any C.
    tuning : see `CuttingSettings`.
    """

    def __init__(self, problem: SparseProblem, tuning: CuttingSettings = DEFAULTS):
        self.problem = problem
        self.tuning = tuning
        self.master: Master | None = None
        self._last: _Solved | None = None

    def solve(
        self,
        C: float,
        settings: Settings,
        *,
        start: SparsePoint | None = None,
        observer: Observer | None = None,
    ) -> Solution[SparsePoint]:
        """Solve the machine with weight C of the losses."""
        problem = replace(self.problem, C=C)
        unchanged = self._still_optimal(problem, settings.tol)
        if unchanged is not None:
            with Progress(settings, observer, method=CuttingPlanes.name) as progress:
                progress.iteration = 1
                return progress.finish(unchanged, problem.certify(unchanged))
        master = self._continue_or_build(problem)
        if start is not None:
            used = np.flatnonzero(start.coef.any(axis=0))
            master.add(problem.penalty.best_atoms(problem.correlations(start.dual), used))
        point = _zero_point(problem)
        best_primal, best_dual = np.inf, -np.inf
        has_rule = has_price_rule(problem.penalty, problem.losses.n_classes)
        with Progress(settings, observer, method=CuttingPlanes.name) as progress:
            for _ in progress:
                if not master.run(progress.seconds_left, progress.out_of_time):
                    progress.status = Status.NUMERICAL_ERROR
                    progress.out_of_time()
                    break
                proposal = _stretched(problem, master.point(problem), self.tuning.margin_rounding)
                G = problem.correlations(proposal.dual)
                prices = problem.prices(G)
                primal, dual = problem.primal(proposal), problem.dual(proposal.dual, prices)
                # neither is monotone: the certificate may combine a W and a dual point of different rounds
                if primal <= best_primal:
                    best_primal, point = primal, SparsePoint(proposal.coef, proposal.intercept, point.dual)
                if dual >= best_dual:
                    best_dual, point = dual, SparsePoint(point.coef, point.intercept, proposal.dual)
                if progress.record(best_primal, best_dual).gap <= settings.tol:
                    self._last = _Solved(problem.C, point, prices)
                    break
                if not has_rule:
                    master.purge(self.tuning.spare_tangents)
                violated = self._violated(master, prices, best_primal)
                added = master.add(problem.penalty.best_atoms(G, violated))
                if added == 0 and not master.tighten():
                    progress.status = Status.STALLED
                    break
            return progress.finish(point, problem.certify(point))

    def _violated(self, master: Master, prices: NDArray[np.float64], primal: float) -> NDArray[np.intp]:
        """Return the variables whose polars exceed 1 most, or whose conjugates exceed what the cuts tell most."""
        if self.problem.penalty.is_norm:
            return _largest(prices, 1.0 + self.tuning.violated, self.tuning.new_cuts)
        negligible = self.tuning.violated * max(1.0, abs(primal)) / len(prices)
        return _largest(prices - master.conjugates(), negligible, self.tuning.new_cuts)

    def _still_optimal(self, problem: SparseProblem, tol: float) -> SparsePoint | None:
        """Return the last solution if no example has a loss under it: it is then optimal for every larger C."""
        last = self._last
        if last is None or problem.C < last.C or problem.losses.value(problem.scores(last.point)) > 0.0:
            return None
        hinges = HingeColumns.of(problem.losses)
        multipliers = last.C / problem.C * last.point.dual[hinges.example, hinges.slot]
        point = replace(last.point, dual=hinges.dual(multipliers))
        return point if problem.certify(point).within(tol) else None

    def _continue_or_build(self, problem: SparseProblem) -> Master:
        """Return a master for the problem that starts from what is known of its solution."""
        last, self._last = self._last, None
        vertex = None
        if self.master is not None and last is not None and problem.C > last.C:
            vertex = _followed(problem, self.master, last, self.tuning)
        if self.master is None or self.master.is_too_fine_for(problem):
            self.master = Master(problem, self.tuning)
        else:
            self.master.purge(self.tuning.spare_cuts)
        self.master.set_weight(problem.C)
        if vertex is not None:
            self.master.start_at(vertex)
        return self.master


def _largest(values: NDArray[np.float64], bound: float, most: int) -> NDArray[np.intp]:
    """Return where the values are above the bound, at most so many, the largest ones."""
    above = np.flatnonzero(values > bound)
    if len(above) > most:
        above = above[np.argpartition(-values[above], most)[:most]]
    return above


def _followed(problem: SparseProblem, master: Master, last: _Solved, tuning: CuttingSettings) -> Vertex | None:
    """Follow the vertex of the last solution to the larger C of the problem.

    Only variables are watched whose polars would reach 1 if they changed as fast as C (the strong rule of
    Tibshirani et al., 2012), and not more than pays; all variables are priced afterwards.
    """
    vertex = master.vertex() if Homotopy.accepts(master.hinges, problem.penalty) else None
    if vertex is None:
        return None
    polars, most = last.prices, tuning.most_watched
    least = np.partition(polars, -most)[-most] if len(polars) > most else 0.0
    watched = polars >= max(float(least), 2.0 * last.C / problem.C - 1.0)
    watched[vertex.atoms.variables] = True
    variables = np.flatnonzero(watched)
    homotopy = Homotopy(master.hinges, master.columns[variables], problem.penalty.restricted(variables), tuning)
    inside = np.searchsorted(variables, vertex.atoms.variables)
    vertex = replace(vertex, atoms=replace(vertex.atoms, variables=inside))
    found = homotopy.follow(vertex, 1.0 / last.C, 1.0 / problem.C)
    return replace(found, atoms=replace(found.atoms, variables=variables[found.atoms.variables]))


def _stretched(problem: SparseProblem, point: SparsePoint, rounding: float) -> SparsePoint:
    """Stretch W and b where that zeroes hinges that are positive by rounding alone, which a large C makes dear."""
    margins = problem.losses.margins(problem.scores(point))
    offset = problem.losses.offset
    excess = float(margins[margins <= rounding * offset].max(initial=0.0))
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


def largest_penalty_weight(
    problem: SparseProblem, *, tol: float = 1e-10, tuning: CuttingSettings = DEFAULTS
) -> float:
    """Return lambda_max: W = 0 is optimal exactly if ``1/C >= lambda_max``; 0 if no variable ever enters.

    W = 0 is optimal iff some dual point that is optimal without variables has polars of at most 1/C: the smallest
    largest polar t over that face is a linear program, solved by the same cuts. Infinite for a penalty that is no
    norm near zero, with which every variable is in for every C.
    """
    penalty = problem.penalty.at_zero(problem.losses.n_classes, problem.X.shape[1])
    if penalty is None:
        return np.inf
    problem = SparseProblem(problem.X, problem.losses, penalty)
    master = Master(problem, tuning)
    master.run(np.inf)
    dual = master.point(problem).dual
    G = problem.correlations(dual)
    if np.abs(G).max() <= tuning.correlation_rounding * problem.correlation_scale(dual):
        return 0.0
    _restrict_to_face(master)
    highs, n_columns = master.highs, len(master.hinges.upper)
    highs.addCol(1.0, 0.0, highspy.kHighsInf, 0, [], [])
    lower, unit = 0.0, float(penalty.polars(G, above=0.0).max())
    upper = unit
    for _ in range(tuning.max_rounds_at_zero):
        polars = penalty.polars(G, above=lower)
        upper = min(upper, max(float(polars.max()), lower))
        if upper <= lower * (1.0 + tol):
            break
        violated = _largest(polars, lower * (1.0 + tuning.cut_share * tol), tuning.new_cuts)
        atoms = master.cuts.unknown(penalty.best_atoms(G, violated))
        if not len(atoms.variables):
            break
        rows, scales = master.rows_of(atoms)
        master.cuts.append(atoms, rows, scales)
        # |a.G_j| <= cost t, with t in units of the first polar
        with np.errstate(over="ignore"):  # an atom that costs more than any number binds nothing
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
    return upper if lower > 10.0 * tuning.feasibility * unit else 0.0


def _restrict_to_face(master: Master) -> None:
    """Fix what every optimal solution has in common, and forget the objective."""
    highs, feasibility = master.highs, master.tuning.feasibility
    solution = highs.getSolution()
    n_columns = len(master.hinges.upper)
    values, reduced = np.asarray(solution.col_value), np.asarray(solution.col_dual)
    held = np.abs(reduced) > feasibility * master.hinges.offset
    indices = np.arange(n_columns, dtype=np.int32)
    lower, upper = np.where(held, values, 0.0), np.where(held, values, master.hinges.upper / master.unit)
    highs.changeColsBounds(n_columns, indices, lower, upper)
    highs.changeColsCost(n_columns, indices, np.zeros(n_columns))
    if master.hinges.weight is not None:
        n_examples, k = master.hinges.shape
        tight = np.abs(np.asarray(solution.row_dual)[k - 1 : k - 1 + n_examples]) > feasibility
        for i in np.flatnonzero(tight):
            weight = master.hinges.weight[i] / master.unit
            highs.changeRowBounds(int(k - 1 + i), weight, weight)
