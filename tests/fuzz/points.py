"""What was once false about certificates, measured again: ``python -m tests.fuzz.points``.

Six points, each with its figures and what they must not exceed; the command ends with 1 if one does. The proteins
of the first are simulated in the shape of the yeast data (ten classes from 463 rows to 5, eight variables); the
data themselves, an .npz file with X and y, are taken by ``--proteins FILE``.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier

from polymargin import (
    MarginSearch,
    MulticategorySVC,
    NewtonRefinement,
    ProximalSVC,
    ProximalSVCCV,
    RobustSVC,
    SharedStructureSVC,
)
from tests.objectives import primal_of
from tests.simulate import blobs, proteins

Rows = tuple[np.ndarray, np.ndarray]


class Figure(NamedTuple):
    """What was measured, and what it must not exceed."""

    what: str
    value: float
    at_most: float

    @property
    def holds(self) -> bool:
        """Whether it does not; what is not a number does."""
        return bool(self.value <= self.at_most)


def fitted(model: Any, X: Any, y: Any, **named: Any) -> Any:
    """Fit without a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, **named)


def finite_models(data: Rows) -> Iterator[Figure]:
    """Yield how a large C ends on 200 proteins, and how many of the calls that gave NaN do not end in an error."""
    X, y = data
    rows = np.random.default_rng(0).permutation(len(y))[:200]
    X, y = X[rows], y[rows]
    began = time.process_time()
    model = fitted(MulticategorySVC(C=1e6, gamma=1 / X.shape[1]), X, y)
    yield Figure("C=1e6 on 200 proteins: CPU seconds", time.process_time() - began, 17.0)
    yield Figure("C=1e6 on 200 proteins: relative gap", model.certificate_.gap, model.tol)
    yield Figure("scores that are not finite", np.sum(~np.isfinite(model.decision_function(X))), 0)
    yield Figure("part of all rows in the class predicted most", _largest_part(model.predict(X)), 0.9)
    X, y = blobs(np.random.default_rng(0), 30, 3, 3)
    costs = 1e300 * (1 - np.eye(3))
    refused = [
        *(MulticategorySVC(C=1e300, loss=loss) for loss in ("lee", "weston", "crammer")),
        RobustSVC(cost_matrix=costs),
        ProximalSVC(C=1e150),
        MarginSearch(Cs=[1.0, 1e300]),
        ProximalSVCCV(Cs=[1e300]),
    ]
    yield Figure("values of 1e150 and 1e300 that are not refused", sum(map(_is_taken, refused)), 0)
    shifted = NewtonRefinement(RidgeClassifier()).fit(X + 1e6, y).decision_function(X + 1e6)
    yield Figure("refined scores of rows shifted by 1e6 that are not finite", np.sum(~np.isfinite(shifted)), 0)


def _largest_part(labels: np.ndarray) -> float:
    return float(np.unique(labels, return_counts=True)[1].max() / len(labels))


def _is_taken(model: Any) -> bool:
    X, y = blobs(np.random.default_rng(0), 30, 3, 3)
    try:
        model.fit(X, y)
    except ValueError:
        return False
    return True


def true_certificates(data: Rows) -> Iterator[Figure]:
    """Yield by how much certificates differ from the objective of the stored model, and duals exceed primals."""
    differences = []
    for seed in range(4):
        X, y = blobs(np.random.default_rng(seed), 4, 2, 3)
        model = fitted(MulticategorySVC(C=1e15, tol=1.0), X + 1000, y)
        value, claimed = primal_of(model, X + 1000, y), model.certificate_.primal
        differences.append(abs(value - claimed) / max(1.0, abs(value)) if model.converged_ else 0.0)
    yield Figure("n=4, rows + 1000, C=1e15, tol=1: certificate against scores", max(differences), 1e-6)
    X, y = blobs(np.random.default_rng(0), 20, 3, 3)
    false = []
    shared = fitted(SharedStructureSVC(tol=1e-15), X + 1e15, y)
    false.append(shared.converged_ and shared.certificate_.gap < -1e-9)
    for seed in range(10):
        X, y = blobs(np.random.default_rng(seed), 20, 3, 3)
        unsigned = np.round(3 * np.abs(X)).astype(np.uint64)
        robust = fitted(RobustSVC(priors=[0.2, 0.3, 0.5]), unsigned, y)
        false.append(robust.converged_ and robust.certificate_.gap < -1e-9)
    yield Figure("converged with a dual above the primal, of 11", sum(false), 0)
    worse = []
    for seed in range(10):
        X, y = blobs(np.random.default_rng(seed), 4, 2, 2)
        X[:, 0] = 3.0
        robust = fitted(RobustSVC(), X, y)
        worse.append(_of_best_constant(robust, y) < robust.certificate_.primal * (1 - 1e-9))
    yield Figure("n=4, a constant column: a constant classifier is better, of 10", sum(worse), 0)


def _of_best_constant(model: Any, y: np.ndarray) -> float:
    """Return the objective of the better of the classifiers that know one class, and of zero scores."""
    counts = np.bincount(y)
    cheapest = min(1.0 - model.truncation_, 2.0)  # of a row of the other class, at a margin of -1
    return model.C * min(cheapest * counts.min(), float(counts.sum()))


def shared_structure(data: Rows) -> Iterator[Figure]:
    """Yield the gaps that defaults, constraints and bounds reach on the digits."""
    X, y = load_digits(return_X_y=True)
    options: list[dict[str, Any]] = [
        {}, {"scheme": "ovo"}, {"constraint": "psd"}, {"constraint": "symmetric"}, {"bounds": (0, 1)},
    ]  # fmt: skip
    for chosen in options:
        model = fitted(SharedStructureSVC(**chosen), X[::3] / 16, y[::3])
        yield Figure(f"599 digits, {chosen or 'defaults'}: relative gap", model.certificate_.gap, model.tol)


