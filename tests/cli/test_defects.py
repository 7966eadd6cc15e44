"""Defects that new users met, each with nothing but commands and classes that were always there.

Copied with commands.py into a checkout from before they were mended, every one of these tests fails there; that of
saving with the versions at hand where these are the oldest that were allowed. The numbers are those of the points
in docs/promises.md.
"""

import os
import re
import signal
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score

from polymargin import MarginSearch, MulticategorySVC
from polymargin.cli import main
from polymargin.solvers.contract import Progress
from tests.cli.commands import accept, on_a_terminal, refuse, run


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    y = np.array(["ash", "beech", "oak"])[np.arange(90) % 3]
    return pd.DataFrame({"a": rng.normal(size=90) + 2.0 * (y == "ash"), "b": rng.normal(size=90), "y": y})


@pytest.fixture
def data(frame, tmp_path):
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def model(data, tmp_path, capsys):
    path = tmp_path / "model.skops"
    accept(capsys, "fit", data, "--target", "y", "--method", "proximal", "--save", path)
    return path


@pytest.mark.parametrize(("loss", "criterion"), [("lee", "loo"), ("crammer", "loo"), ("lee", "gacv")])
@pytest.mark.filterwarnings("ignore:The kernel matrix of the support vectors is singular")
def test_1_left_out_scores_on_landmarks_never_take_memory_by_rows_squared(loss, criterion):
    rng = np.random.default_rng(0)
    n = 2000
    X, y = rng.normal(size=(n, 4)), rng.integers(0, 3, n)
    machine = MulticategorySVC(loss=loss, kernel="rbf", landmarks=20, random_state=0)
    search = MarginSearch(machine, Cs=[0.01], gammas=[0.1], criterion=criterion)
    tracemalloc.start()
    search.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * 8 * n**2


def test_2_a_method_without_memory_does_not_cost_compare_the_others(data, capsys, monkeypatch):
    def fail(*given, **more):
        raise MemoryError("Unable to allocate 42.3 GiB")

    for machine in (MarginSearch, MulticategorySVC):
        monkeypatch.setattr(machine, "fit", fail)
    methods = ("--only", "multicategory", "--only", "LinearSVC")
    shown = accept(capsys, "compare", data, "--target", "y", *methods, "--folds", "2")
    assert "Unable to allocate 42.3 GiB" in shown
    assert re.search(r"LinearSVC \*\s+0\.\d+", shown)


class TestCtrlC:
    """3: pressed while a solver runs, it ended that run alone, and the search went on."""

    @pytest.fixture(autouse=True)
    def pressed(self, monkeypatch):
        """Press once, when a solver notes its objectives for the first time."""
        record, presses = Progress.record, []

        def pressing(progress, primal, dual):
            if not presses:
                presses.append(progress)
                signal.raise_signal(signal.SIGINT)
            return record(progress, primal, dual)

        monkeypatch.setattr(Progress, "record", pressing)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        yield presses
        signal.signal(signal.SIGINT, before)

    def test_3_fit_ends(self, data, capsys, pressed):
        assert main(["fit", str(data), "--target", "y", "--method", "multicategory", "--tune"]) == 130
        assert pressed
        assert "polymargin: interrupted" in capsys.readouterr().err

    def test_3_compare_ends(self, data, capsys, pressed):
        assert main(["compare", str(data), "--target", "y", "--only", "multicategory", "--folds", "2"]) == 130
        assert pressed
        assert "polymargin: interrupted" in capsys.readouterr().err

    @pytest.mark.filterwarnings("ignore")
    def test_3_cross_validation_ends(self, frame, pressed):
        with pytest.raises(KeyboardInterrupt):
            cross_val_score(MulticategorySVC(C=100.0, tol=1e-12), frame[["a", "b"]], frame["y"])
        assert pressed


def test_6_no_version_is_allowed_that_is_known_to_fail():
    """Models could not be saved with scikit-learn 1.6; typer up to 0.16 fails with newer versions of click."""
    import tomllib

    from packaging.requirements import Requirement

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    given = [*project["dependencies"], *project["optional-dependencies"]["cli"]]
    allowed = {needed.name: needed.specifier for needed in map(Requirement, given)}
    for name, version in [
        ("scikit-learn", "1.6.1"),
        ("typer", "0.12.5"),
        ("typer", "0.15.4"),
        ("typer", "0.16.1"),
    ]:
        assert not allowed[name].contains(version), f"{name} {version}"


