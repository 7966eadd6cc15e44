"""When a method has come as far as rounding lets it."""

from polymargin.solvers.contract import Record


class Stagnation:
    """Watches the records of a method whose dual objective should rise and whose gap should fall.

    Parameters
    ----------
    without_rise : records in a row that may bring no larger dual objective.
    without_gain, gain : records in a row that may bring no gap smaller by the factor `gain`.
    """

    def __init__(self, without_rise: int, without_gain: int, gain: float):
        self.without_rise, self.without_gain, self.gain = without_rise, without_gain, gain
        self.best_dual, self.best_gap = -float("inf"), float("inf")
        self.rise_missing = self.gain_missing = 0

    def sets_in(self, record: Record) -> bool:
        """Take a record in; tell whether there is no progress any more."""
        rises = record.dual > self.best_dual + 1e-15 * abs(record.dual)
        self.rise_missing = 0 if rises else self.rise_missing + 1
        self.best_dual = max(self.best_dual, record.dual)
        gains = record.gap < self.gain * self.best_gap
        self.gain_missing = 0 if gains else self.gain_missing + 1
        self.best_gap = record.gap if gains else self.best_gap
        return self.is_stuck

    @property
    def is_stuck(self) -> bool:
        """Whether there was no progress for too long."""
        return self.rise_missing > self.without_rise or self.gain_missing > self.without_gain
