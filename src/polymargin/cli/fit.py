"""`polymargin fit`: train on a file, judge on rows held out, save and report."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from polymargin.cli._terminal import Interrupted, notes, one_line_errors, results, working
from polymargin.cli.clock import Clock
from polymargin.cli.given import check_inputs, check_model, check_page, check_share
from polymargin.cli.names import CostsIn, Kernel, Method, Misuse
from polymargin.cli.options import (
    Categorical,
    CostColumns,
    Costs,
    Data,
    Debug,
    Decimal,
    Drop,
    Encoding,
    Format,
    Impute,
    Na,
    Numeric,
    Seed,
    Sep,
    Target,
)

WITH_PROBABILITIES = (CostsIn.decisions, CostsIn.both)


def fit(
    data: Data,
    target: Target = None,
    method: Annotated[Method, typer.Option(help="The classifier; auto chooses and tunes it.")] = Method.auto,
    budget: Annotated[str | None, typer.Option(help="Time for all of it: 60s, 5m, 1h.")] = None,
    costs: Costs = None,
    cost_columns: CostColumns = None,
    costs_in: Annotated[
        CostsIn | None, typer.Option(help="Where costs act: in the decisions by probabilities, mostly best.")
    ] = None,
    priors: Annotated[str | None, typer.Option(help="Class shares in the population: a=0.2,b=0.8.")] = None,
    tune: Annotated[bool, typer.Option("--tune", help="Choose C and the kernel width.")] = False,
    C: Annotated[float | None, typer.Option("--C", help="Weight of the losses against the penalty.")] = None,
    kernel: Annotated[Kernel | None, typer.Option(help="The kernel, where the method has a choice.")] = None,
    landmarks: Annotated[int | None, typer.Option(help="Kernel points, for many rows.", min=1)] = None,
    test_size: Annotated[float | None, typer.Option(help="Share of rows held out (0.25; 0: none).")] = None,
    test: Annotated[Path | None, typer.Option(help="File of held-out rows, instead of --test-size.")] = None,
    reject: Annotated[bool, typer.Option("--reject", help="Learn when to reject a prediction.")] = False,
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Learn probabilities.")] = False,
    sets: Annotated[float | None, typer.Option(help="Learn sets that hold the class so often: 0.95.")] = None,
    save: Annotated[Path | None, typer.Option(help="Where to save the model (.skops).")] = None,
    refit: Annotated[bool, typer.Option(help="Fit again to all rows before saving.")] = True,
    report: Annotated[Path | None, typer.Option(help="Where to write a one-page report (.html).")] = None,
    impute: Impute = False,
    scale: Annotated[bool, typer.Option(help="Standardise numeric columns.")] = True,
    categorical: Categorical = None,
    numeric: Numeric = None,
    drop: Drop = None,
    file_format: Format = None,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    na: Na = None,
    seed: Seed = 0,
    debug: Debug = False,
) -> None:
    """Train a classifier on a file, and judge it on rows held out."""
    with one_line_errors(debug):
        clock = Clock.of(budget)
        check_model(save)
        check_page(report)
        share = check_share(test_size, test, report)
        if costs is not None and cost_columns is not None:
            raise Misuse("--costs and --cost-columns exclude each other: errors are priced by class or by row.")
        if costs_in is not None and costs is None and cost_columns is None:
            raise Misuse(f"--costs-in {costs_in} says where costs act: give --costs or --cost-columns.")
        if reject and (probabilities or sets is not None or costs_in in WITH_PROBABILITIES):
            raise Misuse("--reject excludes --probabilities, --sets and costs in the decisions.")
        if priors is not None and (probabilities or sets is not None or costs_in in WITH_PROBABILITIES):
            raise Misuse(
                "--priors act in the training, and probabilities speak of the shares of the training rows: "
                "--probabilities, --sets and costs in the decisions do not go with it."
            )
        if tune and C is not None:
            raise Misuse(f"--tune chooses C itself, leave --C out; got {C:g}.")
        check_inputs(data, test, file_format=file_format)
        from dataclasses import replace

        from polymargin.cli import training
        from polymargin.cli.costs import parse_priors, read_costs
        from polymargin.cli.methods import Choice
        from polymargin.cli.summary import show_summary
        from polymargin.cli.tables import Reading

        choice = Choice(
            method,
            C,
            kernel,
            landmarks,
            by_row=cost_columns is not None,
            # costs of rows need not be known of the rows to come, so that by default the training learns them
            costs_in=costs_in or (CostsIn.training if reject or priors or cost_columns else CostsIn.decisions),
            probabilities=probabilities,
            sets=sets,
            seed=seed,
            budget=budget,
        )
        choice.check()
        job = training.read_job(
            data,
            target=target,
            reading=Reading(file_format, sep, decimal, encoding, tuple(na or ()), tuple(categorical or ())),
            categorical=tuple(categorical or ()),
            numeric=tuple(numeric or ()),
            drop=tuple(drop or ()),
            impute=impute,
            share=share,
            test=test,
            cost_columns=cost_columns,
            seed=seed,
        )
        say_what_was_assumed(job.rows)
        choice = replace(
            choice,
            costs=None if costs is None else read_costs(costs, job.classes),
            priors=None if priors is None else parse_priors(priors, job.classes),
        )
        choice.check()
        flags = ("--tune" if tune else None, "--impute" if impute else None, None if scale else "--no-scale")
        command = retraining_command(
            data,
            method,
            flags,
            target=[target],
            priors=[priors],
            C=[C],
            kernel=[kernel],
            landmarks=[landmarks],
            categorical=categorical or [],
            drop=drop or [],
        )
        metadata = {
            "target": target,
            "columns": job.columns.to_dict(),
            "costs": None if choice.costs is None else choice.costs.tolist(),
            "command": command,
        }
        again = save is not None and refit and job.held_out is not None and test is None
        clock = clock.within(choice.budget_for(len(job.train[1]), tune=tune))
        how = {"tune": tune, "reject": reject, "scale": scale, "clock": clock, "again": again}
        trained = _train(job, choice, save=save, metadata=metadata, **how)
        if job.held_out is not None:
            job.columns.warn_of_new_categories(trained.model[0], job.held_out[0])
        final = trained
        if save is not None:
            if again and trained.is_complete:
                final = _fitted_again(trained, job, clock)
            _save(final.model, save, metadata)
        if report is not None and job.held_out is not None:
            row_costs = training.held_out_costs(job)
            page(trained.model, job.held_out, choice.costs, report, command, data.name, row_costs)
            if choice.decides_by_row:
                notes().print("the report shows the model's own decisions, the lines below those by the costs")
        # What is printed comes last: whoever closes the pipe early has the files.
        show_summary(results(), trained, job, choice.costs)
        if save is not None:
            known = f", fitted again to all {final.n_rows} rows after the error was measured"
            results().print(f"model: {save}{known if final is not trained else ''}")
        if report is not None:
            results().print(f"report: {report.resolve()}")


def say_what_was_assumed(rows: Any) -> None:
    """Tell how a file was read where that was not given."""
    if rows.assumed:
        notes().print(f"{rows.path}: read with {'; '.join(rows.assumed)}")


def _train(job: Any, choice: Any, *, save: Path | None, metadata: dict[str, Any], **how: Any) -> Any:
    """Train, showing how far it is; an interrupted search keeps its best model so far."""
    from polymargin.cli import training
    from polymargin.cli.methods import tuned

    n_rows = len(job.train[1])
    if choice.landmarks is None and choice.landmarks_for(n_rows) is not None:
        notes().print(f"{n_rows} rows: the kernel gets {choice.landmarks_for(n_rows)} landmarks (--landmarks)")
    search: list[Any] = []
    limit = choice.budget_for(n_rows, tune=how["tune"])
    what = f"fitting {choice.method} to {n_rows} rows" + (f" within {limit}" if limit else "")
    with working(what, n_rows) as status:

        def foresee(estimate: Any) -> None:
            if estimate.is_worth_saying:
                notes().print(f"{what}: {estimate}")

        def observe(trial: Any) -> None:
            best = search[0].trials_
            lowest = -max(t.score for t in best if t.n_rows == best[-1].n_rows)
            status.say(f"{len(best)} settings tried, lowest cost {lowest:.4f} on {trial.n_rows} rows")

        try:
            trained = training.train(
                job,
                choice,
                foreseen=foresee,
                observer=observe,
                started_search=lambda *started: search.extend(started),
                **how,
            )
        except Interrupted:
            if not search or not hasattr(search[0], "best_estimator_"):
                raise
            found, model = search
            said = f"best so far: {training.describe_settings(found)}, cost {-found.best_score_:.4f} over folds"
            if save is not None and hasattr(found, "n_rows_"):
                model.steps[-1] = ("classify", tuned(found))
                _save(model, save, metadata)
                lacking = ", without probabilities," if choice.is_probable else ""
                said += f"; its model of {found.n_rows_} rows{lacking} is in {save}"
            raise Interrupted(said) from None
    if trained.search is not None:
        notes().print(f"chosen: {training.describe_settings(trained.search)}")
    return trained


def _fitted_again(trained: Any, job: Any, clock: Clock) -> Any:
    """Return the model fitted to all rows, or as it is where the budget does not allow that."""
    from polymargin.cli import training

    n_rows, left = len(job.everything[1]), clock.part(1.0 - training.JUDGING)
    with working(f"fitting again, to all {n_rows} rows", n_rows):
        final = training.refitted(trained, job, left)
    if final is None:
        notes().print(
            f"the model is that of the {trained.n_rows} training rows: fitting again to all {n_rows} would take "
            f"about {training.seconds_again(trained, job):.0f} s, of {left:.0f} s left (--budget)"
        )
        return trained
    return final


def retraining_command(data: Path, method: Method, flags: Sequence[str | None], **options: Sequence[Any]) -> str:
    """Return the command that trains again with other costs, to be filled in in costs.csv.

    >>> retraining_command(Path("my data.csv"), Method.proximal, ["--tune"], target=["kind"], drop=["a", "b"])
    "polymargin fit 'my data.csv' --method proximal --costs costs.csv --tune --target kind --drop a --drop b"
    """
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


def page(
    model: Any,
    held_out: tuple[Any, Any],
    costs: Any,
    path: Path,
    command: str | None,
    title: str,
    row_costs: Any = None,
) -> None:
    """Write the one-page report."""
    from polymargin import report

    report.build(model, *held_out, title=title, cost_matrix=costs, costs=row_costs, path=path, command=command)


def _save(model: Any, path: Path, metadata: dict[str, Any]) -> None:
    from polymargin import persistence

    persistence.save(model, path, metadata=metadata)
