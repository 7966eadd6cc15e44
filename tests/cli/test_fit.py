"""`polymargin fit`, `predict` and `report` on real files."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris

from polymargin import persistence
from polymargin.cli import main
from polymargin.cli.methods import machine_of
from tests.cli.commands import accept, run


def test_a_csv_with_quotes_spaces_and_unicode(trees, tmp_path):
    data, model, out = tmp_path / "große bäume.csv", tmp_path / "model ü.skops", tmp_path / "out.csv"
    trees.to_csv(data, index=False)
    costs = tmp_path / "costs.csv"
    costs.write_text('true,"Eiche, rot","Buche ""alt""",楓\n楓,5,5,0\n"Buche ""alt""",1,0,1\n"Eiche, rot",0,1,1\n')
    target = "  art "
    done = run(
        "fit",
        data,
        "--target",
        target,
        "--method",
        "multicategory",
        "--costs",
        costs,
        "--costs-in",
        "training",
        "--save",
        model,
    )
    for text in ("MulticategorySVC", "global optimum", "expected cost", 'Buche "alt"', "楓", str(model)):
        assert text in done.stdout
    assert done.stderr == ""
    saved = persistence.load(model)
    assert saved.model.classes_.tolist() == ['Buche "alt"', "Eiche, rot", "楓"]
    np.testing.assert_array_equal(machine_of(saved.model).cost_matrix, [[0, 1, 1], [1, 0, 1], [5, 5, 0]])
    assert "Höhe (m)" in machine_of(saved.model).feature_names_in_
    assert "leaf colour_déjà vu" in machine_of(saved.model).feature_names_in_

    shuffled = trees[list(trees.columns[::-1])].drop(columns=target).assign(extra="x")
    shuffled.to_csv(tmp_path / "new.tsv", index=False, sep="\t")
    run("predict", model, tmp_path / "new.tsv", "--out", out)
    predictions = pd.read_csv(out)
    assert (predictions["prediction"] == trees[target]).mean() > 0.7
    features = trees.drop(columns=target).rename(columns=str)
    np.testing.assert_allclose(
        predictions.filter(like="score"), saved.model.decision_function(features), rtol=1e-12
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["große bäume.csv", "model ü.skops", "costs.csv", "new.tsv", "out.csv"]
    )


def test_fifty_thousand_rows_of_parquet(tmp_path, capsys):
    rng = np.random.default_rng(0)
    n = 50_000
    y = rng.integers(0, 4, n)
    frame = pd.DataFrame(rng.normal(size=(n, 6)), columns=list("abcdef"))
    frame["a"] += 2.0 * y
    frame["b"] = frame["b"].astype("float32")
    frame["city"] = pd.Categorical(np.array(["Bern", "Oslo", "Rom"])[rng.integers(0, 3, n)])
    frame["flag"] = rng.integers(0, 2, n).astype(bool)
    frame["class"] = y
    data, model, out = tmp_path / "many.parquet", tmp_path / "many.skops", tmp_path / "out.parquet"
    frame.to_parquet(data)
    done = run("fit", data, "--target", "class", "--method", "proximal", "--save", model)
    assert "37500 rows, 10 features, 4 classes" in done.stdout
    accept(capsys, "predict", model, data, "--out", out)
    predictions = pd.read_parquet(out)
    assert len(predictions) == n
    assert predictions["prediction"].dtype == np.int64
    assert (predictions["prediction"] == y).mean() > 0.5


def test_a_libsvm_file(tmp_path, capsys):
    X, y = load_iris(return_X_y=True)
    data, test, model = tmp_path / "iris.libsvm", tmp_path / "test.scale", tmp_path / "iris.skops"
    dump_svmlight_file(X[::2], y[::2] + 1, str(data), zero_based=False)
    X[:, 3] = 0.0  # the file has one column less than the model
    dump_svmlight_file(X[1::2], y[1::2] + 1, str(test), zero_based=False)
    done = run("fit", data, "--method", "multicategory", "--test-size", "0", "--save", model)
    assert "75 rows, 4 features, 3 classes" in done.stdout
    assert "held out" not in done.stdout
    lines = accept(capsys, "predict", model, test, "--format", "libsvm").splitlines()
    assert lines[0] == "row,prediction,score 1,score 2,score 3"
    assert len(lines) == 76


