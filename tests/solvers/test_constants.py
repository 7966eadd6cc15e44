"""Tuned numbers stand in settings, in the policy or in the effort file, not where something is solved."""

import ast
from pathlib import Path

import pytest

import polymargin

SOURCE = Path(polymargin.__file__).parent
MODULES = sorted(path for folder in ("solvers", "estimators") for path in (SOURCE / folder).rglob("*.py"))
TESTS = Path(__file__).parents[1]

SMALL_NUMBERS = (0, 1, 2, 3, 4, 10, 0.25, 0.5)
"""Factors of formulas."""
ROUNDING, SENTINEL = 1e-9, 1e300
"""At most, and at least: numbers that stand for rounding errors and for infinity."""
GIVEN = {
    ("solvers/ridge/refinement.py", 6): "sums over the margins that the compiled loop keeps",
    ("solvers/ridge/scanned_refinement.py", 5): "sums that the compiled scan keeps",
    ("solvers/ridge/scanned_refinement.py", 12): "width of the compiled scan's panels",
    ("estimators/proximal.py", 6): "sums over the margins that the compiled loop keeps",
    ("estimators/shared.py", 5): "rounds of the paper",
    ("estimators/sparse.py", 5): "largest power that is allowed",
    ("estimators/_kernel.py", 8): "bytes of a number",
    ("estimators/_kernel.py", 1e6): "bytes of a megabyte",
    ("estimators/_moments.py", 8): "bytes of a number",
    ("estimators/_statement.py", 8): "bytes of a number",
}
"""Numbers that are no choice of ours."""


def is_plain(value):
    size = abs(value)
    return size in SMALL_NUMBERS or size <= ROUNDING or size >= SENTINEL


def in_settings(ancestors):
    """Tell whether a number is the default of a field of a frozen dataclass, or of a parameter of an estimator."""
    if ancestors and isinstance(ancestors[-1], ast.arguments):
        return getattr(ancestors[-2], "name", "") == "__init__" and bool(ancestors[-1].kwonlyargs)
    if any(isinstance(node, ast.FunctionDef | ast.Lambda) for node in ancestors):
        return False
    classes = [node for node in ancestors if isinstance(node, ast.ClassDef)]
    return any("frozen=True" in ast.unparse(mark) for node in classes for mark in node.decorator_list)


def tuned_numbers(source):
    """Yield the line and value of every number that is neither plain nor in settings."""

    def visit(node, ancestors):
        is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
        if is_number and not is_plain(node.value) and not in_settings(ancestors):
            yield node.lineno, node.value
        for child in ast.iter_child_nodes(node):
            yield from visit(child, (*ancestors, node))

    yield from visit(ast.parse(source), ())


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_tuned_number_outside_of_settings(path):
    name = path.relative_to(SOURCE).as_posix()
    found = [number for number in tuned_numbers(path.read_text()) if (name, number[1]) not in GIVEN]
    assert found == []


def test_every_number_that_is_given_is_met():
    met = {(name, value) for name, _ in GIVEN for _, value in tuned_numbers((SOURCE / name).read_text())}
    assert met >= GIVEN.keys()


def test_the_scan_sees_constants_defaults_and_inline_numbers():
    seen = """
RATE = 5000
def solve(x, steps=20, *, tol=1e-6):
    return 0.3 * x + 0.5 * x ** 2
class Plain:
    width = 7.0
@dataclass(frozen=True)
class Settings:
    steps: int = 50
    def doubled(self):
        return 0.7 * self.steps
"""
    assert sorted(value for _, value in tuned_numbers(seen)) == [1e-6, 0.3, 0.7, 7.0, 20, 5000]


def patched_constants(source):
    """Yield the lines that replace a constant, a name in capitals."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "setattr":
            names = [part.value for part in node.args if isinstance(part, ast.Constant)]
            if any(isinstance(name, str) and name.rsplit(".")[-1].isupper() for name in names):
                yield node.lineno, ast.unparse(node)


def test_no_test_replaces_a_constant():
    found = [
        (path.relative_to(TESTS).as_posix(), *line)
        for path in sorted(TESTS.rglob("*.py"))
        for line in patched_constants(path.read_text())
    ]
    assert found == []
    assert list(patched_constants('monkeypatch.setattr("polymargin.solvers.hinge.left_out.RIDGE", 1)'))
