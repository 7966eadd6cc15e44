"""Rows in threads: every row is in one range, results come in order, errors come through."""

import numpy as np
import pytest

from polymargin.threads import over_ranges


@pytest.mark.parametrize("n", [0, 1, 19, 20, 39, 40, 61, 1000])
def test_ranges_cover_the_rows_in_order(threads, n):
    ranges = over_ranges(lambda part: part, n)
    assert len(ranges) == max(1, min(threads, n // 20))
    covered = np.concatenate([np.arange(part.start, part.stop) for part in ranges])
    np.testing.assert_array_equal(covered, np.arange(n))


def test_an_error_in_a_thread_is_raised(threads):
    with pytest.raises(ZeroDivisionError):
        over_ranges(lambda part: 1 // part.start, 1000)
