"""What one studio knows: its file, how it is read, and the runs so far."""

import threading
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from polymargin.cli._terminal import describe
from polymargin.cli.names import Method, Problems
from polymargin.cli.tables import Reading, Rows, read_rows
from polymargin.studio.outcome import Outcome
from polymargin.studio.overview import classes_of, overview
from polymargin.studio.plan import Plan
from polymargin.studio.runs import Run


class Busy(ValueError):
    """A training is under way."""


class Unknown(LookupError):
    """There is no such run, or it has no model."""


class Session:
    """One file and the runs on it; every method may be called from any thread."""

    def __init__(self, path: Path, reading: Reading | None = None):
        self.path = path
        self.reading = reading or Reading()
        self.runs: list[Run] = []
        self._rows: Rows | None = None
        self._outcomes: dict[int, Outcome] = {}
        self._lock = threading.RLock()

    def overview(self) -> dict[str, Any]:
        """Return the file's columns with all their problems, or the problem of the file."""
        with self._lock:
            said = {"file": self.path.name, "methods": [str(method) for method in Method]}
            try:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    self._rows = read_rows(self.path, target=None, reading=self.reading, need_target=False)
                notes = [str(entry.message) for entry in caught]
                return said | overview(self._rows) | {"notes": notes, "problems": []}
            except ValueError as error:
                return said | {"columns": [], "targets": [], "problems": problems_of(error), "notes": []}

    def read_again(self, asked: Any) -> dict[str, Any]:
        """Read the file in another way."""
        if not isinstance(asked, dict):
            raise ValueError("a reading must be an object of names and values.")
        sep, decimal, encoding = given = [asked.get(name) or None for name in ("sep", "decimal", "encoding")]
        if not all(value is None or isinstance(value, str) for value in given):
            raise ValueError("sep, decimal and encoding must be text.")
        na = asked.get("na", [])
        if not isinstance(na, list) or not all(isinstance(text, str) for text in na):
            raise ValueError("na must be a list of texts.")
        with self._lock:
            self.reading = replace(self.reading, sep=sep, decimal=decimal, encoding=encoding, na=tuple(na))
            return self.overview()

    def check(self, asked: Any) -> dict[str, Any]:
        """Return what a plan comes to: its classes, and everything that speaks against it."""
        plan = Plan.of(asked)
        with self._lock, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                job = plan.job(self.path, self._reading(plan))
                plan.choice(job.classes)
            except ValueError as error:
                return {"problems": problems_of(error), "classes": self._classes(plan)}
        assert job.rows.y is not None
        return {
            "problems": [],
            "notes": [str(entry.message) for entry in caught],
            "classes": classes_of(job.rows.y),
            "training": len(job.train[1]),
            "held_out": 0 if job.held_out is None else len(job.held_out[1]),
            "command": plan.command(self.path, job.rows.reading),
        }

    def _classes(self, plan: Plan) -> list[dict[str, Any]]:
        """Return the classes even of a plan that has problems, where the target has none."""
        try:
            rows = read_rows(self.path, target=plan.target, reading=self.reading)
        except ValueError:
            return []
        assert rows.y is not None
        return classes_of(rows.y)

    def _reading(self, plan: Plan) -> Reading:
        return replace(self.reading, as_text=plan.categorical)

    def train(self, asked: Any) -> Run:
        """Begin a training."""
        plan = Plan.of(asked)
        with self._lock:
            if any(run.state == "running" for run in self.runs):
                raise Busy("a training is under way; cancel it first.")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the page has shown them
                job = plan.job(self.path, self._reading(plan))
            run = Run(len(self.runs) + 1, plan, job)
            self.runs.append(run)
            run.start()
            return run

    def run(self, number: int) -> Run:
        """Return a run by its number, counted from 1."""
        if not 1 <= number <= len(self.runs):
            raise Unknown(f"there is no run {number}.")
        return self.runs[number - 1]

    def outcome(self, number: int) -> Outcome:
        """Return what came of a run."""
        run = self.run(number)
        if run.state == "running" or run.trained is None:
            raise Unknown(f"run {number} has no model.")
        with self._lock:
            if number not in self._outcomes:
                self._outcomes[number] = Outcome(run.plan, run.job, run.trained, self.path)
            return self._outcomes[number]

    def close(self) -> None:
        """End what is under way."""
        for run in self.runs:
            run.cancel()
        for run in self.runs:
            run.wait(2.0)


def problems_of(error: Exception) -> list[str]:
    """Return everything that an error says, one thing each."""
    return error.problems if isinstance(error, Problems) else [describe(error)]
