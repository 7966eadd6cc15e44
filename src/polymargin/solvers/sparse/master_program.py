"""The dual linear program of the sparse machines in HiGHS, with only the rows that matter."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin.problems.penalties import Atoms
from polymargin.problems.sparse import SparsePoint, SparseProblem
from polymargin.solvers.sparse.hinge_columns import HingeColumns
from polymargin.solvers.sparse.homotopy import Vertex
from polymargin.solvers.sparse.settings import DEFAULTS, CuttingSettings

ENDS = tuple(getattr(highspy.HighsModelStatus, name) for name in ("kOptimal", "kTimeLimit", "kInterrupt"))
"""What no other way of solving can change."""

DEFAULT_SCALING, BY_LARGEST_ENTRIES = 2, 4
"""HiGHS's numbers of its own choice of scaling, and of scaling by the largest entries."""


class CentredColumns:
    """Columns of X about their means: with an intercept the means change nothing but the rounding errors."""

    def __init__(self, X: Any):
        self.X = X.tocsc() if sparse.issparse(X) else X
        self.means = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()

    def __getitem__(self, variables: NDArray[np.intp]) -> NDArray[np.float64]:
        part = self.X[:, variables]
        dense = part.toarray() if sparse.issparse(part) else part
        return dense - self.means[variables]


class Cuts:
    """The atoms whose rows the master holds, in the order of the rows."""

    def __init__(self, n_classes: int) -> None:
        self.atoms = Atoms(np.zeros(0, dtype=np.intp), np.zeros((0, n_classes)), np.zeros(0))
        self.scales = np.zeros(0)
        self.largest = np.zeros(0)
        self._positions: dict[tuple[int, bytes], int] = {}

    def __len__(self) -> int:
        return len(self.scales)

    def unknown(self, atoms: Atoms) -> Atoms:
        """Return those of the atoms that are not held yet."""
        return atoms.at([m for m, key in enumerate(_keys(atoms)) if key not in self._positions])

    def positions(self, atoms: Atoms) -> NDArray[np.intp]:
        """Return where the atoms are held."""
        return np.array([self._positions[key] for key in _keys(atoms)], dtype=np.intp)

    def append(self, atoms: Atoms, rows: NDArray[np.float64], scales: NDArray[np.float64]) -> None:
        """Hold more atoms, whose `rows` were multiplied by `scales`."""
        self._hold(
            Atoms(
                np.append(self.atoms.variables, atoms.variables),
                np.vstack([self.atoms.directions, atoms.directions]),
                np.append(self.atoms.costs, atoms.costs),
            ),
            np.append(self.scales, scales),
            np.append(self.largest, np.abs(rows).max(axis=1)),
        )

    def keep(self, kept: NDArray[np.intp]) -> None:
        """Drop all but the atoms at the given positions."""
        self._hold(self.atoms.at(kept), self.scales[kept], self.largest[kept])

    def _hold(self, atoms: Atoms, scales: NDArray[np.float64], largest: NDArray[np.float64]) -> None:
        self.atoms, self.scales, self.largest = atoms, scales, largest
        self._positions = {key: m for m, key in enumerate(_keys(atoms))}

    def active(self, multipliers: NDArray[np.float64], noise: float) -> tuple[Atoms, NDArray[np.float64]]:
        """Return the atoms with a multiplier that is not rounding noise, and the multipliers."""
        support = np.flatnonzero(np.abs(multipliers) * self.largest > noise)
        return self.atoms.at(support), (multipliers * self.scales)[support]


def _keys(atoms: Atoms) -> Iterator[tuple[int, bytes]]:
    return ((j, a.tobytes()) for j, a in zip(atoms.variables.tolist(), atoms.directions, strict=True))


