"""What a type checker says to users: misspelt words and wrong kinds are found before a run."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import polymargin

pytest.importorskip("mypy")

RIGHT = """
import numpy as np
from polymargin import BudgetSearch, MarginSearch, MulticategorySVC, ProximalSVC
from polymargin import RobustSVC, SparseSVC, TraceNormSVC

X, y = np.zeros((4, 2)), np.array([0, 1, 0, 1])
model: MulticategorySVC = MulticategorySVC(2, loss="weston", kernel="linear", class_weight={0: 2.0}).fit(X, y)
other = ProximalSVC(C=1.0, class_weight="balanced").fit(X, y)
search: MarginSearch = MarginSearch(n_jobs=2).fit(X, y)
MulticategorySVC(kernel=lambda a, b: a @ b.T, gamma=0.5, time_limit=None, random_state=np.random.RandomState(0))
BudgetSearch(model, {"C": [1.0]}, budget="5s")


class Mine(SparseSVC):
    pass


reveal_type(Mine().fit(X, y))
reveal_type(other)
"""
WRONG = {
    'MulticategorySVC(loss="hinge")': "loss",
    'MulticategorySVC(C="one")': "C",
    'MulticategorySVC(kernel="gauss")': "kernel",
    'MulticategorySVC(gamma="wide")': "gamma",
    'MulticategorySVC(class_weight="equal")': "class_weight",
    'ProximalSVC(landmark_method="random")': "landmark_method",
    'SparseSVC(penalty="ridge")': "penalty",
    'TraceNormSVC(loss="hinge")': "loss",
    'RobustSVC(loss="squared")': "loss",
    'MarginSearch(n_jobs="all")': "n_jobs",
    "BudgetSearch(None, {}, budget=None)": "budget",
}


def checked(code, folder):
    """Return what mypy says: errors by their lines, and the types that were asked for."""
    path = folder / "mine.py"
    path.write_text(textwrap.dedent(code), "utf-8")
    command = [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--follow-imports=silent", path.name]
    home = Path(polymargin.__file__).parents[1]
    # Type checkers find what is installed, not editable installations.
    where = dict(os.environ) if home.name == "site-packages" else {**os.environ, "MYPYPATH": str(home)}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=where)
    errors = {int(line.split(":")[1]): line for line in done.stdout.splitlines() if ": error:" in line}
    return errors, [line for line in done.stdout.splitlines() if "Revealed type" in line]


def test_words_and_kinds(tmp_path):
    """One run of mypy: right uses pass, every wrong one is named, and fit returns the class itself."""
    begin = RIGHT.count("\n") + 1
    found, revealed = checked(RIGHT + "\n".join(WRONG) + "\n", tmp_path)
    assert sorted(found) == list(range(begin, begin + len(WRONG))), found
    for line, words in enumerate(WRONG.values(), start=begin):
        assert words in found[line]
    assert "mine.Mine" in revealed[0]
    assert "ProximalSVC" in revealed[1]
