"""`polymargin compare`: every method and scikit-learn's own, by nested cross-validation."""

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.progress import track
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import _safe_indexing

from polymargin import expected_cost, make_cost_scorer
from polymargin.cli._terminal import Data, Debug, Misuse, make_table, notes, one_line_errors, results, working
from polymargin.cli.columns import Columns
from polymargin.cli.costs import read_costs
from polymargin.cli.fit import Categorical, Costs, Drop, Format, Impute, Seed, Target
from polymargin.cli.methods import Choice, Method, machine_of
from polymargin.cli.tables import check_classes, read_rows

CS = tuple(2.0**power for power in range(-6, 9, 2))
WIDTHS = tuple(2.0**power for power in range(-9, 2, 2))


@dataclass(frozen=True, slots=True)
class Score:
    """What one outer fold says about one method; `gap` is None where there is no certificate."""

    error: float
    cost: float
    seconds: float
    gap: float | None


@dataclass(frozen=True, slots=True)
class _Grid:
    """Makes the grid search of a rival; the number of rows is nothing to it."""

    machine: Any
    grid: dict[str, Any]
    scoring: Any

    def __call__(self, n_rows: int) -> GridSearchCV:
        return GridSearchCV(self.machine, self.grid, scoring=self.scoring)


def compare(
    data: Data,
    target: Target = None,
    costs: Costs = None,
    folds: Annotated[int, typer.Option(help="Outer folds.", min=2)] = 5,
    only: Annotated[list[str] | None, typer.Option(help="Compare this one; may be given several times.")] = None,
    impute: Impute = False,
    categorical: Categorical = None,
    drop: Drop = None,
    file_format: Format = None,
    seed: Seed = 0,
    debug: Debug = False,
) -> None:
    """Compare all methods and scikit-learn's SVC, LinearSVC and LogisticRegression by nested cross-validation."""
    with one_line_errors(debug):
        rows = read_rows(data, target=target, file_format=file_format, as_text=tuple(categorical or ()))
        y = rows.y
        assert y is not None
        check_classes(y, f"{data}: the target" + (f" column {target!r}" if target else ""))
        columns = Columns.of(rows, categorical=categorical or (), drop=drop or (), impute=impute)
        X = columns.select(rows)
        smallest = int(np.unique(y, return_counts=True)[1].min())
        if smallest < folds:
            raise ValueError(
                f"--folds {folds} needs as many rows of every class, the smallest class has {smallest}."
            )
        matrix = None if costs is None else read_costs(costs, np.unique(y))
        searches = chosen(only, {**ours(matrix, seed), **rivals(matrix, seed)})
        splits = list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(X, y))
        tasks = [(name, *split) for name in searches for split in splits]
        scores: dict[str, list[Score]] = {name: [] for name in searches}
        shown = (
            track(tasks, "nested cross-validation", console=notes(), transient=True)
            if sys.stderr.isatty()
            else tasks
        )
        with working("comparing", len(y), quiet=True):
            for name, train, test in shown:
                scores[name].append(judge(searches[name], columns, X, y, train, test, matrix))
        show(scores, f"{data.name}: {len(y)} rows, {folds} outer folds", tuned_by_costs=matrix is not None)


def chosen(only: list[str] | None, searches: dict[str, Any]) -> dict[str, Any]:
    """Return the searches named, all if none is."""
    unknown = [name for name in only or () if name not in searches]
    if unknown:
        raise Misuse(f"--only must be one of {', '.join(searches)}, got {unknown[0]!r}.")
    return {name: search for name, search in searches.items() if not only or name in only}


def ours(costs: NDArray | None, seed: int) -> dict[str, Callable[[int], Any]]:
    """Return for each of our methods what makes its search, given the number of rows."""
    choices = {method: Choice(method, costs=costs if method.takes_costs else None, seed=seed) for method in Method}
    return {str(method): choice.search for method, choice in choices.items()}


def rivals(costs: NDArray | None, seed: int) -> dict[str, Callable[[int], Any]]:
    """Return the same for scikit-learn's classifiers, tuned by grids with the same costs."""
    scorer = make_cost_scorer(costs)
    grids: dict[str, tuple[Any, dict[str, Any]]] = {
        "SVC": (SVC(), {"C": CS, "gamma": ["scale", *WIDTHS]}),
        "LinearSVC": (LinearSVC(random_state=seed), {"C": CS}),
        "LogisticRegression": (LogisticRegression(max_iter=1000), {"C": CS}),
    }
    return {name: _Grid(machine, grid, scorer) for name, (machine, grid) in grids.items()}


def judge(
    search: Callable[[int], Any],
    columns: Columns,
    X: Any,
    y: NDArray,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    costs: NDArray | None,
) -> Score:
    """Tune and fit on the training rows of one outer fold, and judge on the others."""
    model = Pipeline([("prepare", columns.preprocessing(scale=True)), ("classify", search(len(train)))])
    started = time.perf_counter()
    with warnings.catch_warnings():
        # Rivals that stop early and categories that a fold lacks are part of the comparison.
        warnings.simplefilter("ignore")
        model.fit(_safe_indexing(X, train), y[train])
        seconds = time.perf_counter() - started
        predicted = model.predict(_safe_indexing(X, test))
    certificate = getattr(machine_of(model), "certificate_", None)
    return Score(
        float(np.mean(predicted != y[test])),
        expected_cost(y[test], predicted, costs, labels=np.unique(y)),
        seconds,
        None if certificate is None else certificate.gap,
    )


def show(scores: dict[str, list[Score]], title: str, *, tuned_by_costs: bool) -> None:
    """Print one line per method; the lowest expected cost is marked."""
    table = make_table(title, "method", "error", "+/-", "expected cost", "seconds per fit", "largest gap")
    means = {name: float(np.mean([score.cost for score in of_method])) for name, of_method in scores.items()}
    for name, of_method in scores.items():
        errors = np.array([score.error for score in of_method])
        gaps = [score.gap for score in of_method if score.gap is not None]
        table.add_row(
            name + (" *" if means[name] == min(means.values()) else ""),
            f"{errors.mean():.4f}",
            f"{errors.std(ddof=1) / np.sqrt(len(errors)):.4f}",
            f"{means[name]:.4f}",
            f"{np.mean([score.seconds for score in of_method]):.2f}",
            f"{max(gaps):.1e}" if gaps else "-",
        )
    console = results()
    console.print(table)
    console.print("* lowest expected cost; +/- one standard error over the outer folds; a fit includes its tuning")
    if tuned_by_costs:
        console.print(
            "costs act in the training of multicategory, sparse and robust, and in the tuning of the rest"
        )
