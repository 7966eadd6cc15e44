"""`polymargin export`: ONNX files of saved models."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.cli.commands import accept, refuse

ort = pytest.importorskip("onnxruntime", reason="the extra [onnx] is not installed")


@pytest.fixture
def model(iris, tmp_path, capsys):
    path = tmp_path / "iris.skops"
    accept(capsys, "fit", iris, "--target", "species", "--method", "multicategory", "--save", path)
    return path


@pytest.mark.parametrize("precision", ["single", "double"])
def test_a_checked_file(model, iris, tmp_path, capsys, precision):
    out = tmp_path / "iris.onnx"
    shown = accept(capsys, "export", model, out, "--check", iris, "--precision", precision)
    assert "150 rows: same labels, scores within" in shown
    frame = pd.read_csv(iris)
    dtype = np.float32 if precision == "single" else np.float64
    session = ort.InferenceSession(out.read_bytes())
    rows = frame.drop(columns="species").to_numpy(dtype)
    feed = {one.name: rows[:, [at]] for at, one in enumerate(session.get_inputs())}
    labels, scores = session.run(None, feed)
    accept(capsys, "predict", model, iris, "--out", tmp_path / "p.csv")
    predicted = pd.read_csv(tmp_path / "p.csv")
    assert labels.tolist() == predicted["prediction"].tolist()
    assert scores.shape == (150, 3)
    np.testing.assert_allclose(scores, predicted.filter(like="score").to_numpy(), atol=1e-5)


def test_awkward_columns_categories_and_rejection(trees, tmp_path, capsys):
    data, model, out = tmp_path / "trees.csv", tmp_path / "trees.skops", tmp_path / "trees.onnx"
    trees.to_csv(data, index=False)
    accept(capsys, "fit", data, "--target", "  art ", "--method", "multicategory", "--reject", "--save", model)
    assert "120 rows: same labels" in accept(capsys, "export", model, out, "--check", data)
    labels = ort.InferenceSession(out.read_bytes()).get_outputs()[0]
    assert (labels.name, labels.type) == ("label", "tensor(string)")


def test_sparse_files_and_models_that_were_not_checked(tmp_path, capsys):
    data, model, out = tmp_path / "rows.libsvm", tmp_path / "rows.skops", tmp_path / "rows.onnx"
    rng = np.random.default_rng(0)
    lines = [f"{i % 3} 1:{i % 3 + rng.normal():.3f} 4:{rng.normal():.3f}" for i in range(60)]
    data.write_text("\n".join(lines) + "\n")
    accept(capsys, "fit", data, "--method", "multicategory", "--save", model, "--no-scale")
    accept(capsys, "export", model, out)
    assert ort.InferenceSession(out.read_bytes()).get_inputs()[0].shape[1] == 4


def test_bad_input(model, iris, tmp_path, capsys):
    out = tmp_path / "iris.onnx"
    out.write_text("mine")
    assert f"{out} exists; give another name, or --overwrite" in refuse(capsys, "export", model, out)
    assert out.read_text() == "mine"
    accept(capsys, "export", model, out, "--overwrite")
    out.unlink()
    missing = tmp_path / "nowhere" / "iris.onnx"
    assert "OUT: the folder" in refuse(capsys, "export", model, missing)
    assert "is a folder" in refuse(capsys, "export", model, tmp_path)
    assert "precision must be" in refuse(capsys, "export", model, out, "--precision", "half")
    narrow = tmp_path / "narrow.csv"
    pd.read_csv(iris).iloc[:, 1:].to_csv(narrow, index=False)
    assert "lacks columns of the model" in refuse(capsys, "export", model, out, "--check", narrow)
    assert "does not exist" in refuse(capsys, "export", tmp_path / "no.skops", out)
    assert not out.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["iris.skops", "narrow.csv"]


def test_a_graph_that_disagrees_is_not_written(model, iris, tmp_path, capsys, monkeypatch):
    from polymargin import export

    def strictly(*given):
        return replace(compare(*given), tolerance=0.0)

    compare = export.compare
    monkeypatch.setattr(export, "compare", strictly)
    line = refuse(capsys, "export", model, tmp_path / "iris.onnx", "--check", iris)
    assert "nothing was written" in line
    assert not (tmp_path / "iris.onnx").exists()
