"""ProximalSVC against solutions found without any of its code."""

import decimal

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel

from polymargin import ProximalSVC
from polymargin.moments import ClassMoments
from polymargin.solvers.ridge.settings import RidgeSettings
from tests.simulate import blobs


def signs_and_weights(y, r, balance, w):
    d = np.where(y == r, 1.0, -1.0)
    N = w.copy()
    if balance:
        N[y == r] /= w[y == r].sum()
        N[y != r] /= w[y != r].sum()
    return d, N


def augmented_least_squares(B, y, C, balance, w):
    """One orthogonal least-squares solve a class: [N^(1/2) E; C^(-1/2) I] z = [N^(1/2) d; 0]."""
    E = np.column_stack([B, -np.ones(len(B))])
    q = E.shape[1]
    columns = []
    for r in range(y.max() + 1):
        d, N = signs_and_weights(y, r, balance, w)
        A = np.vstack([np.sqrt(N)[:, None] * E, np.eye(q) / np.sqrt(C)])
        columns.append(np.linalg.lstsq(A, np.concatenate([np.sqrt(N) * d, np.zeros(q)]), rcond=None)[0])
    return np.array(columns)


def solution(model):
    V = model.coef_ if hasattr(model, "coef_") else model.dual_coef_
    return np.column_stack([V, -model.intercept_])


@pytest.mark.parametrize("exponent", [0, 10, 20, 25, 30, 35])
@pytest.mark.parametrize("balance", [True, False])
@pytest.mark.parametrize("machine", ["linear", "wide", "raw", "rbf", "reduced", "many landmarks"])
def test_coefficients_are_those_of_an_orthogonal_least_squares_solve(machine, balance, exponent):
    C = 2.0**exponent
    for seed in range(3):
        rng = np.random.default_rng(seed)
        k = int(rng.integers(2, 5))
        X, y = blobs(rng, 60, 90 if machine == "wide" else 5, k)
        w = rng.choice([1.0, 0.5, 2.0], len(X))
        if machine == "raw":
            X = 30.0 + X * np.array([1.0, 10.0, 100.0, 0.1, 3.0])
        landmarks = {"reduced": X[::5], "many landmarks": rng.normal(size=(80, 5))}.get(machine)
        kernel = "linear" if machine in ("linear", "wide", "raw") else "rbf"
        model = ProximalSVC(C, kernel=kernel, gamma=0.1, landmarks=landmarks, balance=balance, refine=False)
        model.fit(X, y, w)
        B = X if kernel == "linear" else rbf_kernel(X, X if landmarks is None else landmarks, gamma=0.1)
        expected = augmented_least_squares(B, y, C, balance, w)
        error = np.linalg.norm(solution(model) - expected, axis=1) / np.linalg.norm(expected, axis=1)
        assert error.max() < 1e-8
        certificate = model.certificate_
        assert abs(certificate.gap) < 1e-9
        assert certificate.infeasibility < 1e-12
        residual = sum(
            0.5 * C * np.sum(N * (B @ z[:-1] - z[-1] - d) ** 2) + 0.5 * z @ z
            for r, z in enumerate(expected)
            for d, N in [signs_and_weights(y, r, balance, w)]
        )
        assert certificate.primal == pytest.approx(residual, rel=1e-8)


def exact_solution(B, d, N, C):
    """Gaussian elimination on the normal equations in sixty digits."""
    decimal.getcontext().prec = 60
    exact = np.vectorize(lambda value: decimal.Decimal(float(value)), otypes=[object])
    E = exact(np.column_stack([B, -np.ones(len(B))]))
    weighted = E * exact(N)[:, None]
    q = E.shape[1]
    system = np.column_stack([weighted.T.dot(E), weighted.T.dot(exact(d))])
    system[np.arange(q), np.arange(q)] += 1 / decimal.Decimal(C)
    for i in range(q):
        system[i] /= system[i, i]
        for j in range(q):
            if j != i:
                system[j] = system[j] - system[j, i] * system[i]
    return system[:, -1].astype(np.float64)


@pytest.mark.parametrize("balance", [True, False])
def test_coefficients_are_accurate_where_squaring_the_rows_loses_nearly_all_digits(balance):
    rng = np.random.default_rng(1)
    X, y = blobs(rng, 40, 4, 3)
    for C, tolerance in ((2.0**25, 1e-10), (2.0**35, 1e-10), (2.0**45, 1e-9)):
        model = ProximalSVC(C, kernel="rbf", gamma=0.05, landmarks=X[:25], balance=balance, refine=False)
        Z = solution(model.fit(X, y))
        B = rbf_kernel(X, X[:25], gamma=0.05)
        for r in range(3):
            expected = exact_solution(B, *signs_and_weights(y, r, balance, np.ones(len(y))), C)
            assert np.linalg.norm(Z[r] - expected) < tolerance * np.linalg.norm(expected)


