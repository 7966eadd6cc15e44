"""Slow twins of the compiled steps of the hinge machines on explicit features."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import brentq

from polymargin._native.block_descent import (
    lead,
    move_multipliers,
    shuffle_awake,
    sweep_dense,
    sweep_sparse,
    totals,
)
from polymargin._native.proximal import proximal_step
from polymargin.problems.hinge import crammer_singer, lee_lin_wahba, weston_watkins
from tests.simulate import blobs, random_costs

N, K = 12, 4


def tables(loss):
    rng = np.random.default_rng(0)
    X, labels = blobs(rng, N, 3, K)
    upper = random_costs(rng, K)[labels]
    match loss:
        case "lee":
            losses = lee_lin_wahba(labels, upper)
        case "weston":
            losses = weston_watkins(labels, upper)
        case _:
            losses = crammer_singer(labels, rng.uniform(0.5, 2.0, N), K)
    bound = losses.weight[:, None] if loss == "crammer" else upper
    dual = (
        losses.weight[:, None] * rng.dirichlet(np.ones(K), N) if loss == "crammer" else upper * rng.random((N, K))
    )
    return rng, X, labels.astype(np.int32), losses, np.ascontiguousarray(bound), dual


def projected(target, weight):
    """Projection of one row on `weight` times the simplex, by bracketing the threshold."""
    if len(target) == 1:
        return np.array([weight])
    low, high = target.min() - weight, target.max()
    theta = brentq(lambda t: np.maximum(target - t, 0.0).sum() - weight, low, high, xtol=1e-15)
    return np.maximum(target - theta, 0.0)


@pytest.mark.parametrize("loss", ["lee", "weston", "crammer"])
def test_proximal_step(loss):
    rng, _, labels, losses, bound, centre = tables(loss)
    F = rng.normal(size=(N, K))
    F -= F.mean(axis=1, keepdims=True)
    width = 0.8
    alpha, free, R = np.empty((N, K)), np.empty((N, K), dtype=np.uint8), np.zeros((N, K))
    example = np.arange(N, dtype=np.int32)
    total, slack, price = proximal_step(
        F, example, labels, bound, centre, losses.offset, loss == "lee", width, alpha, free, R
    )
    g = losses.margins(F)
    target = centre + bound * g / width
    if loss == "crammer":
        expected = np.array([projected(row, weight) for row, weight in zip(target, losses.weight, strict=True)])
        inside = expected > 1e-9
    else:
        expected = np.clip(target, 0.0, bound)
        inside = (target > 0.0) & (target < bound)
    np.testing.assert_allclose(alpha, expected, atol=1e-12)
    np.testing.assert_array_equal(free.astype(bool), inside)
    np.testing.assert_allclose(R, losses.coefficients(expected), atol=1e-12)
    assert total == pytest.approx(losses.value(F))
    assert slack == pytest.approx(losses.value(F) - np.vdot(expected, g))
    strayed = np.square(expected - centre)
    assert price == pytest.approx(
        0.5 * width * np.divide(strayed, bound, where=bound > 0.0, out=strayed * 0.0).sum()
    )


def test_a_simplex_without_weight_has_the_answer_zero():
    F, centre, label = np.array([[1.0, 3.0, -2.0]]), np.zeros((1, 3)), np.zeros(1, dtype=np.int32)
    alpha, free, R = np.ones((1, 3)), np.ones((1, 3), dtype=np.uint8), np.zeros((1, 3))
    sums = proximal_step(F, label, label, np.zeros((1, 1)), centre, 2.0, False, 0.5, alpha, free, R)
    assert not alpha.any()
    assert not free.any()
    assert not R.any()
    assert sums == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("far", [0.0, 3.0])
@pytest.mark.parametrize("loss", ["lee", "weston", "crammer"])
def test_sweep(loss, far):
    rng, rows, labels, losses, bound, dual = tables(loss)
    tau, m = 0.3, far * rng.normal(size=rows.shape[1])
    order = np.array([5, 0, 7], dtype=np.int32)
    X = rows - m  # what the descent sees
    squares = np.square(X).sum(axis=1)

    expected = dual.copy()
    for i in order:
        R = losses.coefficients(expected)
        F = X @ (X.T @ R) + tau * R.sum(axis=0)
        q = squares[i] + tau
        g = losses.margins(F)[i]
        if loss == "crammer":
            expected[i] = projected(expected[i] + g / q, losses.weight[i])
            continue
        # a box QP whose matrix is q times the inner products of the directions: cyclic coordinates to the end
        inner = losses.table.directions[labels[i]] @ losses.table.directions[labels[i]].T
        u, begin = expected[i].copy(), expected[i].copy()
        for _ in range(3000):
            for j in np.flatnonzero(bound[i]):
                slope = g[j] - q * inner[j] @ (u - begin)
                u[j] = np.clip(u[j] + slope / (q * inner[j, j]), 0.0, bound[i, j])
        expected[i] = u

    R = losses.coefficients(dual)
    W, sums = np.ascontiguousarray((rows.T @ R).T), R.sum(axis=0)
    common = np.array([tau * sums, sums, (X.T @ R).T @ m])
    found = dual.copy()
    rules = {"lee": (1.0 / K, False, True), "weston": (-1.0, False, False), "crammer": (0.0, True, False)}[loss]
    calm, wake = np.ones(N, dtype=np.int32), np.zeros(N, dtype=np.int32)
    example = np.arange(N, dtype=np.int32)
    added = sweep_dense(
        rows, squares, rows @ m, order, example, labels, bound, losses.offset, *rules, tau, m @ m, found, W,
        common, np.empty(N), np.empty(N), calm, wake, 1, 0.0, np.empty((3, K)),
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, atol=1e-9)
    # rows are added up to what all classes have in common
    kept = (lambda u: u) if loss == "lee" else losses.coefficients
    assert added == np.count_nonzero(np.abs(kept(found) - kept(dual)) > 1e-12)
    assert (wake[order] == 2).all()
    # what the sweep keeps up to date
    R = losses.coefficients(found)
    centred = W - W.mean(axis=0)
    np.testing.assert_allclose(centred, (rows.T @ R).T, atol=1e-10)
    sums = R.sum(axis=0)
    expected = np.array([tau * sums, sums, (X.T @ R).T @ m])
    np.testing.assert_allclose(common - common.mean(axis=1, keepdims=True), expected, atol=1e-10)


def test_blocks_of_small_slack_rest():
    _, X, labels, losses, bound, dual = tables("lee")
    R, squares, order = losses.coefficients(dual), np.square(X).sum(axis=1), np.arange(N, dtype=np.int32)
    W, example, slack = np.ascontiguousarray((X.T @ R).T), order.copy(), np.empty(N)
    before = dual.copy()
    calm, wake = np.ones(N, dtype=np.int32), np.zeros(N, dtype=np.int32)
    # every epoch in which they are awake; a second visit in the same one does not make them rest longer
    for epoch, negligible in ((1, 0.0), (2, np.inf), (2, np.inf), (4, np.inf), (8, np.inf)):
        sweep_dense(
            X, squares, np.zeros(N), order, example, labels, bound, losses.offset, 1.0 / K, False, True, 0.0, 0.0,
            dual, W, np.zeros((3, K)), np.empty(N), slack, calm, wake, epoch, negligible, np.empty((3, K)),
        )  # fmt: skip
        assert (wake[(before != dual).any(axis=1)] == 2 * epoch).all()


@pytest.mark.parametrize("k", [2, 7, 10, 16, 26])
@pytest.mark.parametrize("values", [np.float32, np.float64])
@pytest.mark.parametrize("indices", [np.int32, np.int64])
def test_sweep_of_compressed_rows(k, values, indices):
    rng = np.random.default_rng(k)
    n, p = 3 * k, 11
    X = np.where(rng.random((n, p)) < 0.3, rng.normal(size=(n, p)), 0.0).astype(values)
    X[1] = 0.0  # a row without entries
    losses = lee_lin_wahba(np.arange(n) % k, rng.random((n, k)) * (np.arange(k) != (np.arange(n) % k)[:, None]))
    tables = losses.compiled_tables()
    rows, width, tau = sparse.csr_array(X), 4 * -(-k // 4), 0.3
    storage = (
        (np.ascontiguousarray(X),),
        (rows.data, rows.indices.astype(indices), rows.indptr.astype(indices)),
    )
    squares, order = np.square(X, dtype=np.float64).sum(axis=1) + 0.1, rng.permutation(n).astype(np.int32)
    m = X.mean(axis=0, dtype=np.float64)
    squares, along = squares - 2.0 * X @ m + m @ m, X @ m
    found = []
    for sweep, features, shape in zip((sweep_dense, sweep_sparse), storage, ((k, p), (p, width)), strict=True):
        dual, W, common = np.zeros((n, k)), np.zeros(shape), np.zeros((3, k))
        loss, slack = np.empty(n), np.empty(n)
        calm, wake = np.ones(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
        for epoch in (1, 2, 3):
            sweep(
                *features, squares, along, order, tables.example, tables.label, tables.bound, losses.offset,
                tables.coupling, False, True, tau, m @ m, dual, W, common, loss, slack, calm, wake, epoch,
                0.0, np.zeros((3, width)),
            )  # fmt: skip
        found.append((dual, W.T if sweep is sweep_dense else W[:, :k], common, loss, slack))
        assert not W[:, k:].any() or sweep is sweep_dense
    for of_dense, of_sparse in zip(*found, strict=True):
        np.testing.assert_allclose(of_sparse, of_dense, atol=1e-9)


def scrambled(number):
    """The output of splitmix64 at a state."""
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    number = (number ^ number >> 27) * 0x94D049BB133111EB % 2**64
    return number ^ number >> 31


@pytest.mark.parametrize("n", [0, 1, 50])
@pytest.mark.parametrize(("share", "between"), [(0.0, 1), (0.3, 1), (0.3, 10), (0.3, 100)])
def test_blocks_that_are_awake_are_shuffled(n, share, between):
    rng = np.random.default_rng(0)
    wake, slack = rng.integers(0, 4, n).astype(np.int32), rng.exponential(size=n)
    state, order = np.array([7], dtype=np.uint64), np.empty(5 * n, dtype=np.int32)
    number = shuffle_awake(wake, 2, slack, share, 5, between, state, order)
    expected, at = [], 7
    most = max(1, min(5, int((wake <= 2).sum()) // between))
    for block in np.flatnonzero(wake <= 2).tolist():
        visits = int(np.clip(slack[block] / share, 1, most)) if share else 1
        for _ in range(visits):
            at = (at + 0x9E3779B97F4A7C15) % 2**64
            expected.append(block)
            place = (scrambled(at) >> 32) * len(expected) >> 32
            expected[-1], expected[place] = expected[place], block
    assert order[:number].tolist() == expected
    assert state[0] == at
    before = order.copy()
    shuffle_awake(wake, 2, slack, share, 5, between, state, order)
    assert sorted(order[:number]) == sorted(before[:number])
    assert n < 50 or not np.array_equal(order, before)


@pytest.mark.parametrize("slack", [np.nan, np.inf, 1e300])
def test_no_more_visits_than_there_are_places(slack):
    wake, order = np.zeros(3, dtype=np.int32), np.empty(4, dtype=np.int32)
    state = np.array([7], dtype=np.uint64)
    number = shuffle_awake(wake, 1, np.array([1.0, 1.0, slack]), 1.0, 16, 1, state, order)
    assert number == (3 if np.isnan(slack) else 4)
    assert set(order[:number]) == {0, 1, 2}


@pytest.mark.parametrize(("p", "k"), [(1, 2), (7, 3), (33, 8), (0, 4)])
def test_totals(p, k):
    rng = np.random.default_rng(p)
    W, loss, slack = rng.normal(size=(p, k)), rng.random(13), rng.random(13)
    m, sums = rng.normal(size=p), rng.normal(size=k)
    from_centre = W - np.outer(m, sums)
    common = np.array([rng.normal(size=k), sums, m @ from_centre])
    centred = from_centre - from_centre.mean(axis=1, keepdims=True)
    expected = np.square(centred).sum(), loss.sum(), slack.sum()
    padded = np.zeros((p, 4 * -(-k // 4)))
    padded[:, :k] = W
    for table, by_class in ((W.T.copy(), True), (padded, False)):
        assert totals(table, by_class, common, m @ m, loss, slack, np.empty(p)) == pytest.approx(
            expected, rel=1e-12
        )


def test_multipliers_move_to_the_shift_and_the_shift_as_far_beyond():
    rng = np.random.default_rng(0)
    multipliers, shift = rng.normal(size=5), rng.normal(size=5)
    before, centred = multipliers.copy(), shift - shift.mean()
    move_multipliers(multipliers, shift)
    np.testing.assert_allclose(multipliers, centred, atol=1e-15)
    np.testing.assert_allclose(shift, centred + (centred - before), atol=1e-15)


@pytest.mark.parametrize("shape", [(0, 3), (5, 4)])
def test_a_mean_is_drawn_to_values(shape):
    rng = np.random.default_rng(0)
    mean, values = rng.normal(size=shape), rng.normal(size=shape)
    expected = mean + 0.3 * (values - mean)
    lead(mean, values, 0.3)
    np.testing.assert_allclose(mean, expected, rtol=1e-14)