def test_6_models_are_saved_and_commands_run_with_the_versions_at_hand(data, tmp_path):
    """With the oldest versions too: `python -m tools.versions --only oldest -- tests/cli/test_defects.py`."""
    saved = tmp_path / "model.skops"
    run("fit", data, "--target", "y", "--method", "proximal", "--save", saved)
    assert saved.exists()


@pytest.mark.skipif(os.name == "nt", reason="terminals are POSIX")
def test_14_the_demo_has_whole_names_at_80_columns(tmp_path):
    shown = on_a_terminal("demo", columns=80, stream="stdout", cwd=tmp_path)
    for name in ("MulticategorySVC", "SharedStructureSVC", "expected", "seconds"):
        assert name in shown
    assert "…" not in shown


def test_15_one_huge_number_is_refused_in_one_line(frame, tmp_path):
    frame.loc[3, "a"] = 1e308
    frame.to_csv(tmp_path / "huge.csv", index=False)
    said = run("fit", tmp_path / "huge.csv", "--target", "y", "--method", "proximal", code=1).stderr
    assert re.fullmatch(r"polymargin: .*numbers beyond 1e\+150.*in: a\.\n", said)


class TestOptions:
    """16: what cannot be meant is refused in words that help, and names are names."""

    def test_16_the_target_cannot_be_dropped(self, data, capsys):
        line = refuse(capsys, "fit", data, "--target", "y", "--drop", "y", code=2)
        assert "this is the --target itself" in line

    def test_16_columns_to_drop_may_be_listed(self, frame, data, capsys):
        frame.assign(c=1.5 * frame["a"], d=-frame["b"]).to_csv(data, index=False)
        shown = accept(capsys, "fit", data, "--target", "y", "--method", "proximal", "--drop", "c,d")
        assert "2 features" in shown

    def test_16_a_workbook_is_a_workbook(self, data, model, tmp_path, capsys):
        out = tmp_path / "p.xlsx"
        accept(capsys, "predict", model, data, "--out", out)
        assert zipfile.is_zipfile(out)
        assert len(pd.read_excel(out)) == 90

    def test_16_a_report_names_the_target_that_the_data_lack(self, data, model, tmp_path, capsys):
        page = tmp_path / "page.html"
        line = refuse(capsys, "report", model, data, "--target", "kind", "--out", page)
        assert "has no column 'kind' (--target)" in line
        assert not page.exists()

    def test_16_help_of_reproduce_is_there_outside_a_checkout(self, tmp_path):
        """Where the folder of reproductions cannot be imported, as where only the package is installed."""
        script = "import sys; from polymargin.cli import main; sys.exit(main(['reproduce', '--help']))"
        done = subprocess.run(
            [sys.executable, "-P", "-c", script], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "checkout" in done.stdout

    def test_16_a_page_does_not_pretend_to_be_a_pdf(self, data, tmp_path, capsys):
        page = tmp_path / "out.pdf"
        fit = ("fit", data, "--target", "y", "--method", "proximal", "--report", page)
        assert ".html" in refuse(capsys, *fit, code=2)
        assert not page.exists()

    def test_16_no_gap_is_below_zero(self, tmp_path, capsys):
        """Rounding makes some of these -2e-16."""
        path = tmp_path / "rows.csv"
        y = np.array(["ash", "beech", "oak"])[np.arange(60) % 3]
        for seed in range(10):
            rng = np.random.default_rng(seed)
            table = {"a": rng.normal(size=60) + 2.0 * (y == "ash"), "b": rng.normal(size=60), "y": y}
            pd.DataFrame(table).to_csv(path, index=False)
            for method in ("proximal", "sparse"):
                shown = accept(capsys, "fit", path, "--target", "y", "--method", method)
                assert re.search(r"relative gap \d", shown), (seed, method)

    @pytest.mark.filterwarnings("default")
    def test_16_categories_that_are_new_are_named(self, frame, data, tmp_path, capsys):
        saved = tmp_path / "colours.skops"
        frame.assign(colour=np.array(["red", "green"])[np.arange(90) % 2]).to_csv(data, index=False)
        accept(capsys, "fit", data, "--target", "y", "--method", "proximal", "--save", saved)
        new = tmp_path / "new.csv"
        frame.assign(colour="violet").to_csv(new, index=False)
        assert main(["predict", str(saved), str(new)]) == 0
        shown = capsys.readouterr().err
        assert "column 'colour'" in shown
        assert "violet" in shown
        assert "[0]" not in shown
