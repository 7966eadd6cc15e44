"""Cut generation for the sparse machines: the dual linear program with only the rows that matter.

Every variable stands for exponentially many rows ``|a.G_j| <= cost(a)`` of the dual (`problems.sparse`), one an
atom. The master program holds few of them; HiGHS solves it by the dual simplex method, all p variables are
priced by one matrix product and their polars, the best atoms of violated variables become rows, until none is
violated. All columns are boxed, so the last basis stays dual feasible when rows are added and when C grows: each
solve starts where the last one ended. The multipliers of the rows are the coefficients of the atoms.
"""

from dataclasses import dataclass, replace
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin.problems.hinge import BoxLosses, SimplexLosses
from polymargin.problems.penalties import Atoms
from polymargin.problems.sparse import SparsePoint, SparseProblem
from polymargin.solvers.contract import Observer, Progress, Settings, Solution, Status

VIOLATED = 1e-9
"""Relative excess of a polar over 1 that makes a cut."""
FEASIBILITY = 1e-9
"""Tolerance of HiGHS for rows (bounds of about 1) and reduced costs (margins of about 1)."""
SMALLEST_FEASIBILITY = 1e-10
"""The same where a larger one leaves a gap, as it may with large C."""
LARGEST_GROWTH = 300.0
"""Factor by which C may outgrow the unit of the multipliers before the master is built anew."""
ROUNDING_OF_MARGINS = 1e-7
"""Hinges below this fraction of the margin may be rounding errors of HiGHS."""
SMALLEST_ENTRY = 1e-3
"""Rows are scaled until their bound is at least 1 and their largest entry at least this."""
NOISE = 1e-10
"""Multipliers that move no margin by more than this are rounding errors of a degenerate vertex."""
ROUNDING = 1e-13
"""Correlations below this fraction of their terms are zero, as those of constant variables."""
NEW_CUTS = 100
"""Cuts added at a time: the most violated ones."""
SPARE_CUTS = 200
"""Slack cuts that are kept when C changes."""


