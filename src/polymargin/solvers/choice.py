"""The solver that a user asks for: by name, or an object that keeps the contract."""

from collections.abc import Iterable
from typing import Any

from polymargin.solvers.contract import Solver


def chosen(solver: Any, methods: Iterable[Solver], *problem: Any) -> tuple[Solver, Any] | None:
    """Return the solver asked for and the problem that it takes; None for "auto".

    Parameters
    ----------
    solver : "auto", the name of one of the methods or a solver of the user's own
    methods : those that have a name here.
    problem : in one form or in several, of which the solver takes the first that it accepts.

    Raises
    ------
    ValueError
        The name is unknown, or the solver does not accept the problem.
    TypeError
        The object is no solver.
    """
    if isinstance(solver, str):
        if solver == "auto":
            return None
        known = {method.name: method for method in methods}
        if solver not in known:
            fit = [name for name, method in known.items() if _form_for(method, problem)[1] is True]
            raise ValueError(f"solver must be 'auto', a solver or one of {fit} for this problem, got {solver!r}.")
        solver = known[solver]
    if isinstance(solver, type) or not all(callable(getattr(solver, part, None)) for part in ("solve", "accepts")):
        raise TypeError(
            f"solver must be 'auto', a name or an object with the methods solve and accepts, got {solver!r}."
        )
    form, answer = _form_for(solver, problem)
    if answer is not True:
        raise ValueError(f"solver {solver.name!r} cannot take this problem: {answer}")
    return solver, form


def _form_for(method: Solver, problem: Iterable[Any]) -> tuple[Any, Any]:
    """Return the form of a problem that a method accepts, else the last, and what the method says of it."""
    form, answer = None, None
    for form in problem:
        answer = method.accepts(form)
        if answer is True:
            break
    return form, answer
