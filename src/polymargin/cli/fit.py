"""`polymargin fit`: train on a file, judge on rows held out, save and report."""

import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline

from polymargin import RejectOptionClassifier
from polymargin.cli._terminal import Data, Debug, Misuse, notes, one_line_errors, results, working
from polymargin.cli.columns import Columns
from polymargin.cli.costs import parse_priors, read_costs
from polymargin.cli.methods import Choice, Kernel, Method, tuned
from polymargin.cli.summary import show_summary
from polymargin.cli.tables import Rows, check_classes, read_rows
from polymargin.files import check_writable

Target = Annotated[str | None, typer.Option(help="Column that holds the classes (not for LIBSVM files).")]
Format = Annotated[
    str | None, typer.Option("--format", help="csv, tsv, parquet, arff or libsvm, where the ending does not tell.")
]
Costs = Annotated[
    Path | None,
    typer.Option(help="CSV of costs: predicted classes in the header, true ones in the first column."),
]
Impute = Annotated[bool, typer.Option("--impute", help="Fill in missing values (median, most frequent).")]
Categorical = Annotated[list[str] | None, typer.Option(help="Column of categories, though it may look numeric.")]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out.")]
Seed = Annotated[int, typer.Option(help="Draws the held-out rows, folds and landmarks.", min=0)]


def fit(
    data: Data,
    target: Target = None,
    method: Annotated[Method, typer.Option(help="The classifier.")] = Method.multicategory,
    costs: Costs = None,
    priors: Annotated[str | None, typer.Option(help="Class shares in the population: a=0.2,b=0.8.")] = None,
    tune: Annotated[bool, typer.Option("--tune", help="Choose C and the kernel width.")] = False,
    C: Annotated[float | None, typer.Option("--C", help="Weight of the losses against the penalty.")] = None,
    kernel: Annotated[Kernel | None, typer.Option(help="The kernel, where the method has a choice.")] = None,
    landmarks: Annotated[int | None, typer.Option(help="Kernel points, for many rows.", min=1)] = None,
    test_size: Annotated[float | None, typer.Option(help="Share of rows held out (0.25; 0: none).")] = None,
    test: Annotated[Path | None, typer.Option(help="File of held-out rows, instead of --test-size.")] = None,
    reject: Annotated[bool, typer.Option("--reject", help="Learn when to reject a prediction.")] = False,
    save: Annotated[Path | None, typer.Option(help="Where to save the model (.skops).")] = None,
    report: Annotated[Path | None, typer.Option(help="Where to write a one-page report (.html).")] = None,
    impute: Impute = False,
    scale: Annotated[bool, typer.Option(help="Standardise numeric columns.")] = True,
    categorical: Categorical = None,
    drop: Drop = None,
    file_format: Format = None,
    seed: Seed = 0,
    debug: Debug = False,
) -> None:
    """Train a classifier on a file, and judge it on rows held out."""
    with one_line_errors(debug):
        for option, path in (("--save", save), ("--report", report)):
            if path is not None:
                check_writable(path, option)
        share = _check_test(test_size, test, report)
        choice = Choice(method, C, kernel, landmarks, seed=seed, shown=sys.stderr.isatty())
        choice.check()
        rows = read_rows(data, target=target, file_format=file_format, as_text=tuple(categorical or ()))
        assert rows.y is not None
        check_classes(rows.y, f"{data}: the target" + (f" column {target!r}" if target else ""))
        columns = Columns.of(rows, categorical=categorical or (), drop=drop or (), impute=impute)
        train, held_out = _split(rows, columns, share, test, target, file_format, seed)
        classes = np.unique(train[1])
        choice = replace(
            choice,
            costs=None if costs is None else read_costs(costs, classes),
            priors=None if priors is None else parse_priors(priors, classes),
        )
        choice.check()
        model, seconds = train_model(choice, columns, train, tune=tune, reject=reject, scale=scale)
        show_summary(results(), model, train, held_out, choice.costs, seconds)
        command = retraining_command(
            data,
            method,
            ("--tune" if tune else None, "--impute" if impute else None, None if scale else "--no-scale"),
            target=[target],
            priors=[priors] if method.takes_costs else [],
            C=[C],
            kernel=[kernel],
            landmarks=[landmarks],
            categorical=categorical or [],
            drop=drop or [],
        )
        if save is not None:
            metadata = {
                "target": target,
                "columns": columns.to_dict(),
                "costs": None if choice.costs is None else choice.costs.tolist(),
                "command": command,
            }
            _save(model, save, metadata)
        if report is not None and held_out is not None:
            write_report(model, held_out, choice.costs, report, command, data.name)


