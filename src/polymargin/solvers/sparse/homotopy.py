"""Following the vertex of a sparse machine while its penalty weight falls: the parametric dual simplex method.

In units of C the dual program (`problems.sparse`) asks for ``a.G_j <= lambda cost(a)`` of every atom a of every
variable j. A vertex is a set of *basic* hinges, whose multipliers lie between their bounds and whose margins are
zero, and as many tight atoms, less the k - 1 free intercepts. While lambda falls the multipliers move along a
line until one of them reaches a bound or another atom becomes tight: one exchange then leads to the next vertex.
Nothing overshoots, so there are far fewer exchanges than in solving the program anew. What is found here is only
proposed: the master program starts from it, and has the last word.
"""

from dataclasses import dataclass
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from polymargin._native.homotopy import (
    EXCHANGED,
    FUSION,
    LASSO,
    MAX_CLASSES,
    SUPNORM,
    WEIGHTED_FUSION,
    Walk,
)
from polymargin.problems.penalties import Atoms, Penalty, PriceRule
from polymargin.solvers.sparse.hinge_columns import HingeColumns
from polymargin.solvers.sparse.settings import DEFAULTS, CuttingSettings


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
    penalty : the penalty of these variables, which has a `price_rule`.
    """

    @staticmethod
    def accepts(hinges: HingeColumns, penalty: Penalty) -> bool:
        """Tell whether vertices can be followed: separate hinges, not too many classes, a compiled price rule."""
        k = hinges.shape[1]
        return k <= MAX_CLASSES and hinges.weight is None and has_price_rule(penalty, k)

    def __init__(
        self, hinges: HingeColumns, X: NDArray[np.float64], penalty: Penalty, tuning: CuttingSettings = DEFAULTS
    ):
        rule = penalty.price_rule(hinges.shape[1], X.shape[1])
        if rule is None:
            raise TypeError(f"{type(penalty).__name__} has no price rule by which a vertex could be followed.")
        self.tuning = tuning
        self.hinges, self.X, self.k = hinges, np.ascontiguousarray(X), hinges.shape[1]
        self.columns = np.ascontiguousarray(X.T)
        # what a unit of every multiplier adds to its row of R
        self.sees = np.ascontiguousarray(hinges.along(np.eye(self.k)).T)
        self.kind, self.table = _compiled(rule[0]), rule[1]

    def follow(self, vertex: Vertex, weight: float, target: float) -> Vertex:
        """Return the vertex at penalty weight `target`, or the last one that could be trusted."""
        walk = self._walk(vertex, weight)
        status = EXCHANGED
        while status == EXCHANGED and walk.n_steps < self.tuning.max_exchanges:
            try:
                self._refresh(walk)
            except np.linalg.LinAlgError:
                break
            status = walk.advance(target, self.tuning.refresh_every)
        m = walk.n_basic
        tight = slice(self.k - 1, m)
        atoms = Atoms(self.variables[tight].copy(), self.directions[tight].copy(), self.costs[tight].copy())
        return Vertex(self.basic[:m].copy(), self.at_upper.astype(bool), atoms, self.signs[tight].copy())

    def _walk(self, vertex: Vertex, weight: float) -> Walk:
        """Lay out a vertex, with room for what may be added to it."""
        n, p = self.X.shape
        k, m, n_hinges = self.k, len(vertex.basic), len(self.hinges.upper)
        room = max(m, min(n_hinges, (p + 1) * (k - 1), self.tuning.most_basic))
        self.basic, self.variables = np.zeros(room, dtype=np.intp), np.zeros(room, dtype=np.intp)
        self.directions, self.costs, self.signs = np.zeros((room, k)), np.zeros(room), np.zeros(room)
        self.basic[:m] = vertex.basic
        tight = slice(k - 1, m)
        self.variables[tight], self.directions[tight] = vertex.atoms.variables, vertex.atoms.directions
        self.costs[tight], self.signs[tight] = vertex.atoms.costs, vertex.signs
        self.is_basic = np.zeros(n_hinges, dtype=np.uint8)
        self.is_basic[vertex.basic] = True
        self.at_upper = (vertex.at_upper & ~self.is_basic.astype(bool)).astype(np.uint8)
        self.offsets = self._outward(self.tuning.perturbation * self.hinges.offset)
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


def has_price_rule(penalty: Penalty, n_classes: int) -> bool:
    """Tell whether the best atoms of the penalty can be found by compiled code."""
    no_variable = np.zeros(0, dtype=np.intp)
    return penalty.restricted(no_variable).price_rule(n_classes, 0) is not None


def _compiled(rule: PriceRule) -> int:
    """Return the number by which the compiled walk knows a rule."""
    match rule:
        case PriceRule.PAIRS:
            return LASSO
        case PriceRule.SIGNS:
            return SUPNORM
        case PriceRule.PREFIXES:
            return FUSION
        case PriceRule.CUTS:
            return WEIGHTED_FUSION
        case unknown:
            assert_never(unknown)
