"""The parts that the tutorials write, in problems that others solve too."""

import importlib.util
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from polymargin import MulticategorySVC, SparseSVC
from polymargin.extend import check_loss, check_penalty, check_solver

TUTORIAL = Path(__file__).parents[2] / "docs" / "extend"


def from_tutorial(name):
    if not TUTORIAL.exists():
        pytest.skip("the documentation is not here")
    spec = importlib.util.spec_from_file_location(name, TUTORIAL / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_new_penalty_keeps_the_contract_and_is_solved(k):
    penalty = from_tutorial("ordered_fusion").OrderedFusion()
    check_penalty(penalty, n_classes=k)
    rng = np.random.default_rng(k)
    y = np.arange(40) % k
    X = rng.normal(size=(40, 5))
    X[:, 0] += y
    model = SparseSVC(C=0.1, penalty=penalty).fit(X, y)
    W, b = cp.Variable((k, 5)), cp.Variable((1, k))
    F = X @ W.T + np.ones((40, 1)) @ b
    others = 1.0 * (y[:, None] != np.arange(k))
    own = cp.sum(cp.multiply(1.0 - others, F), axis=1, keepdims=True) @ np.ones((1, k))
    losses = cp.sum(cp.multiply(others, cp.pos(2.0 + F - own)))
    program = cp.Problem(
        cp.Minimize(cp.sum(cp.abs(W[1:] - W[:-1])) + 0.1 * losses), [cp.sum(W, axis=0) == 0, cp.sum(b) == 0]
    )
    assert model.converged_
    assert model.certificate_.primal == pytest.approx(program.solve(solver=cp.CLARABEL), rel=1e-6)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_new_loss_keeps_the_contract_and_is_kernel_ridge_regression_of_the_codes(k):
    loss = from_tutorial("distance_loss").DistanceLoss()
    check_loss(loss, n_classes=k)
    rng = np.random.default_rng(k)
    y = np.arange(40) % k
    X = rng.normal(size=(40, 2)) + y[:, None]
    model = MulticategorySVC(0.7, loss=loss, gamma=0.5, fit_intercept=False, tol=1e-8).fit(X, y)
    codes = (k * np.eye(k)[y] - 1.0) / (k - 1)
    ridge = KernelRidge(alpha=1.0 / 1.4, kernel="rbf", gamma=0.5).fit(X, codes).predict(X)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, ridge if k > 2 else ridge[:, 1], atol=1e-5)


def test_the_new_solver_keeps_the_contract_and_finds_our_optimum():
    solver = from_tutorial("dual_ascent").DualAscent()
    check_solver(solver)
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = rng.normal(size=(30, 2)) + y[:, None]
    for loss in ("lee", "adm", "lee_squared", "logistic"):
        model = MulticategorySVC(loss=loss, fit_intercept=False, solver=solver, tol=1e-6).fit(X, y)
        ours = MulticategorySVC(loss=loss, fit_intercept=False, tol=1e-8).fit(X, y)
        assert model.certificate_.primal == pytest.approx(ours.certificate_.primal, rel=1e-5)


def test_the_new_command_tells_what_is_proved_of_a_saved_model(tmp_path, capsys):
    import typer
    from typer.testing import CliRunner

    from polymargin.cli import app as commands

    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3
    table = "a,b,label\n" + "".join(f"{a},{b},{c}\n" for (a, b), c in zip(X, y, strict=True))
    (tmp_path / "rows.csv").write_text(table)
    data, model = str(tmp_path / "rows.csv"), str(tmp_path / "model.skops")
    fit = ["fit", data, "--target", "label", "--method", "multicategory", "--C", "1", "--save", model]
    assert commands.run(fit) == 0
    app = typer.Typer()
    app.command()(from_tutorial("certificate_command").certificate)
    answer = CliRunner().invoke(app, [model])
    assert answer.exit_code == 0
    capsys.readouterr()
    assert "global: primal" in answer.output
    assert "iterations" in answer.output
    assert CliRunner().invoke(app, [str(tmp_path / "missing")]).exit_code == 1
