"""The studio without a browser: the same answers as the command line, and none of its work lost."""

import io
import json
import shlex
import signal
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from polymargin import persistence
from polymargin.cli import main
from polymargin.cli.costs import read_costs
from polymargin.cli.tables import Reading
from polymargin.studio.plan import Plan
from polymargin.studio.server import open_browser
from tests.cli.commands import COMMAND
from tests.studio.conftest import HANGING, Client, serve, trees


def test_all_problems_of_all_columns_are_seen_at_once(client):
    seen = client.get("/api/overview")
    by_name = {column["name"]: column for column in seen["columns"]}
    assert (seen["file"], seen["rows"]) == ("trees.csv", 160)
    assert by_name["tree ID"]["use"] == by_name["remark"]["use"] == "leave out"
    assert "tells every row apart" in by_name["tree ID"]["problems"][0]
    assert "160 different texts" in by_name["remark"]["problems"][0]
    assert "has a missing value" in by_name["girth"]["problems"][0]
    assert by_name["height"] == {
        "name": "height", "use": "number", "distinct": 158, "missing": 0, "problems": [],
        "values": by_name["height"]["values"],
    }  # fmt: skip
    assert by_name["bark"]["use"] == "category"
    assert seen["targets"][0] == "kind"


def test_a_plan_with_problems_says_them_and_still_shows_the_classes(client, plan):
    said = client.post("/api/check", {**plan, "impute": False})
    assert "missing values in: girth (1)" in said["problems"][0]
    assert [one["name"] for one in said["classes"]] == ["ash", "beech", "oak"]
    assert client.post("/api/check", plan)["problems"] == []
    assert client.post("/api/check", {**plan, "target": "height"})["problems"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"target": 3}, "target must be the name of a column, got 3"),
        ({"method": "magic"}, "method must be one of auto"),
        ({"budget": "soon"}, "budget must be a time above zero"),
        ({"share": 1.5}, "share must be a share of the rows"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"costs": [[1, 2]]}, "costs must be a square table"),
        ({"costs": [[0, "1"], [1, 0]]}, "costs must be a square table of numbers"),
        ({"drop": "all"}, "drop must be a list"),
        ({"impute": 1}, "impute must be true or false"),
        ({"colour": "red"}, "a plan has no 'colour'"),
    ],
    ids=str,
)
def test_wrong_plans_are_refused_in_words(client, plan, wrong, words):
    for path in ("/api/check", "/api/train"):
        assert words in client.post(path, {**plan, **wrong}, status=422)["problems"][0]
    assert client.studio.session.runs == []


def test_what_is_no_plan_and_no_run(client):
    assert client.request("POST", "/api/train", [1])[0] == 422
    for path in ("/api/runs/1", "/api/runs/0/summary", "/api/runs/1/export/csv"):
        assert client.request("GET", path)[0] == 404


@pytest.fixture(scope="module")
def trained(tree_file, plan):
    """A studio with one run that is done."""
    studio, end = serve(tree_file)
    client = Client(studio)
    client.post("/api/train", plan)
    assert client.finished(1)["state"] == "done"
    yield client
    end()


def test_it_says_what_the_command_says(client, plan, tmp_path, capsys):
    # one fit: what a search finds within seconds depends on what else the machine does
    number = client.post("/api/train", {**plan, "method": "multicategory", "budget": "10m"})["number"]
    assert client.finished(number)["state"] == "done"
    summary = client.get(f"/api/runs/{number}/summary")
    words = shlex.split(summary["command"])
    assert words[:2] == ["polymargin", "fit"]
    model, page = tmp_path / "m.skops", tmp_path / "r.html"
    words[words.index("model.skops")], words[words.index("report.html")] = str(model), str(page)
    assert main(words[1:]) == 0
    printed = capsys.readouterr().out
    line = dict(summary["lines"])
    assert f"error              {line['error']}" in printed or line["error"] in printed
    assert page.exists()
    assert "chosen" not in line


def test_predictions_are_joined_to_the_input_and_say_what_was_held_out(trained):
    page = trained.get("/api/runs/1/predictions?held_out=1")
    assert page["columns"][:8] == ["row", "tree ID", "height", "girth", "bark", "remark", "true class", "part"]
    assert page["total"] == 40
    assert {row[7] for row in page["rows"]} == {"held out"}
    wrong = trained.get("/api/runs/1/predictions?held_out=1&wrong=1")
    summary = trained.get("/api/runs/1/summary")
    assert wrong["total"] / page["total"] == pytest.approx(summary["error"])
    found = trained.get("/api/runs/1/predictions?text=day%207&sort=height&descending=1")
    assert found["total"] == 11
    heights = [row[2] for row in found["rows"]]
    assert heights == sorted(heights, reverse=True)


