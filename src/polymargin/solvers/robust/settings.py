"""What tunes the DC algorithm and its convex steps."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RobustSettings:
    """Tuning of the DC algorithm and of the proximal Newton method; none of it changes what is certified.

    Attributes
    ----------
    start_tol : gap to which a machine that only serves as a start is solved.
    boosts : multiples of a step tried beyond its end.
    interior_point_unknowns : unknowns (features + 1)(k - 1) up to which features go to the interior point.
    small_problem : unknowns up to which a kernel of any rank is given to the interior point.
    start_unknowns : size (rank + 1)(k - 1) of the low-rank problem whose solution is the default start.
    newton_steps : Newton steps of one proximal step.
    growth : factor by which sigma grows after a quick proximal step, and shrinks after a failed one.
    smallest_sigma : sigma, in units of the mean weight, below which the method has stalled.
    failed_steps, idle_steps : proximal steps that may fail, and that may bring no smaller gap, in a row.
    """

    start_tol: float = 1e-2
    boosts: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
    interior_point_unknowns: int = 2000
    small_problem: int = 300
    start_unknowns: int = 400
    newton_steps: int = 25
    growth: float = 5.0
    smallest_sigma: float = 1e-8
    failed_steps: int = 20
    idle_steps: int = 8


DEFAULTS = RobustSettings()
