"""Thresholds and expectations that the choice of methods goes by."""

from dataclasses import dataclass

from polymargin.solvers.effort import RATES, Rates
from polymargin.solvers.hinge import (
    decomposition,
    descent_settings,
    feature_newton,
    kernel_interior,
    relative_splitting,
    splitting,
)
from polymargin.solvers.hinge.decomposition import DecompositionSettings
from polymargin.solvers.hinge.descent_settings import DescentSettings
from polymargin.solvers.hinge.faces import DEFAULTS as FACES
from polymargin.solvers.hinge.faces import FaceSettings
from polymargin.solvers.hinge.feature_newton import FeatureNewtonSettings
from polymargin.solvers.hinge.kernel_interior import KernelInteriorSettings
from polymargin.solvers.hinge.relative_splitting import RelativeSplittingSettings
from polymargin.solvers.hinge.settings import INTERIOR, InteriorSettings
from polymargin.solvers.hinge.splitting import SplittingSettings


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """What methods are expected to take, and how far they are let go.

    Attributes
    ----------
    small_rows : rows up to which the kernel matrix is formed whatever the features, as Newton's method on faces
        ends in rounding error there.
    gram_rows : rows up to which it may be formed at all.
    drawn_entries : stored entries of sparse rows that are drawn, where there are more, to tell how many meet.
    sparse_rows : rows of sparse data beyond which steps on features are faster than on a kernel matrix.
    merged_rows : rows up to which equal ones are found in no time, whatever the kernel.
    checked_scores : kernel values at most, about, that comparing a model with what was certified may cost.
    partitioned_unknowns : most unknowns of a machine on rows in partitions: its Newton matrix is their square.
    newton_features : features up to which matrices of that size are factorised once per class.
    interior_unknowns : unknowns, (features + 1)(k - 1), up to which one matrix of that size is.
    interior_iterations : that a gap of 1e-3 takes, for losses that see single scores and for others.
    descent_sweeps : sweeps that block descent is expected to need on easy problems.
    descent_trial, matrix_trial : part of the work of the cheapest other method that it is given before its pace is
        believed, for losses that see single scores, for others, and beside methods on the kernel matrix.
    split_pace : part of its predicted work that splitting on features takes in the time of block descent, for
        losses that see single scores and for others.
    working_set_passes : passes of the decomposition's steps over the kernel matrix, per class, for losses that see
        single scores and for others.
    newton_preconditioners, newton_answers, newton_images, newton_products : preconditioners that the proximal
        Newton method makes on its way to a gap of 1e-3, scores that it answers, images under Newton's matrix, and
        these in images of all rows, of which few are free in the end; the last two for losses that see single
        scores and for others.
    newton_rows_per_feature : rows per feature below which it takes the more: where few rows have a feature, every
        one of them that meets a bound stops a step.
    usual, newton_growth, interior_growth : the gap of 1e-3 that predictions are made for, and the powers of the
        digits asked for, over those of that gap, by which the work of this method and of the interior point on
        features grows.
    pair_passes : of these others, looks at all pairs of classes for the best exchange between them.
    patience, interior_patience, newton_patience, relative_patience : how often its predicted work a method may do;
        the interior point, which comes to an end where others stall; the proximal Newton method, which notices if
        it will not; and splitting for losses of differences, as at a large C it takes that many more steps, and
        others still more.
    shortest : work, in seconds, that every method may do.
    slice_share, shortest_slice : work of a slice of the decomposition: as a part of all work so far, and at least.
    first_steps, first_rows : steps per example until the pace is known, where splitting may be the better choice,
        and the examples, drawn from all, that the first of them are taken on.
    judged_after, pace_rounds : iterations after which its pace is believed, and the rounds that tell it.
    tail : how often what the decomposition promises it takes: it becomes slower towards the end.
    near : relative gap from which on Newton steps on faces are tried.
    faces : that they visit, about.
    faces_gain : how often their work the decomposition must still have to do.
    shortest_faces : work that they, and an interior point on a root, may do whatever was done before them.
    polish_share, shortest_polish : work that Newton steps beyond the tolerance may do: a part of all work before
        them, and whatever that was the first number of seconds. The second one holds where an objective is far
        below one, and for tolerances of at most `fine`, there up to all work before them.
    beyond : part of the tolerance that they go to; they go to `exact` for tolerances of at most `fine`.
    exact : relative gap beyond which there is nothing but rounding error.
    far_walk : bounds that Newton steps meet at most on leaving a face, where no interior point has been near.
    coarse : tolerance from which on an interior point on the matrix itself comes near sooner than Newton steps.
    cheap : work that Newton steps may do behind an interior point.
    nearly_there : times what the decomposition promises that splitting may take; beyond, what was done already is
        no reason to begin.
    mostly_bounded : part of the variables above zero that are at their upper bounds, from which on the
        decomposition becomes faster towards the end, so that its pace says nothing.
    split_risk : how often the work expected of splitting on features counts when methods are put in order: at a
        large C it takes several times that, an interior point hardly more.
    split_share : part of the time limit that splitting, which leaves nothing when stopped, may take.
    split_growth : power of the digits asked for, over those of the usual gap, by which the work grows that
        splitting on a matrix may do: the interior point behind it takes the longer to a fine gap, too.
    split_before_rival : part of the work of a method behind the matrix that splitting on it may do.
    root_unknowns, root_iterations, root_tol : unknowns n (k - 1) up to which an interior point works on a root of
        the matrix; the iterations that it takes, and the gap that it goes to.
    kernel_interior_tol, nearer : gap that the interior point on the matrix itself reaches in good time; it goes
        on to this part of the gap at hand, or it would have been in vain.
    kernel_interior_share : part of its work that must have been done before it is tried.
    decomposition, active_set, splitting, relative_splitting, kernel_interior, feature_newton, interior_point,
    block_descent : of the methods.
    rates : of operations.
    """

    small_rows: int = 500
    gram_rows: int = 5000
    drawn_entries: int = 2**13
    sparse_rows: int = 1000
    merged_rows: int = 5000
    checked_scores: int = 2**18
    partitioned_unknowns: int = 10_000
    newton_features: int = 1500
    interior_unknowns: int = 2000
    interior_iterations: tuple[int, int] = (13, 16)
    descent_sweeps: int = 60
    descent_trial: tuple[float, float] = (0.1, 0.2)
    matrix_trial: float = 0.4
    split_pace: tuple[float, float] = (0.6, 0.7)
    working_set_passes: tuple[float, float] = (30.0, 8.0)
    pair_passes: float = 200.0
    newton_preconditioners: float = 6.0
    newton_answers: float = 45.0
    newton_images: tuple[float, float] = (170.0, 160.0)
    newton_products: tuple[float, float] = (150.0, 40.0)
    newton_rows_per_feature: float = 100.0
    usual: float = 1e-3
    newton_growth: float = 2.0
    interior_growth: float = 0.5
    patience: float = 2.5
    interior_patience: float = 5.0
    newton_patience: float = 4.0
    relative_patience: float = 12.0
    shortest: float = 0.1
    slice_share: float = 0.1
    shortest_slice: float = 1e-3
    first_steps: int = 2
    first_rows: int = 250
    judged_after: int = 4
    pace_rounds: int = 6
    tail: float = 2.0
    near: float = 0.05
    faces: float = 3.0
    faces_gain: float = 5.0
    shortest_faces: float = 0.01
    polish_share: float = 0.1
    shortest_polish: tuple[float, float] = (5e-3, 0.03)
    beyond: float = 0.01
    fine: float = 1e-6
    exact: float = 1e-12
    far_walk: int = 10
    coarse: float = 1e-3
    cheap: float = 0.1
    nearly_there: float = 4.0
    mostly_bounded: float = 0.5
    split_risk: float = 1.5
    split_share: float = 0.25
    split_growth: float = 2.0
    split_before_rival: float = 0.7
    root_unknowns: int = 2500
    root_iterations: int = 20
    root_tol: float = 1e-10
    kernel_interior_tol: float = 1e-5
    nearer: float = 0.1
    kernel_interior_share: float = 0.2
    decomposition: DecompositionSettings = decomposition.DEFAULTS
    active_set: FaceSettings = FACES
    splitting: SplittingSettings = splitting.DEFAULTS
    relative_splitting: RelativeSplittingSettings = relative_splitting.DEFAULTS
    kernel_interior: KernelInteriorSettings = kernel_interior.DEFAULTS
    feature_newton: FeatureNewtonSettings = feature_newton.DEFAULTS
    interior_point: InteriorSettings = INTERIOR
    block_descent: DescentSettings = descent_settings.DEFAULTS
    rates: Rates = RATES
