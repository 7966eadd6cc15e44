"""docs/reproductions.md, written from the stored results alone."""

from importlib import import_module
from pathlib import Path

from reproductions import catalogue
from reproductions.declare import Figure
from reproductions.report import summarise, to_markdown, verdict
from reproductions.run import read_results

DOCUMENT = Path(__file__).parents[1] / "docs" / "reproductions.md"
MISSING = "no full run is stored"

INTRODUCTION = """# The papers' tables, ours beside theirs

This page is written by `python -m reproductions --document` from the results in `reproductions/results`: no number
in it is typed by hand. Every section gives the command that made its numbers; every repetition has its own seed,
stored with it.

A number *agrees* if it lies within two standard errors and the table's tolerance of the paper's. A table is
*reproduced* if four numbers of five agree, *reproduced in order, not in level* if the ranks of the numbers
correlate with the paper's by at least .8, and *not reproduced* otherwise. Where a paper makes claims and prints no
numbers, the verdict says whether the claim holds. Times and p-values are shown and not judged. Verdicts of
figures that are drawn and not counted are by eye. Tables with few repetitions say how many; the same command with
more of them continues the stored run.
"""


def documentation(folder: Path) -> str:
    """Return the page about the results stored in `folder`."""
    verdicts, sections = [], []
    for paper in catalogue.PAPERS.values():
        sections.append(f"## {import_module(f'reproductions.{paper}').__doc__.strip()}\n")
        for name in catalogue.names():
            if name.startswith(f"{paper}/"):
                reached, section = _section(name, folder)
                verdicts.append(f"| {name} | {catalogue.load(name).title} | {reached} |")
                sections.append(section)
    table = ["| | what | verdict |", "|---|---|---|", *verdicts, ""]
    return "\n".join([INTRODUCTION, *table, *sections])


def _section(name: str, folder: Path) -> tuple[str, str]:
    """Return verdict and section of a table or figure."""
    what = catalogue.load(name)
    picture = folder / f"{name}.png"
    drawn = f"\n![{what.title}](../reproductions/results/{name}.png)\n" if picture.exists() else ""
    if isinstance(what, Figure):
        reached = what.verdict if drawn else MISSING
        command = f"python -m reproductions {name.replace('/', ' ')}"
        lines = [f"### {name}: {what.title}", "", f"`{command}`. **Verdict: {reached}.**", drawn, what.notes]
        return reached, "\n".join(lines) + "\n"
    results = folder / f"{name}.jsonl"
    header, records = read_results(results) if results.exists() else ({}, [])
    if not records:
        return MISSING, f"### {name}: {what.title}\n\n{MISSING.capitalize()}.\n\n{what.notes}\n"
    rows = summarise(what, records)
    return verdict(what, rows), to_markdown(name, what, header, records, rows) + drawn


def write_documentation(folder: Path, path: Path = DOCUMENT) -> Path:
    """Write the page, and return where it is."""
    path.write_text(documentation(folder))
    return path
