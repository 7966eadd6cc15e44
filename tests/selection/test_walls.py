"""Searches ask nothing private of estimators: what they need has a name in `polymargin.estimators.steps`."""

import ast
from pathlib import Path

import polymargin

SOURCE = Path(polymargin.__file__).parent


def private_reaches(source):
    """Yield the lines that take a private attribute of anything but self, cls and super()."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            owner = node.value.func if isinstance(node.value, ast.Call) else node.value
            if getattr(owner, "id", "") not in ("self", "cls", "super"):
                yield node.lineno


def test_the_scan_sees_reaches():
    assert sorted(private_reaches("machine._gram()\nself.best_._store")) == [1, 2]
    assert sorted(private_reaches("self._gram\nsuper()._gram()\nmachine.__class__")) == []


def test_searches_take_nothing_private():
    found = [
        f"{path.name}:{line}"
        for path in sorted((SOURCE / "selection").rglob("*.py"))
        for line in private_reaches(path.read_text())
    ]
    assert found == []


def test_every_step_is_asked_for():
    steps = ast.parse((SOURCE / "estimators" / "steps.py").read_text())
    names = {node.name for node in steps.body if isinstance(node, ast.FunctionDef)}
    searches = "".join(path.read_text() for path in (SOURCE / "selection").rglob("*.py"))
    assert sorted(name for name in names if f"steps.{name}(" not in searches) == []
