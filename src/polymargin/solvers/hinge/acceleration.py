"""Anderson's acceleration of an iteration to a fixed point: where to go by what the last steps have changed."""

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AccelerationSettings:
    """When states are extrapolated.

    Attributes
    ----------
    memory, fewest : changes that are remembered, and how many it takes.
    ridge : of their products, relative to the sum of their squares.
    worse : factor by which the change of a step may grow behind an extrapolation that is kept.
    """

    memory: int = 8
    fewest: int = 2
    ridge: float = 1e-8
    worse: float = 2.0


DEFAULTS = AccelerationSettings()


class Acceleration:
    """Extrapolates the states of an iteration whose map does not change; `forget` where it does.

    The combination of the last states, of weights that sum to one, whose steps would leave the least residual
    were the map linear (D. Anderson, 1965; type II). Behind an extrapolation that was none the step before it is
    taken instead.
    """

    def __init__(self, tuning: AccelerationSettings = DEFAULTS):
        self.tuning = tuning
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._last: tuple[Array, Array] | None = None
        self._kept: tuple[Array, float] | None = None
        self._residuals: deque[Array] = deque(maxlen=self.tuning.memory)
        self._states: deque[Array] = deque(maxlen=self.tuning.memory)
        self._products = np.zeros((0, 0))

    def following(self, before: Array, after: Array, scale: Array) -> Array:
        """Return the state to go on from, where a step led from one to another; residuals count by `scale`.

        What it is given is kept: the state returned, which is another array, may be changed in place.
        """
        residual = (after - before) * scale
        size = float(np.linalg.norm(residual))
        if self._kept is not None and size > self.tuning.worse * self._kept[1]:
            state = self._kept[0]
            self.forget()
            return state
        if self._last is not None:
            self._remember(residual - self._last[0], after - self._last[1])
        self._last, self._kept = (residual, after), None
        if len(self._residuals) < self.tuning.fewest:
            return after.copy()
        right = np.array([np.vdot(change, residual) for change in self._residuals])
        matrix = self._products + self.tuning.ridge * np.trace(self._products) * np.eye(len(right))
        try:
            shares = np.linalg.solve(matrix, right)
        except np.linalg.LinAlgError:  # nothing has changed
            return after.copy()
        state = after.copy()
        for share, change in zip(shares, self._states, strict=True):
            state -= share * change
        self._kept = after, size
        return state

    def _remember(self, residual: Array, state: Array) -> None:
        """Keep changes, and the products of one with the others."""
        if len(self._residuals) == self.tuning.memory:
            self._products = self._products[1:, 1:]
        self._residuals.append(residual)
        self._states.append(state)
        products = np.zeros((len(self._residuals),) * 2)
        products[:-1, :-1] = self._products
        products[-1] = products[:, -1] = [np.vdot(change, residual) for change in self._residuals]
        self._products = products
