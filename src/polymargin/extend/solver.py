"""`check_solver`: what a solver promises, verified on small problems."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from polymargin.gram import DenseGram, FeatureGram, Kernel
from polymargin.problems.hinge import LOSSES, HingeProblem
from polymargin.solvers.contract import Settings, Solution, Solver, Status


def check_solver(solver: Solver, problems: Iterable[Any] | None = None, *, tol: float = 1e-4) -> None:
    """Verify a solver, and raise with its name and what is wrong with it if it breaks the contract.

    Checked are: that it has a name and says what it accepts; that on every problem it accepts it reaches the gap
    that it was asked for, with the certificate that the problem itself gives the point; that a limit of one
    iteration is kept and still leaves a feasible point; that it goes on from a start; and that nothing is kept
    from one solution to the next.

    Parameters
    ----------
    solver : Solver
        The solver.
    problems : iterable or None, default=None
        Problems to try it on; None for small hinge machines, linear and with a kernel.
    tol : float, default=1e-4
        Relative gap to ask for.

    Raises
    ------
    TypeError, ValueError
        The solver breaks the contract.

    Examples
    --------
    >>> from polymargin.extend import check_solver
    >>> from polymargin.solvers.hinge.general import GeneralNewton
    >>> check_solver(GeneralNewton())
    """
    name = getattr(solver, "name", None)
    if not isinstance(name, str) or not name:
        raise TypeError(f"{type(solver).__name__}.name must be a word that users can call it by, got {name!r}.")
    for part in ("accepts", "solve"):
        if not callable(getattr(solver, part, None)):
            raise TypeError(f"{name} lacks the method {part}.")
    reason = solver.accepts(object())
    _require(name, isinstance(reason, str), f"accepts must give a reason against no problem, got {reason!r}")
    tried = 0
    for problem in _hinge_machines() if problems is None else problems:
        accepted = solver.accepts(problem)
        _require(name, accepted is True or isinstance(accepted, str), "accepts must return True or a reason")
        if accepted is True:
            tried += 1
            _check_on(name, solver, problem, tol)
    _require(name, tried > 0, "it accepts none of the problems that it was tried on")


def _check_on(name: str, solver: Solver, problem: Any, tol: float) -> None:
    settings = Settings(tol=tol)
    solution = solver.solve(problem, settings)
    _check_solution(name, problem, solution)
    solved = solution.status is Status.SOLVED and solution.certificate.within(tol)
    _require(name, solved, f"a gap of {tol:g} was asked for, got {solution.status} {solution.certificate}")
    again = solver.solve(problem, settings)
    same = np.isclose(again.certificate.primal, solution.certificate.primal, rtol=1e-12, atol=0.0)
    _require(name, same, "the same problem is solved otherwise the second time: a solver must keep no state")
    short = solver.solve(problem, Settings(tol=1e-15, max_iter=1))
    _check_solution(name, problem, short)
    _require(name, short.n_iter <= 1, f"max_iter=1 was asked for, {short.n_iter} iterations were taken")
    warm = solver.solve(problem, settings, start=solution.point)
    _check_solution(name, problem, warm)
    _require(name, warm.certificate.within(tol), "from its own solution it does not find one")


def _check_solution(name: str, problem: Any, solution: Solution) -> None:
    own, given = problem.certify(solution.point), solution.certificate
    same = np.isclose([own.primal, own.dual], [given.primal, given.dual], rtol=1e-6, atol=1e-9).all()
    _require(name, same, f"its certificate {given} is not what the problem certifies, {own}")
    _require(name, own.infeasibility <= 1e-9, f"its point is not feasible, by {own.infeasibility:.2g}")


def _hinge_machines() -> Iterator[HingeProblem]:
    rng = np.random.default_rng(0)
    labels = np.concatenate([np.arange(3), rng.integers(0, 3, 37)])
    X = rng.normal(size=(40, 3)) + labels[:, None]
    X[30:] = X[:10]
    for loss in ("lee", "weston", "crammer", "logistic"):
        losses = LOSSES[loss].over(labels, (1.0 - np.eye(3))[labels])
        yield HingeProblem(FeatureGram(X), losses)
        yield HingeProblem(DenseGram(np.ascontiguousarray(Kernel("rbf", 0.3)(X))), losses, fit_intercept=False)


def _require(name: str, holds: bool | np.bool_, message: str) -> None:
    if not holds:
        raise ValueError(f"{name}: {message}.")
