"""The part of the interior point that lives in the blocks of slots: iterate, elimination, steps.

With dual slots alpha, slacks s, epigraph variables xi and ``theta = alpha / s`` a Newton direction that changes
the products ``alpha s`` by `change` while the scores move by dF is, block by block,

    d xi    = (sum(wanted + theta lift(dF)) - missing) / sum theta,         wanted = change / s,
    d s     = d xi - lift(dF),      d alpha = wanted - theta d s,

so what the reduced system needs of the blocks is their `pull` on the scores (n, k) when these stand still.
`SimplexBlocks` and `HingeBlocks` are the same compiled, for maxima and for hinges.
"""

from dataclasses import dataclass

import numpy as np

from polymargin._native.hinge_blocks import HingeBlocks
from polymargin._native.simplex_blocks import MOST_CLASSES, SimplexBlocks
from polymargin.solvers.hinge._slots import Array, BoxSlots, CurvedSlots, SimplexSlots, Slots, row_sums
from polymargin.solvers.hinge.settings import INTERIOR

LONGEST_MOVE = 1.0
"""Largest change of a margin within a step where losses are smooth: as far as their curvature can be trusted."""


@dataclass(slots=True)
class _Slots:
    """Values in the slots: an iterate, or a direction."""

    alpha: Array
    slack: Array
    epigraph: Array

    def plus(self, other: "_Slots", length: float = 1.0) -> "_Slots":
        """Return the sum with `length` times another."""
        return _Slots(
            self.alpha + length * other.alpha,
            self.slack + length * other.slack,
            self.epigraph + length * other.epigraph,
        )