def proximal_offsets(data: Rows) -> Iterator[Figure]:
    """Yield the worst of 27 combinations of shape, offset and C, and what becomes of a row with leverage one."""
    rng, gaps, stopped = np.random.default_rng(0), [], 0
    for n, p in ((30, 50), (60, 200), (200, 8)):
        X, y = rng.normal(size=(n, p)), np.arange(n) % 3
        for offset in (0.0, 1e3, 1e5):
            for C in (1.0, 1e8, 1e12):
                model = fitted(ProximalSVC(C, refine=False), X + offset, y)
                gaps.append(abs(model.certificate_.gap))
                stopped += not model.converged_
    yield Figure("offsets to 1e5, C to 1e12: worst relative gap of 27", max(gaps), 1e-8)
    yield Figure("of them not converged", stopped, 0)
    X, y = np.vstack([1e8 * np.eye(3), np.zeros((5, 3))]), np.arange(8) % 2
    try:
        taken = bool(ProximalSVCCV(ProximalSVC(refine=False), Cs=[1e15]).fit(X, y))
    except ValueError as error:
        taken = "alone determines its own score" not in str(error)
    yield Figure("a row with leverage one is left out without a word", taken, 0)


def weights_and_order(data: Rows) -> Iterator[Figure]:
    """Yield by how much scores differ between weights, repetition and another order of the rows."""
    rng = np.random.default_rng(0)
    X, y = blobs(rng, 150, 3, 3)
    for model in (
        MulticategorySVC(landmarks=20, random_state=0),
        ProximalSVC(kernel="rbf", landmarks=20, random_state=0),
    ):
        yield Figure(
            f"{type(model).__name__}, 20 landmarks: scores differ by", _difference(model, X, y, rng), 1e-9
        )
    X, y = blobs(rng, 600, 5, 4)  # 1,200 rows when repeated
    for loss in ("lee", "weston", "crammer"):
        for kernel in ("rbf", "linear"):
            model = MulticategorySVC(loss=loss, kernel=kernel, tol=1e-2)
            what = f"{loss}, {kernel}, tol=1e-2, n>1000: scores differ by"
            yield Figure(what, _difference(model, X, y, rng), 1e-9)


def _difference(model: Any, X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> float:
    times = rng.integers(1, 4, len(y))
    weighted = fitted(model, X, y, sample_weight=times).decision_function(X)
    rows = rng.permutation(np.repeat(np.arange(len(y)), times))
    repeated = fitted(model, X[rows], y[rows]).decision_function(X)
    return float(np.abs(weighted - repeated).max())


def robust_starts(data: Rows, problems: int = 20) -> Iterator[Figure]:
    """Yield how far above the best of 100 random starts machines end on problems of 60 rows."""
    machines = {
        "two starts": RobustSVC(starts=("utility", "identity")),
        "defaults": RobustSVC(),
        "n_init=10": RobustSVC(n_init=10, random_state=0),
    }
    excess: dict[str, list[float]] = {name: [] for name in machines}
    for seed in range(problems):
        X, y = noisy_problem(seed)
        many = fitted(RobustSVC(starts=("utility",), n_init=101, random_state=7), X, y).certificate_.primal
        for name, machine in machines.items():
            excess[name].append(fitted(machine, X, y).certificate_.primal / many - 1.0)
    two = np.array(excess["two starts"])
    for name, at_most in (("two starts", np.inf), ("defaults", 0.5), ("n_init=10", 0.25)):
        above = np.array(excess[name])
        yield Figure(f"{name}: part more than 0.1 % above the best of 100", float((above > 1e-3).mean()), at_most)
        most = np.inf if name == "two starts" else 0.5 * float(two.mean())
        yield Figure(f"{name}: mean excess", float(above.mean()), most)
        yield Figure(f"{name}: largest excess", float(above.max()), np.inf)


def noisy_problem(seed: int) -> Rows:
    """Return 60 rows of three classes, a fifth of the labels drawn anew."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 60)
    X = rng.normal(size=(60, 4)) + rng.normal(size=(3, 4))[y] * 1.5
    return X, np.where(rng.random(60) < 0.2, rng.integers(0, 3, 60), y)


POINTS: dict[int, Callable[[Rows], Iterator[Figure]]] = {
    1: finite_models,
    2: true_certificates,
    3: shared_structure,
    4: proximal_offsets,
    5: weights_and_order,
    6: robust_starts,
}


def main() -> int:
    """Measure the points asked for; return 1 if a figure does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("points", nargs="*", type=int, help="which of the six, all by default")
    parser.add_argument(
        "--proteins", type=Path, metavar="FILE", help=".npz file with X and y of the yeast proteins"
    )
    chosen = parser.parse_args()
    if not set(chosen.points) <= set(POINTS):
        parser.error(f"points must be among {list(POINTS)}, got {chosen.points}.")
    if chosen.proteins is None:
        data = proteins(np.random.default_rng(0))
    else:
        with np.load(chosen.proteins) as archive:
            data = archive["X"], archive["y"]
    print(f"proteins: {'simulated' if chosen.proteins is None else chosen.proteins.name}")
    kept = True
    for number in chosen.points or POINTS:
        began = time.process_time()
        for figure in POINTS[number](data):
            kept = kept and figure.holds
            bound = "" if np.isinf(figure.at_most) else f"at most {figure.at_most:g}"
            verdict = "" if figure.holds else "MISSED"
            print(f"{number}  {figure.what:<62} {figure.value:>10.3g}  {bound:<16} {verdict}")
        print(f"{number}  {time.process_time() - began:.0f} CPU seconds", flush=True)
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
