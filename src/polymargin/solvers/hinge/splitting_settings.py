"""What splitting is tuned by, and what it takes."""

from dataclasses import dataclass

import numpy as np

from polymargin.gram import FeatureGram
from polymargin.problems.hinge import HingeProblem
from polymargin.solvers.effort import Operations
from polymargin.solvers.hinge.acceleration import DEFAULTS as ACCELERATION
from polymargin.solvers.hinge.acceleration import AccelerationSettings
from polymargin.solvers.hinge.inverses import DEFAULTS as INVERSES
from polymargin.solvers.hinge.inverses import InverseSettings
from polymargin.solvers.hinge.leaps import DEFAULTS as LEAPS
from polymargin.solvers.hinge.leaps import LeapSettings


@dataclass(frozen=True, slots=True)
class SplittingSettings:
    """Tuning of the splitting; none of it changes what is certified.

    Attributes
    ----------
    relaxation : of the steps.
    penalty, power : rho is a multiple of this power of margins over variables, in units of the kernel's diagonal,
    own_part : plus a multiple of what rows do not share with their neighbours.
    pilot_rows, pilot_share, pilot_steps, pilot_penalty : that ratio is the one after a few steps on a part of the
        rows, at least and at most so many, with this rho,
    first_level, growth : of a matrix, the part begins with at most so many rows, and grows by this factor.
    settled, max_pilots : and again with the one found while that differs by more than a factor, so often at most.
    own_rows, neighbours : rows that are asked what their nearest neighbours leave to be their own, and how many.
    fewest_steps, most_steps : between two certificates.
    judged_after, max_steps : steps after which the pace is believed, and beyond which a solution is given up.
    steps, steps_per_digit : what a solution takes, about: steps, and more of them for every digit of the gap.
    unbegun : gap that the first steps reach.
    look_ahead : part of the steps expected to be left that is taken before the next certificate.
    ratios : of margins over variables to the kernel's scale, the least and the largest believed.
    factor_cost : operations of products that the factorisation of a matrix takes, as a multiple of its size cubed.
    look_steps : steps that the products in double precision of a certificate take as long as.
    look_entries, look_factors : of a certificate, entries visited per class and example, sorted ones above all,
        and operations of factorisations as a multiple of the classes cubed: of many classes both are most of it.
    step_calls, look_calls : calls of a step, and of a certificate.
    feature_steps, feature_steps_per_digit : the same as `steps` and `steps_per_digit` on features.
    least_rows_per_feature : below which the matrix takes no more than features.
    most_entries : of features, which are held twice in single precision.
    changed : factor by which the ratio on all rows must tell another rho than that in use to change it.
    step_entries, square_cost, eigen_cost : on features, operations of compiled loops that a step takes per class
        and example; of products, per feature and entry; of factorisations, as a multiple of their number cubed.
    least_rows : examples from which on steps are taken on a part of them.
    rough, closer, inside : gap to which the first part is solved, the part of it that is left to the next one, and
        the least and largest part of the tolerance that is for the examples inside at last, the rest for others.
    many, admitted : losing examples outside over those inside, beyond which only a part of them is taken in, and
        that part: those that lose most. Many of the others will not lose any more.
    fewer, believed : part of the examples that steps are taken on, to which those with variables above zero must
        have fallen for the others to be left out, and the gap from which on this is believed.
    most_share : part of all examples beyond which all are taken.
    stride : steps between two looks ahead at where they lead.
    acceleration_cost : entries per class and example that are visited for a look ahead.
    inverse, acceleration : of the inverse, and of looks ahead.
    leaps : of Newton's method on the faces that the state tells, on the matrix.
    """

    relaxation: float = 1.9
    penalty: float = 0.8
    power: float = 0.8
    own_part: float = 0.075
    pilot_rows: tuple[int, int] = (300, 1000)
    pilot_share: float = 0.25
    pilot_steps: int = 20
    pilot_penalty: float = 0.1
    first_level: int = 500
    growth: float = 3.0
    settled: float = 1.5
    max_pilots: int = 6
    own_rows: int = 64
    neighbours: int = 30
    fewest_steps: int = 10
    most_steps: int = 40
    judged_after: int = 150
    max_steps: int = 4000
    steps: int = 25
    steps_per_digit: int = 25
    unbegun: float = 0.1
    look_ahead: float = 0.9
    ratios: tuple[float, float] = (1e-6, 1e6)
    factor_cost: float = 0.09
    look_steps: float = 3.0
    look_entries: float = 20.0
    look_factors: float = 60.0
    step_calls: int = 5
    look_calls: int = 600
    feature_steps: int = 0
    feature_steps_per_digit: int = 100
    least_rows_per_feature: int = 2
    most_entries: float = 1e8
    changed: float = 2.0
    step_entries: float = 5.0
    square_cost: float = 1.5
    eigen_cost: float = 12.0
    least_rows: int = 900
    rough: float = 0.03
    closer: float = 0.1
    inside: tuple[float, float] = (0.7, 0.95)
    many: float = 0.2
    admitted: float = 0.5
    fewer: float = 0.85
    believed: float = 0.05
    most_share: float = 0.85
    stride: int = 5
    acceleration_cost: float = 6.0
    inverse: InverseSettings = INVERSES
    acceleration: AccelerationSettings = ACCELERATION
    leaps: LeapSettings = LEAPS

    def rho_of(self, ratio: float) -> float:
        """Return the rho for a ratio of margins to variables, in units of the kernel's scale."""
        return self.penalty * float(np.clip(ratio, *self.ratios)) ** self.power

    def operations(self, size: "SplitSize", steps: float) -> Operations:
        """Return the operations of so many steps; the factorisation counts as none of them."""
        loops = 0.0 if size.p is None else self.step_entries * size.n * size.k
        return {"product": steps * size.entries * size.k, "sweep": steps * loops, "call": steps * self.step_calls}

    def operations_to_look_ahead(self, size: "SplitSize") -> Operations:
        """Return the operations of a look ahead."""
        return {"entry": self.acceleration_cost * size.n * size.k}

    def operations_of_steps(self, size: "SplitSize", steps: float) -> list[Operations]:
        """Return the operations of so many steps and of the certificates between them."""
        looks = steps / self.most_steps
        look = self.operations_to_look(size)
        return [self.operations(size, steps), {kind: looks * number for kind, number in look.items()}]

    def operations_to_look(self, size: "SplitSize") -> Operations:
        """Return the operations of a certificate, and of what precedes it."""
        return {
            "product": self.look_steps * size.entries * size.k,
            "entry": self.look_entries * size.n * size.k,
            "factor": self.look_factors * float(size.k) ** 3,
            "call": self.look_calls,
        }

    def operations_to_factorise(self, size: "SplitSize", done: int = 0) -> Operations:
        """Return the operations of what precedes the first step; some examples' factor may be done."""
        if size.p is not None:
            products = self.square_cost * 0.5 * size.entries * size.p
            return {"product": products, "factor": self.eigen_cost * float(size.p) ** 3}
        return {"product": self.factor_cost * (float(size.n) ** 3 - float(done) ** 3)}


