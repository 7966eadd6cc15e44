"""A studio over a file, being served."""

import json
import threading
import time
from http.client import HTTPConnection

import numpy as np
import pandas as pd
import pytest

from polymargin.studio.runs import Run
from polymargin.studio.server import Studio
from polymargin.studio.session import Session

HANGING = 600.0
"""Seconds after which a test gives up: how long anything takes is the machine's affair."""


class Client:
    """Talks to a studio as its page does, or in other ways."""

    def __init__(self, studio):
        self.studio = studio

    def request(self, method, path, body=None, *, token=True, **headers):
        """Return the status, the headers and the content."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None and token is not False:
            given["X-Polymargin-Token"] = self.studio.token if token is True else token
        connection = HTTPConnection("127.0.0.1", self.studio.port, timeout=HANGING)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), given)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def get(self, path):
        status, _, content = self.request("GET", path)
        assert status == 200, content
        return json.loads(content)

    def post(self, path, body, status=200):
        answered, _, content = self.request("POST", path, body)
        assert answered == status, content
        return json.loads(content)

    def finished(self, number):
        """Wait for the end of a run; return its last progress."""
        until = time.monotonic() + HANGING
        while (progress := self.get(f"/api/runs/{number}"))["state"] == "running":
            assert time.monotonic() < until, progress
            time.sleep(0.05)
        return progress


def serve(path):
    """Serve a file in a thread; return the studio and what ends it."""
    studio = Studio(Session(path))
    thread = threading.Thread(target=studio.serve, daemon=True)
    thread.start()
    while not studio.server.started:
        time.sleep(0.01)

    def end():
        studio.stop()
        thread.join(HANGING)
        assert not thread.is_alive()

    return studio, end


def trees(n=160):
    """Trees with an ID, a category, a hole, and a column that nobody can use."""
    rng = np.random.default_rng(0)
    kind = np.array(["ash", "beech", "oak"])[rng.integers(0, 3, n)]
    height = np.select([kind == "ash", kind == "beech"], [0.0, 2.5], 5.0) + rng.normal(size=n)
    remarks = [f"seen on day {i}" for i in range(n)]
    frame = pd.DataFrame(
        {
            "tree ID": np.arange(n) + 1000,
            "height": height.round(3),
            "girth": rng.normal(size=n).round(3),
            "bark": np.where(kind == "oak", "rough", rng.choice(["smooth", "rough"], n)),
            "remark": remarks,
            "kind": kind,
        }
    )
    frame.loc[3, "girth"] = np.nan
    return frame


@pytest.fixture(scope="session")
def tree_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("trees") / "trees.csv"
    trees().to_csv(path, index=False)
    return path


@pytest.fixture
def client(tree_file):
    studio, end = serve(tree_file)
    yield Client(studio)
    end()


@pytest.fixture
def until_cancelled(monkeypatch):
    """Let searches stand still after their second setting until they are cancelled, however quick they are."""
    cancelled = threading.Event()
    observe, cancel = Run._observe, Run.cancel

    def standing(run, trial):
        observe(run, trial)
        if len(run._trials) >= 2:
            assert cancelled.wait(HANGING)

    def ending(run):
        cancel(run)
        cancelled.set()

    monkeypatch.setattr(Run, "_observe", standing)
    monkeypatch.setattr(Run, "cancel", ending)


@pytest.fixture(scope="session")
def plan():
    """A plan that works for the trees."""
    return {"target": "kind", "drop": ["tree ID", "remark"], "impute": True, "budget": "4s"}
