"""The comparison without a command line: methods one by one, each within its share of the budget, none lost."""

import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import _safe_indexing

from polymargin import BudgetSearch, __version__, expected_cost, make_cost_scorer
from polymargin.cli._terminal import make_table, results
from polymargin.cli.clock import Clock
from polymargin.cli.columns import Columns
from polymargin.cli.estimates import Estimate, memory_of
from polymargin.cli.methods import AT_ONCE, CS, LINEAR_CS, WIDTHS, Choice, kernel_scale, machine_of
from polymargin.cli.names import Method, Misuse
from polymargin.cli.training import JUDGING, Job

Search = Callable[[Any, str], Any]
"""What makes the search of a method, given the prepared rows and its budget for one outer fold."""


@dataclass(frozen=True, slots=True)
class Score:
    """What one outer fold says about one method; `gap` is None where there is no certificate."""

    error: float
    cost: float
    balanced: float
    seconds: float
    rows: int
    gap: float | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one method: a score per outer fold, or the reason why there is none."""

    method: str
    scores: tuple[Score, ...] = ()
    reason: str | None = None


class Ledger:
    """The outcomes so far, in a file, so that a comparison that was ended can go on."""

    def __init__(self, path: Path | None):
        self.path = path
        self.outcomes: dict[str, Outcome] = {}
        if path is not None and path.exists():
            for line in path.read_text("utf-8").splitlines():
                try:
                    entry = json.loads(line)
                    scores = tuple(Score(**score) for score in entry["scores"])
                    self.outcomes[entry["method"]] = Outcome(entry["method"], scores, entry["reason"])
                except (ValueError, KeyError, TypeError):
                    continue  # the last line of a killed process may be half a line

    @classmethod
    def of(cls, data: Path, told: Any, *, fresh: bool = False) -> "Ledger":
        """Return the ledger of a comparison of this very file with these options."""
        identity = hashlib.sha256(data.read_bytes())
        identity.update(json.dumps([__version__, told], default=str).encode())
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "polymargin"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            return cls(None)  # nowhere to keep anything: the comparison still works
        path = folder / f"compare-{identity.hexdigest()[:24]}.jsonl"
        if fresh:
            path.unlink(missing_ok=True)
        return cls(path)

    @property
    def methods(self) -> list[str]:
        """The methods that are done."""
        return list(self.outcomes)

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome."""
        self.outcomes[outcome.method] = outcome
        if self.path is not None:
            line = json.dumps(asdict(outcome)) + "\n"
            with self.path.open("a+b") as file:
                file.seek(-min(file.tell(), 1), os.SEEK_END)
                began_anew = file.read() in (b"", b"\n")  # else a killed process has left half a line
                file.write(line.encode() if began_anew else b"\n" + line.encode())

    def close(self) -> None:
        """Forget it all: the comparison is complete."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def chosen(only: list[str] | None, searches: dict[str, Any]) -> dict[str, Any]:
    """Return the searches named, all if none is."""
    unknown = [name for name in only or () if name not in searches]
    if unknown:
        raise Misuse(f"--only must be one of {', '.join(searches)}, got {unknown[0]!r}.")
    return {name: search for name, search in searches.items() if not only or name in only}


def ours(costs: NDArray | None, seed: int) -> dict[str, Search]:
    """Return for each of our methods what makes its search."""

    def search_of(method: Method) -> Search:
        def search(X: Any, budget: str) -> Any:
            given = costs if method.takes_costs else None
            made = Choice(method, costs=given, seed=seed, budget=budget).search(X)
            return made.set_params(scoring=make_cost_scorer(costs))

        return search

    return {str(method): search_of(method) for method in Method}


def rivals(costs: NDArray | None, seed: int) -> dict[str, Search]:
    """Return the same for scikit-learn's classifiers, tuned in the same way by the same costs."""

    def search_of(machine: Any, kernel: bool) -> Search:
        def search(X: Any, budget: str) -> Any:
            grid: dict[str, Any] = (
                {"C": CS, "gamma": [w * kernel_scale(X) for w in WIDTHS]} if kernel else {"C": LINEAR_CS}
            )
            return BudgetSearch(
                machine, grid, budget=budget, scoring=make_cost_scorer(costs), random_state=seed, n_jobs=AT_ONCE
            )

        return search

    return {
        "SVC": search_of(SVC(), True),
        "LinearSVC": search_of(LinearSVC(random_state=seed), False),
        "LogisticRegression": search_of(LogisticRegression(max_iter=1000), False),
    }


def foreseen(job: Job, clock: Clock) -> Estimate:
    """Return what a comparison takes at most: the time it was given, and the memory of a machine with a kernel."""
    X, y = job.everything
    return Estimate(clock.seconds, memory_of(SVC(), X, y), is_bound=True)


