"""What pictures of measured times are made of."""

import numpy as np
import pytest

from benchmarks.profiles import ratios_to_best, shares_within, slope


def test_ratios_and_shares_by_hand():
    """Four problems: the second is solved by "a" alone, the third by none, which leaves three."""
    ratios = ratios_to_best({"a": [1.0, 3.0, np.inf, 4.0], "b": [2.0, np.inf, np.nan, 1.0]})
    np.testing.assert_array_equal(ratios["a"], [1.0, 1.0, 4.0])
    np.testing.assert_array_equal(ratios["b"], [2.0, np.inf, 1.0])
    np.testing.assert_allclose(shares_within(ratios["a"], [1.0, 3.9, 4.0]), [2 / 3, 2 / 3, 1.0])
    np.testing.assert_allclose(shares_within(ratios["b"], [1.0, 2.0, 1e9]), [1 / 3, 2 / 3, 2 / 3])


def test_some_method_is_the_best_on_every_problem():
    rng = np.random.default_rng(0)
    ratios = ratios_to_best({name: rng.exponential(size=30) for name in "abc"})
    np.testing.assert_array_equal(np.min(list(ratios.values()), axis=0), 1.0)
    shares = [shares_within(times, [1.0])[0] for times in ratios.values()]
    assert sum(shares) == pytest.approx(1.0)
    for times in ratios.values():
        assert (np.diff(shares_within(times, np.geomspace(1.0, 100.0, 20))) >= 0.0).all()


@pytest.mark.parametrize("power", [1.0, 2.5])
def test_the_slope_is_the_power(power):
    sizes = np.array([500.0, 1000.0, 2000.0, 4000.0])
    assert slope(sizes, 3e-7 * sizes**power) == pytest.approx(power)
    seconds = 3e-7 * sizes**power
    seconds[2] = np.inf
    assert slope(sizes, seconds) == pytest.approx(power)


def test_one_size_has_no_slope():
    assert np.isnan(slope([500.0, 1000.0], [1.0, np.inf]))
    assert np.isnan(slope([500.0, 500.0], [1.0, 2.0]))
