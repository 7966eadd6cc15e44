"""The proof that comes with every solution."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True)
class Certificate:
    """How good a point provably is.

    Attributes
    ----------
    kind : {"global", "stationary"}
        "global": the optimal value lies in [dual, primal]. "stationary": the problem is not convex, and the
        numbers are those of the last convex step.
    primal, dual : float
        Objective values of the point and of its dual.
    gap : float
        ``(primal - dual) / max(1, |primal|)``.
    infeasibility : float
        Largest violation of a constraint, relative to the scale of the constrained quantity. The gap is a
        proof only while this is at the level of rounding.
    """

    kind: Literal["global", "stationary"]
    primal: float
    dual: float
    gap: float
    infeasibility: float

    @classmethod
    def of(
        cls,
        primal: float,
        dual: float,
        *,
        infeasibility: float = 0.0,
        kind: Literal["global", "stationary"] = "global",
    ) -> "Certificate":
        """Build a certificate from the two objective values."""
        gap = (primal - dual) / max(1.0, abs(primal))
        return cls(kind, float(primal), float(dual), float(gap), float(infeasibility))

    @classmethod
    def sum(cls, certificates: Iterable["Certificate"]) -> "Certificate":
        """Return the certificate of separate convex problems taken as one, of the sum of their objectives."""
        all_of_them = list(certificates)
        return cls.of(
            sum(one.primal for one in all_of_them),
            sum(one.dual for one in all_of_them),
            infeasibility=max(one.infeasibility for one in all_of_them),
        )

    def within(self, tol: float) -> bool:
        """Tell whether the gap is at most `tol`, not negative, and the point feasible, both to rounding."""
        return self.is_proof and self.gap <= tol

    @property
    def is_proof(self) -> bool:
        """Whether the optimum does lie between dual and primal: the point is feasible, the gap not negative."""
        return not self.is_contradicted and self.infeasibility <= FEASIBLE and self.is_finite

    @property
    def is_contradicted(self) -> bool:
        """Whether the dual is above the primal by more than rounding explains: then neither proves anything."""
        return self.gap < -FEASIBLE

    @property
    def is_finite(self) -> bool:
        """Whether all numbers are finite."""
        return all(map(math.isfinite, (self.primal, self.dual, self.gap, self.infeasibility)))


FEASIBLE = 1e-9
"""Relative violation of a constraint, or of primal >= dual, that rounding explains."""


class Problem(Protocol):
    """An optimisation problem that can judge a point by arithmetic of its own, never by a solver's own numbers."""

    def certify(self, point: Any) -> Certificate:
        """Measure primal, dual, gap and infeasibility of `point`."""
        ...
