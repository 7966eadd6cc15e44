"""Results as CSV and Markdown, ours beside theirs, with the verdict that follows from the numbers."""

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polymargin.files import write_atomically
from reproductions.declare import Reproduction, Row
from reproductions.judge import Verdict, judge, summarise
from reproductions.rules import Answer, Finding
from reproductions.run import Record


def to_csv(item: Reproduction, rows: Sequence[Row]) -> str:
    """Return the rows as comma-separated values, unrounded."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [*item.parts, "ours", "standard_error", "repetitions", "theirs", "their_standard_error", "difference"]
    )
    for row in rows:
        numbers = [row.ours, row.error, row.repetitions, row.theirs, row.their_error, row.difference]
        writer.writerow([*row.key, *("" if number is None else number for number in numbers)])
    return text.getvalue()


def to_markdown(name: str, item: Reproduction, header: dict, records: Sequence[Record]) -> str:
    """Return a section about the item: command, verdict, claims, numbers, protocol and notes."""
    rows = summarise(item, records)
    verdict = judge(item, records)
    lines = [f"## {name}: {item.title}", "", _made_by(item, header, records), ""]
    if header["quick"]:
        lines.append("Quick version, too small to judge.")
    else:
        lines += [f"**{summary(verdict)}.** {verdict.reason}.", "", *claim_lines(verdict, item.digits)]
    lines += ["", *table_lines(item, rows, {} if header["quick"] else _marks(verdict))]
    for title, text in (("Protocol.", item.protocol), ("Bands.", _bands(item)), ("Notes.", item.notes)):
        if text:
            lines += ["", f"*{title}* {text}"]
    return "\n".join(lines) + "\n"


def summary(verdict: Verdict) -> str:
    """Return the three answers in words."""
    return f"Claims: {verdict.claimed}; level: {verdict.level.answer}; order: {verdict.order.answer}"


def claim_lines(verdict: Verdict, digits: int) -> list[str]:
    """Return a bullet for every claim, with effect, interval and p-value of each comparison below it."""
    lines = []
    for claim, statement in verdict.claims:
        whose = "" if claim.of_paper else " (ours, to explain)"
        lines.append(f"- {statement.answer}{whose}: {claim.says}")
        lines += [f"  - {finding_line(finding, digits)}" for finding in statement.findings]
    return lines


def finding_line(finding: Finding, digits: int) -> str:
    """Return a finding in one line."""
    digits = max(digits, 2)
    effect = f"{finding.effect:+.{digits}f}"
    if finding.repetitions > 1:
        effect += f", interval {finding.low:+.{digits}f} to {finding.high:+.{digits}f}"
    p = "" if finding.p is None else f", p = {finding.p:.2g}"
    repeated = f"{finding.repetitions} repetition{'s' * (finding.repetitions != 1)}"
    return f"{finding.what}: {effect}{p}; margin {finding.margin:.{digits}f}; {repeated}: {finding.answer}"


def table_lines(item: Reproduction, rows: Sequence[Row], marks: dict[str, Answer]) -> list[str]:
    """Return the table, ours beside theirs, with whether each number agrees."""
    uneven = len({row.repetitions for row in rows}) > 1
    compared = any(row.theirs is not None for row in rows)
    heads = [*item.parts, "ours", *["theirs", "difference", "agrees"] * compared, *["repetitions"] * uneven]
    align = "---|" * len(item.parts) + "---:|" + "---:|---:|---|" * compared + "---:|" * uneven
    lines = ["| " + " | ".join(heads) + " |", "|" + align]
    for row in rows:
        cells = [*row.key, _with_error(row.ours, row.error, item.digits)]
        if compared:
            difference = "" if row.difference is None else f"{row.difference:+.{item.digits}f}"
            cells += [_theirs(row, item.digits), difference, marks.get(" / ".join(row.key), "")]
        lines.append("| " + " | ".join([*cells, *[str(row.repetitions)] * uneven]) + " |")
    return lines


def _made_by(item: Reproduction, header: dict, records: Sequence[Record]) -> str:
    commits = sorted({record.commit for record in records} - {""})
    made = f"made at {', '.join(commits)}" if commits else "older than the keeping of commits"
    verified = header.get("verified")
    if verified:
        made += f", repetition {verified['repetition']} recomputed at {verified['commit']}"
    seconds = np.mean([record.seconds for record in records])
    wanted = "" if header["quick"] or len(records) >= item.repetitions else f" (a full run has {item.repetitions})"
    averages = "one value, nothing is random" if item.exact else _averages(item, records) + wanted
    return (
        f"`{header['command']} --repetitions {len(records)}`, {made}; {averages}; {seconds:.1f} CPU seconds each."
    )


def _averages(item: Reproduction, records: Sequence[Record]) -> str:
    medians = f", medians of {' and '.join(item.medians)}," if item.medians else ""
    return f"means{medians} over {len(records)} repetition{'s' * (len(records) != 1)}, standard errors in brackets"


def _marks(verdict: Verdict) -> dict[str, Answer]:
    return {finding.what: finding.answer for finding in verdict.level.findings}


def _bands(item: Reproduction) -> str:
    if item.band is None:
        return ""
    bands: dict[str, set[str]] = {}
    for key, theirs in item.paper.items():
        if theirs.judged:
            band = item.band(key)
            bands.setdefault(band.why, set()).add(f"{band.width:.3g}")
    return "; ".join(f"{', '.join(sorted(widths, key=float))}: {why}" for why, widths in bands.items()) + "."


def _with_error(value: float, error: float | None, digits: int) -> str:
    shown = f"{value:.{digits}f}"
    return shown if error is None or np.isnan(error) else f"{shown} ({error:.{digits}f})"


def _theirs(row: Row, digits: int) -> str:
    return "" if row.theirs is None else _with_error(row.theirs, row.their_error, digits)


def write_report(name: str, item: Reproduction, header: dict, records: Sequence[Record], results: Path) -> str:
    """Write NAME.csv, NAME.md and, where the numbers are also a picture, NAME.png beside the results."""
    rows = summarise(item, records)
    if item.plot is not None:
        save_figure(name, lambda: item.plot(rows), results)
    markdown = to_markdown(name, item, header, records)
    write_atomically(results.with_suffix(".csv"), to_csv(item, rows))
    write_atomically(results.with_suffix(".md"), markdown)
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
        picture = io.BytesIO()
        drawn.savefig(picture, format=suffix[1:], metadata=metadata, bbox_inches="tight", dpi=80)
        write_atomically(path.with_suffix(suffix), picture.getvalue())
    matplotlib.pyplot.close(drawn)
