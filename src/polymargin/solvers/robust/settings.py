"""What tunes the DC algorithm and its convex steps."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RobustSettings:
    """Tuning of the DC algorithm and of the proximal Newton method; none of it changes what is certified.

    Attributes
    ----------
    start_tol : gap to which a machine that only serves as a start is solved.
    step_share : gap, as a part of the tolerance, of a step that is to be exact, and of what a tangent may be off.
    shortest_limit : seconds that a step may take at least.
    boosts : multiples of a step tried beyond its end.
    interior_point_unknowns : unknowns (features + 1)(k - 1) up to which features go to the interior point.
    small_problem : unknowns up to which a kernel of any rank is given to the interior point.
    local_rows, local_rounds : distinct rows up to which the local search, which takes some ten times as long as a
        start, is made, and its rounds.
    local_scales : multiples of the scores from which it sets out: they move rows across the kinks of their losses.
    local_shift, local_pairs : what it adds to the scores of one class and takes from those of another, and of how
        many pairs of classes.
    collapsed : largest score below which the argmax is taken to be noise.
    start_unknowns : size (rank + 1)(k - 1) of the low-rank problem whose solution is the default start.
    start_gap, start_iterations, start_zero : gap and iterations of that problem, and the part of its weight below
        which a slot is moved to zero.
    newton_steps : Newton steps of one proximal step.
    inexact, first_inexact, later_inexact : residual of a proximal step relative to its length: in general, and by
        what factor smaller for the first Newton step and for later ones.
    sufficient_decrease, shortest_step : part of the decrease that the slope promises which a step must make, and
        the length at which it is given up.
    growth : factor by which sigma grows after a quick proximal step, and shrinks after a failed one.
    smallest_sigma : sigma, in units of the mean weight, below which the method has stalled.
    failed_steps, idle_steps : proximal steps that may fail, and that may bring no smaller gap, in a row.
    """

    start_tol: float = 1e-2
    step_share: float = 0.1
    shortest_limit: float = 1e-3
    boosts: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
    interior_point_unknowns: int = 2000
    small_problem: int = 300
    local_rows: int = 200
    local_rounds: int = 5
    local_scales: tuple[float, ...] = (5.0, 0.3)
    local_shift: float = 1.0
    local_pairs: int = 3
    collapsed: float = 1e-3
    start_unknowns: int = 400
    start_gap: float = 1e-4
    start_iterations: int = 60
    start_zero: float = 1e-3
    newton_steps: int = 25
    inexact: float = 1e-2
    first_inexact: float = 1e-2
    later_inexact: float = 0.1
    sufficient_decrease: float = 1e-4
    shortest_step: float = 1e-6
    growth: float = 5.0
    smallest_sigma: float = 1e-8
    failed_steps: int = 20
    idle_steps: int = 8


DEFAULTS = RobustSettings()