class Master:
    """The program ``max offset * sum(u)``, ``0 <= u <= C upper``, with balance rows and the cuts so far.

    A cut is a row ``|a.G_j| <= cost(a)``. Of a penalty that is no norm it is ``a.G_j - t_j <= cost(a)``, where the
    column t_j, the conjugate of variable j as far as its cuts tell, is subtracted from the objective.

    HiGHS's tolerances are absolute: a tiny C (large entries of X) is taken as `unit` of u.
    """

    def __init__(self, problem: SparseProblem, tuning: CuttingSettings = DEFAULTS):
        self.tuning = tuning
        self.is_norm = problem.penalty.is_norm
        self.hinges = hinges = HingeColumns.of(problem.losses)
        self.unit = min(1.0, problem.C * float(np.median(hinges.upper)))
        self.columns = CentredColumns(problem.X)
        self.cuts = Cuts(problem.losses.n_classes)
        self.conjugate_columns = np.full(problem.X.shape[1], -1, dtype=np.intp)
        self.tight = False
        self.highs = _silent_highs(tuning.feasibility)
        self.interruption = Interruption(self.highs)
        n_columns = len(hinges.upper)
        bounds = hinges.upper / self.unit
        self.highs.addCols(
            n_columns, np.full(n_columns, -hinges.offset), np.zeros(n_columns), bounds, 0, [], [], []
        )
        n_examples, k = hinges.shape
        # the last class's sum follows from the others, as rows of R sum to zero
        add_rows(self.highs, hinges.along(np.eye(k)[:-1]), np.zeros(k - 1), np.zeros(k - 1))
        self.n_fixed_rows = k - 1
        if hinges.weight is not None:
            blocks = sparse.csr_array(
                (np.ones(n_columns), (hinges.example, np.arange(n_columns))), shape=(n_examples, n_columns)
            )
            add_rows(self.highs, blocks, np.full(n_examples, -np.inf), hinges.weight / self.unit)
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
        """Return ``a.G_j`` as rows over u, and scales that bring bounds and entries near 1.

        Entries beyond what HiGHS can hold are brought down, and bounds with them, perhaps to next to nothing
        beside the tolerance: the certificate tells what the multipliers are worth then.
        """
        columns = self.unit * self.columns[atoms.variables]
        rows = self.hinges.along(atoms.directions) * columns.T[:, self.hinges.example]
        largest = np.maximum(np.abs(rows).max(axis=1), np.finfo(np.float64).tiny)
        scales = np.maximum(1.0 / atoms.costs, self.tuning.smallest_entry / largest)
        scales /= np.maximum(1.0, scales * largest / self.tuning.largest_entry)
        return rows * scales[:, None], scales

    def add(self, atoms: Atoms) -> int:
        """Add the rows of those atoms that are not held yet, and return how many these are."""
        atoms = self.cuts.unknown(atoms)
        if len(atoms.variables):
            rows, scales = self.rows_of(atoms)
            bounds = scales * atoms.costs
            if self.is_norm:
                add_rows(self.highs, rows, -bounds, bounds)
            else:
                below = self._conjugate_entries(atoms.variables, self.unit * scales)
                both = sparse.hstack([rows, -below], format="csr")
                add_rows(self.highs, both, np.full(len(rows), -np.inf), bounds)
            self.cuts.append(atoms, rows, scales)
        return len(atoms.variables)

    def _conjugate_entries(self, variables: NDArray[np.intp], entries: NDArray[np.float64]) -> sparse.csr_array:
        """Return `entries` in the columns t of the variables, which are added where there are none yet."""
        for j in np.unique(variables[self.conjugate_columns[variables] < 0]):
            self.conjugate_columns[j] = self.conjugate_columns.max() + 1
            self.highs.addCol(1.0, 0.0, highspy.kHighsInf, 0, [], [])
        at = np.arange(len(variables)), self.conjugate_columns[variables]
        return sparse.csr_array((entries, at), shape=(len(variables), int(self.conjugate_columns.max()) + 1))

    def conjugates(self) -> NDArray[np.float64]:
        """Return the conjugates (p,) as far as the cuts tell, at the last solution."""
        values = np.asarray(self.highs.getSolution().col_value)[len(self.hinges.upper) :]
        known = self.conjugate_columns >= 0
        conjugates = np.zeros(len(known))
        conjugates[known] = self.unit * values[self.conjugate_columns[known]]
        return conjugates

    def run(self, seconds: float, is_over: Callable[[], bool] = lambda: False) -> bool:
        """Solve from the last basis, or afresh if that fails; tell whether an optimal basis was found.

        HiGHS asks `is_over` after every iteration whether to stop.

        At tolerances near rounding the dual simplex method may wander for ever: it has a limited number of
        iterations, after which it starts again from the same basis under another scaling, then afresh. (HiGHS's
        primal method would often be quicker, but has been seen not to end, whatever its limits.)
        """
        begin = self.highs.getBasis()
        limit = self.highs.getRunTime() + max(seconds, 0.0)
        self.highs.setOptionValue("time_limit", min(limit, highspy.kHighsInf))
        size = self.highs.getNumRow() + self.highs.getNumCol()
        for scaling, basis, patience in (
            (DEFAULT_SCALING, None, self.tuning.patience),
            (BY_LARGEST_ENTRIES, begin, self.tuning.patience),
            (DEFAULT_SCALING, highspy.HighsBasis(), self.tuning.last_patience),
        ):
            if basis is not None:
                self.highs.clearSolver()
                if basis.valid:
                    self.highs.setBasis(basis)
            self.highs.setOptionValue("simplex_iteration_limit", patience * size)
            self.highs.setOptionValue("simplex_scale_strategy", scaling)
            with self.interruption.by(is_over):
                self.highs.run()
            status = self.highs.getModelStatus()
            if status in ENDS:
                break
        return status == highspy.HighsModelStatus.kOptimal

    def point(self, problem: SparseProblem) -> SparsePoint:
        """Read the last solution: W from the multipliers of the cuts, b from those of the balance rows."""
        k, p = self.hinges.shape[1], problem.X.shape[1]
        solution = self.highs.getSolution()
        row_dual = -np.asarray(solution.row_dual)
        atoms, theta = self.cuts.active(row_dual[self.n_fixed_rows :], self.tuning.noise)
        coef = problem.penalty.combine(atoms, self.unit * theta, p) if len(theta) else np.zeros((k, p))
        intercept = np.append(row_dual[: k - 1], 0.0)
        intercept -= intercept.mean() + coef @ self.columns.means
        values = np.asarray(solution.col_value)[: len(self.hinges.upper)]
        return SparsePoint(coef, intercept, self.dual(values, problem.C))

    def dual(self, values: NDArray[np.float64], C: float) -> NDArray[np.float64]:
        """Return the values of the columns of the hinges as a dual point of the losses."""
        return self.hinges.dual(self.unit / C * values)

    def is_too_fine_for(self, problem: SparseProblem) -> bool:
        """Tell whether C has outgrown the unit, so that the tolerances ask for more digits than there are."""
        bound = problem.C * float(np.median(self.hinges.upper))
        return self.unit < 1.0 and bound > self.tuning.largest_growth * self.unit

    def tighten(self) -> bool:
        """Ask HiGHS for the smallest tolerances that it has; tell whether that is new."""
        if self.tight:
            return False
        self.tight = True
        for option in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self.highs.setOptionValue(option, self.tuning.smallest_feasibility)
        return True

    def vertex(self) -> Vertex | None:
        """Read the last basis; None where it is not one that can be followed."""
        basis = self.highs.getBasis()
        rows = np.array([int(status) for status in basis.row_status])
        columns = np.array([int(status) for status in basis.col_status])
        is_basic, is_upper = int(highspy.HighsBasisStatus.kBasic), int(highspy.HighsBasisStatus.kUpper)
        fixed, cuts = rows[: self.n_fixed_rows], rows[self.n_fixed_rows :]
        if not basis.valid or np.any(fixed == is_basic):
            return None
        tight = np.flatnonzero(cuts != is_basic)
        signs = np.where(cuts[tight] == is_upper, 1.0, -1.0)
        return Vertex(np.flatnonzero(columns == is_basic), columns == is_upper, self.cuts.atoms.at(tight), signs)

    def start_at(self, vertex: Vertex) -> None:
        """Hold the atoms of a vertex, and start the next solution there."""
        self.add(vertex.atoms)
        status = highspy.HighsBasisStatus
        columns = [status.kUpper if upper else status.kLower for upper in vertex.at_upper]
        for hinge in vertex.basic:
            columns[hinge] = status.kBasic
        rows = [status.kLower] * self.n_fixed_rows + [status.kBasic] * len(self.cuts)
        for position, sign in zip(self.cuts.positions(vertex.atoms), vertex.signs, strict=True):
            rows[self.n_fixed_rows + position] = status.kUpper if sign > 0.0 else status.kLower
        basis = highspy.HighsBasis()
        basis.col_status, basis.row_status, basis.valid = columns, rows, True
        self.highs.setBasis(basis)

    def purge(self, spare: int) -> None:
        """Delete the cuts that are slack at the last solution, if more than `spare` are, keeping the basis."""
        basis = self.highs.getBasis()
        status = np.array([int(s) for s in basis.row_status])
        slack = status == int(highspy.HighsBasisStatus.kBasic)
        slack[: self.n_fixed_rows] = False
        if not basis.valid or slack.sum() <= spare:
            return
        self.highs.deleteRows(int(slack.sum()), np.flatnonzero(slack).astype(np.int32))
        self.cuts.keep(np.flatnonzero(~slack[self.n_fixed_rows :]))
        basis.row_status = [s for s, gone in zip(basis.row_status, slack, strict=True) if not gone]
        self.highs.setBasis(basis)