def train_model(
    choice: Choice,
    columns: Columns,
    train: tuple[Any, NDArray],
    *,
    tune: bool = False,
    reject: bool = False,
    scale: bool = True,
) -> tuple[Pipeline, float]:
    """Fit preprocessing and classifier; return them with the seconds that it took."""
    X, y = train
    n_rows = len(y)
    if choice.landmarks is None and choice.landmarks_for(n_rows) is not None:
        notes().print(f"{n_rows} rows: the kernel gets {choice.landmarks_for(n_rows)} landmarks (--landmarks)")
    classifier = choice.search(n_rows) if tune else choice.classifier(n_rows)
    model = Pipeline([("prepare", columns.preprocessing(scale=scale)), ("classify", classifier)])
    started = time.perf_counter()
    with working(f"fitting {type(classifier).__name__} to {n_rows} rows", n_rows, quiet=tune and choice.shown):
        model.fit(X, y)
        if tune:
            notes().print(f"chosen: {_chosen(model[-1])}")
        if reject:
            # The choice is made: what is left out to learn the threshold is rows, not the search.
            careful = RejectOptionClassifier(clone(tuned(model[-1])))
            model.steps[-1] = ("classify", careful.fit(model[:-1].transform(X), y))
        elif isinstance(model[-1], GridSearchCV):
            # Our own searches carry a certificate and have a report; of scikit-learn's the winner is enough.
            model.steps[-1] = ("classify", model[-1].best_estimator_)
    return model, time.perf_counter() - started


def retraining_command(data: Path, method: Method, flags: Sequence[str | None], **options: Sequence[Any]) -> str:
    """Return the command that trains again with other costs, to be filled in in costs.csv.

    >>> retraining_command(Path("my data.csv"), Method.proximal, ["--tune"], target=["kind"], drop=["a", "b"])
    "polymargin fit 'my data.csv' --method multicategory --costs costs.csv --tune --target kind --drop a --drop b"
    """
    method = method if method.takes_costs else Method.multicategory
    words = ["polymargin", "fit", str(data), "--method", str(method), "--costs", "costs.csv"]
    words += [flag for flag in flags if flag is not None]
    words += [
        word
        for name, values in options.items()
        for value in values
        if value is not None
        for word in (f"--{name}", str(value))
    ]
    return shlex.join(words)


def write_report(
    model: Any, held_out: tuple[Any, NDArray], costs: Any, path: Path, command: str | None, title: str
) -> None:
    """Write the one-page report and say where."""
    from polymargin import report

    report.build(model, *held_out, title=title, cost_matrix=costs, path=path, command=command)
    results().print(f"report: {path.resolve()}")


def _check_test(test_size: float | None, test: Path | None, report: Path | None) -> float:
    if test_size is not None and test is not None:
        raise Misuse("--test-size and --test exclude each other.")
    share = 0.25 if test_size is None else test_size
    if not 0.0 <= share < 1.0:
        raise Misuse(f"--test-size must be a share from 0 to below 1, got {share:g}.")
    if share == 0.0 and test is None and report is not None:
        raise Misuse("--report needs held-out rows, give --test or a --test-size above 0.")
    return share


def _split(
    rows: Rows,
    columns: Columns,
    share: float,
    test: Path | None,
    target: str | None,
    file_format: str | None,
    seed: int,
) -> tuple[tuple[Any, NDArray], tuple[Any, NDArray] | None]:
    """Return the training rows and the held-out ones, each with its classes."""
    X, y = columns.select(rows), rows.y
    assert y is not None
    if test is not None:
        other = columns.read(test, target, file_format)
        assert other.y is not None
        unknown = np.setdiff1d(other.y.astype(str), np.unique(y).astype(str))
        if len(unknown):
            raise ValueError(f"--test {test} holds classes that {rows.path} does not: {', '.join(unknown[:8])}.")
        return (X, y), (columns.select(other), other.y.astype(y.dtype))
    if share == 0.0:
        return (X, y), None
    held_out, k = int(np.ceil(share * len(y))), len(np.unique(y))
    if held_out < k or len(y) - held_out < k:
        raise ValueError(
            f"--test-size {share:g} of {len(y)} rows leaves {len(y) - held_out} to train and {held_out} to test, "
            f"too few for {k} classes."
        )
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=share, stratify=y, random_state=seed)
    return (X_train, y_train), (X_test, y_test)


def _chosen(search: Any) -> str:
    chosen = search.best_params_
    return ", ".join(
        f"{name} = {value if isinstance(value, str) else format(value, '.4g')}" for name, value in chosen.items()
    )


def _save(model: Any, path: Path, metadata: dict[str, Any]) -> None:
    from polymargin import persistence

    persistence.save(model, path, metadata=metadata)
    results().print(f"model: {path}")