@dataclass(frozen=True, slots=True)
class _Hinges:
    """The columns of the master: one a hinge, with multiplier u_m and ``R = -sum_m u_m e_example direction'``."""

    example: NDArray[np.intp]
    slot: NDArray[np.intp]
    label: NDArray[np.intp]
    upper: NDArray[np.float64]
    directions: NDArray[np.float64]
    offset: float
    weight: NDArray[np.float64] | None
    shape: tuple[int, int]

    @classmethod
    def of(cls, losses: BoxLosses | SimplexLosses) -> "_Hinges":
        if isinstance(losses, BoxLosses):
            example, slot = np.nonzero(losses.upper)
            upper = losses.upper[example, slot]
            return cls(
                example, slot, losses.labels[example], upper, losses.directions, losses.offset, None,
                losses.upper.shape,
            )  # fmt: skip
        k = losses.n_classes
        assert np.array_equal(losses.example, np.arange(losses.n_examples)), "one simplex an example"
        example, slot = np.nonzero(losses.anchor[:, None] != np.arange(k))
        directions = np.eye(k)[None, :, :] - np.eye(k)[:, None, :]
        return cls(
            example, slot, losses.anchor[example], losses.weight[example], directions, losses.offset,
            losses.weight, (losses.n_examples, k),
        )  # fmt: skip

    def along(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what a unit of every multiplier adds to ``R_i . a``, for directions a (m, k): (m, columns)."""
        table = -np.einsum("ysk,mk->mys", self.directions, directions)
        return table[:, self.label, self.slot]

    def dual(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return multipliers as the dual point (n, k) of the losses, inside its bounds to the last bit."""
        dual = np.zeros(self.shape)
        dual[self.example, self.slot] = np.clip(u, 0.0, self.upper)
        if self.weight is not None:
            dual /= np.maximum(1.0, dual.sum(axis=1) / self.weight)[:, None]
            anchor = np.zeros(self.shape[0], dtype=np.intp)
            anchor[self.example] = self.label
            dual[np.arange(len(dual)), anchor] = self.weight - dual.sum(axis=1)
        return dual


class _Columns:
    """Columns of X about their means: with an intercept the means change nothing but the rounding errors."""

    def __init__(self, X: Any):
        self.X = X.tocsc() if sparse.issparse(X) else X
        self.means = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()

    def __getitem__(self, variables: NDArray[np.intp]) -> NDArray[np.float64]:
        part = self.X[:, variables]
        dense = part.toarray() if sparse.issparse(part) else part
        return dense - self.means[variables]


class _Cuts:
    """The atoms whose rows the master holds, in the order of the rows."""

    def __init__(self) -> None:
        self.variables: list[int] = []
        self.directions: list[NDArray[np.float64]] = []
        self.scales: list[float] = []
        self.largest: list[float] = []
        self._known: set[tuple[int, bytes]] = set()

    def __len__(self) -> int:
        return len(self.variables)

    def unknown(self, atoms: Atoms) -> Atoms:
        """Return those of the atoms that are not held yet."""
        keys = zip(atoms.variables.tolist(), atoms.directions, strict=True)
        fresh = [m for m, (j, a) in enumerate(keys) if (j, a.tobytes()) not in self._known]
        return Atoms(atoms.variables[fresh], atoms.directions[fresh], atoms.costs[fresh])

    def append(self, atoms: Atoms, rows: NDArray[np.float64], scales: NDArray[np.float64]) -> None:
        """Hold more atoms, whose `rows` were multiplied by `scales`."""
        self.variables.extend(atoms.variables.tolist())
        self.directions.extend(atoms.directions)
        self.scales.extend(scales.tolist())
        self.largest.extend(np.abs(rows).max(axis=1).tolist())
        self._note()

    def keep(self, kept: NDArray[np.intp]) -> None:
        """Drop all but the atoms at the given positions."""
        self.variables = [self.variables[m] for m in kept]
        self.directions = [self.directions[m] for m in kept]
        self.scales = [self.scales[m] for m in kept]
        self.largest = [self.largest[m] for m in kept]
        self._note()

    def _note(self) -> None:
        self._known = {(j, a.tobytes()) for j, a in zip(self.variables, self.directions, strict=True)}

    def active(self, multipliers: NDArray[np.float64]) -> tuple[Atoms, NDArray[np.float64]]:
        """Return the atoms with a multiplier that is not rounding noise, and the multipliers."""
        theta = multipliers * np.array(self.scales)
        support = np.flatnonzero(np.abs(multipliers) * np.array(self.largest) > NOISE)
        n_classes = len(self.directions[0]) if self.directions else 0
        directions = np.array([self.directions[m] for m in support]).reshape(len(support), n_classes)
        variables = np.array([self.variables[m] for m in support], dtype=np.intp)
        return Atoms(variables, directions, np.ones(len(support))), theta[support]


class _Master:
    """The program ``max offset * sum(u)``, ``0 <= u <= C upper``, with balance rows and the cuts so far.

    HiGHS's tolerances are absolute: a tiny C (large entries of X) is taken as `unit` of u.
    """

    def __init__(self, problem: SparseProblem):
        self.hinges = hinges = _Hinges.of(problem.losses)
        self.unit = min(1.0, problem.C * float(np.median(hinges.upper)))
        self.columns = _Columns(problem.X)
        self.cuts = _Cuts()
        self.tight = False
        self.highs = _silent_highs()
        n_columns = len(hinges.upper)
        bounds = hinges.upper / self.unit
        self.highs.addCols(
            n_columns, np.full(n_columns, -hinges.offset), np.zeros(n_columns), bounds, 0, [], [], []
        )
        n_examples, k = hinges.shape
        # the last class's sum follows from the others, as rows of R sum to zero
        _add_rows(self.highs, hinges.along(np.eye(k)[:-1]), np.zeros(k - 1), np.zeros(k - 1))
        self.n_fixed_rows = k - 1
        if hinges.weight is not None:
            blocks = sparse.csr_array(
                (np.ones(n_columns), (hinges.example, np.arange(n_columns))), shape=(n_examples, n_columns)
            )
            _add_rows(self.highs, blocks, np.full(n_examples, -np.inf), hinges.weight / self.unit)
            self.n_fixed_rows += n_examples

    def set_weight(self, C: float) -> None:
        """Set the bounds to C times the weights of the losses."""
        n_columns = len(self.hinges.upper)
        indices = np.arange(n_columns, dtype=np.int32)
        self.highs.changeColsBounds(n_columns, indices, np.zeros(n_columns), C / self.unit * self.hinges.upper)
        if self.hinges.weight is not None:
            for row, weight in enumerate(self.hinges.weight, start=self.hinges.shape[1] - 1):
                self.highs.changeRowBounds(row, -highspy.kHighsInf, C / self.unit * weight)

    def rows_of(self, atoms: Atoms) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return ``a.G_j`` as rows over u, and scales that bring bounds and entries near 1."""
        columns = self.unit * self.columns[atoms.variables]
        rows = self.hinges.along(atoms.directions) * columns.T[:, self.hinges.example]
        largest = np.maximum(np.abs(rows).max(axis=1), np.finfo(np.float64).tiny)
        scales = np.maximum(1.0 / atoms.costs, SMALLEST_ENTRY / largest)
        return rows * scales[:, None], scales

    def add(self, atoms: Atoms) -> int:
        """Add the rows of those atoms that are not held yet, and return how many these are."""
        atoms = self.cuts.unknown(atoms)
        if len(atoms.variables):
            rows, scales = self.rows_of(atoms)
            _add_rows(self.highs, rows, -scales * atoms.costs, scales * atoms.costs)
            self.cuts.append(atoms, rows, scales)
        return len(atoms.variables)

    def run(self, seconds: float) -> bool:
        """Solve from the last basis, or afresh if that fails; tell whether an optimal basis was found."""
        for _ in range(2):
            limit = self.highs.getRunTime() + max(seconds, 0.0)
            self.highs.setOptionValue("time_limit", min(limit, highspy.kHighsInf))
            self.highs.run()
            status = self.highs.getModelStatus()
            if status in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kTimeLimit):
                break
            self.highs.clearSolver()
        return status == highspy.HighsModelStatus.kOptimal

    def point(self, problem: SparseProblem) -> SparsePoint:
        """Read the last solution: W from the multipliers of the cuts, b from those of the balance rows."""
        k, p = self.hinges.shape[1], problem.X.shape[1]
        solution = self.highs.getSolution()
        row_dual = -np.asarray(solution.row_dual)
        atoms, theta = self.cuts.active(row_dual[self.n_fixed_rows :])
        coef = problem.penalty.combine(atoms, self.unit * theta, p) if len(theta) else np.zeros((k, p))
        intercept = np.append(row_dual[: k - 1], 0.0)
        intercept -= intercept.mean() + coef @ self.columns.means
        return SparsePoint(coef, intercept, self.dual(np.asarray(solution.col_value), problem.C))

    def dual(self, values: NDArray[np.float64], C: float) -> NDArray[np.float64]:
        """Return the values of the columns as a dual point of the losses."""
        return self.hinges.dual(self.unit / C * values)

    def is_too_fine_for(self, problem: SparseProblem) -> bool:
        """Tell whether C has outgrown the unit, so that the tolerances ask for more digits than there are."""
        return self.unit < 1.0 and problem.C * float(np.median(self.hinges.upper)) > LARGEST_GROWTH * self.unit

    def tighten(self) -> bool:
        """Ask HiGHS for the smallest tolerances that it has; tell whether that is new."""
        if self.tight:
            return False
        self.tight = True
        for option in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self.highs.setOptionValue(option, SMALLEST_FEASIBILITY)
        return True

    def purge(self) -> None:
        """Delete the cuts that are slack at the last solution, if they are many, keeping the basis."""
        basis = self.highs.getBasis()
        status = np.array([int(s) for s in basis.row_status])
        slack = status == int(highspy.HighsBasisStatus.kBasic)
        slack[: self.n_fixed_rows] = False
        if not basis.valid or slack.sum() <= SPARE_CUTS:
            return
        self.highs.deleteRows(int(slack.sum()), np.flatnonzero(slack).astype(np.int32))
        self.cuts.keep(np.flatnonzero(~slack[self.n_fixed_rows :]))
        basis.row_status = [s for s, gone in zip(basis.row_status, slack, strict=True) if not gone]
        self.highs.setBasis(basis)


def _silent_highs() -> highspy.Highs:
    highs = highspy.Highs()
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("solver", "simplex"),
        ("simplex_strategy", 1),
        ("presolve", "off"),
        ("primal_feasibility_tolerance", FEASIBILITY),
        ("dual_feasibility_tolerance", FEASIBILITY),
    ):
        highs.setOptionValue(option, value)
    return highs


def _add_rows(highs: highspy.Highs, rows: Any, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> None:
    matrix = sparse.csr_array(rows)
    starts, indices = matrix.indptr[:-1].astype(np.int32), matrix.indices.astype(np.int32)
    highs.addRows(matrix.shape[0], lower, upper, matrix.nnz, starts, indices, matrix.data)


def _most_violated(polars: NDArray[np.float64], bound: float) -> NDArray[np.intp]:
    violated = np.flatnonzero(polars > bound)
    if len(violated) > NEW_CUTS:
        violated = violated[np.argpartition(-polars[violated], NEW_CUTS)[:NEW_CUTS]]
    return violated


class CuttingPlanes:
    """Solver of the sparse machines.

    It remembers the master of its last problem: one that differs in C alone continues from there, so a path over
    ascending C is solved in one sweep.
    """

    def __init__(self) -> None:
        self._data: tuple[Any, ...] = ()
        self._master: _Master | None = None

    def solve(
        self, problem: SparseProblem, settings: Settings, *, observer: Observer | None = None
    ) -> Solution[SparsePoint]:
        """Add cuts until the gap of the full problem is within the tolerance or nothing is violated."""
        master = self._continue_or_start(problem)
        master.set_weight(problem.C)
        point = _zero_point(problem)
        best_primal, best_dual = np.inf, -np.inf
        with Progress(settings, observer) as progress:
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
                    break
                violated = _most_violated(polars, 1.0 + VIOLATED)
                added = master.add(problem.penalty.best_atoms(G, violated))
                if added == 0 and not master.tighten():
                    progress.status = Status.STALLED
                    break
            return progress.finish(point, problem.certify(point))

    def _continue_or_start(self, problem: SparseProblem) -> _Master:
        data = (problem.X, problem.losses, problem.penalty)
        same = len(self._data) == len(data) and all(a is b for a, b in zip(self._data, data, strict=True))
        if self._master is None or not same or self._master.is_too_fine_for(problem):
            self._data, self._master = data, _Master(problem)
        else:
            self._master.purge()
        return self._master


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
    hinges = _Hinges.of(problem.losses)
    nothing = hinges.dual(np.zeros(len(hinges.upper)))
    return SparsePoint(np.zeros((k, problem.X.shape[1])), np.zeros(k), nothing)


def largest_penalty_weight(problem: SparseProblem, *, tol: float = 1e-10, max_iter: int = 1000) -> float:
    """Return lambda_max: W = 0 is optimal exactly if ``1/C >= lambda_max``; 0 if no variable ever enters.

    W = 0 is optimal iff some dual point that is optimal without variables has polars of at most 1/C: the smallest
    largest polar t over that face is a linear program, solved by the same cuts.
    """
    problem = SparseProblem(problem.X, problem.losses, problem.penalty)
    master = _Master(problem)
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
        _add_rows(highs, np.hstack([rows, -reach]), -infinite, np.zeros(len(rows)))
        _add_rows(highs, np.hstack([rows, reach]), np.zeros(len(rows)), infinite)
        if not master.run(np.inf):
            break
        values = np.asarray(highs.getSolution().col_value)
        lower = unit * values[-1]
        G = problem.correlations(master.dual(values[:n_columns], 1.0))
    # where one class outweighs the others its multipliers can cancel every correlation, to the tolerance of HiGHS
    return upper if lower > 10.0 * FEASIBILITY * unit else 0.0


def _restrict_to_face(master: _Master) -> None:
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