class Interruption:
    """Lets HiGHS, which otherwise hears nothing while it runs, stop where Python says so.

    It knows nothing of the master, which is freed with its program when the last reference goes.
    """

    def __init__(self, highs: highspy.Highs) -> None:
        self.is_over: Callable[[], bool] = lambda: False
        highs.setCallback(self._ask, None)
        highs.startCallback(highspy.cb.HighsCallbackType.kCallbackSimplexInterrupt)

    @contextmanager
    def by(self, is_over: Callable[[], bool]) -> Iterator[None]:
        """Ask `is_over` meanwhile."""
        before, self.is_over = self.is_over, is_over
        try:
            yield
        finally:
            self.is_over = before

    def _ask(self, kind: Any, message: str, told: Any, answer: Any, data: Any) -> None:
        answer.user_interrupt = self.is_over()


def _silent_highs(feasibility: float) -> highspy.Highs:
    highs = highspy.Highs()
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("solver", "simplex"),
        ("simplex_strategy", 1),
        ("presolve", "off"),
        ("primal_feasibility_tolerance", feasibility),
        ("dual_feasibility_tolerance", feasibility),
    ):
        highs.setOptionValue(option, value)
    return highs


def add_rows(highs: highspy.Highs, rows: Any, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> None:
    """Add rows, dense or sparse, with their bounds."""
    if sparse.issparse(rows):
        by_row = rows.tocsr()
        entries, indices, starts = by_row.data, by_row.indices, by_row.indptr[:-1]
    else:
        at, indices = np.nonzero(rows)
        entries, starts = rows[at, indices], np.searchsorted(at, np.arange(len(rows)))
    arrays = starts.astype(np.int32), indices.astype(np.int32), entries
    done = highs.addRows(rows.shape[0], lower, upper, len(entries), *arrays)
    if done == highspy.HighsStatus.kError:
        raise FloatingPointError(
            f"X cannot be used: its linear program has coefficients of {abs(entries).max():.3g}, beyond "
            "what HiGHS takes. Scale the features to about unit size."
        )
