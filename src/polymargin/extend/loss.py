"""`check_loss`: what a loss promises, verified on random and degenerate examples."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from polymargin.gram import DenseGram, FeatureGram, Kernel
from polymargin.problems.hinge import HingeProblem, Loss, Losses, check_loss_argument, loss_of
from polymargin.problems.hinge.contract import check_contract, check_losses
from polymargin.solvers.contract import Settings
from polymargin.solvers.hinge.general import GeneralNewton

Array = NDArray[np.float64]

ROUNDING = 1e-8
TOLERANCE = 1e-6
"""Relative gap that the problems must be solved to."""


def check_loss(loss: str | Loss, *, n_classes: int = 3, seed: int = 0) -> None:
    """Verify a loss, and raise with its name and what is wrong with it if it breaks the contract.

    Checked are, on random and on degenerate examples: shapes, signs and finite numbers; that margins are affine,
    `coefficients` minus their adjoint and the loss convex; the inequality of Fenchel and Young between `value` and
    `dual_value`; that `proximal` is the maximiser it promises, in the domain, and `proximal_slopes` its
    derivatives; that `restricted`, `scaled` and weights mean parts, multiples and repetition. Finally problems,
    linear and with a kernel, with repeated rows, are solved to a certified gap.

    Parameters
    ----------
    loss : str or Loss
        The loss, or the name of one of ours.
    n_classes : int, default=3
        Number of classes that it is tried on, besides two.
    seed : int, default=0
        Seed of the random examples.

    Raises
    ------
    TypeError, ValueError
        The loss breaks the contract.

    Examples
    --------
    >>> from polymargin.extend import check_loss
    >>> from polymargin import ReinforcedLoss
    >>> check_loss(ReinforcedLoss(gamma=0.3))
    """
    check_loss_argument(loss)
    loss = loss_of(loss)
    rng = np.random.default_rng(seed)
    for labels, costs in _examples(rng, n_classes):
        check_contract(loss, labels, costs)
        losses = loss.over(labels, costs)
        check_losses(type(loss).__name__, losses, len(labels), costs.shape[1], seed)
        _check_values(loss, losses, rng)
        _check_proximal(loss, losses, rng)
        _check_parts(loss, losses, labels, costs, rng)
    for problem in _problems(rng, loss, n_classes):
        _check_certificate(loss, problem)


def _examples(rng: np.random.Generator, n_classes: int) -> Iterator[tuple[NDArray[np.intp], Array]]:
    """Yield labels and costs: random, two classes, a single example of each class, weights of many sizes."""
    for k, n in ((n_classes, 12), (2, 9), (n_classes, n_classes)):
        labels = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
        weights = 10.0 ** rng.uniform(-2, 2, size=n)
        yield labels, weights[:, None] * (1.0 - np.eye(k))[labels]


def _scores(rng: np.random.Generator, losses: Losses) -> Array:
    F = 2.0 * losses.offset * rng.normal(size=(losses.n_examples, losses.n_classes))
    return F - F.mean(axis=1, keepdims=True)


def _check_values(loss: Loss, losses: Losses, rng: np.random.Generator) -> None:
    """Verify that margins are affine, the loss convex, and Fenchel and Young's inequality."""
    F, G = _scores(rng, losses), _scores(rng, losses)
    middle = 0.5 * (losses.margins(F) + losses.margins(G))
    _require(loss, np.allclose(losses.margins(0.5 * (F + G)), middle), "margins must be affine in the scores")
    ends = 0.5 * (losses.value(F) + losses.value(G))
    at_middle = losses.value(0.5 * (F + G))
    _require(loss, at_middle <= ends + ROUNDING * max(1.0, abs(ends)), "value must be convex")
    for centre in (losses.resting_dual(), losses.proximal(losses.margins(G), losses.resting_dual(), 1.0)):
        for width in (0.01, 1.0, 100.0):
            dual = losses.proximal(losses.margins(F), centre, width)
            for at in (F, G, np.zeros_like(F)):
                bound = losses.dual_value(dual) - float(np.vdot(losses.coefficients(dual), at))
                value = losses.value(at)
                _require(
                    loss,
                    value >= bound - ROUNDING * max(1.0, abs(value), abs(bound)),
                    f"value(F) = {value:.10g} is below dual_value(dual) - <coefficients(dual), F> = {bound:.10g}: "
                    "one of them is wrong (Fenchel and Young)",
                )


