"""The compiled steps of relative losses against slow NumPy twins."""

from itertools import permutations

import numpy as np
import pytest

from polymargin._native.cycles import CycleSearch, cheapest_cycle, shortest_paths
from polymargin._native.relative import RelativeWorkingSet, class_moves

NONE = 1e300


def slow_moves(up, down):
    """Twin of `class_moves`."""
    rates = up[None, :, :] - down[:, None, :]
    weights, movers = rates.min(axis=2), rates.argmin(axis=2)
    movers[weights >= NONE] = -1
    np.fill_diagonal(movers, -1)
    np.fill_diagonal(weights, NONE)
    return np.minimum(weights, NONE), movers


def slow_cycle(weight):
    """Twin of `cheapest_cycle`: every simple cycle, from its smallest class."""
    cycles = [
        (start, *rest)
        for start in range(len(weight))
        for size in range(1, len(weight) - start)
        for rest in permutations(range(start + 1, len(weight)), size)
    ]
    return min((mean_weight(weight, cycle), cycle) for cycle in cycles)


def least_mean(weight):
    """Return the lowest mean of a cycle by walks of 0..k arcs (Karp), for classes too many for `slow_cycle`."""
    k = len(weight)
    costs = [np.zeros(k)]
    for _ in range(k):
        costs.append((costs[-1][:, None] + weight).min(axis=0))
    walks, last = np.array(costs[:-1]), costs[-1]
    reached = last < NONE / 10
    lengths = k - np.arange(k)[:, None]
    means = np.where(walks[:, reached] < NONE / 10, (last[reached] - walks[:, reached]) / lengths, -NONE)
    return means.max(axis=0).min(initial=NONE)


def mean_weight(weight, cycle):
    return weight[list(cycle), np.roll(cycle, -1)].mean()


class SlowWorkingSet:
    """Twin of `RelativeWorkingSet`: the same steps, with the gradient computed anew each time."""

    def __init__(self, K, lower, upper, R, gradient, intercept):
        self.K, self.lower, self.upper, self.R, self.intercept = K, lower, upper, R.copy(), intercept
        self.constant = gradient - R @ K
        self.floor = 1e-12 * np.abs(K.diagonal()).max()

    def tables(self):
        gradient = self.constant + self.R @ self.K
        return np.where(self.upper > self.R, gradient, NONE), np.where(self.lower < self.R, gradient, -NONE)

    def improve(self, reduction, max_steps):
        self.steps, self.max_steps, self.first = 0, max_steps, 0
        violation = self.worst_cycle()[0] if self.intercept else self.sweep(NONE, rows=True)
        tolerance = reduction * violation
        while violation > tolerance and self.steps < max_steps:
            threshold = max(tolerance, 0.3 * violation)
            violation = self.sweep(threshold, rows=False)
            if not self.intercept:
                violation = self.sweep(threshold, rows=True)
            elif violation <= tolerance and self.steps < max_steps:
                violation, cycle = self.worst_cycle()
                if violation > tolerance:
                    _, movers = slow_moves(*self.tables())
                    arcs = list(zip(cycle, np.roll(cycle, -1), strict=True))
                    self.turn([(d, c, movers[d, c]) for d, c in arcs])
        return self.steps

    def sweep(self, threshold, rows):
        worst = 0.0
        k, m = self.R.shape
        pairs = [(c % k, d) for c in range(self.first, self.first + k) for d in range(c % k)]
        for place in [(r,) for r in range(m)] if rows else pairs:
            if self.steps >= self.max_steps:
                return worst
            visit = self.visit_row if rows else self.visit_pair
            worst = max(worst, visit(*place, threshold))
        return worst

    def visit_row(self, r, threshold):
        arrival = None
        for _ in range(5):
            up, down = self.tables()
            c, d = up[:, r].argmin(), down[:, r].argmax()
            violation = down[d, r] - up[c, r]
            arrival = violation if arrival is None else arrival
            if violation <= threshold or self.steps >= self.max_steps:
                break
            self.turn([(d, c, r)])
        return arrival

    def visit_pair(self, c, d, threshold):
        forth, back = self.rates(c, d)
        arrival = -(forth.min() + back.min())
        if max(forth.min(), back.min()) >= NONE / 10:
            return 0.0
        rows = np.flatnonzero((forth <= -back.min()) | (back <= -forth.min()))
        if 2 * len(rows) > len(forth):
            rows = np.arange(len(forth))
        part = 1 + self.max_steps // 2 // max(len(self.R) * (len(self.R) - 1) // 2, 1)
        for _ in range(min(3 * len(rows), part) if arrival > threshold else 0):
            forth, back = (rates[rows] for rates in self.rates(c, d))
            i = rows[forth.argmin()]
            slope = -back - forth.min()
            if slope.max() <= 0.3 * threshold or self.steps >= self.max_steps:
                break
            curvature = np.maximum(self.K[i, i] + self.K.diagonal()[rows] - 2 * self.K[i, rows], self.floor)
            gain = np.where(slope > 0.3 * threshold, slope, 0.0) ** 2 / curvature
            self.turn([(d, c, i), (c, d, rows[gain.argmax()])])
        return arrival

    def rates(self, c, d):
        up, down = self.tables()
        return up[c] - down[d], up[d] - down[c]

    def worst_cycle(self):
        weights, _ = slow_moves(*self.tables())
        mean, cycle = slow_cycle(weights)
        self.first = max(cycle)
        return max(-2 * mean, 0.0), cycle

    def turn(self, arcs):
        """Take the best step along moves (from class, to class, row) within the bounds."""
        self.steps += 1
        direction, room = np.zeros_like(self.R), NONE
        for d, c, r in arcs:
            direction[c, r] += 1
            direction[d, r] -= 1
            room = min(room, self.upper[c, r] - self.R[c, r], self.R[d, r] - self.lower[d, r])
        slope = -np.vdot(direction, self.constant + self.R @ self.K)
        curvature = np.vdot(direction, direction @ self.K)
        self.R += min(room, slope / max(curvature, self.floor)) * direction
        for bound in (self.lower, self.upper):
            self.R = np.where(np.abs(self.R - bound) <= 1e-15 * np.abs(bound), bound, self.R)


