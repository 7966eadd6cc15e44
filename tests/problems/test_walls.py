"""Walls: who may ask for the type of a loss or penalty, and how closed choices end."""

import ast
from pathlib import Path

import pytest

import polymargin
from polymargin.problems import hinge, penalties

SOURCE = Path(polymargin.__file__).parent
LOSSES = {name for name in vars(hinge) if name.endswith(("Losses", "Loss"))}
PENALTIES = {name for name in vars(penalties) if name.endswith("Penalty")}


def questions(source, types):
    """Yield the lines that ask for one of the types, by isinstance, type() or a class pattern."""
    for node in ast.walk(ast.parse(source)):
        asks = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "type")
        if asks or isinstance(node, ast.MatchClass):
            names = {getattr(part, "id", getattr(part, "attr", "")) for part in ast.walk(node)}
            if names & types:
                yield node.lineno


def test_there_are_types_to_ask_for():
    assert {"BoxLosses", "SimplexLosses", "CurvedLosses", "Losses", "Loss"} <= LOSSES
    assert {"Penalty", "LassoPenalty", "FusionPenalty", "RidgePenalty"} <= PENALTIES
    by_pattern = "match a:\n    case penalties.FusionPenalty():\n        pass"
    assert list(questions(by_pattern, PENALTIES)) == [2]
    assert list(questions(by_pattern, LOSSES)) == []
    assert list(questions("isinstance(a, (int, BoxLosses))", LOSSES)) == [1]


@pytest.mark.parametrize(("types", "folder"), [(LOSSES, "hinge"), (PENALTIES, "penalties")])
def test_nobody_else_asks(types, folder):
    outside = [path for path in SOURCE.rglob("*.py") if SOURCE / "problems" / folder not in path.parents]
    asking = [
        f"{path.relative_to(SOURCE)}:{line}" for path in outside for line in questions(path.read_text(), types)
    ]
    assert asking == []


OPEN_CHOICES = {"report/figures.py": "parts of a figure, of which most stay as they are"}


def unfinished_choices(source):
    """Yield the lines of match statements that do not end in assert_never: a newcomer would fall through."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Match) and not ast.unparse(node.cases[-1]).rstrip().endswith(
            "assert_never(unknown)"
        ):
            yield node.lineno


def vanishing_checks(source):
    """Yield the lines that check a type by an assertion, which python -O leaves out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert) and any(
            getattr(part, "id", "") == "isinstance" for part in ast.walk(node.test)
        ):
            yield node.lineno


def test_every_closed_choice_ends_in_assert_never():
    found = [
        f"{name}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line in unfinished_choices(path.read_text())
        if (name := path.relative_to(SOURCE).as_posix()) not in OPEN_CHOICES
    ]
    assert found == []
    assert list(unfinished_choices("match a:\n    case 1:\n        pass\n    case _:\n        pass")) == [1]
    assert list(unfinished_choices("match a:\n    case unknown:\n        assert_never(unknown)")) == []


def test_no_type_is_checked_by_an_assertion():
    found = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line in vanishing_checks(path.read_text())
    ]
    assert found == []
    assert list(vanishing_checks("assert isinstance(a, int) and a > 3")) == [1]