class GeneralBlocks:
    """Blocks of any losses, in NumPy."""

    direction: _Slots
    candidate: _Slots

    def __init__(
        self,
        slots: Slots,
        alpha: Array,
        slack: Array,
        epigraph: Array,
        mean_weight: float | None = None,
    ):
        self.slots = slots
        self.at = _Slots(alpha, slack, epigraph)
        self.share = (slots.weight / (slots.weight.mean() if mean_weight is None else mean_weight))[:, None]

    @property
    def alpha(self) -> Array:
        """Dual slots."""
        return self.at.alpha

    @property
    def slack(self) -> Array:
        """Slacks."""
        return self.at.slack

    @property
    def epigraph(self) -> Array:
        """Epigraph variables."""
        return self.at.epigraph

    def objectives(self) -> tuple[float, float]:
        """Return the losses, and the complementarity, which is the gap once all linear conditions hold."""
        at = self.at
        return (
            self.slots.cost(at.slack, at.epigraph),
            self.slots.complementarity(at.alpha, at.slack, at.epigraph),
        )

    def pull(self) -> Array:
        """Return the pull of the dual slots."""
        return self._pulled(self.at.alpha)

    def linearise(self) -> float:
        """Prepare the eliminations at the iterate; return the mean of the products."""
        slots, at = self.slots, self.at
        self.flexibility, self.shortfall = slots.smooth_condition(at.alpha, at.slack, at.epigraph)
        self.theta = at.alpha / at.slack
        alpha, slack = at.alpha[slots.smooth], at.slack[slots.smooth]
        self.theta[slots.smooth] = alpha / (slack + alpha * self.flexibility)
        self.total = row_sums(self.theta)
        self.missing = slots.weight - row_sums(at.alpha)
        self.product = at.alpha * at.slack
        return float(self.product.mean())

    def atom_weights(self, first: int, last: int) -> Array:
        """Return the weights (rows, atoms) of the curvature on the examples from first to last."""
        return self.slots.atom_weights(self.theta, slice(first, last))

    def predict(self) -> Array:
        """Return the pull of the blocks when the products go to zero."""
        return self._eliminate(-self.product, self.missing, self.shortfall)

    def correct(self, aim: float) -> Array:
        """Return the pull when the products go to their share of `aim`, the second order made up for."""
        self.aim = aim * self.share
        change = self.aim - self.product - self.direction.alpha * self.direction.slack
        return self._eliminate(change, self.missing, self.shortfall)

    def recentre(self, hoped: float) -> Array:
        """Return the pull of a correction that draws outliers among the products at a step `hoped` to the aim."""
        there = self.at.plus(self.direction, hoped)
        product = there.alpha * there.slack
        # products far above the aim are lowered only so much, lest they take over
        low, high = INTERIOR.least_product * self.aim, INTERIOR.largest_product * self.aim
        change = np.maximum(np.clip(product, low, high) - product, -high)
        return self._eliminate(change, np.zeros_like(self.missing), np.zeros_like(self.shortfall))

    def refine(self) -> Array:
        """Return the pull of what rounding left of the blocks' sums in the direction."""
        missing = self.missing - row_sums(self.direction.alpha)
        return self._eliminate(np.zeros_like(self.product), missing, np.zeros_like(self.shortfall))

    def pull_of_direction(self) -> Array:
        """Return the pull of the direction's dual slots."""
        return self._pulled(self.direction.alpha)

    def recover(self, scores: Array, *, onto: bool) -> float:
        """Make the candidate: what was eliminated, for given scores, added `onto` the direction if asked for.

        Returns
        -------
        The longest step, at most 2, that keeps dual slots and slacks non-negative.
        """
        slots, theta, wanted = self.slots, self.theta, self.wanted
        lifted = slots.lift(scores)
        epigraph = (row_sums(wanted + theta * lifted) - self.wanted_missing) / self.total
        slack = epigraph[:, None] - lifted
        alpha = wanted - theta * slack
        slack[slots.smooth] -= self.flexibility * (self.wanted_shortfall - alpha[slots.smooth])
        found = _Slots(alpha, slack, epigraph)
        self.candidate = self.direction.plus(found) if onto else found
        rate = max(
            float((-self.candidate.alpha / self.at.alpha).max()),
            float((-self.candidate.slack / self.at.slack).max()),
        )
        return 1.0 / max(rate, 0.5)

    def accept(self) -> None:
        """Make the candidate the direction."""
        self.direction = self.candidate

    def reached(self, length: float) -> float:
        """Return the mean of the products after a step along the direction."""
        there = self.at.plus(self.direction, length)
        return float((there.alpha * there.slack).mean())

    def trusted(self, length: float) -> float:
        """Return how much of a step along the direction the curvature of smooth losses can be trusted for."""
        if not len(self.flexibility):
            return length
        moves = self.direction.epigraph - self.direction.slack[self.slots.smooth]
        return min(length, LONGEST_MOVE / max(float(np.abs(moves).max()), LONGEST_MOVE))

    def advance(self, length: float) -> None:
        """Move along the direction."""
        self.at = self.at.plus(self.direction, length)

    def _pulled(self, alpha: Array) -> Array:
        return self.slots.gather(alpha)

    def _eliminate(self, change: Array, missing: Array, shortfall: Array) -> Array:
        smooth, flexibility = self.slots.smooth, self.flexibility
        self.wanted_missing, self.wanted_shortfall = missing, shortfall
        self.wanted = change / self.at.slack
        alpha, slack = self.at.alpha[smooth], self.at.slack[smooth]
        self.wanted[smooth] = (change[smooth] + alpha * shortfall * flexibility) / (slack + alpha * flexibility)
        return self._pulled(self.wanted - self.theta * ((row_sums(self.wanted) - missing) / self.total)[:, None])


def blocks_of(
    slots: Slots, alpha: Array, slack: Array, epigraph: Array, *, passes_matter: bool = True
) -> GeneralBlocks | HingeBlocks | SimplexBlocks:
    """Return the blocks at an iterate; hinges are compiled where passes over them take a part of the time."""
    if isinstance(slots, BoxSlots) and passes_matter:
        return HingeBlocks(slots, alpha, slack, epigraph, INTERIOR.least_product, INTERIOR.largest_product)
    few_classes = alpha.shape[1] <= MOST_CLASSES
    if isinstance(slots, SimplexSlots) and not isinstance(slots, CurvedSlots) and few_classes:
        return SimplexBlocks(slots.weight, slots.anchor, slots.starts, alpha, slack, epigraph)
    return GeneralBlocks(slots, alpha, slack, epigraph)
