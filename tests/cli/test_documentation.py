"""The sessions in the documentation of the command line are what the command does."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from polymargin.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def sessions():
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL):
        for session in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = session.partition("\n")
            yield command, shown


def test_the_sessions(iris, tmp_path, capsys, monkeypatch):
    if not PAGE.exists():
        pytest.skip("the documentation is not beside the tests")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "iris.csv").write_bytes(iris.read_bytes())
    commands = 0
    for command, expected in sessions():
        words = shlex.split(command)
        if words[0] == "cat":
            (tmp_path / words[1]).write_text(expected)
            continue
        assert words[0] == "polymargin"
        main(words[1:])
        shown = capsys.readouterr()
        got = "\n".join(line.strip() for line in (shown.out + shown.err).splitlines() if line.strip()) + "\n"
        want = "\n".join(line.strip() for line in expected.splitlines() if line.strip()) + "\n"
        assert doctest.OutputChecker().check_output(want, got, FLAGS), f"{command}\n{got}"
        commands += 1
    assert commands >= 8
