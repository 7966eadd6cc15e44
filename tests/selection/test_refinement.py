"""Which points of a grid are looked at."""

from itertools import product

import numpy as np
import pytest

from polymargin.selection.refinement import Refinement


def looked_at(widths, Cs, value, **factors):
    """Look where a refinement asks to; return the values seen, round by round."""
    refinement = Refinement(np.asarray(widths), np.asarray(Cs), **factors)
    rounds, seen = [], {}
    places = refinement.first()
    while places:
        assert len(set(places)) == len(places)
        assert not set(places) & set(seen)
        rounds.append({(w, c): value(w, c) for w, c in places})
        seen |= rounds[-1]
        places = refinement.next(seen)
    return rounds, seen


@pytest.mark.parametrize("tilt", [0.0, 0.8])
@pytest.mark.parametrize("best", list(product((0, 3, 7, 9), (0, 5, 11, 19))))
def test_the_least_of_a_bowl_or_of_a_valley_is_found_with_few_looks(best, tilt):
    """The valley is one along which a narrower kernel needs a smaller C."""

    def value(w, c):
        across, along = (w - best[0]) / 4.0, (c - best[1]) / 6.0
        return 0.05 * (1.0 + across**2 + along**2 + 2.0 * tilt * across * along)

    _, seen = looked_at(2.0 ** np.arange(10), 2.0 ** np.arange(20), value)
    assert min(seen, key=seen.__getitem__) == best
    assert len(seen) < 50


def test_the_end_is_a_place_that_no_neighbour_betters():
    rng = np.random.default_rng(0)
    several = 0
    for _ in range(50):
        n, m = rng.integers(1, 12, 2)
        values = rng.normal(size=(n, m)).round(1)  # with ties
        widths, Cs = np.cumsum(rng.uniform(0.1, 9.0, n)), np.cumsum(rng.uniform(0.1, 9.0, m))
        rounds, seen = looked_at(widths, Cs, lambda w, c, values=values: values[w, c])
        w, c = min(seen, key=lambda place: (seen[place], place[1], place[0]))
        around = values[max(w - 1, 0) : w + 2, max(c - 1, 0) : c + 2]
        assert values[w, c] == around.min()
        several += len(rounds) > 2
    assert several > 5


def test_factors_of_one_mean_the_whole_grid_at_once():
    Cs = 4.0 ** np.arange(7)
    rounds, seen = looked_at(Cs, Cs, lambda w, c: 1.0, factors=(1.0, 1.0))
    assert len(rounds) == 1
    assert len(seen) == 49
    assert looked_at([0.0], [1.0], lambda w, c: 0.0)[1] == {(0, 0): 0.0}
    assert looked_at([2.0, 2.0], [1.0], lambda w, c: 0.0)[1] == {(0, 0): 0.0, (1, 0): 0.0}


def test_ends_are_looked_at_where_they_promise_something_alone():
    Cs = 2.0 ** np.arange(17)
    for best in (8, 16):
        rounds, seen = looked_at([1.0], Cs, lambda w, c, best=best: abs(c - best))
        assert not {(0, 0), (0, 16)} & set(rounds[0])
        assert ((0, 16) in seen) == (best == 16)
        assert min(seen, key=seen.__getitem__) == (0, best)
