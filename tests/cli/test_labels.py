"""`polymargin labels`, and decisions under costs that come after training."""

import numpy as np
import pandas as pd
import pytest

from polymargin import Decider, persistence
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
