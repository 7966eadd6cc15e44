"""Every stored fit is found again: the same objective, scores and predictions, certified no worse."""

import pytest

from tests.golden.cases import CASES
from tests.golden.record import distance, fitted, load

STORED = load()


def test_every_case_is_stored():
    assert STORED.keys() == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_fit_is_the_stored_one(name):
    case, stored = CASES[name], STORED[name]
    now = fitted(case)
    objective, scores, changed = distance(stored, now)
    # two points within the gap of the optimum differ by no more than it, their scores by about its root
    assert now["gap"] <= max(case.tol, 1.1 * stored["gap"])
    assert objective <= 2.0 * max(case.tol, stored["gap"])
    assert scores <= 10.0 * max(case.tol, stored["gap"]) ** 0.5
    assert changed <= (0 if case.tol <= 1e-6 else 3)
