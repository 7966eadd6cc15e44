"""What tunes the parts that several methods for hinge machines share, and the interior point on features."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InteriorSettings:
    """Tuning of the interior point on features; none of it changes what is certified.

    Attributes
    ----------
    corrections : centrality corrections (Gondzio, 1996) tried in an iteration whose step is shorter than
        `good_step`.
    many_corrections, far_hoped, many_features : the same, and what one is to add, where hinges have at least so
        many features: there a matrix takes much longer than a correction.
    good_step, hoped, worth : length of a step that needs no correction; what a correction is to add to it, and
        must add at least.
    least_product, largest_product : products of dual slot and slack are outliers below and above these multiples
        of their aim.
    few_features : features up to which a matrix is assembled as quickly as a correction is found: none are tried.
    cautious, bold : parts of the way to the boundary that a step goes at least, and at most.
    centred : part of the products that would make the gap; below it curved losses are led back to it: what their
        steps leave undone would be left behind, at the boundary.
    refinements, refined_to : most times that a direction is solved for again, and the relative residual that is
        left alone.
    short_step, short_steps, short_steps_nearby : length of a short step; short steps in a row after which the
        iterate is taken to be stuck (curved losses take some on their way), and those of a start at the last
        solution's scores.
    gain, patience, steps_without_gain : factor by which gaps must fall to count as progress; iterations near the
        solution without it after which rounding is taken to allow no more, and anywhere (where rows have lost
        their digits steps can go in circles).
    kept_gap : relative gap below which the iterate of the smallest one is kept, in case that rounding ruins the
        steps behind it.
    start_centre : weight of the centre in the first iterate; the rest is that of the start's dual point.
    stretch, narrowest, widest : a tilt moved by a part t of all weights is answered from the last solution's
        scores with a relative gap of `stretch` t, at least `narrowest`; where that is more than `widest`, a start
        from afar is nearer.
    share, few_losses : part of the losses, those nearest to a kink, that a problem near the last one is restricted
        to, and the number of losses up to which all are kept.
    failures : times in a row that such a restriction may turn out to be too tight, after which there is none.
    min_decrease_ratio : part of the improvement foretold by the losses near a kink that all losses must show.
    product_features, product_entries : features up to which, and entries, it pays to keep their products, which
        make all weighted Grams one product.
    few_unknowns : up to which one Cholesky factor of all classes, which loses fewest digits, is as quick as one
        per class.
    outer_entries : of the table of products of the atoms' coordinates, up to which it is kept; of many classes the
        curvature is formed in the classes' own coordinates, without it.
    chunk_entries : of features that are weighted at a time.
    products_of_a_thread : products of entries below which a thread is not worth its start.
    entries_visited, thin_products : times that an iteration goes over all slots, about, and over the features, a
        column per class.
    class_products : products with the classes' inverses and matrices in an iteration, where classes fall apart.
    calls, compiled_calls : calls of an iteration, and of one that is compiled as a whole.
    """

    corrections: int = 2
    many_corrections: int = 5
    far_hoped: float = 0.3
    many_features: int = 100
    good_step: float = 0.9
    hoped: float = 0.1
    worth: float = 0.01
    least_product: float = 0.1
    largest_product: float = 10.0
    few_features: int = 5
    cautious: float = 0.995
    bold: float = 0.9999
    centred: float = 1e-4
    refinements: int = 5
    refined_to: float = 1e-8
    short_step: float = 0.05
    short_steps: int = 30
    short_steps_nearby: int = 8
    gain: float = 0.9
    patience: int = 20
    steps_without_gain: int = 50
    kept_gap: float = 0.01
    start_centre: float = 0.3
    stretch: float = 20.0
    narrowest: float = 0.03
    widest: float = 1.0
    share: float = 0.25
    few_losses: int = 2000
    failures: int = 6
    min_decrease_ratio: float = 0.3
    product_features: int = 32
    product_entries: int = 2**22
    few_unknowns: int = 400
    outer_entries: int = 2**24
    chunk_entries: int = 2**18
    products_of_a_thread: int = 2**25
    entries_visited: int = 8
    thin_products: int = 10
    class_products: int = 60
    calls: int = 400
    compiled_calls: int = 40


INTERIOR = InteriorSettings()


@dataclass(frozen=True, slots=True)
class FeasibilitySettings:
    """Tuning of the search for zero class sums.

    Attributes
    ----------
    blends : how far a point is drawn off its bounds, one after the other, until its free entries suffice.
    newton_steps, longest, shortest : limit of the steps; the longest of them, and the part of one below which a
        line search gives up.
    rank : relative size below which a singular value of their systems is rounding.
    """

    blends: tuple[float, ...] = (0.0, 1e-9, 1e-6, 1e-4, 1e-2, 0.1, 0.5)
    newton_steps: int = 50
    longest: float = 10.0
    shortest: float = 1e-6
    rank: float = 1e-12


FEASIBILITY = FeasibilitySettings()


@dataclass(frozen=True, slots=True)
class BeginningSettings:
    """Tuning of the point that a solution on a kernel matrix begins with.

    Attributes
    ----------
    sampled : examples at most that tell whether to begin at the upper bounds.
    """

    sampled: int = 500


BEGINNING = BeginningSettings()


@dataclass(frozen=True, slots=True)
class ClasswiseSettings:
    """When a face is solved class by class.

    Attributes
    ----------
    many_free : free variables per example from which on it is the cheaper way.
    max_entries : that may be held for it: variables times rows.
    """

    many_free: float = 1.5
    max_entries: float = 2**24


CLASSWISE = ClasswiseSettings()


@dataclass(frozen=True, slots=True)
class LeftOutSettings:
    """Tuning of the scores of left-out rows.

    Attributes
    ----------
    ridge : relative ridge that makes a singular kernel matrix of the free variables factorisable. Scores move by
        as much times a coefficient, and rounding errors grow by its inverse: this balances the two.
    rank : relative size below which an eigenvalue of the intercepts' system is rounding.
    single_ridge, single_rank, single_error, single_pivot : the same in single precision, which takes half the
        time; the change of a score, in margins, up to which it will do; and the least pivot of a kernel of unit
        size of which rounding leaves enough digits.
    variance_pivot : the same where every class's score is taken by itself: near-equal rows then spoil none but
        their own variances, which are small.
    entries_at_a_time : kernel values between rows that leave and free multipliers that are held at once.
    rows_at_a_time : rows that are treated together class by class.
    feature_entries : numbers that may be held for the rows treated together in the features' dimension.
    digits : to which directions that are the same agree.
    classwise : when a face is solved class by class.
    by_score : free multipliers from which on every class's score is taken by itself.
    untold, sweeps : where rows pin differences of scores, the part of the kernel's variance that an unknown score
        is first taken to have, and how often what rows leave open is told anew.
    far : change of a score, in margins, from which on the active set cannot be taken to stay as it is.
    refitted_rows : rows up to which a machine is refitted without those that change so much; of more rows each
        matters less, and refits cost more.
    width : of losses of any kind, how narrow their smooth problem is: the part of the margin, or of what the
        heaviest dual variable can move a score by where that is less, within which a hinge is tight.
    """

    ridge: float = 1e-8
    rank: float = 1e-12
    single_ridge: float = 1e-5
    single_rank: float = 1e-5
    single_error: float = 0.0
    single_pivot: float = 1e-4
    variance_pivot: float = 2e-5
    entries_at_a_time: int = 2**24
    rows_at_a_time: int = 128
    feature_entries: int = 2**23
    digits: int = 12
    classwise: ClasswiseSettings = ClasswiseSettings(max_entries=float("inf"))
    by_score: float = float("inf")
    untold: float = 0.4
    sweeps: int = 2
    far: float = 1.0
    refitted_rows: int = 200
    width: float = 1e-3


LEFT_OUT = LeftOutSettings()


@dataclass(frozen=True, slots=True)
class RoughSettings(LeftOutSettings):
    """The same for what is fitted to the scores of all rows, such as a map to probabilities."""

    single_error: float = 1e-3
    by_score: float = 300


ROUGHLY = RoughSettings()


@dataclass(frozen=True, slots=True)
class InterceptSettings:
    """Tuning of the search for intercepts near a guess.

    Attributes
    ----------
    reach : how far from the guess they are looked for, in units of the margin.
    bins : that scores as near as that are counted in, at most, to find those few that have to be sorted.
    """

    reach: float = 0.8
    bins: int = 1024


INTERCEPT = InterceptSettings()