def _check_proximal(loss: Loss, losses: Losses, rng: np.random.Generator) -> None:
    """Verify that `proximal` is a maximiser in the domain, and `proximal_slopes` its derivatives."""
    margins = losses.margins(_scores(rng, losses))
    resting = losses.resting_dual()
    others = [losses.proximal(losses.margins(_scores(rng, losses)), resting, 0.5) for _ in range(3)]
    zero = losses.margins(np.zeros((losses.n_examples, losses.n_classes)))
    sizes = np.broadcast_to(losses.sizes, resting.shape)
    used = sizes > 0.0

    def objective(dual: Array, centre: Array, width: float) -> float:
        price = 0.5 * width * float(((dual - centre)[used] ** 2 / sizes[used]).sum())
        return float(np.vdot(dual, margins - zero)) + losses.dual_value(dual) - price

    for centre in (resting, others[0]):
        for width in (0.1, 4.0):
            found = losses.proximal(margins, centre, width)
            infeasibility = losses.infeasibility(found)
            _require(loss, infeasibility <= ROUNDING, f"proximal leaves the domain by {infeasibility:.2g}")
            best = objective(found, centre, width)
            for other in (resting, centre, *others):
                for part in (1e-3, 0.5):
                    value = objective(found + part * (other - found), centre, width)
                    scale = max(1.0, abs(best), abs(value))
                    _require(
                        loss,
                        value <= best + ROUNDING * scale,
                        f"proximal is no maximiser: {best:.10g}, where {value:.10g} is possible",
                    )
            slopes = losses.proximal_slopes(margins, centre, width)
            _require(loss, slopes.shape == (*margins.shape, margins.shape[1]), "proximal_slopes has a wrong shape")
            step = 1e-7 * rng.normal(size=margins.shape)
            moved = losses.proximal(margins + step, centre, width) - losses.proximal(margins - step, centre, width)
            foretold = 2.0 * np.einsum("iml,il->im", slopes, step)
            error = np.abs(moved - foretold).max() / max(float(np.abs(moved).max()), 1e-12)
            _require(loss, error <= 1e-3, f"proximal_slopes differ from differences of proximal by {error:.2g}")


def _check_parts(
    loss: Loss, losses: Losses, labels: NDArray[np.intp], costs: Array, rng: np.random.Generator
) -> None:
    """Verify that parts, multiples and weights are what they say."""
    F = _scores(rng, losses)
    value = losses.value(F)
    even, odd = np.arange(0, len(F), 2), np.arange(1, len(F), 2)
    parts = losses.restricted(even).value(F[even]) + losses.restricted(odd).value(F[odd])
    _require(loss, np.isclose(parts, value), "restricted losses do not add up to the whole")
    _require(loss, np.isclose(losses.scaled(3.0).value(F), 3.0 * value), "scaled(3) is not three times the losses")
    twice = loss.over(np.concatenate([labels, labels]), np.vstack([costs, costs])).value(np.vstack([F, F]))
    _require(loss, np.isclose(loss.over(labels, 2.0 * costs).value(F), twice), "a weight of 2 is no repetition")


def _problems(rng: np.random.Generator, loss: Loss, n_classes: int) -> Iterator[HingeProblem]:
    """Yield small problems: linear, with a kernel, with repeated rows and without an intercept."""
    labels = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 30 - n_classes)])
    X = rng.normal(size=(30, 2)) + labels[:, None]
    X[20:] = X[:10]
    losses = loss.over(labels, (1.0 - np.eye(n_classes))[labels])
    yield HingeProblem(FeatureGram(X), losses)
    yield HingeProblem(DenseGram(np.ascontiguousarray(Kernel("rbf", 0.5)(X))), losses.scaled(10.0))
    yield HingeProblem(FeatureGram(X), losses.scaled(0.01), fit_intercept=False)


def _check_certificate(loss: Loss, problem: HingeProblem) -> None:
    certificate = GeneralNewton().solve(problem, Settings(tol=TOLERANCE, max_iter=500)).certificate
    _require(
        loss,
        certificate.within(TOLERANCE),
        f"a small problem was not solved: its certified gap is {certificate.gap:.2g}, its infeasibility "
        f"{certificate.infeasibility:.2g}; `dual_value` or `proximal` may be wrong",
    )


def _require(loss: Loss, holds: bool | np.bool_, message: str) -> None:
    if not holds:
        raise ValueError(f"{type(loss).__name__}: {message}.")
