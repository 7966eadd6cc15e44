"""What tunes the solvers of shared structure and of the trace norm."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SharedSettings:
    """Tuning of the alternation, its two steps and the proximal gradient; none of it changes what is certified.

    Attributes
    ----------
    longest : limit of the iterations of fits that run to convergence.
    stalled_rounds, lost_rounds : rounds without progress after which the alternation stops, in general and while
        its gap is larger than the objective.
    largest_rise : of the objective in a round, relative to it, and its largest negative value, relative to that of
        zero scores, beyond which rounding has taken over.
    many_relations : entries of M beyond which bounds are met by spreading the solution without them.
    rounds_mixed, least_difference : differences of rounds that an extrapolation mixes, and the relative singular
        value below which they are too alike to be told apart.
    descent_steps, descent_memory : limit of the steps of L-BFGS-B, and how many it remembers.
    dense_unknowns : unknowns up to which a W-step of one-vs-one is one dense system.
    cg_tolerance, cg_steps, cg_idle : relative residual and limit of the conjugate gradients of larger W-steps, and
        steps without a smaller residual after which rounding is taken to allow no more.
    unfinished_steps : W-steps of a fit that may meet that limit.
    pivot_patience : full exchanges of an M-step allowed without a drop in the number of variables beyond a bound.
    pivot_rounds : limit of the rounds of exchanges.
    admm_tolerance, admm_iterations, admm_patience : relative change and limit of semidefinite M-steps, and how
        many may pass before it is halved.
    admm_adapted, admm_factors : steps after which their penalty is adapted, and the least and largest factor.
    check_every : proximal gradient iterations between two certificates.
    patient_iterations : of the proximal gradient, before its pace is judged.
    """

    longest: int = 10_000
    stalled_rounds: int = 50
    lost_rounds: int = 20
    largest_rise: float = 1e-6
    many_relations: int = 100_000
    rounds_mixed: int = 10
    least_difference: float = 1e-10
    descent_steps: int = 10_000
    descent_memory: int = 20
    dense_unknowns: int = 400
    cg_tolerance: float = 1e-12
    cg_steps: int = 2_000
    cg_idle: int = 200
    unfinished_steps: int = 10
    pivot_patience: int = 3
    pivot_rounds: int = 10_000
    admm_tolerance: float = 1e-13
    admm_iterations: int = 20_000
    admm_patience: int = 1_000
    admm_adapted: int = 50
    admm_factors: tuple[float, float] = (0.2, 5.0)
    check_every: int = 10
    patient_iterations: int = 5_000


DEFAULTS = SharedSettings()
