"""One training after the other, in a thread, with what can be said of it meanwhile."""

import threading
import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state
from threadpoolctl import threadpool_limits

from polymargin.cli import training
from polymargin.cli._terminal import SMALL, describe
from polymargin.cli.methods import Choice, tuned
from polymargin.cli.names import Method
from polymargin.cli.training import Job, Trained
from polymargin.selection.budget import Trial
from polymargin.selection.seconds import parse_seconds
from polymargin.selection.subsamples import ordered
from polymargin.solvers.contract import Interrupted, Record
from polymargin.solvers.watch import Watch
from polymargin.studio.plan import Plan


class Run:
    """A training: begun, watched, perhaps ended, and what came of it.

    Attributes
    ----------
    state : "running", "done", "ended" (by the person, with the best model so far, or without any) or "failed".
    trained : the fitted pipeline, where there is one.
    problem : why there is none.
    """

    def __init__(self, number: int, plan: Plan, job: Job):
        self.number, self.plan, self.job = number, plan, job
        self.choice: Choice = plan.choice(job.classes)
        self.state = "running"
        self.trained: Trained | None = None
        self.problem: str | None = None
        self.started = time.perf_counter()
        self.seconds: float | None = None
        self._trials: list[Trial] = []
        self._record: Record | None = None
        self._search: list[Any] = []
        self._watch = Watch(self._see)
        self._thread = threading.Thread(target=self._work, name=f"run {number}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def cancel(self) -> None:
        """End the training soon, keeping the best model so far."""
        self._watch.end()

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the training; tell whether it has come."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def progress(self) -> dict[str, Any]:
        """Return how far the training is."""
        trials, record = list(self._trials), self._record
        elapsed = self.seconds if self.seconds is not None else time.perf_counter() - self.started
        best = max((t.score for t in trials if t.n_rows == trials[-1].n_rows), default=None)
        return {
            "number": self.number,
            "state": self.state,
            "problem": self.problem,
            "seconds": elapsed,
            "budget": parse_seconds(self.plan.budget),
            "tried": len(self._trials),
            "rows": trials[-1].n_rows if trials else None,
            "best": None if best is None else -best,
            "objective": None if record is None else record.primal,
            "gap": None if record is None else max(record.gap, 0.0),
        }

    def _see(self, record: Record) -> None:
        self._record = record

    def _observe(self, trial: Trial) -> None:
        self._trials.append(trial)

    def _work(self) -> None:
        limits = threadpool_limits(1 if len(self.job.train[1]) <= SMALL else None)
        with limits, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the certificate does not prove, the summary says
            try:
                with self._watch:
                    self.trained = training.train(
                        self.job,
                        self.choice,
                        tune=self.choice.method is not Method.auto,
                        observer=self._observe,
                        started_search=lambda *started: self._search.extend(started),
                    )
                state = "done"
            except Interrupted:
                self.trained = self._best_so_far()
                state = "ended"
            except Exception as error:  # whatever it is, the person reads it and the studio goes on
                self.problem = describe(error)
                state = "failed"
        self.seconds = time.perf_counter() - self.started
        self.state = state

    def _best_so_far(self) -> Trained | None:
        """Return the best model that an ended search has fitted, if any."""
        if not self._search or not hasattr(self._search[0], "best_estimator_"):
            return None
        search, model = self._search
        X, y = self.job.train
        n_rows, machine = getattr(search, "n_rows_", len(y)), tuned(search)
        if self.choice.is_probable:
            # The machine alone would decide as if all errors cost the same; so many rows are soon fitted.
            rows = np.sort(ordered(y, check_random_state(self.choice.seed))[:n_rows])
            machine = self.choice.with_probabilities(clone(machine))
            machine.fit(_safe_indexing(model[:-1].transform(X), rows), y[rows])
        model.steps[-1] = ("classify", machine)
        return Trained(model, search, time.perf_counter() - self.started, n_rows, self.choice)
