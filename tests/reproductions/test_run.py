"""The runner: seeds, resuming, killing, and what is refused."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from reproductions.__main__ import main
from reproductions.declare import Context, Reproduction, Theirs
from reproductions.run import open_results, read_results, run, seed_of

ROOT = Path(__file__).parents[2]
HEADER = {"reproduction": "p/t", "command": "python -m reproductions p t", "quick": False}


def draw(context: Context):
    rng = np.random.default_rng(context.seed)
    return {("a", "mean"): float(rng.normal()), ("b", "mean"): float(rng.normal(1.0))}


TABLE = Reproduction("draws", ("method", "measure"), draw, repetitions=5, paper={("a", "mean"): Theirs(0.0, 1.0)})


def values(records):
    return [(record.repetition, record.seed, record.values) for record in records]


def test_seeds_differ_and_depend_on_nothing_else():
    seeds = {seed_of(name, number) for name in ("a/b", "a/c") for number in range(50)}
    assert len(seeds) == 100
    assert seed_of("a/b", 7) == seed_of("a/b", 7)
    assert len(set(Context(3).seeds(4))) == 4


def test_continued_run_equals_a_whole_one(tmp_path):
    whole = run("p/t", TABLE, tmp_path / "whole.jsonl", repetitions=6)
    part = tmp_path / "part.jsonl"
    run("p/t", TABLE, part, repetitions=2)
    before = part.read_text()
    continued = run("p/t", TABLE, part, repetitions=6)
    assert part.read_text().startswith(before)
    assert values(continued) == values(whole)
    assert values(run("p/t", TABLE, part, repetitions=3)) == values(whole[:3])


def test_jobs_do_not_change_the_numbers(tmp_path):
    one = run("p/t", TABLE, tmp_path / "one.jsonl", repetitions=4)
    two = run("p/t", TABLE, tmp_path / "two.jsonl", repetitions=4, jobs=2)
    assert values(one) == values(two)


def test_an_unfinished_line_is_cut_off(tmp_path):
    path = tmp_path / "results.jsonl"
    whole = run("p/t", TABLE, path, repetitions=4)
    text = path.read_text()
    for cut in (len(text) - 1, len(text) - 40, text.index("\n") + 5):
        path.write_text(text[:cut])
        assert values(run("p/t", TABLE, path, repetitions=4)) == values(whole)
        assert values(read_results(path)[1]) == values(whole)


def test_results_of_another_run_are_refused(tmp_path):
    path = tmp_path / "results.jsonl"
    open_results(path, HEADER)
    with pytest.raises(ValueError, match="remove the file, or choose another --output"):
        open_results(path, HEADER | {"quick": True})


def command(output, repetitions):
    arguments = [
        "multicategory",
        "replicates",
        "--quick",
        "--output",
        str(output),
        "--repetitions",
        str(repetitions),
    ]
    return [sys.executable, "-m", "reproductions", *arguments]


def untimed(path):
    return re.sub(r"[\d.]+ CPU seconds", "CPU seconds", path.read_text())


def test_killed_run_continues_to_the_same_numbers(tmp_path):
    """SIGKILL after some repetitions, with a line left half written; the rest gives what one run gives."""
    killed, results = tmp_path / "killed", tmp_path / "killed" / "multicategory" / "replicates.jsonl"
    process = subprocess.Popen(
        command(killed, 500), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 300
        while not results.exists() or results.read_text().count("\n") < 3:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    done = results.read_text().count("\n") - 1
    with results.open("a") as file:
        file.write('{"repetition": 4, "se')
    options = ["--quick", "--repetitions", str(done + 2)]
    assert main(["multicategory", "replicates", *options, "--output", str(killed)]) == 0
    assert main(["multicategory", "replicates", *options, "--output", str(tmp_path / "whole")]) == 0
    whole = tmp_path / "whole" / "multicategory" / "replicates.jsonl"
    assert values(read_results(results)[1]) == values(read_results(whole)[1])
    for suffix in (".csv", ".md"):
        assert untimed(results.with_suffix(suffix)) == untimed(whole.with_suffix(suffix))
    assert json.loads(results.read_text().splitlines()[0])["quick"] is True
