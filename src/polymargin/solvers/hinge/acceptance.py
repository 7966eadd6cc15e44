"""What methods ask of a hinge problem before they take it: each answer is True, or the reason why not."""

from typing import Any

from polymargin.gram import DenseGram, as_features
from polymargin.problems.hinge import HingeProblem
from polymargin.solvers.contract import Accepted, accepts_kinds

SINGLE_SCORES = "its hinges must see single scores, as those of loss='lee' do."
"""The reason of methods that class by class go their own way."""


def accepts_compiled(problem: Any) -> Accepted:
    """Ask for losses that the compiled loops know."""
    if (is_hinge := accepts_kinds(problem, HingeProblem)) is not True:
        return is_hinge
    if not problem.losses.is_compiled:
        return "its losses must be hinges or maxima of single scores or of differences of scores."
    return True


def accepts_one_per_example(problem: Any) -> Accepted:
    """Ask for such losses of which an example has one maximum, or hinges."""
    if (is_compiled := accepts_compiled(problem)) is not True:
        return is_compiled
    if not (problem.losses.sees_single_scores or problem.losses.sees_differences):
        return "it takes one maximum per example."
    return True


def accepts_single_scores(problem: Any) -> Accepted:
    """Ask for hinges of single scores and a kernel matrix in memory."""
    if (is_hinge := accepts_kinds(problem, HingeProblem)) is not True:
        return is_hinge
    if not problem.losses.sees_single_scores:
        return SINGLE_SCORES
    return accepts_kinds(problem.gram, DenseGram)


def accepts_tall_features(problem: HingeProblem, least_rows_per_feature: int, most_entries: float) -> Accepted:
    """Ask for features fewer than half the rows, or what part the settings say, and for no more entries."""
    n, p = as_features(problem.gram, "A method on tall features").features.shape
    if n < least_rows_per_feature * p:
        part = "half" if least_rows_per_feature == 2 else f"1/{least_rows_per_feature} of"
        return f"features must be fewer than {part} the rows, not {p} of {n} rows."
    if float(n) * p > most_entries:
        return f"features must have at most {most_entries:.0f} entries, not {n} x {p}."
    return True
