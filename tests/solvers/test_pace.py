"""What is still to do at the pace of late, for gaps that fall by a power of the work and by a factor."""

from math import inf

import numpy as np
import pytest

from polymargin.solvers.contract import Record
from polymargin.solvers.pace import Pace

TOL = 1e-3


def pace_of(gaps, work, dual=100.0):
    pace = Pace(TOL)
    for at, (gap, done) in enumerate(zip(gaps, work, strict=True), start=1):
        pace.note(Record(at, dual + gap, dual, 0.0, done))
    return pace


def test_a_power_is_found_again():
    work = np.linspace(0.1, 4.0, 40)
    pace = pace_of(50.0 / work**1.5, work)
    end = (50.0 / (TOL * 100.0)) ** (1.0 / 1.5)
    # the half of the work is met to within a record
    assert pace.to_go(1e6) == pytest.approx(end - 4.0, rel=1e-9)


def test_a_factor_is_found_again_and_may_slow_down():
    work = np.linspace(0.1, 4.0, 40)
    pace = pace_of(50.0 * np.exp(-work), work)
    end = np.log(50.0 / (TOL * 100.0))
    assert pace.to_go(1.0) == pytest.approx(end - 4.0, rel=1e-9)
    assert pace.to_go(1.5) == pytest.approx(1.5 * (end - 4.0), rel=1e-9)


def test_the_smallest_gap_counts():
    work = np.linspace(0.1, 4.0, 40)
    gaps = 50.0 / work
    noisy = gaps.copy()
    noisy[-1] *= 3.0
    before = pace_of(gaps[:-1], work[:-1]).to_go(4.0)
    assert pace_of(noisy, work).to_go(4.0) == pytest.approx(before, rel=0.1)


@pytest.mark.parametrize("gaps", [[], [1.0], [1.0, 1.0], [1.0, 2.0], [np.nan, np.nan]])
def test_nothing_is_promised_without_a_pace(gaps):
    assert pace_of(gaps, 1.0 + np.arange(len(gaps))).to_go(4.0) == inf


def test_where_the_tolerance_is_met_nothing_is_to_do():
    assert pace_of([1.0, 0.05], [1.0, 2.0]).to_go(4.0) == 0.0


def test_a_pace_too_slow_for_a_number_is_none():
    assert pace_of([1.0, 1.0 - 1e-15], [1.0, 2.0], dual=1e-6).to_go(inf) > 1e100
