"""`polymargin demo`, `compare`, `reproduce` and the command itself."""

from pathlib import Path

import pandas as pd

from tests.cli.commands import accept, refuse, run

FAMILIES = ("MulticategorySVC", "ProximalSVC", "SparseSVC", "SharedStructureSVC", "RobustSVC")
ROOT = Path(__file__).parents[2]


def test_the_demo_prints_its_tables(tmp_path):
    done = run("demo", cwd=tmp_path)
    wine, waveform = done.stdout.split("waveform:")
    for name in FAMILIES:
        assert name in wine
        assert name in waveform
    plain, costly = (line.split() for line in waveform.splitlines() if "MulticategorySVC" in line[:30])
    assert (plain[1], costly[1]) == ("no", "yes")
    assert float(costly[3]) < float(plain[3])  # trained with the costs, the machine has the lower expected cost
    assert str(tmp_path / "polymargin-demo.html") in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["polymargin-demo.html"]
    assert (tmp_path / "polymargin-demo.html").read_text("utf-8").startswith("<!doctype html>")
    assert all(
        float(line.split()[4]) < 1e-4 for line in waveform.splitlines() if line.strip().startswith(FAMILIES)
    )


def test_compare(iris, tmp_path, capsys):
    small, costs = tmp_path / "small.csv", tmp_path / "costs.csv"
    pd.read_csv(iris).iloc[::3, 2:].to_csv(small, index=False)
    costs.write_text("true,predicted,cost\nversicolor,virginica,5\n")
    methods = ("multicategory", "proximal", "LinearSVC", "LogisticRegression")
    only = [word for method in methods for word in ("--only", method)]
    shown = accept(
        capsys, "compare", small, "--target", "species", "--folds", "2", "--costs", costs, "--budget", "20s", *only
    )
    words = [line.replace("*", " ").split() for line in shown.splitlines() if line.startswith("  ")]
    rows = {line[0]: line for line in words if line}
    for method in methods:
        assert float(rows[method][1]) < 0.4, shown
    assert all(float(rows[method][7]) < 1e-3 for method in ("multicategory", "proximal"))
    assert rows["LinearSVC"][7] == "-"
    assert shown.count(" * ") >= 1
    shown = accept(
        capsys, "compare", small, "--target", "species", "--folds", "2", "--only", "proximal", "--budget", "5s"
    )
    assert "proximal *" in shown
    assert "multicategory" not in shown
    line = refuse(capsys, "compare", small, "--target", "species", "--only", "magic", code=2)
    assert (
        "one of auto, multicategory, proximal, sparse, shared, robust, SVC, LinearSVC, LogisticRegression" in line
    )
    line = refuse(capsys, "compare", small, "--target", "species", "--folds", "20")
    assert "--folds 20 needs as many rows of every class, the smallest class has 16" in line


def test_reproduce_is_a_front_end(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert "multicategory/table1" in accept(capsys, "reproduce", "--list")
    assert "paper must be 1 to 5" in refuse(capsys, "reproduce", "7", code=2)
    done = run("reproduce", "--list", cwd=tmp_path, code=1)
    assert done.stderr.startswith("polymargin reproduce: the reproductions do not come with the package")
    assert done.stderr.count("\n") == 1
    assert "run this in a checkout" in run("reproduce", "--help", cwd=tmp_path).stdout


def test_help_and_version(capsys):
    shown = accept(capsys, "--help")
    for command in ("demo", "fit", "predict", "report", "compare", "reproduce"):
        assert command in shown
    assert accept(capsys, "--version").strip()[0].isdigit()
    for option in (
        "--method",
        "--costs",
        "--priors",
        "--tune",
        "--test-size",
        "--test",
        "--save",
        "--report",
        "--impute",
    ):
        assert option in accept(capsys, "fit", "--help")


def test_every_format_of_tables_has_a_writer():
    from polymargin.cli.names import TABLES
    from polymargin.cli.predicting import WRITERS

    assert tuple(WRITERS) == TABLES