def gaussian(X, Y):
    """Return a kernel whose last digits do not depend on which rows are computed together."""
    return np.exp(-0.02 * ((X[:, None] - Y[None]) ** 2).sum(axis=2))


class ComputesFeaturesAgain(ProximalSVC):
    """As for many rows, of which the features are not kept."""

    _tuning = RidgeSettings(kept_bytes=0)


@pytest.mark.parametrize("balance", [True, False])
def test_many_rows_with_ill_conditioned_normal_equations_are_not_squared(balance, threads):
    rng = np.random.default_rng(2)
    X, y = blobs(rng, 500, 2, 3)
    w = rng.choice([1.0, 0.5, 2.0], len(X))
    B = gaussian(X, X[:25])
    moments = ClassMoments.of(B, y, w, n_classes=3)
    for C, foreseen in ((1.0, False), (2.0**40, True)):
        model = ComputesFeaturesAgain(C, kernel=gaussian, landmarks=X[:25], balance=balance, refine=False)
        data = model._training_set(X, y, w)
        assert (model._state(data, model._features(data)).class_qr is not None) == foreseen
        Z = solution(model.fit(X, y, w))
        orthogonal = augmented_least_squares(B, y, C, balance, w)
        for r in range(3):
            expected = exact_solution(B, *signs_and_weights(y, r, balance, w), C)
            ours, theirs = np.linalg.norm([Z[r] - expected, orthogonal[r] - expected], axis=1)
            assert ours < max(30 * theirs, 1e-11 * np.linalg.norm(expected))
            assert ours < 1e-6 * np.linalg.norm(expected)
        np.testing.assert_allclose(model.moments_.grams, moments.grams, rtol=1e-12)
        assert abs(model.certificate_.gap) < 1e-9
        assert model.certificate_.infeasibility < 1e-12


@pytest.mark.parametrize("refine_weights", ["uniform", "balanced"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_refined_objective_is_not_above_what_a_generic_optimiser_finds(kernel, refine_weights):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        k = int(rng.integers(2, 5))
        X, y = blobs(rng, int(rng.integers(8, 120)), 3, k, spread=rng.choice([0.3, 1.0, 5.0]))
        w = rng.uniform(0.2, 2.0, len(X))
        C = 2.0 ** int(rng.integers(-2, 26))
        options = {"kernel": kernel, "gamma": 0.3, "refine_weights": refine_weights}
        plain = ProximalSVC(C, refine=False, **options).fit(X, y, w)
        refined = ProximalSVC(C, refine=True, **options).fit(X, y, w)
        B = X if kernel == "linear" else rbf_kernel(X, gamma=0.3)
        for r, z in enumerate(solution(plain)):
            d, omega = signs_and_weights(y, r, refine_weights == "balanced", w)
            s, norm = B @ z[:-1], z[:-1] @ z[:-1]

            def objective(point, C=C, d=d, omega=omega, s=s, norm=norm):
                errors = np.maximum(0.0, 1.0 - d * (point[0] * s - point[1]))
                return 0.5 * C * omega @ errors**2 + 0.5 * (point[0] ** 2 * norm + point[1] ** 2)

            mine = refined.refinement_
            found = objective([mine.scale[r], mine.offset[r]])
            assert found == pytest.approx(mine.objective[r], rel=1e-9)
            options_of_search = {"xatol": 1e-12, "fatol": 1e-13, "maxiter": 2000}
            starts = ([1.0, z[-1]], [mine.scale[r], mine.offset[r]])
            best = min(
                minimize(objective, start, method="Nelder-Mead", options=options_of_search).fun for start in starts
            )
            assert found <= best * (1 + 1e-10)
            assert mine.n_iter[r] <= 30
            np.testing.assert_allclose(solution(refined)[r, :-1], mine.scale[r] * z[:-1], rtol=1e-12)
            assert -refined.intercept_[r] == mine.offset[r]


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5])
@pytest.mark.parametrize("C", [1.0, 1e8, 1e12])
def test_an_offset_of_the_rows_does_not_cost_the_certificate(offset, C):
    X, y = load_iris(return_X_y=True)
    model = ProximalSVC(C, refine=False).fit(X + offset, y)
    assert model.converged_, model.certificate_
