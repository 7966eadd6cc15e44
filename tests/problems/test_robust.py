"""The quantities of the robust machine, by their definitions."""

import numpy as np
import pytest

from polymargin.problems.robust import margins, strongest_others


@pytest.mark.parametrize("n_classes", [2, 3, 16, 17, 40])
def test_margins_and_rivals_are_those_of_their_definitions_ties_included(n_classes):
    F = np.random.default_rng(n_classes).integers(0, 4, size=(60, n_classes)).astype(float)
    others = [np.delete(F, j, axis=1) for j in range(n_classes)]
    strongest = np.column_stack([scores.max(axis=1) for scores in others])
    first = np.column_stack([scores.argmax(axis=1) for scores in others])
    partner, score = strongest_others(F)
    assert np.array_equal(margins(F), F - strongest)
    assert np.array_equal(score, strongest)
    assert np.array_equal(partner, first + (first >= np.arange(n_classes)))
