"""What may happen to the command from outside: it is killed, given a trap, or lacks a package."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pandas as pd

from polymargin import persistence
from polymargin.cli import main
from tests.cli.commands import COMMAND, accept, run


def test_a_kill_while_saving_leaves_the_model_that_was_there(tmp_path, capsys):
    """The model takes long enough to write that the kill comes in the middle: the temporary file is growing."""
    data, model = tmp_path / "data.csv", tmp_path / "model.skops"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 5)), columns=list("abcde"))
    frame.assign(y=np.arange(400) % 3).to_csv(data, index=False)
    fit = ["fit", str(data), "--target", "y", "--method", "proximal", "--save", str(model)]
    accept(capsys, *fit)
    before = model.read_bytes()
    # The real command, with a disk that takes its time: no file is ever synchronised.
    script = f"""
import os, sys, time
from polymargin.cli import main
real = os.fsync
os.fsync = lambda descriptor: (real(descriptor), time.sleep(3600))
sys.exit(main({fit!r}))
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 600
    while not any(path.name.startswith(".model.skops") for path in tmp_path.iterdir()):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert model.read_bytes() == before
    persistence.load(model)
    accept(capsys, *fit)  # what the killed process left is in nobody's way
    persistence.load(model)


class Payload:
    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.system, (f"touch {self.trace}",)


def test_traps_are_refused_and_nothing_runs(iris, tmp_path):
    trace = tmp_path / "trace"
    trap = tmp_path / "trap.skops"
    trap.write_bytes(pickle.dumps(Payload(trace)))
    done = run("predict", trap, iris, code=1)
    assert "trap.skops is no saved model" in done.stderr
    assert done.stderr.count("\n") == 1
    text = {"__loader__": "JsonNode", "__module__": "builtins", "__class__": "str", "is_json": True}
    schema = {
        "__loader__": "ConstructorFromReduceNode",
        "__module__": "posix",
        "__class__": "system",
        "content": {
            "__loader__": "TupleNode",
            "__module__": "builtins",
            "__class__": "tuple",
            "content": [{**text, "content": json.dumps(f"touch {trace}")}],
        },
        "protocol": 2,
        "_skops_version": "0.16.0",
    }
    with zipfile.ZipFile(trap, "w") as archive:
        archive.writestr("schema.json", json.dumps(schema))
    for command in ("predict", "report"):
        done = run(command, trap, iris, code=1, cwd=tmp_path)
        assert "trap.skops is refused: it names what a model of ours never holds: posix.system" in done.stderr
        assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trap.skops"]


def test_a_missing_package_is_named(tmp_path):
    """Without the extra there is no typer: one line says what to install."""
    script = """
import sys
sys.modules["typer"] = None
from polymargin.cli import main
sys.exit(main(["demo"]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == 'polymargin: typer is not installed: pip install "polymargin[cli]"\n'


def test_a_closed_pipe_is_no_crash(iris, tmp_path, capsys):
    model = tmp_path / "model.skops"
    accept(capsys, "fit", iris, "--target", "species", "--method", "multicategory", "--save", model)
    frame = pd.read_csv(iris)
    pd.concat([frame] * 20).to_csv(tmp_path / "many.csv", index=False)  # more than a pipe holds
    command = f"{COMMAND} predict {model} {tmp_path / 'many.csv'} | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stdout.startswith("row,prediction,")
    assert done.stderr == ""


def hostile(tmp_path):
    """Return a file whose labels and names command a terminal, or a spreadsheet."""
    data = tmp_path / "data.csv"
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a\x1b[31m", "b"])
    frame.assign(y=np.array(["=1+1", "\x1b[2Jgone", "plain"])[np.arange(60) % 3]).to_csv(data, index=False)
    return data


def test_control_characters_in_names_and_labels_never_reach_the_terminal(tmp_path, capsys):
    data, model = hostile(tmp_path), tmp_path / "m.skops"
    shown = accept(capsys, "fit", data, "--target", "y", "--method", "proximal", "--save", model)
    assert "\x1b" not in shown
    assert "\\x1b[2Jgone" in shown
    for arguments in (
        ("fit", data, "--target", "\x1b[31mno"),
        ("fit", tmp_path / "\x1b[31mnowhere.csv", "--target", "y"),
        ("predict", model, data, "--keep", "\x1b[31mno"),
    ):
        capsys.readouterr()
        assert main([str(argument) for argument in arguments]) != 0
        assert "\x1b" not in capsys.readouterr().err


def test_safe_csv_keeps_formulas_from_spreadsheets(tmp_path, capsys):
    data, model = hostile(tmp_path), tmp_path / "m.skops"
    accept(capsys, "fit", data, "--target", "y", "--method", "proximal", "--save", model)
    for options, prefix in (((), ""), (("--safe-csv",), "'")):
        out = tmp_path / "out.csv"
        accept(capsys, "predict", model, data, "--out", out, *options)
        table = pd.read_csv(out)
        assert set(table["prediction"]) <= {f"{prefix}=1+1", "\x1b[2Jgone", "plain"}
        assert table["score plain"].dtype == np.float64
