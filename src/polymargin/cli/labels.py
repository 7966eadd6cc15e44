"""`polymargin labels`: which labels of a file are probably wrong."""

from pathlib import Path
from typing import Annotated, Any

import typer

from polymargin.cli._terminal import make_table, notes, one_line_errors, results, working
from polymargin.cli.given import check_inputs, check_page, check_table, format_of
from polymargin.cli.names import Method
from polymargin.cli.options import (
    Categorical,
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


def labels(
    data: Data,
    target: Target = None,
    out: Annotated[Path | None, typer.Option(help="CSV, TSV, Excel or Parquet file for the suspects.")] = None,
    report: Annotated[Path | None, typer.Option(help="Where to write a page of the worst (.html).")] = None,
    method: Annotated[Method, typer.Option(help="The classifier that judges.")] = Method.auto,
    effect: Annotated[
        bool, typer.Option("--effect", help="Leave the suspects out, fit again, and compare on rows held out.")
    ] = False,
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
    """Find labels that are probably wrong: what they were, what they should be, and how sure that is."""
    with one_line_errors(debug):
        check_table(out, "suspects")
        check_page(report)
        check_inputs(data, file_format=file_format)
        from polymargin.cli import predicting, training
        from polymargin.cli.methods import Choice
        from polymargin.cli.tables import Reading
        from polymargin.files import write_atomically
        from polymargin.report.labels import suspects_page
        from polymargin.selection.labels import clean_and_refit, suspect_labels

        reading = Reading(file_format, sep, decimal, encoding, tuple(na or ()), tuple(categorical or ()))
        job = training.read_job(
            data,
            target=target,
            reading=reading,
            categorical=tuple(categorical or ()),
            numeric=tuple(numeric or ()),
            drop=tuple(drop or ()),
            impute=impute,
            share=0.0,
            seed=seed,
        )
        if job.rows.assumed:
            notes().print(f"{job.rows.path}: read with {'; '.join(job.rows.assumed)}")
        X, y = job.everything
        classifier = training.untuned(job.columns, Choice(method, seed=seed), len(y))
        with working(f"judging {len(y)} labels", len(y)):
            found = suspect_labels(X, y, classifier)
            change = clean_and_refit(X, y, classifier, random_state=seed) if effect else None
        table = found.table()
        table["row"] += 1  # below the header, from 1
        if out is not None:
            write_atomically(out, predicting.WRITERS[format_of(out)](table))
        if report is not None:
            write_atomically(report, suspects_page(found, X, title=data.name))
        results().print(
            f"{len(table)} of {len(y)} labels are suspect: another class is more probable than their own"
        )
        results().print(_noise_table(found.noise))
        if change is not None:
            results().print(
                f"without {change.n_cleaned} suspects of {len(change.train)} rows, the error on "
                f"{len(change.held_out)} rows held out (labels as given) goes from {change.error_before:.4f} to "
                f"{change.error_after:.4f} (difference {change.difference:+.4f} +/- {change.standard_error:.4f})"
            )
        for name, path in (("suspects", out), ("report", report)):
            if path is not None:
                results().print(f"{name}: {path}")


def _noise_table(noise: Any) -> Any:
    """Return the pairs of classes that are mislabelled most, with intervals, as a table."""
    pairs = [(i, j) for i in range(len(noise.classes)) for j in range(len(noise.classes)) if i != j]
    pairs = sorted((pair for pair in pairs if noise.counts[pair]), key=lambda pair: -noise.share[pair])[:10]
    table = make_table("mislabelled most, 95 % intervals", "is", "labelled", "rows", "share", "from", "to")
    for i, j in pairs:
        shares = (f"{part[i, j]:.3f}" for part in (noise.share, noise.lower, noise.upper))
        table.add_row(str(noise.classes[j]), str(noise.classes[i]), str(int(noise.counts[i, j])), *shares)
    return table
