"""Settings as they are judged fold by fold: trials, and which of them is best so far."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from polymargin.selection.smoothing import smoothed

FOLDS = 5
"""Folds by which a setting is judged."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting tried on some of the rows.

    Attributes
    ----------
    params : the setting.
    n_rows : training rows of each of its fits.
    score : mean over the folds; greater is better.
    error : standard error of that mean.
    seconds : that one fit took on average.
    folds : parts of rows by which it was judged so far.
    """

    params: dict[str, Any]
    n_rows: int
    score: float
    error: float
    seconds: float
    folds: int = FOLDS


@dataclass(slots=True)
class Tally:
    """A setting while it is judged: its scores so far, and its place in the list of trials."""

    params: dict[str, Any]
    n_rows: int = 0
    scores: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    place: int | None = None

    def add(self, n_rows: int, scores: list[float], seconds: float) -> None:
        """Count a fit, and what it scored on each part of the rows that judged it."""
        self.n_rows = max(n_rows, self.n_rows)
        self.scores.extend(scores)
        self.seconds.append(seconds)

    @property
    def trial(self) -> Trial:
        """The setting as it stands; after a single fold nothing is known of the error."""
        n = len(self.scores)
        error = float(np.std(self.scores, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
        return Trial(self.params, self.n_rows, float(np.mean(self.scores)), error, float(np.mean(self.seconds)), n)


def ranked(trials: list[Trial], grid: list[dict[str, Any]]) -> list[Trial]:
    """Return trials, the best first, by scores that neighbours on the grid have made smoother.

    Those that fell out of a race are behind all that did not. The noise of a score over few folds is that of the
    others over as many: the standard error of so few numbers is itself mostly noise.
    """
    spread = spread_of_folds(trials)
    noise = np.array([spread / np.sqrt(trial.folds) for trial in trials])
    scores = smoothed([trial.params for trial in trials], np.array([t.score for t in trials]), noise, grid)
    most = max(min(trial.folds, FOLDS) for trial in trials)
    order = sorted(range(len(trials)), key=lambda at: (min(trials[at].folds, FOLDS) < most, -scores[at]))
    return [trials[at] for at in order]


def spread_of_folds(trials: list[Trial]) -> float:
    """Return the standard deviation of the score of one fold, by all trials with several."""
    errors = np.array([trial.error * np.sqrt(trial.folds) for trial in trials])
    return float(np.nanmean(errors)) if np.isfinite(errors).any() else 0.0


def averaged(old: Trial, new: Trial, number: int) -> Trial:
    """Return the mean of `number` divisions into folds and a further one."""
    score = (number * old.score + new.score) / (number + 1)
    error = float(np.hypot(number * old.error, new.error) / (number + 1))
    return replace(old, score=score, error=error, folds=old.folds + new.folds)
