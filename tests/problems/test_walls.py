"""What a loss is, only its own folder asks: everything else goes by the protocol and what is declared."""

import ast
from pathlib import Path

import polymargin
from polymargin.problems import hinge

SOURCE = Path(polymargin.__file__).parent
FOLDER = SOURCE / "problems" / "hinge"


def loss_types():
    return {name for name in vars(hinge) if name.endswith(("Losses", "Loss"))}


def questions(path):
    """Return the lines that ask for the type of a loss, by isinstance, type() or a class pattern."""
    for node in ast.walk(ast.parse(path.read_text())):
        asks = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "type")
        if asks or isinstance(node, ast.MatchClass):
            names = {getattr(part, "id", getattr(part, "attr", "")) for part in ast.walk(node)}
            if names & loss_types():
                yield f"{path.relative_to(SOURCE)}:{node.lineno}"


def test_there_are_losses_to_ask_for():
    assert {"BoxLosses", "SimplexLosses", "CurvedLosses", "Losses", "Loss"} <= loss_types()
    assert any(list(questions(path)) for path in FOLDER.glob("*.py"))


def test_nobody_else_asks():
    allowed = SOURCE / "extend" / "loss.py"  # which refuses by name what is no loss
    paths = [path for path in SOURCE.rglob("*.py") if FOLDER not in path.parents and path != allowed]
    assert [line for path in paths for line in questions(path)] == []
