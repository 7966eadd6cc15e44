"""Every bad input ends in an exit code and one line that names the problem; nothing is left behind."""

import io
import os

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression

from tests.cli.commands import accept, refuse, run


@pytest.fixture
def fit(tmp_path, capsys):
    """Write a file, fit to it with everything that could be left behind, and return the error line."""

    def write_and_fit(name, content, *options, target="y", code=1):
        (tmp_path / "in").mkdir(exist_ok=True)
        path = tmp_path / "in" / name
        if isinstance(content, pd.DataFrame):
            content.to_csv(path, index=False)
        elif content is not None:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        outputs = ("--save", tmp_path / "model.skops", "--report", tmp_path / "report.html")
        named = () if target is None else ("--target", target)
        line = refuse(capsys, "fit", path, *named, *outputs, *options, code=code)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]
        return line

    return write_and_fit


def good(n=30):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "y": np.arange(n) % 3})


def test_the_target(fit):
    line = fit("data.csv", good(), target="Y")
    assert line.endswith("data.csv has no column 'Y' (--target), its columns are 'a', 'b', 'y'\n")
    assert "did you mean 'species'?" in fit("data.csv", good().rename(columns={"y": "species"}), target="specie")
    assert "only one class, 3" in fit("data.csv", "a;b;y\n1;2;3\n")
    assert "--target is needed" in fit("data.csv", good(), target=None, code=2)
    assert "only one class, 7" in fit("data.csv", good().assign(y=7))
    assert "1 missing values, the first in data row 3" in fit("data.csv", "a,y\n1,x\n2,y\n3,\n4,x\n")
    assert "names or whole numbers, got 0.125" in fit("data.csv", good().assign(y=[0.125, 1] * 15))
    assert "30 different values in 30 rows" in fit("data.csv", good().assign(y=np.arange(30)))
    assert "at least two rows, rare has one" in fit(
        "data.csv", good().assign(y=["rare"] + ["x", "y"] * 14 + ["x"])
    )


def test_columns(fit):
    frame = good()
    frame["b"] = ["1.5", "2,5", *frame["b"].astype(str)[2:]]
    assert "column 'b' holds numbers but also text, first '2,5' in data row 2" in fit("data.csv", frame)
    assert "column 'b' holds 30 different texts in 30 rows" in fit(
        "data.csv", good().assign(b=[f"t{i}" for i in range(30)])
    )
    assert "column 'b' has no value at all" in fit("data.csv", good().assign(b=np.nan))
    holes = good()
    holes.loc[[1, 2], "a"] = np.nan
    holes.loc[5, "b"] = np.nan
    assert "missing values in: a (2), b (1); fill them in, or fit with --impute" in fit("data.csv", holes)
    assert "infinite values in: a." in fit("data.csv", good().assign(a=[np.inf] + [1.0] * 29))
    assert "no columns besides the target" in fit("data.csv", good()[["y"]])
    assert "--drop: " in fit("data.csv", good(), "--drop", "c")
    dates = good().assign(b=pd.date_range("2020-01-01", periods=30))
    dates.to_parquet(buffer := io.BytesIO())
    assert "column 'b' holds dates" in fit("data.parquet", buffer.getvalue())


def test_files(fit, tmp_path):
    whole = tmp_path / "in"
    whole.mkdir()
    good().to_parquet(whole / "whole.parquet")
    truncated = (whole / "whole.parquet").read_bytes()[:-50]
    assert "data.parquet cannot be read as PARQUET" in fit("data.parquet", truncated)
    assert "data.csv is empty" in fit("data.csv", "")
    assert "data.parquet is empty" in fit("data.parquet", b"")
    assert "has no rows below its header" in fit("data.csv", "a,b,y\n")
    assert "does not exist" in fit("none.csv", None)
    assert "cannot be read as CSV" in fit("data.csv", "a,y\n1,2\n1,2,3,4\n")
    assert "it is not UTF-8 text (byte 4); give its --encoding" in fit("data.csv", b"a,y\n\x81\xfe,2\n")
    assert "cannot be read as ARFF" in fit("data.arff", "@relation x\n@attribute a string\n@data\nb\n")
    assert "cannot be read as LIBSVM" in fit("data.libsvm", "1 2:x\n", target=None)
    assert "leave --target out" in fit("data.libsvm", "1 1:2\n", code=2)
    assert "the ending .docx tells no format" in fit("data.docx", "x")
    assert "--format must be one of csv, tsv, parquet, arff, libsvm, excel" in fit(
        "data.csv", good(), "--format", "x", code=2
    )
    (whole / "folder.csv").mkdir()
    assert "folder.csv is a folder" in fit("folder.csv", None)


