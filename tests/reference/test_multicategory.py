"""MulticategorySVC against a general-purpose solver, scikit-learn's binary machine and the paper's lemmas."""

import os
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from polymargin import MulticategorySVC
from polymargin.costs import resolve_cost_matrix
from polymargin.estimators.multicategory import hinge_losses
from polymargin.gram import DenseGram, Kernel
from polymargin.problems.hinge import HingeProblem
from tests.oracles import hinge_optimum
from tests.simulate import blobs, random_costs

LOSSES = ("lee", "weston", "crammer")


def stated_problem(model, X, y, sample_weight):
    """The problem that a fitted model should have solved, from its public parameters alone."""
    labels = np.searchsorted(model.classes_, y)
    k = len(model.classes_)
    weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    totals = np.bincount(labels, weights)
    if model.priors is not None:
        weights = weights * (np.asarray(model.priors) * weights.sum() / totals)[labels]
    gamma = 1.0 if isinstance(model.gamma, str) else model.gamma
    K = Kernel(model.kernel, gamma, model.degree, model.coef0)(X)
    upper = model.C * weights[:, None] * resolve_cost_matrix(model.cost_matrix, model.classes_)[labels]
    assert upper.shape == (len(y), k)
    return HingeProblem(DenseGram(K), hinge_losses(model.loss, labels, upper), model.fit_intercept)


def check_stored_certificate(model, problem, X, y):
    """Recompute both objectives from what the model stores.

    Equal rows of a class are one support vector of the model: here, where all have the same weight, each of them
    gets its share of the coefficients.
    """
    R = np.zeros((problem.gram.n, len(model.classes_)))
    for row, coefficients in zip(model.support_, model.dual_coef_.T, strict=True):
        equal = (X[row] == X).all(axis=1) & (y == y[row])
        R[equal] = coefficients / equal.sum()
    dual_point = problem.losses.dual_of(R)
    np.testing.assert_allclose(problem.coefficients(dual_point), R, atol=1e-9 * max(1.0, np.abs(R).max()))
    H = problem.gram.matmul(R)
    half_norm = 0.5 * np.vdot(R, H)
    if hasattr(model, "coef_"):
        np.testing.assert_allclose(X @ model.coef_.T, H, atol=1e-8 * max(1.0, np.abs(H).max()))
    scale = max(1.0, abs(model.certificate_.primal))
    primal = half_norm + problem.losses.value(H + model.intercept_)
    dual = problem.losses.dual_value(dual_point) - half_norm
    assert abs(primal - model.certificate_.primal) <= 1e-9 * scale
    assert abs(dual - model.certificate_.dual) <= 1e-9 * scale
    assert problem.losses.infeasibility(dual_point) <= 1e-9
    if model.fit_intercept:
        assert np.abs(R.sum(axis=0)).max() <= 1e-9 * max(1.0, np.abs(R).sum(axis=0).max())


def random_model(rng, loss, kernel):
    k = int(rng.integers(2, 8))
    n = int(rng.integers(max(10, k), 61)) if rng.random() < 0.85 else int(rng.integers(61, 121))
    X, labels = blobs(rng, n, int(rng.integers(1, 8)), k, spread=rng.uniform(0.3, 3.0))
    options = {}
    if rng.random() < 0.4:
        costs = random_costs(rng, k)
        options["cost_matrix"] = costs if loss != "crammer" else costs[:, :1] * (1 - np.eye(k)) + (1 - np.eye(k))
    if rng.random() < 0.3:
        options["priors"] = rng.dirichlet(np.full(k, 5.0))
    sample_weight = rng.integers(0, 3, n) + 0.5 if rng.random() < 0.3 else None
    model = MulticategorySVC(
        C=10 ** rng.uniform(-3, 3),
        loss=loss,
        kernel=kernel,
        gamma=10 ** rng.uniform(-1.5, 0.3),
        degree=2,
        coef0=1.0,
        fit_intercept=bool(rng.random() < 0.85),
        tol=1e-9,
        **options,
    )
    return model, X, np.array([f"class {c}" for c in range(k)])[labels], sample_weight


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("batch", range(7))
def test_random_problems(loss, kernel, batch):
    for seed in range(5):
        rng = np.random.default_rng([batch, seed])
        model, X, y, sample_weight = random_model(rng, loss, kernel)
        model.fit(X, y, sample_weight)
        problem = stated_problem(model, X, y, sample_weight)
        optimum = hinge_optimum(problem)
        assert model.converged_
        assert abs(model.certificate_.primal - optimum) <= 1e-7 * max(1.0, optimum)
        assert np.abs(np.atleast_2d(model._scores(X)).sum(axis=1)).max() <= 1e-10 * max(
            1.0, np.abs(model._scores(X)).max()
        )
        check_stored_certificate(model, problem, X, y)