DEFAULTS = SplittingSettings()


@dataclass(frozen=True, slots=True)
class SplitSize:
    """Examples, classes, and features; None where the matrix is at hand."""

    n: int
    k: int
    p: int | None = None

    @property
    def entries(self) -> float:
        """Numbers that a product with the matrix reads."""
        return float(self.n) * (self.n if self.p is None else 2 * self.p)


def size_of(problem: HingeProblem) -> SplitSize:
    """Return the size of a problem as it is given: on features, or on the matrix."""
    gram, losses = problem.gram, problem.losses
    p = gram.features.shape[1] if isinstance(gram, FeatureGram) else None
    return SplitSize(losses.n_examples, losses.n_classes, p)


def operations_to_split(size: SplitSize, tol: float, tuning: SplittingSettings = DEFAULTS) -> list[Operations]:
    """Return the operations that a solution takes, about: factorisation, steps and certificates."""
    first, per_digit = tuning.steps, tuning.steps_per_digit
    if size.p is not None:
        first, per_digit = tuning.feature_steps, tuning.feature_steps_per_digit
    steps = first - per_digit * float(np.log10(min(tol, tuning.unbegun)))
    return [
        tuning.operations_to_factorise(size),
        tuning.operations_to_look(size),
        *tuning.operations_of_steps(size, steps),
    ]


ROUNDING = 1e-9
"""Relative ridge that makes neighbours that are one row invertible, and the size of scores that are none."""
