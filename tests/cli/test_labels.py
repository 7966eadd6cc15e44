"""`polymargin labels`, and costs of rows and of decisions: in training, and after it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from polymargin import Decider, MulticategorySVC, RobustSVC, SparseSVC, expected_cost, persistence
from polymargin.cli.methods import machine_of
from polymargin.report.section import number
from tests.cli.commands import accept, refuse


@pytest.fixture
def mislabelled(iris, tmp_path):
    table = pd.read_csv(iris)
    table.loc[3, "species"], table.loc[120, "species"] = "virginica", "setosa"
    path = tmp_path / "mislabelled.csv"
    table.to_csv(path, index=False)
    return path


def test_suspects_are_ranked_and_written(mislabelled, tmp_path, capsys):
    out, page = tmp_path / "suspects.csv", tmp_path / "suspects.html"
    shown = accept(
        capsys, "labels", mislabelled, "--target", "species", "--out", out, "--report", page, "--effect"
    )
    found = pd.read_csv(out)
    assert list(found.columns) == ["row", "was", "should_be", "sure", "own"]
    assert set(found["row"][:2]) == {4, 121}  # counted from 1, below the header
    first = found.set_index("row")
    assert first.loc[4, ["was", "should_be"]].tolist() == ["virginica", "setosa"]
    assert f"{len(found)} of 150 labels are suspect" in shown
    assert "mislabelled most" in shown
    assert "rows held out (labels as given) goes from" in shown
    text = page.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert "<td>4</td><td>virginica</td><td>setosa</td>" in text
    assert "sepal" in text


def test_labels_refuses(mislabelled, tmp_path, capsys):
    assert "must end in .html" in refuse(
        capsys, "labels", mislabelled, "--target", "species", "--report", tmp_path / "page.pdf", code=2
    )
    assert "suspects are written as" in refuse(
        capsys, "labels", mislabelled, "--target", "species", "--out", tmp_path / "a.arff"
    )
    assert "species2" in refuse(capsys, "labels", mislabelled, "--target", "species2")


def test_predict_decides_again(iris, tmp_path, capsys):
    model, out, costs = tmp_path / "m.skops", tmp_path / "p.csv", tmp_path / "costs.csv"
    accept(
        capsys, "fit", iris, "--target", "species", "--method", "multicategory", "--probabilities", "--save", model
    )
    costs.write_text("true,predicted,cost\nversicolor,virginica,50\n")
    accept(capsys, "predict", model, iris, "--costs", costs, "--out", out)
    table = pd.read_csv(iris)
    loaded = persistence.load(model).model
    X = table.drop(columns="species")
    expected = Decider(loaded, cost_matrix={("versicolor", "virginica"): 50}).predict(X)
    np.testing.assert_array_equal(pd.read_csv(out)["prediction"], expected)
    assert (expected != loaded.predict(X)).any()

    amounts = np.random.default_rng(0).lognormal(2.0, 2.0, (150, 3))
    priced = tmp_path / "priced.csv"
    table.assign(a=amounts[:, 0], b=amounts[:, 1], c=amounts[:, 2]).to_csv(priced, index=False)
    option = ("--cost-columns", "versicolor=b,setosa=a,virginica=c")
    accept(capsys, "predict", model, priced, *option, "--out", out)
    np.testing.assert_array_equal(pd.read_csv(out)["prediction"], Decider(loaded).predict(X, amounts))

    assert "missing: virginica" in refuse(
        capsys, "predict", model, priced, "--cost-columns", "setosa=a,versicolor=b"
    )
    assert "no column 'd'" in refuse(
        capsys, "predict", model, priced, "--cost-columns", "setosa=a,versicolor=b,virginica=d"
    )
    assert "in data row 1" in refuse(capsys, "predict", model, table_with_text(priced, tmp_path), *option)
    assert "exclude each other" in refuse(capsys, "predict", model, priced, *option, "--costs", costs, code=2)


def table_with_text(path, folder):
    table = pd.read_csv(path).astype({"a": object})
    table.loc[0, "a"] = "much"
    table.to_csv(folder / "text.csv", index=False)
    return folder / "text.csv"


def test_predict_needs_probabilities_for_costs(iris, tmp_path, capsys):
    model, costs = tmp_path / "m.skops", tmp_path / "costs.csv"
    costs.write_text("true,predicted,cost\nversicolor,virginica,50\n")
    accept(capsys, "fit", iris, "--target", "species", "--method", "proximal", "--save", model)
    assert "fit it with --probabilities" in refuse(capsys, "predict", model, iris, "--costs", costs)


@pytest.fixture
def priced(iris, tmp_path):
    """Rows with costs in columns: of one class 50 times as much as of the others, for some rows."""
    table = pd.read_csv(iris)
    amount = np.random.default_rng(0).lognormal(0.0, 1.5, len(table))
    path = tmp_path / "priced.csv"
    table.assign(amount=amount, one=1.0).to_csv(path, index=False)
    return path


BY_ROW = ("--cost-columns", "setosa=amount,versicolor=amount,virginica=one")


def costs_of(table):
    """Costs of the rows of a table as the option says, in the order of the classes."""
    given = table[["amount", "amount", "one"]].to_numpy()
    classes = np.array(["setosa", "versicolor", "virginica"])
    return given, np.where(table["species"].to_numpy()[:, None] == classes, 0.0, given)


@pytest.mark.parametrize("machine", [MulticategorySVC(), SparseSVC(), RobustSVC()], ids=repr)
def test_fit_trains_with_costs_of_rows(machine, priced, tmp_path, capsys):
    method = {"MulticategorySVC": "multicategory", "SparseSVC": "sparse", "RobustSVC": "robust"}
    saved = tmp_path / "m.skops"
    accept(
        capsys, "fit", priced, "--target", "species", "--method", method[type(machine).__name__], *BY_ROW,
        "--save", saved, "--test-size", "0", "--no-scale",
    )  # fmt: skip
    table = pd.read_csv(priced)
    X = table.drop(columns=["species", "amount", "one"])
    model = persistence.load(saved).model
    assert list(model.feature_names_in_) == list(X.columns)
    expected = machine.fit(X, table["species"], costs=costs_of(table)[1])
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-8)


def test_held_out_rows_are_judged_by_their_own_costs(priced, tmp_path, capsys):
    saved = tmp_path / "m.skops"
    fit = ("fit", priced, "--target", "species", "--method", "multicategory", *BY_ROW)
    shown = accept(capsys, *fit, "--save", saved, "--no-refit", "--test", priced)
    table = pd.read_csv(priced)
    model = persistence.load(saved).model
    given, charged = costs_of(table)
    X = table.drop(columns="species")
    cost = expected_cost(table["species"], model.predict(X), costs=charged)
    assert f"{cost:.4f}" in shown.split("expected cost")[1].splitlines()[0]

    page = tmp_path / "page.html"
    accept(capsys, *fit, "--no-refit", "--test", priced, "--report", page)
    headline = f"<span>Mean cost</span><strong>{number(cost)}</strong><small>with the costs of the rows"
    assert headline in page.read_text("utf-8")

    shown = accept(capsys, *fit, "--costs-in", "both", "--save", saved, "--no-refit", "--test", priced)
    assert "least expected cost of each row" in shown
    model = persistence.load(saved).model
    decided = Decider(model).predict(X, given)
    cost = expected_cost(table["species"], decided, costs=charged)
    assert f"{cost:.4f}" in shown.split("expected cost")[-1].splitlines()[0]
    again = tmp_path / "again.csv"
    accept(capsys, "predict", saved, priced, *BY_ROW, "--out", again)
    np.testing.assert_array_equal(pd.read_csv(again)["prediction"], decided)


@pytest.mark.parametrize("method", ["auto", "multicategory", "sparse", "robust"])
def test_searches_and_refits_are_given_the_costs_of_rows(method, priced, tmp_path, capsys):
    saved = tmp_path / "m.skops"
    options = ("--C", "1") if method == "auto" else ("--tune",)
    shown = accept(
        capsys, "fit", priced, "--target", "species", "--method", method, *BY_ROW, *options, "--save", saved
    )
    assert "fitted again to all 150 rows" in shown
    table = pd.read_csv(priced)
    machine = machine_of(persistence.load(saved).model)
    machine = clone(machine)
    X = StandardScaler().fit_transform(table.drop(columns=["species", "amount", "one"]))
    expected = machine.fit(X, table["species"], costs=costs_of(table)[1]).decision_function(X)
    found = persistence.load(saved).model.decision_function(table.drop(columns="species"))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_column_of_costs_can_be_a_feature_too(priced, tmp_path, capsys):
    saved = tmp_path / "m.skops"
    fit = ("fit", priced, "--target", "species", "--method", "multicategory", *BY_ROW, "--save", saved)
    accept(capsys, *fit, "--numeric", "amount", "--test-size", "0")
    assert list(persistence.load(saved).model.feature_names_in_)[-1] == "amount"
    accept(capsys, *fit, "--reject", "--no-refit")
    assert hasattr(persistence.load(saved).model[-1], "threshold_")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ((*BY_ROW, "--costs", "costs.csv"), 2, "exclude each other"),
        ((*BY_ROW, "--method", "proximal"), 2, "--cost-columns cannot act in the training of --method proximal"),
        ((*BY_ROW, "--sets", "0.9"), 2, "--sets does not go with --cost-columns in the training"),
        (("--cost-columns", "setosa=amount"), 1, "missing: versicolor, virginica"),
        (("--cost-columns", "setosa=a,versicolor=amount,virginica=one"), 1, "no column 'a'"),
        (("--cost-columns", "setosa=species,versicolor=amount,virginica=one"), 1, "no column 'species'"),
        (("--costs-in", "both"), 2, "give --costs or --cost-columns"),
    ],
)
def test_fit_refuses_costs_of_rows(options, code, message, priced, capsys):
    method = () if "--method" in options else ("--method", "multicategory")
    assert message in refuse(capsys, "fit", priced, "--target", "species", *method, *options, code=code)