def degenerate_data(case):
    rng = np.random.default_rng(17)
    X, labels = blobs(rng, 40, 3, 4)
    options = {}
    match case:
        case "duplicates with different labels":
            X[20:] = X[:20]
        case "rank one":
            X = X[:, :1] @ np.ones((1, 3))
        case "all rows equal":
            X = np.ones_like(X)
        case "no free vectors":
            options["C"] = 1e-4
        case "nothing costs anything for one class":
            options["cost_matrix"] = (1 - np.eye(4)) * np.array([0.0, 1.0, 1.0, 1.0])[:, None]
        case "a class may be predicted for free":
            options["cost_matrix"] = (1 - np.eye(4)) * np.array([0.0, 1.0, 1.0, 1.0])
        case "a class with one member":
            labels = np.where((labels == 3) & (np.arange(40) != 3), 0, labels)
        case "two classes":
            labels = labels % 2
    return X, labels, options


@pytest.mark.parametrize(
    "case",
    [
        "duplicates with different labels",
        "rank one",
        "all rows equal",
        "no free vectors",
        "nothing costs anything for one class",
        "a class may be predicted for free",
        "a class with one member",
        "two classes",
    ],
)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
@pytest.mark.parametrize("loss", LOSSES)
def test_degenerate_problems(loss, kernel, case):
    X, labels, options = degenerate_data(case)
    if loss == "crammer" and case == "a class may be predicted for free":
        pytest.skip("crammer takes one cost per true class")
    if kernel == "precomputed":
        X = X @ X.T  # of rank three at most
    model = MulticategorySVC(**{"C": 10.0, "loss": loss, "kernel": kernel, "gamma": 0.5, "tol": 1e-9, **options})
    model.fit(X, labels)
    problem = stated_problem(model, X, labels, None)
    optimum = hinge_optimum(problem)
    assert model.converged_
    assert abs(model.certificate_.primal - optimum) <= 1e-7 * max(1.0, optimum)
    check_stored_certificate(model, problem, X, labels)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize(("loss", "factor"), [("lee", 0.5), ("weston", 1.0), ("crammer", 1.0)])