@pytest.mark.parametrize(
    ("kind", "read"), [("csv", pd.read_csv), ("excel", pd.read_excel), ("parquet", pd.read_parquet)]
)
def test_exports_hold_every_row_of_the_input(trained, kind, read):
    status, _, content = trained.request("GET", f"/api/runs/1/export/{kind}")
    assert status == 200
    table = read(io.BytesIO(content))
    expected = trees()
    for name in ("tree ID", "height", "bark", "remark"):
        assert table[name].tolist() == expected[name].tolist()
    assert table["true class"].tolist() == expected["kind"].tolist()
    assert (table["part"] == "held out").sum() == 40
    assert set(table["prediction"]) == {"ash", "beech", "oak"}


def test_the_script_stands_for_itself_and_has_the_same_error(trained, tmp_path):
    summary = trained.get("/api/runs/1/summary")
    assert error_of_script(summary["script"], tmp_path) == pytest.approx(summary["error"], abs=1e-12)
    table = pd.read_csv(tmp_path / "predictions.csv")
    assert table["tree ID"].tolist() == trees()["tree ID"].tolist()


def test_the_saved_model_is_one_of_all_rows_that_predict_takes(trained, tmp_path, tree_file, capsys):
    path = tmp_path / "model.skops"
    path.write_bytes(trained.request("GET", "/api/runs/1/model")[2])
    assert persistence.load(path).metadata["target"] == "kind"
    assert main(["predict", str(path), str(tree_file), "--keep", "tree ID"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 161


def test_variables_tell_what_matters(trained):
    said = trained.get("/api/runs/1/variables")
    assert said["rows"][0][0] == "height"
    assert said["rows"][0][1] > 0.2
    assert {row[0] for row in said["rows"]} == {"height", "girth", "bark"}


def test_the_report_is_the_report(trained):
    status, headers, content = trained.request("GET", "/api/runs/1/report")
    assert status == 200
    assert headers["content-type"].startswith("text/html")
    assert b"<title>trees.csv</title>" in content


COSTS = [[0, 1, 1], [1, 0, 1], [1, 20, 0]]


@pytest.mark.parametrize("method", ["auto", "proximal"])
def test_costs_act_by_probabilities_and_can_be_taken_along(trained, plan, tmp_path, method):
    number = trained.post("/api/train", {**plan, "costs": COSTS, "method": method})["number"]
    assert trained.finished(number)["state"] == "done"
    before, after = (trained.get(f"/api/runs/{n}/summary") for n in (1, number))
    assert after["confusion"][2][1] <= before["confusion"][2][1]
    assert "the class of least expected cost, by probabilities" in dict(after["lines"])["decisions"]
    path = tmp_path / "costs.csv"
    path.write_bytes(trained.request("GET", f"/api/runs/{number}/costs")[2])
    np.testing.assert_array_equal(read_costs(path, np.array(["ash", "beech", "oak"])), COSTS)
    assert "--costs costs.csv" in after["command"]
    assert "--costs-in" not in after["command"]  # in the decisions, as without the studio
    assert error_of_script(after["script"], tmp_path) == pytest.approx(after["error"], abs=1e-12)


def error_of_script(text, folder):
    """Run a script; return the error that it prints."""
    path = folder / "again.py"
    path.write_text(text, "utf-8")
    done = subprocess.run([sys.executable, path], cwd=folder, capture_output=True, text=True, timeout=HANGING)
    assert done.returncode == 0, done.stderr
    return float(done.stdout.split(":")[1])


@pytest.mark.parametrize("costs", [None, COSTS], ids=["equal costs", "edited costs"])
def test_training_can_be_cancelled_and_keeps_the_best_so_far(client, plan, until_cancelled, costs):
    number = client.post("/api/train", {**plan, "budget": "10m", "costs": costs})["number"]
    assert client.request("POST", "/api/train", plan)[0] == 409
    assert client.request("GET", f"/api/runs/{number}/summary")[0] == 404
    until = time.monotonic() + HANGING
    while client.get(f"/api/runs/{number}")["tried"] < 2:
        assert time.monotonic() < until
        time.sleep(0.02)
    progress = client.get(f"/api/runs/{number}")
    assert progress["objective"] > 0
    assert progress["gap"] >= 0
    assert progress["best"] is not None
    client.post(f"/api/runs/{number}/cancel", {})
    assert client.finished(number)["state"] == "ended"
    assert client.get(f"/api/runs/{number}/summary")["error"] < 0.6
    shown = client.get(f"/api/runs/{number}/predictions")["columns"]
    assert ("probability ash" in shown) == (costs is not None)  # by which it decides


def test_a_training_that_fails_says_why_and_the_studio_goes_on(client, plan, monkeypatch):
    def fail(*given, **named):
        raise MemoryError("Unable to allocate 42.3 GiB")

    monkeypatch.setattr("polymargin.cli.training.train", fail)
    number = client.post("/api/train", plan)["number"]
    said = client.finished(number)
    assert (said["state"], "42.3 GiB" in said["problem"]) == ("failed", True)
    monkeypatch.undo()
    number = client.post("/api/train", plan)["number"]
    assert client.finished(number)["state"] == "done"


def test_a_file_that_is_read_in_the_wrong_way_can_be_read_again(tmp_path):
    path = tmp_path / "two ways.csv"
    path.write_text("a;b,c;d\n" + "".join(f"{i};{i % 3},{i};x{i % 2}\n" for i in range(40)), "utf-8")
    studio, end = serve(path)
    try:
        client = Client(studio)
        before = client.get("/api/overview")
        after = client.post("/api/reading", {"sep": ";", "na": ["-999"]})
        assert [column["name"] for column in after["columns"]] == ["a", "b,c", "d"]
        assert before["columns"] != after["columns"]
        refused = client.post("/api/reading", {"sep": "%"})
        assert "--sep must be one of" in refused["problems"][0]
    finally:
        end()


@pytest.mark.parametrize("name", ["digits.libsvm", "codes.parquet"])
def test_other_formats(tmp_path, name, plan):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 4)) + 3.0 * y[:, None]
    path = tmp_path / name
    if name.endswith("libsvm"):
        lines = (
            f"{label} " + " ".join(f"{j + 1}:{v:.3f}" for j, v in enumerate(row))
            for label, row in zip(y, X, strict=True)
        )
        path.write_text("\n".join(lines), "utf-8")
        asked = {"budget": "2s"}
    else:
        frame = pd.DataFrame(X, columns=list("abcd")).assign(code=rng.integers(0, 2, 60) + 1.0, y=y)
        frame.to_parquet(path)
        asked = {"budget": "2s", "target": "y", "categorical": ["code"]}
    studio, end = serve(path)
    try:
        client = Client(studio)
        assert client.post("/api/check", asked)["problems"] == []
        client.post("/api/train", asked)
        assert client.finished(1)["state"] == "done"
        summary = client.get("/api/runs/1/summary")
        assert client.get("/api/runs/1/variables")["meaning"]
        assert client.request("GET", "/api/runs/1/export/csv")[0] == 200
        script = tmp_path / "again.py"
        script.write_text(summary["script"], "utf-8")
        done = subprocess.run(
            [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=HANGING
        )
        assert done.returncode == 0, done.stderr
        assert float(done.stdout.split(":")[1]) == pytest.approx(summary["error"], abs=1e-12)
    finally:
        end()


def test_names_that_are_no_code(tmp_path):
    """Names of files, columns and classes come into the script as text, whatever they hold."""
    odd = 'a"""\n\\\'; import os'
    rng = np.random.default_rng(0)
    y = np.array(["</script>", "b'\"", "c"])[np.arange(60) % 3]
    frame = pd.DataFrame(
        {
            odd: rng.normal(size=60) + 2.0 * (y == "c"),
            "kind": rng.choice(["x", 'y"'], 60),
            "true class": 1.0,
            "y": y,
        }
    )
    path = tmp_path / "odd'\" name.csv"
    frame.to_csv(path, index=False)
    studio, end = serve(path)
    try:
        client = Client(studio)
        client.post("/api/train", {"target": "y", "budget": "2s"})
        assert client.finished(1)["state"] == "done"
        summary = client.get("/api/runs/1/summary")
        done = subprocess.run(
            [sys.executable, "-"],
            input=summary["script"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=HANGING,
        )
        assert done.returncode == 0, done.stderr
        assert float(done.stdout.split(":")[1]) == pytest.approx(summary["error"], abs=1e-12)
        columns = client.get("/api/runs/1/predictions")["columns"]
        assert "polymargin true class" in columns
    finally:
        end()


def test_a_plan_is_the_same_as_its_command():
    plan = Plan.of({"target": "a b", "drop": ["x"], "share": 0.3, "seed": 7, "method": "sparse", "budget": "9s"})
    words = shlex.split(plan.command(Path("my data.csv"), Reading(sep=";", na=("-1",))))
    assert words[:4] == ["polymargin", "fit", "my data.csv", "--tune"]
    for option, value in [
        ("--target", "a b"),
        ("--drop", "x"),
        ("--test-size", "0.3"),
        ("--seed", "7"),
        ("--na", "-1"),
    ]:
        assert words[words.index(option) + 1] == value


def test_the_address_is_handed_to_the_browser_in_a_private_file(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    assert open_browser("http://127.0.0.1:1/#token=secret", tmp_path)
    (file,) = tmp_path.iterdir()
    assert opened == [file.as_uri()]
    assert "secret" not in opened[0]
    assert file.stat().st_mode & 0o077 == 0
    assert "#token=secret" in file.read_text("utf-8")


def test_the_command_serves_and_ends_by_ctrl_c(tree_file):
    process = subprocess.Popen(
        [COMMAND, "studio", tree_file, "--no-browser"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        address = process.stdout.readline().split()[1]
        port, token = address.split(":")[2].split("/#token=")
        connection = HTTPConnection("127.0.0.1", int(port), timeout=HANGING)
        connection.request("GET", "/api/overview", headers={"X-Polymargin-Token": token})
        assert json.loads(connection.getresponse().read())["file"] == "trees.csv"
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(HANGING) == 0
    finally:
        process.kill()
        process.communicate()