def test_costs_and_priors(fit, tmp_path):
    (tmp_path / "in").mkdir()
    costs = tmp_path / "in" / "costs.csv"

    def with_costs(content, *options, code=1):
        costs.write_bytes(content if isinstance(content, bytes) else content.encode())
        line = fit("data.csv", good(), "--costs", costs, *options, code=code)
        assert "costs.csv" in line or code == 2
        return line

    assert "names the class '3', the classes of the data are 0, 1, 2" in with_costs("t,0,1,2,3\n0,0,1,1,1\n")
    assert "names the class 'x'" in with_costs("true,predicted,cost\n0,x,2\n")
    assert "rows for all classes, missing: 1, 2" in with_costs("t,0,1,2\n0,0,1,1\n")
    assert "columns for all classes, missing: 2" in with_costs("t,0,1\n0,0,1\n1,1,0\n2,1,1\n")
    assert "two rows for one class" in with_costs("t,0,1,2\n0,0,1,1\n1,1,0,1\n2,1,1,0\n2,1,1,0\n")
    assert "the cost of 1 for 0 must be a number, got 'a lot'" in with_costs(
        "t,0,1,2\n0,0,a lot,1\n1,1,0,1\n2,1,1,0\n"
    )
    assert "finite non-negative entries, got -1.0" in with_costs("t,0,1,2\n0,0,-1,1\n1,1,0,1\n2,1,1,0\n")
    assert "zero diagonal" in with_costs("t,0,1,2\n0,3,1,1\n1,1,0,1\n2,1,1,0\n")
    assert "cannot be read as CSV" in with_costs(b"\xff\xfe\x00binary")
    assert "cannot be read as CSV" in with_costs("")
    assert "must be a table" in with_costs("hello\n")
    assert "does not exist" in fit("data.csv", good(), "--costs", tmp_path / "in" / "none.csv")
    assert "is a folder" in fit("data.csv", good(), "--costs", tmp_path / "in")
    assert "--costs cannot act in the training of --method proximal" in with_costs(
        "true,predicted,cost\n0,1,2\n", "--method", "proximal", "--costs-in", "training", code=2
    )
    assert "--reject excludes" in with_costs(
        "true,predicted,cost\n0,1,2\n", "--costs-in", "both", "--reject", code=2
    )
    assert "--priors act in the training" in with_costs(
        "true,predicted,cost\n0,1,2\n", "--costs-in", "decisions", "--priors", "0=0.5,1=0.25,2=0.25", code=2
    )
    assert "give --costs" in fit("data.csv", good(), "--costs-in", "both", code=2)
    assert "--sets must be a probability" in fit("data.csv", good(), "--sets", "1.5", code=2)
    for priors, problem in [
        ("0=0.5,1=0.5", "missing: [2]"),
        ("0=0.5,1=0.5,2=0.5", "must sum to one, got a sum of 1.5"),
        ("0=0.5,1=0.25,9=0.25", "names the class '9'"),
        ("0=0.5,1=0.25,2=x", "the share of '2' must be a number, got 'x'"),
        ("0.5 0.5", "must look like CLASS=SHARE"),
    ]:
        line = fit("data.csv", good(), "--priors", priors)
        assert "priors" in line
        assert problem in line


def test_options(fit, tmp_path, capsys):
    for options, problem in [
        (("--test-size", "1.5"), "--test-size must be a share from 0 to below 1, got 1.5"),
        (("--test-size", "0"), "--report needs held-out rows"),
        (("--test-size", "0.5", "--test", "other.csv"), "--test-size and --test exclude each other"),
        (("--method", "magic"), "'magic'"),
        (("--method", "sparse", "--kernel", "rbf"), "--method sparse is linear"),
        (("--tune", "--C", "1"), "--tune chooses C itself"),
        (("--landmarks", "0"), "--landmarks"),
        (("--nonsense",), "--nonsense"),
    ]:
        assert problem in fit("data.csv", good(), *options, code=2)
    assert "C must be a finite number of at least 1e-15 and at most 1e+15, got -1.0" in fit(
        "data.csv", good(), "--C", "-1"
    )
    assert "too few for 3 classes" in fit("data.csv", good(), "--test-size", "0.05")
    assert "does not exist" in fit("data.csv", good(), "--test", tmp_path / "in" / "none.csv")
    other = tmp_path / "in" / "other.csv"
    good().assign(y=5).to_csv(other, index=False)
    assert "holds classes that" in fit("data.csv", good(), "--test", other)
    good().drop(columns="a").to_csv(other, index=False)
    assert "other.csv lacks columns of the model: a" in fit("data.csv", good(), "--test", other)
    assert "data" in refuse(capsys, "fit", code=2).lower()
    assert refuse(capsys, "dance", code=2) == "polymargin: No such command 'dance'. (see polymargin --help)\n"
    assert "'comparee'. Did you mean 'compare'?" in refuse(capsys, "comparee", code=2)