def test_two_classes_are_the_binary_machine(loss, factor, kernel):
    """The rivals' hinge measures a difference of two scores and is twice that of Lee, Lin & Wahba."""
    rng = np.random.default_rng(4)
    X, y = blobs(rng, 90, 3, 2)
    ours = MulticategorySVC(C=1.7, loss=loss, kernel=kernel, gamma=0.4, tol=1e-12).fit(X, y)
    theirs = SVC(C=1.7 * factor, kernel=kernel, gamma=0.4, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_scores_sum_to_zero(loss):
    rng = np.random.default_rng(5)
    X, y = blobs(rng, 80, 4, 5)
    for kernel in ("linear", "rbf"):
        model = MulticategorySVC(C=3.0, loss=loss, kernel=kernel).fit(X, y)
        assert np.abs(model.decision_function(X).sum(axis=1)).max() <= 1e-10
        assert abs(model.intercept_.sum()) <= 1e-10


def population_minimiser(loss, probabilities, **options):
    """Scores that minimise the expected loss at one x: all rows equal, one per class, weighted by probability."""
    k = len(probabilities)
    model = MulticategorySVC(C=1.0, loss=loss, kernel="linear", tol=1e-10, **options)
    return model.fit(np.zeros((k, 1)), np.arange(k), sample_weight=probabilities).intercept_


@pytest.mark.parametrize("seed", range(5))
def test_lemma_1_and_3_of_lee_lin_wahba(seed):
    """Lee's loss puts 1 on the class of least expected cost and -1/(k-1) on the others, whatever the costs."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 7))
    probabilities, costs = rng.dirichlet(np.ones(k)), random_costs(rng, k)
    for matrix in (1 - np.eye(k), costs):
        bayes = np.full(k, -1 / (k - 1))
        bayes[np.argmin(probabilities @ matrix)] = 1.0
        np.testing.assert_allclose(
            population_minimiser("lee", probabilities, cost_matrix=matrix), bayes, atol=1e-8
        )


def test_lemma_2_weston_watkins_is_not_fisher_consistent():
    """Two classes tie although one is likelier, the paper's counterexample; Crammer and Singer's scores vanish."""
    probabilities = np.array([0.2, 0.38, 0.42])
    np.testing.assert_allclose(population_minimiser("weston", probabilities), [-4 / 3, 2 / 3, 2 / 3], atol=1e-8)
    np.testing.assert_allclose(population_minimiser("lee", probabilities), [-1 / 2, -1 / 2, 1], atol=1e-8)
    np.testing.assert_allclose(population_minimiser("crammer", probabilities), np.zeros(3), atol=1e-8)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("limits", [{"max_iter": 1}, {"time_limit": 1e-6}])
def test_stopped_fits_keep_a_feasible_point_and_warn(loss, kernel, limits):
    rng = np.random.default_rng(6)
    X, y = blobs(rng, 300, 4, 5)
    model = MulticategorySVC(C=10.0, loss=loss, kernel=kernel, tol=1e-12, **limits)
    with pytest.warns(ConvergenceWarning, match="relative duality gap"):
        model.fit(X, y)
    assert not model.converged_
    assert model.certificate_.infeasibility <= 1e-9
    assert model.certificate_.dual <= model.certificate_.primal
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_time_limit_is_kept(loss):
    rng = np.random.default_rng(7)
    X, y = blobs(rng, 1500, 10, 10, spread=0.3)
    model = MulticategorySVC(C=1000.0, loss=loss, tol=1e-12, time_limit=0.3)
    start = time.process_time()  # of the processor: others may be at work on the machine
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model.fit(X, y)
    assert time.process_time() - start < 0.3 + 1.0


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")
def test_interrupt_keeps_the_fit():
    script = """
        import logging, os, signal, sys, threading, time, warnings
        import numpy as np
        from polymargin import MulticategorySVC
        from tests.simulate import blobs
        logging.basicConfig(level=logging.INFO, stream=sys.stdout)
        warnings.simplefilter("ignore")
        pressed = []

        def press_when_told():
            sys.stdin.readline()
            pressed.append(time.process_time())  # of the processor: others may be at work on the machine
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=press_when_told, daemon=True).start()
        X, y = blobs(np.random.default_rng(7), 1500, 10, 10, spread=0.3)
        model = MulticategorySVC(C=1000.0, tol=1e-13, verbose=True)
        try:
            model.fit(X, y)
        except KeyboardInterrupt:
            late = time.process_time() - pressed[0]
            print("interrupted", late, model.converged_, model.certificate_.infeasibility <= 1e-9)
    """
    with subprocess.Popen(
        [sys.executable, "-u", "-c", textwrap.dedent(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert "iteration" in child.stdout.readline()  # the solver is at work
        last = child.communicate("now\n", timeout=60)[0].splitlines()[-1].split()
    assert child.returncode == 0
    assert last[0] == "interrupted"
    assert float(last[1]) < 1.0
    assert last[2:] == ["False", "True"]