def test_an_arff_file(tmp_path, capsys):
    data, model = tmp_path / "play.arff", tmp_path / "play.skops"
    rows = [f"{'sunny' if i % 3 else 'rainy'},{60 + i},{'yes' if i % 3 else 'no'}" for i in range(40)]
    rows[7] = "?,64,yes"
    data.write_text(
        "@relation play\n@attribute outlook {sunny, overcast, rainy}\n@attribute 'degrees F' numeric\n"
        "@attribute play {yes, no}\n@data\n" + "\n".join(rows) + "\n"
    )
    shown = accept(capsys, "fit", data, "--target", "play", "--method", "robust", "--impute", "--save", model)
    assert "RobustSVC" in shown
    assert persistence.load(model).metadata["columns"]["categorical"] == ["outlook"]
    assert accept(capsys, "predict", model, data).count("\n") == 41


@pytest.mark.parametrize("method", ["multicategory", "proximal", "shared", "robust", "sparse"])
def test_every_method_is_fitted_tuned_and_saved(method, iris, tmp_path, capsys):
    model = tmp_path / "model.skops"
    small = tmp_path / "small.csv"
    pd.read_csv(iris).iloc[::3, 2:].to_csv(small, index=False)
    shown = accept(capsys, "fit", small, "--target", "species", "--method", method, "--tune", "--save", model)
    assert "certificate" in shown
    saved = persistence.load(model)
    assert saved.metadata["target"] == "species"
    assert saved.metadata["command"].startswith("polymargin fit")
    assert "--costs costs.csv" in saved.metadata["command"]
    assert accept(capsys, "predict", model, iris).count("\n") == 151


def test_costs_change_the_decisions(iris, tmp_path, capsys):
    """The error that costs a hundred times as much is not made any more."""
    costs = tmp_path / "costs.csv"
    costs.write_text("true,predicted,cost\nversicolor,virginica,100\n")
    cases = [(method, "training") for method in ("multicategory", "sparse", "robust")]
    for method, where in [*cases, ("multicategory", "both"), ("multicategory", None), ("proximal", None)]:
        arguments = ("fit", iris, "--target", "species", "--method", method, "--test", iris)
        plain = accept(capsys, *arguments)
        careful = accept(capsys, *arguments, "--costs", costs, *(() if where is None else ("--costs-in", where)))
        assert ("the class of least expected cost, by probabilities" in careful) == (where != "training")
        confusion = careful.partition("true classes by predicted ones")[2]
        row = next(line for line in confusion.splitlines() if line.startswith("  versicolor"))
        assert row.split()[-1] == ".", careful
        assert plain != careful


def test_probabilities_and_sets_are_predicted(iris, tmp_path, capsys):
    model, out = tmp_path / "model.skops", tmp_path / "out.csv"
    fit = ("fit", iris, "--target", "species", "--method", "multicategory", "--save", model)
    shown = accept(capsys, *fit, "--probabilities")
    assert "the most probable class, by probabilities from left-out scores" in shown
    assert "log loss" in shown
    accept(capsys, "predict", model, iris, "--out", out)
    table = pd.read_csv(out)
    names = [f"probability {kind}" for kind in ("setosa", "versicolor", "virginica")]
    np.testing.assert_allclose(table[names].sum(axis=1), 1.0)
    assert "set" not in table.columns
    assert (table[names].idxmax(axis=1) == "probability " + table["prediction"]).all()
    shown = accept(capsys, *fit, "--sets", "0.99")
    assert "hold the true class (asked for 0.99)" in shown
    accept(capsys, "predict", model, iris, "--out", out)
    sets = pd.read_csv(out, keep_default_na=False)["set"].str.split(" | ", regex=False)
    held = [kind in members for kind, members in zip(pd.read_csv(iris)["species"], sets, strict=True)]
    assert np.mean(held) > 0.95
    assert (sets.str.len() > 1).any()


def test_priors_reach_the_machine(iris, tmp_path, capsys):
    priors = "setosa=0.2, versicolor=0.2,virginica=0.6"
    model = tmp_path / "model.skops"
    accept(
        capsys,
        "fit",
        iris,
        "--target",
        "species",
        "--method",
        "multicategory",
        "--priors",
        priors,
        "--save",
        model,
        "--C",
        2,
    )
    machine = machine_of(persistence.load(model).model)
    assert machine.priors.tolist() == [0.2, 0.2, 0.6]
    assert machine.C == 2.0


