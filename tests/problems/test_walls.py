"""What a loss or a penalty is, only its own folder asks: all else goes by the protocol and what is declared."""

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
    allowed = SOURCE / "extend" / "loss.py"  # which refuses by name what is no loss
    outside = [path for path in SOURCE.rglob("*.py") if SOURCE / "problems" / folder not in path.parents]
    asking = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in outside
        if path != allowed
        for line in questions(path.read_text(), types)
    ]
    assert asking == []
