"""Verification of a penalty: its formulas against each other, and certified fits with it."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.hinge import weston_watkins
from polymargin.problems.penalties import Penalty
from polymargin.problems.penalties.contract import check_atoms, check_contract
from polymargin.problems.sparse import SparseProblem
from polymargin.solvers.contract import Settings
from polymargin.solvers.sparse.cutting_plane import CuttingPlanes

ROUNDING = 1e-9
"""Relative error of a formula that rounding may explain."""

Array = NDArray[np.float64]


def check_penalty(penalty: Penalty, *, n_classes: int = 4, n_features: int = 6, seed: int = 0) -> None:
    """Verify a penalty, and raise with its name and what is wrong with it if it breaks the contract.

    Checked are, on random and on degenerate points: shapes, signs and finite numbers; that the penalty is zero at
    zero, even and convex, and homogeneous if it is a norm; Fenchel and Young's inequality between `value` and
    `polars` or `conjugates`, and that `best_atoms` attain it; that `polars` are exact above their threshold and
    bounds below; `restricted`, `at_zero` and, if the penalty takes weights, `sizes` and `weighted`. Finally two
    problems, one of them with repeated rows, repeated columns and a constant one, are solved to a certified gap.

    Parameters
    ----------
    penalty : Penalty
        The penalty; its weights, if it has any, must fit the sizes below.
    n_classes, n_features : int, default=4, 6
        Sizes of the coefficients it is tried on.
    seed : int, default=0
        Seed of the random points.

    Raises
    ------
    TypeError, ValueError
        The penalty breaks the contract.

    Examples
    --------
    >>> from polymargin import GroupLassoPenalty
    >>> from polymargin.extend import check_penalty
    >>> check_penalty(GroupLassoPenalty())
    """
    check_contract(penalty, n_classes, n_features)
    rng = np.random.default_rng(seed)
    points = list(_points(rng, n_classes, n_features))
    _check_values(penalty, points)
    for G in points:
        _check_prices(penalty, G, points)
    _check_parts(penalty, points)
    if penalty.takes_weights:
        _check_weights(penalty, points)
    for problem in _problems(rng, penalty, n_classes, n_features):
        _check_certificate(problem)


def _points(rng: np.random.Generator, k: int, p: int) -> Iterator[Array]:
    """Yield coefficients (k, p) of zero sum: random, tied, sparse, tiny and large ones."""
    for W in (
        rng.normal(size=(k, p)),
        np.round(rng.normal(size=(k, p))),
        rng.normal(size=(k, p)) * (rng.random(p) < 0.5),
        1e-6 * rng.normal(size=(k, p)),
        1e3 * rng.normal(size=(k, p)),
    ):
        yield W - W.mean(axis=0)


def _check_values(penalty: Penalty, points: list[Array]) -> None:
    """Verify that J is even and convex, and homogeneous if it is a norm."""
    for W in points:
        value = penalty.value(W)
        _require(penalty, _close(penalty.value(-W), value), "value(-W) differs from value(W): it must be even")
        if penalty.is_norm:
            _require(
                penalty,
                _close(penalty.value(2.5 * W), 2.5 * value),
                "value(2.5 W) differs from 2.5 value(W): a norm is homogeneous; else set is_norm to False",
            )
        for other in points:
            middle = penalty.value((W + other) / 2)
            _require(
                penalty,
                middle <= (value + penalty.value(other)) / 2 * (1 + ROUNDING) + ROUNDING,
                "value at the middle of two points is greater than the mean of the values: it must be convex",
            )


def _check_prices(penalty: Penalty, G: Array, points: list[Array]) -> None:
    """Verify Fenchel and Young's inequality, and that the atoms attain it."""
    k, p = G.shape
    everything = np.arange(p)
    atoms = penalty.best_atoms(G, everything)
    check_atoms(f"{type(penalty).__name__}.best_atoms(G, variables)", atoms, everything, k)
    combined = penalty.combine(atoms, np.ones(p), p)
    _require(penalty, combined.shape == (k, p), f"combine must return shape {(k, p)}, got {combined.shape}")
    scale = max(1.0, float(np.abs(combined).max()))
    _require(penalty, np.abs(combined.sum(axis=0)).max() <= ROUNDING * scale, "combined atoms do not sum to zero")
    _require(
        penalty,
        _close(penalty.value(combined), float(atoms.costs.sum())),
        "costs of the atoms differ from value: the sum of the costs must be the value of one atom per variable",
    )
    slopes = np.einsum("kp,kp->p", G, combined)
    if penalty.is_norm:
        prices = penalty.polars(G, above=0.0)
        attained = np.abs(slopes) / atoms.costs
        screened = penalty.polars(G)
        exact = prices > 1.0
        _require(penalty, _close(screened[exact], prices[exact]), "polars above the threshold must be exact")
        _require(
            penalty,
            bool(np.all(screened >= prices * (1 - ROUNDING)) and np.all(screened[~exact] <= 1.0 + ROUNDING)),
            "polars not above the threshold must be bounds between the polar and the threshold",
        )
    else:
        prices = penalty.conjugates(G)
        attained = slopes - atoms.costs
    label = "polars" if penalty.is_norm else "conjugates"
    for W in (*points, combined):
        values = _values_by_variable(penalty, W)
        products = np.einsum("kp,kp->p", G, W)
        most = prices * values if penalty.is_norm else prices + values
        _require(
            penalty,
            bool(np.all(products <= most + ROUNDING * np.maximum(1.0, np.abs(products)))),
            f"Fenchel and Young's inequality fails: {label} are too small, or value is",
        )
    _require(
        penalty,
        _close(attained, prices),
        f"best_atoms do not attain the {label}: the atoms are not the best ones, or the {label} are too large",
    )


