"""What tunes block descent."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DescentSettings:
    """Tuning of block descent; none of it changes what is certified.

    Attributes
    ----------
    burst : multiplications between two looks at the clock: about a tenth of a second.
    pull : squared length of the constant feature over that of the average row; with 1 it took twice the epochs.
    harder, most_pulls : factor by which it grows where the descent has ended and the sums are still wrong, as with
        rows so short that no score moves; how often it may.
    rounding : relative gap of the descent that is nothing but rounding error.
    least_square : of a row without entries, relative to the average row.
    negligible : part of a block in the gap, relative to the mean, below which it rests as if it had not changed,
        for losses that see single scores and for others: up to a half of the visits were to such blocks.
    large, most_visits, between : part of a block in the gap, relative to the mean, for every whole one of which it
        is visited in an epoch, as a few blocks that tie each other have most of the gap in the end; how often at
        most; and visits of others between two of its own at least.
    gain, patience : factor by which the gap must fall to count as progress, and epochs without it after which only
        rounding can be left.
    closer : least and largest part of a gap that did not suffice at which the next certificate is drawn up; the
        farther the last one was from the tolerance, the smaller it is.
    nearer : least part of the imbalance of a repaired point that did not suffice at which the next certificate is
        drawn up: what a repair costs grows with what there is to repair.
    start_calls, epoch_calls : calls before the first epoch and after the last, and in an epoch.
    step_cost : operations of the compiled loop that a visit takes per class, whatever the row, for losses that see
        single scores and for others.
    entry_cost, row_cost : of a product of a stored entry of a sparse row, and of an entry of a dense one, which is
        at hand.
    judged_after : epochs after which the pace is believed.
    slower : how often what a factor of late promises the descent takes, as it becomes slower, for losses that see
        single scores and for others.
    least_way, near : part of a rival's work that it takes however near it begins; the largest tolerance that
        counts as a way to go.
    clear : certified gap below which a point is better than zero, which is then not looked at.
    averaged, lately, less : gap, in tolerances, from which on the primal point is a mean of those that the epochs
        leave; the power of their number by which later ones count more; and the part of the gap as visits see it
        that is left with it, about, from which on a first certificate is worth its time.
    """

    burst: float = 2e8
    pull: float = 0.1
    harder: float = 10.0
    most_pulls: int = 30
    rounding: float = 1e-15
    least_square: float = 1e-6
    negligible: tuple[float, float] = (0.3, 0.0)
    large: float = 3.0
    most_visits: int = 16
    between: int = 8
    gain: float = 0.99
    patience: int = 5000
    closer: tuple[float, float] = (0.8, 0.95)
    nearer: float = 0.5
    start_calls: int = 700
    epoch_calls: int = 10
    step_cost: tuple[float, float] = (7.0, 7.0)
    entry_cost: float = 0.12
    row_cost: float = 0.4
    judged_after: int = 6
    slower: tuple[float, float] = (4.0, 2.0)
    least_way: float = 0.3
    near: float = 0.5
    clear: float = 0.5
    averaged: float = 2.5
    lately: float = 3.0
    less: float = 0.7


DEFAULTS = DescentSettings()
