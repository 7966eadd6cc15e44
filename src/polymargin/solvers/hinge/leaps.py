"""Newton's method from where splitting stands, where few variables are free.

The state t of splitting tells of every variable whether it is zero (t <= 0), at its bound (t >= upper) or free. On
the face of the free ones the dual is a linear system; a ridge that shrinks holds its solution u near the state.
With the margins m of the scores of u, ``u + m/rho`` is a state again, which tells the next face: variables that
left their bounds go to them, those that should leave theirs become free. Near the solution each leap decides anew
about fewer variables than the one before; where it does not, splitting goes on from where it stood.
After M. Hintermueller, K. Ito & K. Kunisch, The primal-dual active set strategy as a semismooth Newton method,
SIAM Journal on Optimization 13, 2002.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import BoxLosses, HingePoint
from polymargin.solvers.contract import Progress
from polymargin.solvers.effort import RATES
from polymargin.solvers.hinge.faces import DEFAULTS as FACES
from polymargin.solvers.hinge.faces import FaceSettings, is_tractable, operations_of_face


@dataclass(frozen=True, slots=True)
class LeapSettings:
    """When leaps are tried and given up; none of it changes what is certified.

    Attributes
    ----------
    reduction, most : part of the gap that a leap leaves, about, and how many there are at most.
    share : part of the work of the steps expected to be left that they may take.
    fewer : part of the variables that the leap before has decided anew about, which the next may at most.
    wait : part of the gap of a try that failed, from which on there is another.
    finest : tolerance below which there are none: they stopped short of 1e-6, and other methods had to follow.
    ridge, smaller, least_ridge : relative ridge of the first system, which holds it near the state, the part of it
        that each leap leaves, and what single precision asks for.
    faces : of the systems.
    """

    reduction: float = 0.25
    most: int = 12
    share: float = 1.0
    fewer: float = 0.8
    wait: float = 0.3
    finest: float = 1e-4
    ridge: float = 1e-3
    smaller: float = 0.5
    least_ridge: float = 1e-5
    faces: FaceSettings = FACES

    def faces_of(self, leap: int) -> FaceSettings:
        """Return the settings of the system of a leap."""
        return replace(self.faces, ridge=max(self.ridge * self.smaller**leap, self.least_ridge), in_single=True)

    def expected(self, gap: float, tol: float) -> float:
        """Return how many leaps it takes from one gap to another, about."""
        return 1.0 + max(float(np.log(tol / gap) / np.log(self.reduction)), 0.0)


DEFAULTS = LeapSettings()


Standing = dict[str, Any]
"""What leaps change, by name."""


class Leaper(Protocol):
    """A state that can be taken to the solution of its face."""

    losses: BoxLosses

    def standing(self) -> Standing:
        """Return what a leap changes, to come back to it."""
        ...

    def return_to(self, standing: Standing) -> None:
        """Come back from leaps."""
        ...

    def free(self) -> NDArray[np.bool_]:
        """Tell which variables are free."""
        ...

    def leap(self, progress: Progress, faces: FaceSettings) -> bool:
        """Go to the state that the solution of the face tells; False where there is none, or no time for it."""
        ...

    def best(self) -> tuple[HingePoint, Certificate]:
        """Return the best scores and the best dual point so far, and their certificate."""
        ...


class Leaps:
    """Decides on leaps by what they take, and remembers how the last ones went."""

    def __init__(self, tuning: LeapSettings) -> None:
        self.tuning, self.gap_of_next = tuning, np.inf

    def pay(self, iterate: Leaper, gap: float, tol: float, work: float) -> bool:
        """Tell whether leaps are expected to take less than the steps that are left, which take so much work."""
        if gap > self.gap_of_next or tol < self.tuning.finest:
            return False
        free, tuning, faces = iterate.free(), self.tuning, self.tuning.faces_of(0)
        n_free, n_rows = int(free.sum()), int(free.any(axis=1).sum())
        if not is_tractable(iterate.losses, n_free, n_rows, faces):
            return False
        face = RATES.work(operations_of_face(iterate.losses, n_free, n_rows, faces))
        return tuning.expected(gap, tol) * face <= tuning.share * work

    def take(self, iterate: Leaper, gap: float, progress: Progress, tol: float) -> tuple[HingePoint, Certificate]:
        """Leap until the gap is small enough or the faces do not settle; return the best point.

        Where it is not within the tolerance the state is what it was before: the pace of steps from elsewhere is
        not known, and the best points of leaps, kept, would hide it.
        """
        tuning, before, free, changed = self.tuning, iterate.standing(), iterate.free(), np.inf
        for leap in range(tuning.most):
            if not iterate.leap(progress, tuning.faces_of(leap)):
                break
            point, certificate = iterate.best()
            progress.record(certificate.primal, certificate.dual)
            if certificate.within(tol):
                return point, certificate
            now = iterate.free()
            anew = int(np.count_nonzero(now != free))
            if anew == 0 or anew > tuning.fewer * changed:
                break
            free, changed = now, anew
        found = iterate.best()
        iterate.return_to(before)
        self.gap_of_next = tuning.wait * gap
        return found
