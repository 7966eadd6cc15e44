"""What tunes the linear systems of the proximal machines and their refinement."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RidgeSettings:
    """Tuning of the direct solvers and of the Newton refinement; none of it changes what is certified.

    Attributes
    ----------
    ill_conditioned : reciprocal condition number below which rows correct the solution.
    squaring_suffices : condition number up to which a path is decomposed from class moments.
    factors_apart : ratio of balancing factors from which on the problem of a class is no small correction of the
        common one: half of the digits would be lost.
    broken_down : reciprocal condition number below which Cholesky is not trusted at all.
    sampled_rows : rows for each unknown by which to foresee a breakdown.
    worth_sampling : how many times the sample all rows have to be.
    max_corrections : corrections by the rows.
    negligible_next : relative size of a correction after which the next, about its square, would be rounding.
    panel : columns that an orthogonal factorisation takes at a time.
    factor_copies : how many times its own memory a kernel matrix takes while it is factorised.
    kept_bytes : memory for features or for class moments up to which they are kept instead of computed again.
    newton_steps : limit of the steps of a refinement.
    sufficient_decrease : part of the decrease that the gradient promises which a step must make.
    shortest_step : fraction of a Newton step below which a line search gives up.
    thinned_rows : rows of the sample from which a refinement of more rows starts.
    scanned_rows : number of rows from which on scores are scanned instead of kept.
    reach : how far the first scan reaches, in standard errors of the sample's optimum.
    further : factor by which the next scan reaches further.
    scan_bytes : memory for the features of rows that are passed over at a time.
    scan_height, block_rows : rows whose scores stay in the processor's cache, in a scan and otherwise.
    """

    ill_conditioned: float = 1e-7
    squaring_suffices: float = 1e9
    factors_apart: float = 1e8
    broken_down: float = 1e-14
    sampled_rows: int = 4
    worth_sampling: int = 4
    max_corrections: int = 6
    negligible_next: float = 1e-6
    panel: int = 32
    factor_copies: float = 3.0
    kept_bytes: int = 2**27
    newton_steps: int = 100
    sufficient_decrease: float = 1e-4
    shortest_step: float = 1e-9
    thinned_rows: int = 20_000
    scanned_rows: int = 80_000
    reach: float = 3.0
    further: float = 2.0
    scan_bytes: int = 2**22
    scan_height: int = 64
    block_rows: int = 4096


DEFAULTS = RidgeSettings()
