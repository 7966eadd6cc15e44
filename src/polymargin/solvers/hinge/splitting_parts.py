"""Which examples a splitting takes its steps on.

Where classes lie apart, or C is large, half of the examples end with all their variables at zero. Steps on the
others read a quarter of the matrix, whose factor takes an eighth of the work. A dual point of a part of the
examples is one of all, and of the same value; only its scores have to be certified on all of them. That is done
once the part is solved as exactly as it has to be, or once so many of its examples have fallen to zero that it
pays to go on without them. The next part is the examples with variables above zero, and those outside that lose by
the scores found: where these are many, the ones that lose most.
"""

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import HingePoint, HingeProblem, boxes
from polymargin.solvers.contract import Progress, Status
from polymargin.solvers.effort import RATES
from polymargin.solvers.hinge.intercept import central_intercept
from polymargin.solvers.hinge.inverses import Inverse, Room
from polymargin.solvers.hinge.leaps import Leaps
from polymargin.solvers.hinge.splitting_iterate import SplittingIterate, best_length
from polymargin.solvers.hinge.splitting_penalty import Pilot, Seen, climbed, part_of, pilot_of
from polymargin.solvers.hinge.splitting_settings import ROUNDING, SplitSize, SplittingSettings, size_of


class Looks:
    """What certificates tell of the pace."""

    def __init__(self, gap: float, began: int = 0) -> None:
        self.began, self.found = began, [(began, gap)]

    def steps_to_go(self, steps: int, gap: float, tol: float) -> float:
        """Return how many steps are left at the rate of the second half of the way."""
        gap = max(gap, 1e-16)
        self.found.append((steps, gap))
        first, before = self.found[(len(self.found) - 1) // 2]
        rate = np.log(before / gap) / (steps - first)
        return float(np.log(gap / tol) / rate) if rate > 0.0 else np.inf

    def steps_if_slower(self, tol: float, fewest: int) -> float:
        """Return how many steps are left where the rate falls, as it does until the free variables are found.

        Between a constant rate and a power of the steps, the geometric mean; none while nothing is known, as the
        gap may stand still for less than the `fewest` steps.
        """
        steps, gap = self.found[-1]
        at = (len(self.found) - 1) // 2
        while at > 0 and steps - self.found[at][0] < fewest:
            at -= 1
        first, before = self.found[at]
        if not 0 < first < steps:
            return 0.0
        if not before > gap:
            return np.inf
        decrease, ahead = np.log(before / gap), max(np.log(gap / tol), 0.0)
        constant = (steps - first) * ahead / decrease
        power = steps * np.expm1(min(ahead * np.log(steps / first) / decrease, -np.log(ROUNDING)))
        return float(np.sqrt(constant * power))


class Parts:
    """The best point of all examples, the part of them that steps are taken on, and what was seen of the others.

    Attributes
    ----------
    point, best : the best point of all examples, and its certificate.
    rows : the examples of the part.
    iterate : its state.
    is_ready : whether steps can be taken.
    """

    def __init__(self, problem: HingeProblem, start: HingePoint, progress: Progress, tuning: SplittingSettings):
        self.problem, self.progress, self.tuning = problem, progress, tuning
        self.size, self.tol = size_of(problem), progress.settings.tol
        self.point, self.best = start, problem.certify(start)
        n = self.size.n
        self.room = Room(n, tuning.inverse) if self.size.p is None else None
        pilot = pilot_of(problem, progress, tuning, self.room)
        self.rho = pilot.rho
        self.losing, self.left, self.returned = (np.zeros(n, dtype=bool) for _ in range(3))
        self.is_ready = progress.status is not Status.NUMERICAL_ERROR
        self.t: NDArray[np.float64] | None = None
        self.to_go = np.inf
        self.part_tol = tuning.rough
        is_part = self.size.p is None and n >= tuning.least_rows
        self._take(self._begun(pilot) if is_part else np.arange(n))

    @property
    def _last_tol(self) -> float:
        """The gap that the part is solved to in the end: others may lose twice what they lost when last seen."""
        if self.is_whole:
            return self.tol
        least, most = self.tuning.inside
        return self.tol * float(np.clip(1.0 - 2.0 * self.outside / self.tol, least, most))

    @property
    def is_whole(self) -> bool:
        """Whether the part is all examples."""
        return len(self.rows) == self.size.n

    def _begun(self, pilot: Pilot) -> NDArray[np.intp]:
        """Return the examples that have variables above zero, or lose: by the pilot, unless the start is near.

        A model of a part of the rows tells which of the others will be left out, and few of them wrongly. Of those
        it took for its own part it had to leave some: as many will be left of these, those that ask for least.
        """
        problem, start, kept = self.problem, self.point, 1.0
        losses, dual = boxes(problem.losses, "Splitting"), start.dual
        if self.best.gap <= self.tuning.believed:
            margins = losses.margins(problem.gram.matmul(problem.model(start)) + start.intercept)
        else:
            pilot = climbed(problem, pilot, self.progress, self.tuning, self.room)
            if (seen := pilot.seen) is None:  # there was no time
                return np.arange(self.size.n)
            self.rho, kept = pilot.rho, pilot.kept
            margins, _ = self._margins_by(seen)
            dual = np.zeros_like(start.dual)
            dual[seen.rows] = seen.point.dual
        self.t = dual + margins / self.rho
        return _highest(np.where(losses.sizes > 0.0, self.t, 0.0).max(axis=1), kept)

    def _take(self, rows: NDArray[np.intp], begun: Inverse | None = None) -> None:
        """Make some examples the part, or all where they are nearly all; the first may have `begun` its factor."""
        n, problem, start = self.size.n, self.problem, self.point
        is_part = len(rows) < n if begun is not None else len(rows) <= self.tuning.most_share * n
        self.rows = rows if is_part else np.arange(n)
        if is_part:
            problem = part_of(problem, rows)
            start = HingePoint(start.dual[rows], start.intercept)
        t = None if self.t is None else self.t[self.rows]
        self.iterate = SplittingIterate(problem, start, self.rho, self.tuning, t, self.room)
        self.gap, self.outside, self.is_due = np.inf, np.inf, False
        self.part_tol = self._last_tol if self.is_whole else max(self.part_tol, self._last_tol)
        self.looks, self.leaps = Looks(self.best.gap), Leaps(self.tuning.leaps)
        self.is_ready = self.is_ready and self.iterate.prepare(self.progress, begun if is_part else None)

    def look(self) -> Certificate:
        """Certify the part's point, and on all examples where that is due; return what is known of all."""
        self.progress.count_all(self.tuning.operations_to_look(self.iterate.size))
        point, certificate = self.iterate.certified()
        self.to_go = self.looks.steps_to_go(self.iterate.steps, certificate.gap, self._last_tol)
        return self._seen(point, certificate)

    def leap(self) -> None:
        """Leap where that is expected to take less than the steps to come."""
        if self.size.p is not None or self.is_due:
            return
        to_come = self.tuning.operations_of_steps(self.iterate.size, self._steps_if_slower(self.part_tol))
        if self.leaps.pay(self.iterate, self.gap, self.part_tol, sum(map(RATES.work, to_come))):
            self._seen(*self.leaps.take(self.iterate, self.gap, self.progress, self.part_tol))

    def _steps_if_slower(self, tol: float) -> float:
        return self.looks.steps_if_slower(tol, self.tuning.most_steps)

    def go_on(self) -> bool:
        """Prepare the next steps, on other examples where the part is to change; False without time."""
        if self.is_due:
            return self._regroup()
        if self.iterate.improve_rho():  # another pace
            self.looks = Looks(self.gap, self.iterate.steps)
        return True

    def conclude(self) -> None:
        """Certify on all examples what steps on a part of them have led to."""
        if not self.is_whole and not self.is_due and self.gap < np.inf:
            self._look_at_all()

    def _seen(self, point: HingePoint, certificate: Certificate) -> Certificate:
        self.gap = certificate.gap
        self.is_due = self._pays_to_leave_some()
        if self.is_whole:
            self._offer(point, certificate)
            return certificate
        self.is_due = self.is_due or certificate.within(self.part_tol)
        if self.is_due:
            self._look_at_all()
            return self.best
        dual = max(self.best.dual, certificate.dual)
        return Certificate.of(self.best.primal, dual, infeasibility=certificate.infeasibility)

    def _offer(self, point: HingePoint, certificate: Certificate) -> None:
        if certificate.gap < self.best.gap:
            self.point, self.best = point, certificate

    def _pays_to_leave_some(self) -> bool:
        """Tell whether the steps to go take less without examples that have fallen to zero, a factor included."""
        tuning, size = self.tuning, self.iterate.size
        if size.p is not None or size.n < tuning.least_rows or self.gap > tuning.believed:
            return False
        active = int(self._kept().sum())
        if not 0 < active <= tuning.fewer * size.n:
            return False
        to_go = min(max(self.to_go, self._steps_if_slower(self._last_tol)), float(tuning.max_steps))
        smaller = SplitSize(active, size.k)
        saved = RATES.work(tuning.operations(size, to_go)) - RATES.work(tuning.operations(smaller, to_go))
        paid = (tuning.operations_to_factorise(smaller), tuning.operations_to_look(self.size))
        return sum(map(RATES.work, paid)) < saved

    def _look_at_all(self) -> None:
        """Certify the part's best point on all examples, and see which of those outside lose by it."""
        margins, gap = self._margins_by(Seen.of(self.rows, self.iterate))
        self.outside = gap - self.gap
        self._note_losing(margins)

    def _margins_by(self, seen: Seen) -> tuple[NDArray[np.float64], float]:
        """Offer a point of some examples, in which no others have a part; return all margins, and its gap."""
        problem, part = self.problem, seen.point
        losses, dual = boxes(problem.losses, "Splitting"), np.zeros((self.size.n, self.size.k))
        R, H, intercept = np.zeros_like(dual), seen.scores, part.intercept
        dual[seen.rows], R[seen.rows] = part.dual, part.primal
        if problem.fit_intercept:
            intercept = central_intercept(losses, dual, H, guess=intercept)
        length = best_length(problem, R, H, intercept)
        point = HingePoint(dual, length * intercept, primal=length * R)
        certificate = problem.certify(point, seen.dual_scores, length * H)
        self._offer(point, certificate)
        return losses.margins(H + intercept), certificate.gap

    def _note_losing(self, margins: NDArray[np.float64]) -> None:
        """Keep the state of all examples: of those outside it is what their margins ask for."""
        outside = np.ones(self.size.n, dtype=bool)
        outside[self.rows] = False
        worst = np.where(outside, np.where(self.problem.losses.sizes > 0.0, margins, 0.0).max(axis=1), 0.0)
        self.losing = worst > 0.0
        if np.count_nonzero(self.losing) > self.tuning.many * len(self.rows):
            self.losing &= worst >= np.quantile(worst[self.losing], 1.0 - self.tuning.admitted)
        self.t = np.where(outside[:, None], margins / self.rho, 0.0)

    def _kept(self) -> NDArray[np.bool_]:
        """Tell which examples of the part have variables above zero, or have come back once: none leaves twice."""
        return self.iterate.active() | self.returned[self.rows]

    def _regroup(self) -> bool:
        """Go on without examples if that pays, with those that lose, or with the same; False without time."""
        rows, inverse, leaves = self.rows, self.iterate.inverse, self._pays_to_leave_some()
        if self.gap <= self.part_tol:
            self.part_tol = max(self.tuning.closer * self.part_tol, self._last_tol)
        if not leaves and self.outside <= (1.0 - self.tuning.inside[0]) * self.tol:
            self.is_due = False
            return True
        if self.t is None:
            self.t = np.empty((self.size.n, self.size.k))
        self.t[rows] = self.iterate.t
        self.returned |= self.losing & self.left
        if leaves or not isinstance(inverse, Inverse):
            kept = self._kept()
            self.left[rows] |= ~kept
            wanted = self.losing.copy()
            wanted[rows] = kept
            self._take(np.flatnonzero(wanted))
        else:
            self._take(np.append(rows, np.flatnonzero(self.losing)), inverse)
        return self.is_ready


def _highest(values: NDArray[np.float64], kept: float) -> NDArray[np.intp]:
    """Return the places of the highest values above zero, this part of them."""
    above = np.flatnonzero(values > 0.0)
    if not len(above):
        return above
    return above[values[above] >= np.quantile(values[above], 1.0 - kept)]
