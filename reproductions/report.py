"""Results as CSV and Markdown, ours beside theirs, with a verdict that follows from the numbers."""

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from reproductions.declare import Row, Table
from reproductions.run import Record

LEVEL_SHARE = 0.8
"""Share of the numbers that must agree for a table to be reproduced."""

ORDER_CORRELATION = 0.8
"""Rank correlation of ours with theirs from which the order counts as reproduced."""

NORMAL_MEDIAN = np.sqrt(np.pi / 2)
"""Standard error of a median in units of that of a mean, for normal numbers."""


def summarise(table: Table, records: Sequence[Record]) -> list[Row]:
    """Average over the repetitions; the keys in the paper's order, then what is ours alone."""
    ours = dict.fromkeys(key for record in records for key in record.values)
    keys = [key for key in table.paper if key in ours] + [key for key in ours if key not in table.paper]
    rows = []
    for key in keys:
        by_median = key[-1] in table.medians
        inflation = NORMAL_MEDIAN if by_median else 1.0
        values = np.array([record.values[key] for record in records if key in record.values])
        centre = np.median(values) if by_median else values.mean()
        error = inflation * values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        theirs = table.paper.get(key)
        their_error = None
        if theirs is not None and theirs.deviation is not None and table.paper_repetitions:
            their_error = inflation * theirs.deviation / np.sqrt(table.paper_repetitions)
        value = None if theirs is None else theirs.value
        judged = theirs is not None and theirs.judged
        rows.append(Row(key, float(centre), float(error), len(values), value, their_error, judged))
    return rows


def verdict(table: Table, rows: Sequence[Row]) -> str:
    """Judge: reproduced, reproduced in order and not in level, or not reproduced; with the counts behind it.

    One repetition where there are to be more has no standard error: its verdict is called preliminary.
    """
    preliminary = table.repetitions > 1 and max(row.repetitions for row in rows) == 1
    return "preliminary (one repetition): " * preliminary + _verdict(table, rows)


def _verdict(table: Table, rows: Sequence[Row]) -> str:
    if table.judge is not None:
        return table.judge(rows)
    compared = [row for row in rows if row.judged]
    if not compared:
        return "not comparable: the paper prints no numbers for it"
    agreeing = sum(row.agrees(table.tolerance) for row in compared)
    counts = f"{agreeing} of {len(compared)} numbers agree"
    if agreeing >= LEVEL_SHARE * len(compared):
        return f"reproduced ({counts})"
    if len(compared) < 3:
        return f"not reproduced ({counts})"
    correlation = spearmanr([row.ours for row in compared], [row.theirs for row in compared]).statistic
    counts += f", rank correlation {correlation:.2f}"
    if correlation >= ORDER_CORRELATION:
        return f"reproduced in order, not in level ({counts})"
    return f"not reproduced ({counts})"


def to_csv(table: Table, rows: Sequence[Row]) -> str:
    """Return the rows as comma-separated values, unrounded."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [*table.parts, "ours", "standard_error", "repetitions", "theirs", "their_standard_error", "difference"]
    )
    for row in rows:
        numbers = [row.ours, row.error, row.repetitions, row.theirs, row.their_error, row.difference]
        writer.writerow([*row.key, *("" if number is None else number for number in numbers)])
    return text.getvalue()


def to_markdown(name: str, table: Table, header: dict, records: Sequence[Record], rows: Sequence[Row]) -> str:
    """Return a section about the table: command, verdict, numbers, notes."""
    command = f"{header['command']} --repetitions {len(records)}"
    seconds = np.mean([record.seconds for record in records])
    uneven = len({row.repetitions for row in rows}) > 1
    lines = [
        f"### {name}: {table.title}",
        "",
        f"`{command}` with version {header['version']}, {_seeds(name, records)}; {_averages(table, records)}, "
        f"standard errors in brackets; {seconds:.1f} CPU seconds a repetition.",
        "",
        "Quick version, too small to judge." if header["quick"] else f"**Verdict: {verdict(table, rows)}.**",
        "",
        "| " + " | ".join([*table.parts, "ours", "theirs", "difference", *["repetitions"] * uneven]) + " |",
        "|" + "---|" * len(table.parts) + "---:|---:|---:|" + "---:|" * uneven,
    ]
    for row in rows:
        difference = "" if row.difference is None else f"{row.difference:+.{table.digits}f}"
        ours = _with_error(row.ours, row.error, table.digits)
        cells = [*row.key, ours, _theirs(row, table.digits), difference, *[str(row.repetitions)] * uneven]
        lines.append("| " + " | ".join(cells) + " |")
    if table.notes:
        lines += ["", table.notes]
    return "\n".join(lines) + "\n"


def _seeds(name: str, records: Sequence[Record]) -> str:
    return (
        f"seed {records[0].seed}" if len(records) == 1 else f"seeds from {records[0].seed} on (see {name}.jsonl)"
    )


def _averages(table: Table, records: Sequence[Record]) -> str:
    medians = f", medians of {' and '.join(table.medians)}" if table.medians else ""
    return f"means{medians} over {len(records)} repetition{'s' * (len(records) != 1)}"


def _with_error(value: float, error: float | None, digits: int) -> str:
    shown = f"{value:.{digits}f}"
    return shown if error is None or np.isnan(error) else f"{shown} ({error:.{digits}f})"


def _theirs(row: Row, digits: int) -> str:
    return "" if row.theirs is None else _with_error(row.theirs, row.their_error, digits)


def write_report(name: str, table: Table, header: dict, records: Sequence[Record], results: Path) -> str:
    """Write NAME.csv, NAME.md and, where the table is also a picture, NAME.svg and NAME.png beside the results."""
    rows = summarise(table, records)
    if table.plot is not None:
        save_figure(name, lambda: table.plot(rows), results)
    markdown = to_markdown(name, table, header, records, rows)
    results.with_suffix(".csv").write_text(to_csv(table, rows))
    results.with_suffix(".md").write_text(markdown)
    return markdown


def save_figure(name: str, draw: Callable[[], Any], path: Path) -> None:
    """Draw and write NAME.svg and NAME.png; the same figure is the same file."""
    import matplotlib

    matplotlib.use("Agg")
    # Ids in an SVG are random unless salted.
    matplotlib.rcParams["svg.hashsalt"] = name
    drawn = draw()
    path.parent.mkdir(parents=True, exist_ok=True)
    for suffix, metadata in ((".svg", {"Date": None}), (".png", None)):
        drawn.savefig(path.with_suffix(suffix), metadata=metadata, bbox_inches="tight", dpi=80)
    matplotlib.pyplot.close(drawn)
