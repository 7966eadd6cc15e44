"""What tunes cut generation and the walk along C."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CuttingSettings:
    """Tuning of `CuttingPlanes`, of its master program in HiGHS and of the walk between two values of C.

    None of it changes what is certified: the tolerance of a fit is that of `solvers.contract.Settings`.

    Attributes
    ----------
    initial_tol : gap to which initial fits, which only give weights, are solved.
    violated : relative excess of a polar over 1 that makes a cut.
    cut_share : part of the tolerance by which a polar must exceed the largest known one to make a cut, in the
        search for the largest penalty weight; `max_rounds_at_zero` limits its rounds.
    new_cuts : cuts added at a time: the most violated ones.
    spare_cuts : slack cuts that are kept when C changes.
    spare_tangents : slack cuts that are kept between two rounds, where the penalty has no price rule.
    feasibility : tolerance of HiGHS for rows (bounds of about 1) and reduced costs (margins of about 1).
    smallest_feasibility : the same where a larger one leaves a gap, as it may with large C.
    patience : iterations of the simplex method, per row and column, after which it starts again in another way.
    last_patience : the same for the last way, after which it is given up.
    largest_growth : factor by which C may outgrow the unit of the multipliers before the master is built anew.
    smallest_entry : rows are scaled until their bound is at least 1 and their largest entry at least this.
    largest_entry : rows with larger entries, of which HiGHS takes none above 1e15, are scaled down to it.
    far_from_zero : variables whose middle is more than so many times their range from zero are taken about it.
    noise : multipliers that move no margin by more than this are rounding errors of a degenerate vertex.
    margin_rounding : hinges below this fraction of the margin may be rounding errors of HiGHS.
    correlation_rounding : correlations below this fraction of their terms count as zero (constant variables).
    most_watched : variables that may enter during a walk: those with the largest polars.
    refresh_every : exchanges of a walk after which everything is computed afresh.
    max_exchanges : exchanges of a walk after which the master has to go on alone.
    most_basic : size of a vertex beyond which its dense inverse does not pay.
    perturbation : size of the random changes of margins, relative to the margin, that break ties between hinges.
    """

    initial_tol: float = 1e-6
    violated: float = 1e-9
    cut_share: float = 0.1
    max_rounds_at_zero: int = 1000
    new_cuts: int = 100
    spare_cuts: int = 200
    spare_tangents: int = 500
    feasibility: float = 1e-9
    smallest_feasibility: float = 1e-10
    patience: int = 5
    last_patience: int = 20
    largest_growth: float = 300.0
    smallest_entry: float = 1e-3
    largest_entry: float = 1e14
    far_from_zero: float = 10.0
    noise: float = 1e-10
    margin_rounding: float = 1e-7
    correlation_rounding: float = 1e-13
    most_watched: int = 500
    refresh_every: int = 100
    max_exchanges: int = 20_000
    most_basic: int = 2000
    perturbation: float = 1e-6


DEFAULTS = CuttingSettings()