def test_rejection(iris, tmp_path, capsys):
    model = tmp_path / "model.skops"
    shown = accept(
        capsys, "fit", iris, "--target", "species", "--method", "multicategory", "--reject", "--save", model
    )
    assert "rejected" in shown
    plain = accept(capsys, "predict", model, iris)
    assert "rejected" not in plain
    careful = accept(capsys, "predict", model, iris, "--reject")
    assert careful.splitlines()[0].startswith("row,prediction,reason,score setosa")
    assert "rejected,ambiguous" in careful
    kept = [line for line in careful.splitlines() if ",accepted," in line]
    assert 100 < len(kept) < 150


def test_codes_can_be_categories(tmp_path, capsys):
    rng = np.random.default_rng(0)
    codes = rng.choice([10, 20, 35], 60)
    frame = pd.DataFrame({"id": np.arange(60), "code": codes, "x": rng.normal(size=60), "y": codes == 20})
    data, model = tmp_path / "codes.csv", tmp_path / "codes.skops"
    frame.to_csv(data, index=False)
    arguments = ("fit", data, "--target", "y", "--categorical", "code", "--drop", "id", "--method", "sparse")
    accept(capsys, *arguments, "--save", model)
    machine = machine_of(persistence.load(model).model)
    assert machine.feature_names_in_.tolist() == ["x", "code_10", "code_20", "code_35"]
    assert machine.classes_.tolist() == ["False", "True"]
    frame.drop(columns="y").to_parquet(tmp_path / "codes.parquet")  # whole numbers here, text there
    shown = accept(capsys, "predict", model, tmp_path / "codes.parquet")
    assert [line.split(",")[1] for line in shown.splitlines()[1:]] == [str(code == 20) for code in codes]


def test_missing_values_are_filled_in_where_asked_for(tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=50), "b": rng.choice(["x", "y"], 50)})
    frame["y"] = np.where(frame["a"] > 0, "up", "down")
    frame.loc[[3, 5], "a"] = np.nan
    frame.loc[7, "b"] = None
    data, model = tmp_path / "holes.csv", tmp_path / "holes.skops"
    frame.to_csv(data, index=False)
    accept(capsys, "fit", data, "--target", "y", "--method", "multicategory", "--impute", "--save", model)
    assert accept(capsys, "predict", model, data).count("\n") == 51


def test_fits_can_be_repeated(iris, capsys):
    arguments = (
        "fit",
        iris,
        "--target",
        "species",
        "--method",
        "multicategory",
        "--landmarks",
        "10",
        "--seed",
        "3",
    )
    first, second = (accept(capsys, *arguments).splitlines() for _ in range(2))
    assert [line for line in first if " s " not in line] == [line for line in second if " s " not in line]


@pytest.mark.filterwarnings("default")
def test_row_numbers_are_no_variable(iris, tmp_path, capsys):
    """The file that pandas writes by default; its rows are sorted by class."""
    pd.read_csv(iris).to_csv(tmp_path / "numbered.csv")
    assert main(["fit", str(tmp_path / "numbered.csv"), "--target", "species", "--method", "proximal"]) == 0
    shown = capsys.readouterr()
    assert "4 features" in shown.out
    assert shown.err.startswith("polymargin: warning: ")
    assert shown.err.endswith(
        "numbered.csv: the first column, which has no name, counts the rows; it is left out.\n"
    )


def test_reports(iris, tmp_path, capsys):
    model, page, again = (tmp_path / name for name in ("model.skops", "page.html", "again.html"))
    fit = ("fit", iris, "--target", "species", "--method", "sparse", "--C", "0.5")
    done = run(*fit, "--save", model, "--report", page)
    assert f"report: {page}" in done.stdout
    accept(capsys, "report", model, iris, "--out", again)
    for path in (page, again):
        text = path.read_text("utf-8")
        assert "petal width (cm)" in text
        command = f"polymargin fit {iris} --method sparse --costs costs.csv --target species --C 0.5"
        assert command in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.html", "model.skops", "page.html"]


@pytest.mark.parametrize("method", ["multicategory", "proximal", "shared", "robust"])
def test_reports_of_every_method(method, iris, tmp_path, capsys):
    page = tmp_path / "page.html"
    extra = ("--tune", "--reject") if method == "proximal" else ()
    accept(capsys, "fit", iris, "--target", "species", "--method", method, "--report", page, *extra)
    assert page.read_text("utf-8").startswith("<!doctype html>")
