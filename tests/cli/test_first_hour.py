"""What a new user does first, with files of their own: nothing is lost, nothing hangs, nothing misleads."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from polymargin import persistence
from polymargin.cli import comparing, main
from polymargin.cli.methods import machine_of
from tests.cli.commands import COMMAND, accept, on_a_terminal, refuse


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


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.mark.skipif(os.name == "nt", reason="terminals are POSIX")
class TestHowFarItIs:
    def test_fit_shows_time_objective_and_gap(self, data):
        seen = on_a_terminal("fit", data, "--target", "y", "--budget", "3s")
        assert re.search(r"fitting auto to 67 rows within 3s: \d+ s", seen)
        assert re.search(r"objective [\d.e+-]+, gap \de[+-]\d\d", seen)

    def test_compare_names_the_method_from_the_start(self, data):
        seen = on_a_terminal("compare", data, "--target", "y", "--only", "SVC", "--folds", "2", "--budget", "2s")
        drawn = re.split(r"comparing: \d+ s", seen)[1:]
        named = [line for line in drawn if "fold" in line]
        # the line may be drawn before the first method begins, and never again without a name
        assert "SVC, fold 1 of 2" in named[0]
        assert named == drawn[-len(named) :]


class TestCompare:
    def test_what_was_ended_goes_on(self, data, capsys, monkeypatch):
        command = ("compare", data, "--target", "y", "--only", "LinearSVC", "--only", "SVC", "--folds", "2")
        command = [str(word) for word in (*command, "--budget", "5s")]
        rivals, fitted = comparing.rivals, []

        def counted(*given):
            made = rivals(*given)
            return {n: lambda X, b, n=n, s=s: (fitted.append(n), s(X, b))[1] for n, s in made.items()}

        def killed(*given):
            return {**counted(*given), "LinearSVC": lambda X, budget: (_ for _ in ()).throw(SystemExit(9))}

        monkeypatch.setattr(comparing, "rivals", killed)
        with pytest.raises(SystemExit):
            main(command)
        assert fitted == ["SVC", "SVC"]
        fitted.clear()
        monkeypatch.setattr(comparing, "rivals", counted)
        capsys.readouterr()
        assert main(command) == 0
        shown = capsys.readouterr()
        assert fitted == ["LinearSVC", "LinearSVC"]
        assert "going on: SVC from an earlier run" in shown.err
        assert "SVC" in shown.out
        fitted.clear()
        assert main(command) == 0  # complete comparisons are forgotten
        assert len(fitted) == 4


def wait_for(condition, seconds=600):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def processor_seconds(pid):
    """Return the seconds that a running process has had of a processor: others may be at work on the machine."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        pytest.skip("there is no /proc here")
    fields = stat.read_text("ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def seconds_of_ended():
    """Return the same of all processes that this one has started and that have ended."""
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")
class TestInterruption:
    """A search of minutes ends within a few seconds of work."""

    SCRIPT = """
import sys
import polymargin.selection.budget as budget
seen = budget.BudgetSearch._adopt
def tell(self, *given):
    seen(self, *given)
    open({flag!r}, "a").write("x")
budget.BudgetSearch._adopt = tell
from polymargin.cli import main
sys.exit(main({command!r}))
"""

    def interrupt(self, tmp_path, *command):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.normal(size=(3000, 8)), columns=list("abcdefgh"))
        frame.assign(y=rng.integers(0, 5, 3000)).to_csv(tmp_path / "noise.csv", index=False)
        flag = tmp_path / "flag"
        words = [command[0], str(tmp_path / "noise.csv"), "--target", "y", *map(str, command[1:])]
        ended_before = seconds_of_ended()
        process = subprocess.Popen(
            [sys.executable, "-c", self.SCRIPT.format(flag=str(flag), command=words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for(flag.exists)
        before = processor_seconds(process.pid)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=600)
        assert seconds_of_ended() - ended_before - before < 5.0  # of a processor, model saved and all
        assert process.returncode == 130
        assert "Traceback" not in err
        return out, err

    def test_fit_keeps_the_best_model_so_far(self, tmp_path):
        model = tmp_path / "model.skops"
        _, err = self.interrupt(tmp_path, "fit", "--budget", "10m", "--save", model)
        assert "polymargin: interrupted; best so far: C = " in err
        assert f"is in {model}" in err
        machine = machine_of(persistence.load(model).model)
        assert machine.certificate_.gap >= -1e-9

    def test_compare_says_what_is_done(self, tmp_path):
        _, err = self.interrupt(tmp_path, "compare", "--budget", "1h", "--only", "multicategory")
        assert "polymargin: interrupted; 0 of 1 methods are done; the same command goes on from here" in err


class TestSaving:
    FIT = ("--target", "y", "--method", "proximal", "--save")

    def test_a_reader_that_leaves_early_does_not_cost_the_model(self, data, tmp_path):
        model = tmp_path / "model.skops"
        words = " ".join(map(str, (COMMAND, "fit", data, *self.FIT, model)))
        done = subprocess.run(f"{words} | true", shell=True, capture_output=True, text=True)
        assert done.stderr == ""
        persistence.load(model)

    def test_links_are_followed(self, data, tmp_path, capsys):
        (tmp_path / "models").mkdir()
        real, link = tmp_path / "models" / "real.skops", tmp_path / "link.skops"
        link.symlink_to(real)
        for _ in range(2):
            accept(capsys, "fit", data, *self.FIT, link)
            assert link.is_symlink()
            persistence.load(real)

    def test_pipes_and_devices_are_refused(self, data, tmp_path, capsys):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        assert "is no regular file but a named pipe" in refuse(capsys, "fit", data, *self.FIT, pipe)
        assert "is no regular file but a device" in refuse(capsys, "fit", data, *self.FIT, "/dev/null")
        assert pipe.is_fifo()

    def test_the_saved_model_knows_all_rows(self, data, tmp_path, capsys):
        model, part = tmp_path / "model.skops", tmp_path / "part.skops"
        shown = accept(capsys, "fit", data, *self.FIT, model)
        assert "67 rows" in shown
        assert "fitted again to all 90 rows after the error was measured" in shown
        accept(capsys, "fit", data, *self.FIT, part, "--no-refit")
        whole, partial = (persistence.load(path).model for path in (model, part))
        means = [loaded[0].named_transformers_["numeric"][0].mean_[0] for loaded in (whole, partial)]
        everything = pd.read_csv(data)["a"].mean()
        assert means[0] == pytest.approx(everything)
        assert means[1] != pytest.approx(everything)


class TestFiles:
    def fit(self, capsys, path, *options):
        capsys.readouterr()
        assert main(["fit", str(path), "--target", "y", "--method", "proximal", *map(str, options)]) == 0
        return capsys.readouterr()

    def test_a_european_file(self, frame, tmp_path, capsys):
        path = tmp_path / "eu.csv"
        frame = frame.replace({"y": {"oak": "Eiche, grün"}})
        frame.to_csv(path, index=False, sep=";", decimal=",", encoding="latin-1")
        shown = self.fit(capsys, path)
        assert "2 features, 3 classes" in shown.out
        assert "Eiche, grün" in shown.out
        for assumed in ("separated by semicolons (--sep)", "decimal commas (--decimal)", "cp1252 (--encoding)"):
            assert assumed in " ".join(shown.err.split())
        shown = self.fit(capsys, path, "--sep", ";", "--decimal", ",", "--encoding", "latin-1")
        assert shown.err == ""

    def test_utf_16_and_question_marks(self, frame, tmp_path, capsys):
        path = tmp_path / "wide.csv"
        frame.loc[3, "a"] = np.nan
        frame.to_csv(path, index=False, encoding="utf-16", na_rep="?")
        shown = self.fit(capsys, path, "--impute")
        assert "encoding utf-16 (--encoding); ? as a missing value" in " ".join(shown.err.split())
        frame.to_csv(path, index=False, na_rep="none")
        assert "2 features" in self.fit(capsys, path, "--impute", "--na", "none").out

    def test_excel(self, frame, tmp_path, capsys):
        path, model = tmp_path / "book.xlsx", tmp_path / "model.skops"
        frame.to_excel(path, index=False)
        assert "2 features, 3 classes" in self.fit(capsys, path, "--save", model).out
        accept(capsys, "predict", model, path, "--out", tmp_path / "out.xlsx")
        assert len(pd.read_excel(tmp_path / "out.xlsx")) == 90

    def test_what_is_doubtful_is_refused(self, frame, tmp_path, capsys):
        path = tmp_path / "data.csv"
        path.write_text("a;b,y\n" + "\n".join(f"{i};1,{i % 2}" for i in range(30)) + "\n")
        assert "commas or semicolons may separate its columns; give --sep" in refuse(
            capsys, "fit", path, "--target", "y"
        )
        path.write_text("a,a,y\n" + "\n".join(f"{i},1,{i % 2}" for i in range(30)) + "\n")
        assert "two columns have the same name: 'a'" in refuse(capsys, "fit", path, "--target", "y")
        frame.loc[3, "a"] = 1e308
        frame.to_csv(path, index=False)
        assert "numbers beyond 1e+150" in refuse(capsys, "fit", path, "--target", "y")

    def test_signs_between_thousands_are_named(self, frame, tmp_path, capsys):
        path = tmp_path / "data.csv"
        frame["pay"] = [f"{1 + i % 3}.{100 + i}.{200 + i},50" if i % 4 else "17,5" for i in range(90)]
        frame.to_csv(path, index=False, sep=";", decimal=",")
        line = refuse(capsys, "fit", path, "--target", "y")
        assert "column 'pay' holds numbers with signs between thousands, such as '2.101.201,50'" in line

    def test_all_problems_are_said_at_once(self, frame, tmp_path, capsys):
        path = tmp_path / "data.csv"
        frame["note"] = [f"text {i}" for i in range(90)]
        frame["empty"] = np.nan
        frame["b"] = ["x", *frame["b"].astype(str)[1:]]
        frame.to_csv(path, index=False)
        assert main(["fit", str(path), "--target", "y"]) == 1
        shown = capsys.readouterr().err
        assert "has 3 problems:" in shown
        for column in (
            "'note' holds 90 different texts",
            "'empty' has no value",
            "'b' holds numbers but also text",
        ):
            assert column in shown

    @pytest.mark.filterwarnings("default")
    def test_an_id_is_no_variable(self, frame, tmp_path, capsys):
        path, model = tmp_path / "data.csv", tmp_path / "model.skops"
        frame["patient_id"] = np.random.default_rng(0).permutation(9000)[:90]
        frame["income"] = np.random.default_rng(1).permutation(90_000)[:90]
        frame.to_csv(path, index=False)
        shown = self.fit(capsys, path, "--save", model)
        assert "3 features" in shown.out
        assert "column 'patient_id' tells every row apart" in shown.err
        assert "4 features" in self.fit(capsys, path, "--numeric", "patient_id").out
        assert "2 features" in self.fit(capsys, path, "--drop", "patient_id,income").out
        assert "this is the --target itself" in refuse(capsys, "fit", path, "--target", "y", "--drop", "y", code=2)
        table = accept(capsys, "predict", model, path, "--keep", "patient_id").splitlines()
        assert table[0].startswith("row,patient_id,prediction,score ash")
        assert table[1].split(",")[:2] == ["1", str(frame["patient_id"][0])]
        whole = accept(capsys, "predict", model, path, "--keep-all").splitlines()
        assert whole[0].startswith("row,a,b,y,patient_id,income,prediction,")
        assert "has no column 'none'" in refuse(capsys, "predict", model, path, "--keep", "none")

    def test_names_of_classes_in_libsvm_and_sparse_arff(self, tmp_path, capsys):
        path = tmp_path / "data.libsvm"
        path.write_text("".join(f"{'ab'[i % 2]} 1:{i % 2 + 0.01 * i} 3:1\n" for i in range(40)))
        assert "2 classes" in accept(capsys, "fit", path, "--method", "proximal")
        path = tmp_path / "data.arff"
        rows = "\n".join(f"{{0 {i}, 2 no}}" if i % 2 else "{1 1}" for i in range(40))
        path.write_text(
            "@relation r\n@attribute a numeric\n@attribute b numeric\n@attribute y {yes, no}\n@data\n"
            + rows
            + "\n"
        )
        assert "2 features, 2 classes" in self.fit(capsys, path).out


class TestAnswers:
    def test_classes_that_are_never_found_are_named(self, tmp_path, capsys):
        rng = np.random.default_rng(0)
        y = np.repeat(["common", "usual", "rare"], [300, 300, 6])
        frame = pd.DataFrame({"a": (y == "common") * 4.0 + rng.normal(size=606), "y": y})
        frame.to_csv(tmp_path / "rare.csv", index=False)
        shown = accept(capsys, "fit", tmp_path / "rare.csv", "--target", "y", "--C", "1")
        assert "never found" in shown
        assert "balanced accuracy" in shown
        row = next(line.split() for line in shown.splitlines() if line.strip().startswith("rare"))
        assert row[3:] == ["-", "0.000"]  # never predicted: of nothing, no share is right

    def test_the_default_is_tuned_within_its_budget(self, data, capsys):
        shown = accept(capsys, "fit", data, "--target", "y", "--budget", "4s")
        assert "MulticategorySVC (loss weston)" in shown
        assert "budget must be a time" in refuse(capsys, "fit", data, "--target", "y", "--budget", "soon")

    def test_a_search_begins_with_enough_rows_for_its_landmarks(self, tmp_path, capsys):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 1400)
        frame = pd.DataFrame(rng.normal(size=(1400, 2)) + y[:, None], columns=["a", "b"]).assign(y=y)
        frame.to_csv(tmp_path / "many.csv", index=False)
        fit = (
            "fit",
            tmp_path / "many.csv",
            "--target",
            "y",
            "--method",
            "multicategory",
            "--tune",
            "--budget",
            "2s",
        )
        assert "MulticategorySVC (loss lee)" in accept(capsys, *fit, "--landmarks", "450")
        assert "at most half of the 1050 rows" in refuse(capsys, *fit, "--landmarks", "600", code=2)

    @pytest.mark.parametrize(
        ("words", "code"),
        [
            ("--version", 0),
            ("fit --help", 0),
            ("compare --help", 0),
            ("dance", 2),
            ("fit", 2),
            ("fit data.csv --target y --budget soon", 1),
            ("fit data.csv --target y --report page.pdf", 2),
            ("fit data.csv --target y --tune --C 1", 2),
            ("fit none.csv --target y", 1),
            ("fit data.doc --target y", 1),
            ("compare none.csv --target y", 1),
            ("predict none.skops data.csv", 1),
            ("predict none.skops data.csv --out p.txt.doc", 1),
            ("report none.skops data.csv", 1),
            ("labels none.csv --target y", 1),
            ("studio none.csv", 1),
        ],
    )
    def test_help_and_errors_load_nothing_heavy(self, data, words, code):
        """What takes time is imports: `python -m benchmarks.start` tells how much is left."""
        script = f"""
import sys
from polymargin.cli import main
code = main({words.split()!r})
print(code, {{"numpy", "pandas", "sklearn", "scipy", "joblib", "rich"}} & set(sys.modules))
"""
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=data.parent
        )
        assert done.stdout.splitlines()[-1] == f"{code} set()"

    def test_categories_bear_the_names_of_column_and_value(self, tmp_path, capsys):
        rng = np.random.default_rng(0)
        colour = np.array(["red", "green"])[np.arange(80) % 2]
        frame = pd.DataFrame(
            {"colour": colour, "x": rng.normal(size=80), "y": np.where(colour == "red", "a", "b")}
        )
        frame.to_csv(tmp_path / "colours.csv", index=False)
        page = tmp_path / "page.html"
        fit = (
            "fit",
            tmp_path / "colours.csv",
            "--target",
            "y",
            "--method",
            "sparse",
            "--C",
            "1",
            "--report",
            page,
        )
        accept(capsys, *fit)
        text = page.read_text("utf-8")
        assert re.search(r"colour_(red|green)", text)
        assert "x0_" not in text


def test_public_modules_are_there_and_internals_are_not_shown():
    script = """
import polymargin
polymargin.persistence.save
shown = {name for name in dir(polymargin) if not name.startswith("_")}
print(sorted(shown - set(polymargin.__all__)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_point_of_the_first_hour_names_tests_that_exist():
    root = Path(__file__).parents[2]
    page = (root / "docs" / "promises.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \|.*\| (.*) \|$", page[page.index("## The first hour") :], re.M)
    assert [int(number) for number, _ in rows] == list(range(1, 20))
    for number, named in rows:
        places = re.findall(r"`(tests/[\w/]+\.py|tools/[\w/]+\.py)(?:::(\w+))?`", named)
        assert places, number
        for path, name in places:
            text = (root / path).read_text("utf-8")
            assert not name or re.search(rf"(def|class) {name}\b", text), (number, path, name)
