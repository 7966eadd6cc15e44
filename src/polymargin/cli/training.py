"""Training on a file, without a command line: read, split, tune and fit, fit again to all rows.

job = read_job(Path("iris.csv"), target="species")
trained = train(job, Choice(Method.auto))
final = refitted(trained, job)
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from polymargin import BudgetSearch, RejectOptionClassifier, RobustSearch
from polymargin.cli.clock import Clock
from polymargin.cli.columns import Columns
from polymargin.cli.costs import cost_columns_of, read_row_costs, where_wrong
from polymargin.cli.estimates import Estimate, estimate
from polymargin.cli.methods import Choice, machine_of, tuned
from polymargin.cli.tables import Reading, Rows, check_classes, read_rows
from polymargin.selection.budget import Trial
from polymargin.selection.spending import GROWTH

Part = tuple[Any, NDArray]

MEMORY = 8e9
"""Bytes that the prepared columns may take; several copies of them are needed."""

JUDGING = 0.1
"""Part of a budget for judging, saving and writing a page."""

AGAIN = 0.25
"""Part of a budget for fitting again: to all rows, for probabilities, or for a threshold of rejection."""


@dataclass(frozen=True, slots=True)
class Job:
    """Rows to train on and rows to judge by.

    Attributes
    ----------
    rows, columns : the file, and what its columns are.
    train, held_out : prepared columns and classes; `held_out` is None where none were asked for.
    everything : all rows of the file, which a model for use is fitted to.
    held_out_rows : positions among them of those held out, where these are of the same file.
    row_costs : what predictions cost rows where they are wrong, where columns of the file say so.
    """

    rows: Rows
    columns: Columns
    train: Part
    held_out: Part | None
    everything: Part
    held_out_rows: NDArray[np.intp] | None = None
    row_costs: "RowCosts | None" = None

    @property
    def classes(self) -> NDArray:
        """The classes of the training rows."""
        return np.unique(self.train[1])


@dataclass(frozen=True, slots=True)
class RowCosts:
    """What predicting each class costs where it is wrong, (n, k) of the rows of each part of a job."""

    train: NDArray[np.float64]
    held_out: NDArray[np.float64] | None
    everything: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Trained:
    """A fitted pipeline and how it came about.

    Attributes
    ----------
    model : preparation and classifier.
    search : the fitted search, None without tuning.
    seconds : that it took.
    n_rows : that the classifier was fitted to.
    choice : of the method, and of how it is used.
    last_seconds : of `seconds`, those of the last fit alone.
    """

    model: Pipeline
    search: Any
    seconds: float
    n_rows: int
    choice: Choice
    last_seconds: float = 0.0

    @property
    def is_complete(self) -> bool:
        """Whether all the training rows were used."""
        return bool(getattr(self.search, "complete_", True))


def read_job(
    path: Path,
    *,
    target: str | None = None,
    reading: Reading | None = None,
    categorical: tuple[str, ...] = (),
    numeric: tuple[str, ...] = (),
    drop: tuple[str, ...] = (),
    impute: bool = False,
    share: float = 0.25,
    test: Path | None = None,
    cost_columns: str | None = None,
    seed: int = 0,
) -> Job:
    """Read a file and hold a `share` of its rows out, or take those of the file `test`.

    Columns of costs are no features, unless `numeric` names them.
    """
    reading = reading or Reading()
    rows = read_rows(path, target=target, reading=reading)
    assert rows.y is not None
    check_classes(rows.y, f"{path}: the target" + (f" column {target!r}" if target else ""))
    costs, classes = None, np.unique(rows.y)
    if cost_columns is not None:
        costs = read_row_costs(cost_columns, rows, classes)
        drop += tuple(name for name in cost_columns_of(cost_columns, classes) if name not in numeric)
    columns = Columns.of(rows, categorical=categorical, numeric=numeric, drop=drop, impute=impute, target=target)
    X, y = columns.select(rows), rows.y
    check_memory(X, columns)
    if test is not None:
        other = columns.read(test, target, reading)
        assert other.y is not None
        unknown = np.setdiff1d(other.y.astype(str), np.unique(y).astype(str))
        if len(unknown):
            raise ValueError(f"--test {test} holds classes that {path} does not: {', '.join(unknown[:8])}.")
        row_costs = None
        if costs is not None:
            assert cost_columns is not None
            row_costs = RowCosts(costs, read_row_costs(cost_columns, other, classes), costs)
        held_out_part = columns.select(other), other.y.astype(y.dtype)
        return Job(rows, columns, (X, y), held_out_part, (X, y), row_costs=row_costs)
    if share == 0.0:
        row_costs = None if costs is None else RowCosts(costs, None, costs)
        return Job(rows, columns, (X, y), None, (X, y), row_costs=row_costs)
    held_out, k = int(np.ceil(share * len(y))), len(np.unique(y))
    if held_out < k or len(y) - held_out < k:
        raise ValueError(
            f"--test-size {share:g} of {len(y)} rows leaves {len(y) - held_out} to train and {held_out} to test, "
            f"too few for {k} classes."
        )
    inside, outside = train_test_split(np.arange(len(y)), test_size=share, stratify=y, random_state=seed)
    train, judged = ((_safe_indexing(X, part), y[part]) for part in (inside, outside))
    row_costs = None if costs is None else RowCosts(costs[inside], costs[outside], costs)
    return Job(rows, columns, train, judged, (X, y), outside, row_costs)


def untuned(columns: Columns, choice: Choice, n_rows: int) -> Pipeline:
    """Return preparation and classifier, neither fitted nor tuned."""
    return Pipeline([("prepare", columns.preprocessing(scale=True)), ("classify", choice.classifier(n_rows))])


def check_memory(X: Any, columns: Columns) -> None:
    """Refuse, before any work, columns whose prepared form would not fit into memory."""
    if columns.n_features is not None:
        return
    width = len(columns.numeric) + sum(X[name].nunique() for name in columns.categorical)
    needed = 8.0 * len(X) * width
    if needed > MEMORY:
        most = max(columns.categorical, key=lambda name: X[name].nunique(), default=None)
        hint = f"; column {most!r} alone has {X[most].nunique()} categories" if most is not None else ""
        raise ValueError(
            f"{len(X)} rows with {width} prepared columns take {needed / 1e9:.0f} GB, more than "
            f"{MEMORY / 1e9:.0f}{hint}; leave columns out with --drop, or train on fewer rows."
        )


def train(
    job: Job,
    choice: Choice,
    *,
    tune: bool = False,
    reject: bool = False,
    scale: bool = True,
    clock: Clock | None = None,
    again: bool = False,
    foreseen: Callable[[Estimate], None] | None = None,
    observer: Callable[[Trial], None] | None = None,
    started_search: Callable[[Any, Pipeline], None] | None = None,
) -> Trained:
    """Fit preparation and classifier to the training rows.

    Parameters
    ----------
    job, choice : rows, and what is to be fitted to them.
    tune, reject, scale : as the command line has them.
    clock : of the whole command, which leaves time for judging and, where it will be fitted `again`, for that;
        None where the budget of the choice is that of the training alone.
    foreseen : is told what it will take before it begins.
    observer : sees every trial of a budgeted search.
    started_search : is given the search and the preparation before it begins, so that whoever ends it early has
        its best model so far.
    """
    X, y = job.train
    priced = _priced(choice, job, "train")
    started = time.perf_counter()
    clock = clock or Clock.of(choice.budget_for(len(y), tune=tune))
    prepare = job.columns.preprocessing(scale=scale)
    features = X if isinstance(prepare, str) else prepare.fit_transform(X, y)
    model = Pipeline([("prepare", prepare), ("classify", choice.classifier(len(y)))])
    search = None
    twice = again or reject or choice.is_probable
    allowed = clock.part(1.0 - JUDGING - AGAIN * twice)
    if tune or choice.tunes_itself:
        within = replace(choice, budget=None if np.isinf(allowed) else f"{allowed:.3f}s")
        search = within.search(features, observer)
        model.steps[-1] = ("classify", search)
        if started_search is not None:
            started_search(search, model)
    if foreseen is not None:
        foreseen(estimate(model[-1], features, y, clock.left))
    with time_limit(model[-1], allowed):
        model[-1].fit(features, y, **priced)
    last = getattr(search, "refit_time_", time.perf_counter() - started)
    began_again = time.perf_counter()
    if choice.is_probable:
        # As with rejection, what is left out is rows: the choice of the settings is made.
        probable = choice.with_probabilities(clone(tuned(model[-1])))
        model.steps[-1] = ("classify", probable.fit(features, y, **priced))
    elif reject:
        # The choice is made: what is left out to learn the threshold is rows, not the search.
        careful = RejectOptionClassifier(clone(tuned(model[-1])))
        model.steps[-1] = ("classify", careful.fit(features, y, **priced))
    elif isinstance(search, (RobustSearch, BudgetSearch)):
        # Searches of single families have a section in the report; of these the winner is enough.
        model.steps[-1] = ("classify", search.best_estimator_)
    if choice.is_probable or reject:
        last = time.perf_counter() - began_again
    n_rows = getattr(search, "n_rows_", len(y))
    return Trained(model, search, time.perf_counter() - started, n_rows, choice, last)


@contextmanager
def time_limit(classifier: Any, seconds: float) -> Iterator[None]:
    """Let a classifier that knows a time limit end within so many seconds; its parameters stay as they are."""
    own = classifier.get_params(deep=False)
    if "time_limit" not in own or np.isinf(seconds):
        yield
        return
    classifier.set_params(time_limit=seconds)
    try:
        yield
    finally:
        classifier.set_params(time_limit=own["time_limit"])


def _priced(choice: Choice, job: Job, part: Literal["train", "everything"]) -> dict[str, Any]:
    """Return the costs that a classifier is fitted to beside the rows of a part, if to any."""
    if not choice.trains_by_row:
        return {}
    assert job.row_costs is not None
    return {"costs": where_wrong(getattr(job.row_costs, part), getattr(job, part)[1], job.classes)}


def held_out_costs(job: Job) -> NDArray[np.float64] | None:
    """Return what predictions would cost the held-out rows, where these have costs of their own."""
    if job.row_costs is None or job.row_costs.held_out is None or job.held_out is None:
        return None
    return where_wrong(job.row_costs.held_out, job.held_out[1], job.classes)


def seconds_again(trained: Trained, job: Job) -> float:
    """Return the seconds that fitting to all rows of the file is expected to take."""
    return trained.last_seconds * (len(job.everything[1]) / trained.n_rows) ** GROWTH


def refitted(trained: Trained, job: Job, seconds: float = np.inf) -> Trained | None:
    """Return the same settings fitted to all rows of the file: what is to be used once the error is measured.

    None where this does not end within so many `seconds`: the model that was judged is then the better one.
    """
    X, y = job.everything
    if seconds_again(trained, job) > seconds:
        return None
    started = time.perf_counter()
    model = clone(Pipeline([*trained.model.steps[:-1], ("classify", tuned(trained.model[-1]))]))
    # step by step: a pipeline passes costs of rows on only where scikit-learn's routing is switched on
    features = X if isinstance(model[0], str) else model[0].fit_transform(X, y)
    with time_limit(model[-1], seconds):
        model[-1].fit(features, y, **_priced(trained.choice, job, "everything"))
    if machine_of(trained.model).converged_ and not machine_of(model).converged_:
        return None
    return Trained(model, trained.search, time.perf_counter() - started, len(y), trained.choice)


def describe_settings(search: Any) -> str:
    """Return what a search chose, in words; a width only where the kernel has one."""
    chosen = dict(search.best_params_)
    if getattr(tuned(search), "kernel", None) == "linear":
        chosen.pop("gamma", None)
    return describe_params(chosen)


def describe_params(params: dict[str, Any]) -> str:
    """Return settings in words.

    >>> describe_params({"C": 4.0, "kernel": "rbf"})
    'C = 4, kernel = rbf'
    """
    return ", ".join(
        f"{name} = {value if isinstance(value, str) else format(value, '.4g')}" for name, value in params.items()
    )
