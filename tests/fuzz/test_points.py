"""The six points about certificates, each a test; `python -m tests.fuzz.points` prints the figures."""

from functools import partial

import numpy as np
import pytest

from tests.fuzz.points import POINTS, robust_starts
from tests.simulate import proteins


@pytest.mark.parametrize("number", POINTS)
def test_a_point_about_certificates_stays_mended(number):
    measure = partial(robust_starts, problems=6) if number == 6 else POINTS[number]
    figures = list(measure(proteins(np.random.default_rng(0))))
    clocked = [figure for figure in figures if "CPU seconds" in figure.what]
    missed = [figure for figure in figures if not figure.holds and figure not in clocked]
    assert figures
    assert missed == []