def working_set(rng, m, k, *, simplex):
    """A random working set of either machine at zero."""
    labels = rng.integers(0, k, m)
    own = labels == np.arange(k)[:, None]
    weight = rng.uniform(0.1, 2.0, size=(k, m))
    X = rng.normal(size=(m, 3))
    K = np.exp(-np.square(X[:, None] - X[None]).sum(axis=2)) + np.eye(m) / 2
    lower = np.full((k, m), -NONE) if simplex else np.where(own, -NONE, -weight)
    upper = np.where(own, weight[0], 0.0) if simplex else np.where(own, NONE, 0.0)
    return K, lower, upper, np.zeros((k, m)), np.where(own, -2.0, 0.0) + rng.normal(size=(k, m)) / 3


@pytest.mark.parametrize("seed", range(20))
def test_moves_and_cycles(seed):
    rng = np.random.default_rng(seed)
    k, n = int(rng.integers(2, 6)), int(rng.integers(1, 9))
    up = np.where(rng.random((k, n)) < 0.6, rng.normal(size=(k, n)), NONE)
    down = np.where(rng.random((k, n)) < 0.6, rng.normal(size=(k, n)), -NONE)
    weights, movers = class_moves(up, down)
    slow_weights, slow_movers = slow_moves(up, down)
    np.testing.assert_array_equal(weights, slow_weights)
    np.testing.assert_array_equal(movers, slow_movers)

    mean, cycle = cheapest_cycle(weights)
    expected, _ = slow_cycle(weights)
    if expected > NONE / 10:
        assert mean == NONE
        assert len(cycle) == 0
    else:
        assert mean == pytest.approx(expected, abs=1e-12)
        assert mean_weight(weights, cycle) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("share", [0.02, 0.05, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_cheapest_cycle_of_many_classes(seed, share):
    rng = np.random.default_rng(seed)
    k = 80
    weights = np.where(rng.random((k, k)) < share, np.round(rng.normal(size=(k, k)), seed), NONE)  # some with ties
    np.fill_diagonal(weights, NONE)
    mean, cycle = cheapest_cycle(weights)
    assert mean == pytest.approx(least_mean(weights), abs=1e-12)
    assert mean_weight(weights, cycle) == pytest.approx(mean, abs=1e-12)
    assert len(set(cycle)) == len(cycle)


def test_cycles_of_many_classes_are_found_in_few_rounds():
    k = 200
    weights = np.random.default_rng(0).normal(size=(k, k))
    np.fill_diagonal(weights, NONE)
    search = CycleSearch(k)
    search.seek(weights)
    assert search.visits < 20 * k**2  # walks of all lengths take k^3


def test_shortest_paths():
    rng = np.random.default_rng(0)
    lengths = np.where(rng.random((12, 12)) < 0.3, rng.uniform(size=(12, 12)), np.inf)
    np.fill_diagonal(lengths, 0.0)
    expected = lengths
    for _ in range(12):
        expected = (expected[:, :, None] + lengths).min(axis=1)
    shortest_paths(lengths)
    np.testing.assert_allclose(lengths, expected, rtol=1e-14)


def objective(K, start, R, gradient):
    change = R - start
    return np.vdot(gradient, change) + 0.5 * np.vdot(change, change @ K)


@pytest.mark.parametrize("simplex", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_working_set(seed, intercept, simplex):
    rng = np.random.default_rng(seed)
    K, lower, upper, R, gradient = working_set(rng, 6 + 3 * seed, 2 + seed, simplex=simplex)
    start = R.copy()
    slow = SlowWorkingSet(K, lower, upper, R, gradient, intercept)
    fast = RelativeWorkingSet(K, lower, upper, R, gradient, intercept)
    assert fast.improve(1e-8, 1) == slow.improve(1e-8, 1) == 1
    np.testing.assert_allclose(R, slow.R, atol=1e-12)
    # later steps meet ties, which rounding decides: only the ends must agree
    slow.improve(1e-5, 400)
    RelativeWorkingSet(K, lower, upper, R, gradient + (R - start) @ K, intercept).improve(1e-5, 400)
    value = objective(K, start, R, gradient)
    assert value < 0
    assert value == pytest.approx(objective(K, start, slow.R, gradient), rel=1e-8)
    np.testing.assert_allclose(R.sum(axis=0), 0.0, atol=1e-12)
    if intercept:
        np.testing.assert_allclose(R.sum(axis=1), 0.0, atol=1e-12)
    assert (lower <= R).all()
    assert (upper >= R).all()


@pytest.mark.parametrize("intercept", [False, True])
def test_visits_to_pairs_end_where_there_is_no_room_for_kernel_values(intercept):
    ends = []
    for room in (0, 2**19):
        K, lower, upper, R, gradient = working_set(np.random.default_rng(5), 40, 3, simplex=False)
        RelativeWorkingSet(K, lower, upper, R, gradient, intercept, room=room).improve(1e-8, 20_000)
        ends.append(objective(K, np.zeros_like(R), R, gradient))
    assert ends[0] < 0
    assert ends[0] == pytest.approx(ends[1], rel=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_a_visit_takes_the_steps_of_the_slow_one(seed):
    problem = working_set(np.random.default_rng(seed), 20, 2, simplex=seed % 2 == 0)
    K, lower, upper, R, gradient = problem
    slow = SlowWorkingSet(K, lower, upper, R, gradient, True)
    steps = 5 + seed
    assert RelativeWorkingSet(*problem, True).improve(1e-10, steps) == slow.improve(1e-10, steps) == steps
    np.testing.assert_allclose(R, slow.R, atol=1e-11)


def test_a_cycle_is_turned_where_no_pair_can_exchange():
    # three rows, each with room for one move only: 0 -> 1, 1 -> 2, 2 -> 0
    lower = np.array([[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]])
    upper = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    R, gradient = np.zeros((3, 3)), np.array([[3.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    steps = RelativeWorkingSet(4 * np.eye(3), lower, upper, R, gradient, True).improve(1e-9, 10)
    # slope 6 over curvature 24
    np.testing.assert_allclose(R, 0.25 * (lower + upper))
    assert steps == 1


def test_negative_curvature_is_noted():
    rng = np.random.default_rng(0)
    _, lower, upper, R, gradient = working_set(rng, 12, 3, simplex=False)
    A = rng.normal(size=(12, 12))
    loop = RelativeWorkingSet(A + A.T, lower, upper, R, gradient, True)
    loop.improve(1e-3, 100)
    assert loop.most_negative_curvature < 0


@pytest.mark.parametrize("simplex", [False, True])
def test_pairs_of_many_classes_are_not_all_looked_at_again(simplex):
    m, k = 120, 40
    problem = working_set(np.random.default_rng(0), m, k, simplex=simplex)
    loop = RelativeWorkingSet(*problem, True)
    steps = loop.improve(1e-3, 8000)
    assert steps < 8000  # to the end, where few pairs are left to exchange and all used to be looked at
    # the first look for a cycle, and what steps go over: at a visit all rows of a class a few times, then few
    assert loop.entries < k**2 * m + 10 * m * steps
