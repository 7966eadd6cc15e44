"""Following the vertex of a sparse machine while its penalty weight falls: the parametric dual simplex method.

In units of C the dual program (`problems.sparse`) asks for ``a.G_j <= lambda cost(a)`` of every atom a of every
variable j. A vertex is a set of *basic* hinges, whose multipliers lie between their bounds and whose margins are
zero, and as many tight atoms, less the k - 1 free intercepts. While lambda falls the multipliers move along a
line until one of them reaches a bound or another atom becomes tight: one exchange then leads to the next vertex.
Nothing overshoots, so there are far fewer exchanges than in solving the program anew. What is found here is only
proposed: the master program starts from it, and has the last word.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polymargin._native.homotopy import EXCHANGED, FUSION, LASSO, SUPNORM, WEIGHTED_FUSION, Walk
from polymargin.problems.penalties import (
    Atoms,
    FusionPenalty,
    LassoPenalty,
    Penalty,
    SupnormPenalty,
    separated_pairs,
)
from polymargin.solvers.sparse.hinge_columns import HingeColumns

REFRESH = 100
"""Exchanges after which everything is computed afresh."""
MAX_STEPS = 20_000
"""Exchanges after which the master has to go on alone."""
MOST_BASIC = 2000
"""Size of a vertex beyond which its dense inverse does not pay."""
PERTURBATION = 1e-6
"""Size of the random changes of margins, relative to the margin, that break ties between hinges."""


@dataclass(frozen=True, slots=True)
class Vertex:
    """A basis of the dual program.

    Attributes
    ----------
    basic : (m,) hinges between their bounds.
    at_upper : (hinges,) whether a hinge is at its upper bound.
    atoms : the m - k + 1 tight atoms.
    signs : (m - k + 1,) 1 where ``a.G_j`` is at its upper bound, -1 where at its lower one.
    """

    basic: NDArray[np.intp]
    at_upper: NDArray[np.bool_]
    atoms: Atoms
    signs: NDArray[np.float64]


class Homotopy:
    """Moves a vertex from one penalty weight to a smaller one.

    Parameters
    ----------
    hinges : the columns of the dual program.
    X : (n, p) centred columns of the variables that may enter.
    penalty : the penalty of these variables.
    """

    def __init__(self, hinges: HingeColumns, X: NDArray[np.float64], penalty: Penalty):
        self.hinges, self.X, self.k = hinges, np.ascontiguousarray(X), hinges.shape[1]
        self.columns = np.ascontiguousarray(X.T)
        # what a unit of every multiplier adds to its row of R
        self.sees = np.ascontiguousarray(hinges.along(np.eye(self.k)).T)
        self.kind, self.table = _priced(penalty, self.k)

    def follow(self, vertex: Vertex, weight: float, target: float, *, max_steps: int = MAX_STEPS) -> Vertex:
        """Return the vertex at penalty weight `target`, or the last one that could be trusted."""
        walk = self._walk(vertex, weight)
        status = EXCHANGED
        while status == EXCHANGED and walk.n_steps < max_steps:
            try:
                self._refresh(walk)
            except np.linalg.LinAlgError:
                break
            status = walk.advance(target, REFRESH)
        m = walk.n_basic
        tight = slice(self.k - 1, m)
        atoms = Atoms(self.variables[tight].copy(), self.directions[tight].copy(), self.costs[tight].copy())
        return Vertex(self.basic[:m].copy(), self.at_upper.astype(bool), atoms, self.signs[tight].copy())

    def _walk(self, vertex: Vertex, weight: float) -> Walk:
        """Lay out a vertex, with room for what may be added to it."""
        n, p = self.X.shape
        k, m, n_hinges = self.k, len(vertex.basic), len(self.hinges.upper)
        room = max(m, min(n_hinges, (p + 1) * (k - 1), MOST_BASIC))
        self.basic, self.variables = np.zeros(room, dtype=np.intp), np.zeros(room, dtype=np.intp)
        self.directions, self.costs, self.signs = np.zeros((room, k)), np.zeros(room), np.zeros(room)
        self.basic[:m] = vertex.basic
        tight = slice(k - 1, m)
        self.variables[tight], self.directions[tight] = vertex.atoms.variables, vertex.atoms.directions
        self.costs[tight], self.signs[tight] = vertex.atoms.costs, vertex.signs
        self.is_basic = np.zeros(n_hinges, dtype=np.uint8)
        self.is_basic[vertex.basic] = True
        self.at_upper = (vertex.at_upper & ~self.is_basic.astype(bool)).astype(np.uint8)
        self.offsets = self._outward(PERTURBATION * self.hinges.offset)
        self.inverse, self.multipliers = np.zeros((room, room)), np.zeros(room)
        self.values, self.margins, self.G = np.zeros(n_hinges), np.zeros(n_hinges), np.zeros((k, p))
        walk = Walk(
            (
                self.X,
                self.columns,
                np.ascontiguousarray(self.hinges.example),
                self.sees,
                self.hinges.upper,
                self.kind,
                self.table,
            ),
            (self.basic, self.at_upper, self.is_basic, self.variables, self.directions, self.costs, self.signs),
            (self.inverse, self.values, self.G, self.multipliers, self.margins),
            (
                *(np.zeros(shape) for shape in ((n, k), (k, p), (k, n), room, room + 1, room)),
                *(np.zeros(n_hinges), np.zeros(n_hinges), np.zeros(len(self.table) + 1), np.zeros(k)),
                np.zeros(p, dtype=np.intp),
            ),
        )
        walk.n_basic, walk.weight = m, weight
        return walk

    def _outward(self, size: float) -> NDArray[np.float64]:
        """Return the offset of every hinge, random ones that keep the vertex where margins would tie."""
        apart = size * np.random.default_rng(0).uniform(0.5, 1.0, size=len(self.at_upper))
        apart[self.is_basic.astype(bool)] = 0.0
        return self.hinges.offset + np.where(self.at_upper, apart, -apart)

    def _refresh(self, walk: Walk) -> None:
        """Compute inverse, multipliers, correlations, coefficients and margins of the vertex afresh."""
        m, k, example = walk.n_basic, self.k, self.hinges.example
        basic, tight = self.basic[:m], slice(k - 1, m)
        directions, columns = self.directions[tight], self.columns[self.variables[tight]]
        kernel = np.vstack(
            [self.sees[basic, : k - 1].T, (directions @ self.sees[basic].T) * columns[:, example[basic]]]
        )
        inverse = np.linalg.inv(kernel)
        self.inverse[:m, :m] = inverse
        self.values[:] = np.where(self.at_upper, self.hinges.upper, 0.0)
        R = self._rows()
        beyond = np.append(R.sum(axis=0)[:-1], np.einsum("ak,ak->a", directions, columns @ R))
        reach = np.append(np.zeros(k - 1), walk.weight * self.signs[tight] * self.costs[tight])
        self.values[basic] = inverse @ (reach - beyond)
        self.G[:] = self._rows().T @ self.X
        multipliers = self.offsets[basic] @ inverse
        self.multipliers[:m] = multipliers
        scores = columns.T @ (multipliers[tight, None] * directions) + np.append(multipliers[: k - 1], 0.0)
        self.margins[:] = self.offsets - np.einsum("mk,mk->m", self.sees, scores[example])

    def _rows(self) -> NDArray[np.float64]:
        """Return R (n, k) of the multipliers."""
        weighted, example = self.values[:, None] * self.sees, self.hinges.example
        return np.column_stack([np.bincount(example, weighted[:, c], len(self.X)) for c in range(self.k)])


def _priced(penalty: Penalty, n_classes: int) -> tuple[int, NDArray[np.float64]]:
    """Return how to find the best atom of a variable: the kind of penalty and a table of weights."""
    match penalty:
        case LassoPenalty():
            return LASSO, np.ascontiguousarray(penalty.weights)
        case SupnormPenalty():
            return SUPNORM, np.ascontiguousarray(penalty.weights)
        case FusionPenalty() if penalty.weights is not None:
            return WEIGHTED_FUSION, separated_pairs(n_classes) @ penalty.weights
        case _:
            return FUSION, np.zeros((0, 0))
