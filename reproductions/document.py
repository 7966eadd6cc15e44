"""docs/reproductions.md, written from the stored results alone."""

from importlib import import_module
from pathlib import Path

from reproductions import catalogue
from reproductions.declare import Figure, Table
from reproductions.report import summarise, to_markdown, verdict
from reproductions.run import read_results, stored_results

DOCUMENT = Path(__file__).parents[1] / "docs" / "reproductions.md"

INTRODUCTION = """# The papers' tables, ours beside theirs

This page is written by `python -m reproductions --document` from the results in `reproductions/results`; no
number in the tables is typed by hand. A number *agrees* if it lies within two standard errors and the table's
tolerance of the paper's. A table is *reproduced* if four numbers of five agree, *reproduced in order, not in
level* if the ranks of the numbers correlate with the paper's by at least .8, and *not reproduced* otherwise.
Times and p-values are shown and not judged.
"""


def documentation(folder: Path) -> str:
    """Return the page about the results stored in `folder`."""
    stored = dict(stored_results(folder))
    sections, verdicts = [], []
    for paper in catalogue.PAPERS.values():
        named = [name for name in catalogue.names() if name.startswith(f"{paper}/")]
        parts = [part for name in named if (part := _section(name, folder, stored, verdicts))]
        if parts:
            sections.append("\n".join([f"## {import_module(f'reproductions.{paper}').__doc__.strip()}\n", *parts]))
    table = ["| table | verdict |", "|---|---|", *verdicts, ""]
    return "\n".join([INTRODUCTION, *table, *sections])


def _section(name: str, folder: Path, stored: dict[str, Path], verdicts: list[str]) -> str | None:
    what = catalogue.load(name)
    if isinstance(what, Figure):
        if not (folder / f"{name}.svg").exists():
            return None
        lines = [f"### {name}: {what.title}", "", f"![{what.title}](../reproductions/results/{name}.svg)"]
        return "\n".join([*lines, *(["", what.notes] if what.notes else [])]) + "\n"
    if name not in stored:
        return None
    assert isinstance(what, Table)
    header, records = read_results(stored[name])
    rows = summarise(what, records)
    verdicts.append(f"| {name}: {what.title} | {verdict(what, rows)} |")
    return to_markdown(name, what, header, records, rows)


def write_documentation(folder: Path, path: Path = DOCUMENT) -> Path:
    """Write the page, and return where it is."""
    path.write_text(documentation(folder))
    return path