def test_places_that_cannot_be_written(iris, tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text("")
    fit = ("fit", iris, "--target", "species")
    for option in ("--save", "--report"):
        assert f"{option}: {file} is not a folder" in refuse(capsys, *fit, option, file / "x.html")
        assert f"{option}: {tmp_path} is a folder" in refuse(capsys, *fit, option, tmp_path)
        assert f"{option}: the folder {tmp_path / 'no'} does not" in refuse(
            capsys, *fit, option, tmp_path / "no/x"
        )
        # Whoever runs this, nobody may write here.
        assert f"{option}: no file can be written in the folder /proc" in refuse(
            capsys, *fit, option, "/proc/x.skops"
        )
    assert os.listdir(tmp_path) == ["file"]


def test_no_permission_as_an_ordinary_user(iris, tmp_path):
    """The real command, in a folder that is closed to it."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    if os.access(closed, os.W_OK):
        pytest.skip("the owner of this process may write anywhere (root)")
    done = run("fit", iris, "--target", "species", "--save", closed / "x.skops", code=1)
    assert (
        done.stderr == f"polymargin: --save: no file can be written in the folder {closed}: Permission denied.\n"
    )
    assert not any(closed.iterdir())


@pytest.fixture
def model(iris, tmp_path, capsys):
    path = tmp_path / "model.skops"
    accept(capsys, "fit", iris, "--target", "species", "--method", "proximal", "--save", path)
    return path


def test_prediction(model, iris, tmp_path, capsys):
    data = tmp_path / "data.csv"
    frame = pd.read_csv(iris)
    assert "has no rejection threshold; fit it with --reject" in refuse(capsys, "predict", model, iris, "--reject")
    assert "none.skops does not exist" in refuse(capsys, "predict", tmp_path / "none.skops", iris)
    assert "is a folder" in refuse(capsys, "predict", tmp_path, iris)
    assert "is no saved model" in refuse(capsys, "predict", iris, iris)
    assert "predictions are written as csv, tsv, excel, parquet" in refuse(
        capsys, "predict", model, iris, "--out", tmp_path / "out.arff"
    )
    frame.drop(columns="petal width (cm)").to_csv(data, index=False)
    assert "data.csv lacks columns of the model: petal width (cm)" in refuse(capsys, "predict", model, data)
    frame["petal width (cm)"] = ["wide", *frame["petal width (cm)"].astype(str)[1:]]
    frame.to_csv(data, index=False)
    line = refuse(capsys, "predict", model, data, "--out", tmp_path / "out.csv")
    assert "column 'petal width (cm)' must hold numbers, got 'wide' in data row 1" in line
    empty = frame.drop(columns="species").assign(**{"petal width (cm)": np.nan})
    empty.to_csv(data, index=False)
    assert "missing values in: petal width (cm) (150)" in refuse(capsys, "predict", model, data)
    libsvm = tmp_path / "data.libsvm"
    libsvm.write_text("1 1:1\n2 1:2\n")
    assert "is a LIBSVM file, the model was fitted to named columns" in refuse(capsys, "predict", model, libsvm)
    assert not (tmp_path / "out.csv").exists()
    foreign = tmp_path / "foreign.skops"
    foreign.write_bytes(skops.io.dumps(LogisticRegression().fit([[0], [1]], [0, 1])))
    assert "no model saved by polymargin" in refuse(capsys, "predict", foreign, iris)


def test_debug_shows_the_traceback(tmp_path):
    done = run("fit", tmp_path / "none.csv", "--target", "y", "--debug", code=1)
    assert "Traceback" in done.stderr
    assert "does not exist" in done.stderr.splitlines()[-1]