def _values_by_variable(penalty: Penalty, W: Array) -> Array:
    """Return J_j(w_j) of every variable (p,)."""
    alone = np.zeros((W.shape[1], *W.shape))
    for j, coef in enumerate(alone):
        coef[:, j] = W[:, j]
    return np.array([penalty.value(coef) for coef in alone])


def _check_parts(penalty: Penalty, points: list[Array]) -> None:
    """Compare the penalty of some variables, and its norm near zero, with the penalty itself."""
    k, p = points[0].shape
    some = np.arange(0, p, 2)
    W = points[0]
    alone = np.zeros_like(W)
    alone[:, some] = W[:, some]
    _require(
        penalty,
        _close(penalty.restricted(some).value(W[:, some]), penalty.value(alone)),
        "restricted(variables) is not the penalty of these variables alone",
    )
    near_zero = penalty.at_zero(k, p)
    if near_zero is not None:
        _require(penalty, near_zero.is_norm, "at_zero must return a norm")
        small = 1e-7
        _require(
            penalty,
            bool(np.isclose(penalty.value(small * W) / small, near_zero.value(W), rtol=1e-5)),
            "at_zero is not what the penalty is near zero",
        )


def _check_weights(penalty: Penalty, points: list[Array]) -> None:
    """Verify that weights have the shape of the sizes, and that larger ones make a larger penalty."""
    W = points[0]
    sizes = penalty.sizes(W)
    _require(penalty, sizes.ndim == 2 and sizes.shape[1] == W.shape[1], "sizes must have one column per variable")
    _require(penalty, bool(np.all(sizes >= 0.0)), "sizes must not be negative")
    once, thrice = (penalty.weighted(np.full(sizes.shape, weight)) for weight in (1.0, 3.0))
    _require(penalty, once.value(W) < thrice.value(W), "weighted with larger weights must be a larger penalty")
    _check_prices(thrice, points[1], points)


def _problems(rng: np.random.Generator, penalty: Penalty, k: int, p: int) -> Iterator[SparseProblem]:
    """Yield a random problem, and one with repeated rows and columns and a constant column."""
    n = 8 * k
    labels = np.arange(n) % k
    upper = 1.0 * (labels[:, None] != np.arange(k))
    X = rng.normal(size=(n, p)) + 1.5 * rng.normal(size=(k, p))[labels]
    yield SparseProblem(X, weston_watkins(labels, upper), penalty, 0.2)
    X = np.round(X)
    X[:, 0], X[:, 1] = 7.0, X[:, -1]
    X[n // 2 :] = X[: n // 2]
    yield SparseProblem(X, weston_watkins(labels, upper), penalty, 5.0)


def _check_certificate(problem: SparseProblem) -> None:
    """Solve a problem by cut generation, which must close the gap."""
    penalty = problem.penalty
    solution = CuttingPlanes().solve(problem, Settings(tol=1e-6, max_iter=1000))
    _require(
        penalty,
        solution.certificate.within(1e-6),
        f"a fit ends with a gap of {solution.certificate.gap:.1e} ({solution.status.name}): value, prices and "
        "atoms do not belong together",
    )


def _close(found: Array | float, expected: Array | float) -> bool:
    return bool(np.allclose(found, expected, rtol=ROUNDING, atol=1e-12))


def _require(penalty: Penalty, holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(f"{type(penalty).__name__}: {otherwise}.")
