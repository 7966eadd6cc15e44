"""`polymargin compare`: every method and scikit-learn's own, by nested cross-validation."""

import sys
from typing import Annotated

import typer

from polymargin.cli._terminal import Interrupted, notes, one_line_errors, working
from polymargin.cli.clock import Clock
from polymargin.cli.fit import say_what_was_assumed
from polymargin.cli.given import check_inputs
from polymargin.cli.options import (
    Categorical,
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


def compare(
    data: Data,
    target: Target = None,
    costs: Costs = None,
    folds: Annotated[int, typer.Option(help="Outer folds.", min=2)] = 5,
    only: Annotated[list[str] | None, typer.Option(help="Compare this one; may be given several times.")] = None,
    budget: Annotated[str, typer.Option(help="Time for all methods together: 60s, 5m, 1h.")] = "5m",
    resume: Annotated[bool, typer.Option(help="Go on where an earlier comparison of the same was ended.")] = True,
    impute: Impute = False,
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
    """Compare all methods and scikit-learn's SVC, LinearSVC and LogisticRegression by nested cross-validation."""
    with one_line_errors(debug):
        clock = Clock.of(budget)
        check_inputs(data, file_format=file_format)
        import numpy as np

        from polymargin.cli import comparing, training
        from polymargin.cli.costs import read_costs
        from polymargin.cli.tables import Reading

        job = training.read_job(
            data,
            target=target,
            reading=Reading(file_format, sep, decimal, encoding, tuple(na or ()), tuple(categorical or ())),
            categorical=tuple(categorical or ()),
            numeric=tuple(numeric or ()),
            drop=tuple(drop or ()),
            impute=impute,
            share=0.0,
        )
        say_what_was_assumed(job.rows)
        y = job.everything[1]
        smallest = int(np.unique(y, return_counts=True)[1].min())
        if smallest < folds:
            raise ValueError(
                f"--folds {folds} needs as many rows of every class, the smallest class has {smallest}."
            )
        matrix = None if costs is None else read_costs(costs, np.unique(y))
        searches = comparing.chosen(only, {**comparing.ours(matrix, seed), **comparing.rivals(matrix, seed)})
        told = (target, folds, budget, seed, None if matrix is None else matrix.tolist(), job.columns.to_dict())
        ledger = comparing.Ledger.of(data, told, fresh=not resume)
        if ledger.methods:
            notes().print(f"going on: {', '.join(ledger.methods)} from an earlier run (--no-resume starts afresh)")
        title = f"{data.name}: {len(y)} rows, {folds} outer folds, {budget} for all"
        table = comparing.Table(title, tuned_by_costs=matrix is not None)
        notes().print(
            f"{len(searches)} method{'s'[: len(searches) > 1]}, {folds} folds each: "
            f"{comparing.foreseen(job, clock)}"
        )
        with working("comparing", len(y), quiet=not sys.stderr.isatty()) as status:
            try:
                comparing.run(job, searches, folds, clock, matrix, seed, ledger, table, status.say)
            except Interrupted:
                table.show()
                done = f"{len(ledger.methods)} of {len(searches)} methods are done"
                raise Interrupted(f"{done}; the same command goes on from here") from None
        table.show()
        ledger.close()