def run(
    job: Job,
    searches: dict[str, Search],
    folds: int,
    clock: Clock,
    costs: NDArray | None,
    seed: int,
    ledger: Ledger,
    table: "Table",
    say: Callable[[str], None] = lambda what: None,
) -> None:
    """Judge one method after the other; each of their folds has an equal share of what is left of the budget."""
    X, y = job.everything
    splits = list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(np.zeros(len(y)), y))
    left = [name for name in searches if name not in ledger.outcomes]
    for name in searches:
        if name in ledger.outcomes:
            table.add(ledger.outcomes[name])
    for at, name in enumerate(left):
        scores: list[Score] = []
        try:
            for number, (train, test) in enumerate(splits, start=1):
                say(f"{name}, fold {number} of {folds}; {len(ledger.methods)} of {len(searches)} methods done")
                share = clock.part((1.0 - JUDGING) / ((len(left) - at) * folds - number + 1))
                scores.append(judge(searches[name], f"{share:.3f}s", job.columns, X, y, train, test, costs))
            outcome = Outcome(name, tuple(scores))
        except Exception as error:  # whatever stops one method must not cost the others
            reason = " ".join(str(error).split()) or type(error).__name__
            outcome = Outcome(name, (), reason)
        ledger.add(outcome)
        table.add(outcome)


def judge(
    search: Search,
    budget: str,
    columns: Columns,
    X: Any,
    y: NDArray,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    costs: NDArray | None,
) -> Score:
    """Tune and fit on the training rows of one outer fold, and judge on the others."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        # Rivals that stop early and categories that a fold lacks are part of the comparison.
        warnings.simplefilter("ignore")
        prepare = columns.preprocessing(scale=True)
        inside = _safe_indexing(X, train)
        features = inside if isinstance(prepare, str) else prepare.fit_transform(inside, y[train])
        model = Pipeline([("prepare", prepare), ("classify", search(features, budget))])
        model[-1].fit(features, y[train])
        seconds = time.perf_counter() - started
        predicted = model.predict(_safe_indexing(X, test))
    certificate = getattr(machine_of(model), "certificate_", None)
    found = [float(np.mean(predicted[y[test] == label] == label)) for label in np.unique(y[test])]
    return Score(
        float(np.mean(predicted != y[test])),
        expected_cost(y[test], predicted, costs, labels=np.unique(y)),
        float(np.mean(found)),
        seconds,
        int(getattr(model[-1], "n_rows_", len(train))),
        None if certificate is None else max(certificate.gap, 0.0),
    )


class Table:
    """The outcomes, one line per method."""

    def __init__(self, title: str, *, tuned_by_costs: bool):
        self.title, self.tuned_by_costs = title, tuned_by_costs
        self.outcomes: list[Outcome] = []

    def add(self, outcome: Outcome) -> None:
        """Take an outcome in, and say it at once."""
        self.outcomes.append(outcome)
        console = results()
        if outcome.reason is not None:
            console.print(f"{outcome.method}: failed: {outcome.reason}")
        else:
            error = np.mean([score.error for score in outcome.scores])
            seconds = np.mean([score.seconds for score in outcome.scores])
            console.print(f"{outcome.method}: error {error:.4f}, {seconds:.1f} s per fit")

    def show(self) -> None:
        """Print all outcomes; the lowest expected cost is marked, what failed has its reason."""
        table = make_table(
            self.title, "method", "error", "+/-", "balanced accuracy", "expected cost", "seconds", "rows", "gap"
        )
        done = [outcome for outcome in self.outcomes if outcome.scores]
        means = {one.method: float(np.mean([score.cost for score in one.scores])) for one in done}
        for outcome in done:
            scores = outcome.scores
            errors = np.array([score.error for score in scores])
            gaps = [score.gap for score in scores if score.gap is not None]
            table.add_row(
                outcome.method + (" *" if means[outcome.method] == min(means.values()) else ""),
                f"{errors.mean():.4f}",
                f"{errors.std(ddof=1) / np.sqrt(len(errors)):.4f}",
                f"{np.mean([score.balanced for score in scores]):.4f}",
                f"{means[outcome.method]:.4f}",
                f"{np.mean([score.seconds for score in scores]):.2f}",
                str(min(score.rows for score in scores)),
                f"{max(gaps):.1e}" if gaps else "-",
            )
        console = results()
        if done:
            console.print(table)
            console.print(
                "* lowest expected cost; +/- one standard error over the outer folds; seconds per fit, tuning "
                "included; rows: that the last fit of a fold had; gap: the largest"
            )
        for outcome in self.outcomes:
            if outcome.reason is not None:
                console.print(f"{outcome.method} failed: {outcome.reason}")
        if self.tuned_by_costs and done:
            console.print(
                "costs act in the training of auto, multicategory, sparse and robust, and in the tuning of all"
            )
