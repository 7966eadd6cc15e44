"""The pages of the documentation about the reproductions, written from the stored results alone."""

from importlib import import_module
from pathlib import Path

from polymargin.files import write_atomically
from reproductions import catalogue
from reproductions.judge import Verdict, judge
from reproductions.report import to_markdown
from reproductions.rules import HALF, LEAST_REPETITIONS, LEVEL, MOST, Answer
from reproductions.run import read_results
from reproductions.stale import TENTH

DOCS = Path(__file__).parents[1] / "docs"
FOLDER = "reproductions"
MISSING = "no full run is stored"
COLOURS = {
    Answer.YES: "#2e7d32",
    Answer.PART: "#8d6e00",
    Answer.OPEN: "#616161",
    Answer.NO: "#b3261e",
    Answer.NONE: "#9e9e9e",
}

INTRODUCTION = f"""# The papers' tables and figures, ours beside theirs

These pages are written by `python -m reproductions --document` from the numbers in `reproductions/results`; no
number and no verdict in them is typed. To doubt a verdict, recompute it from the stored numbers, in seconds:
`python -m reproductions multicategory table2 --verdict`. To doubt a number, run its command again, or
`python -m reproductions --stale`, which computes one repetition of every stored run anew with the code as it is
and lists what differs by more than {TENTH:g} of the number's band or, without a band, of its standard deviation
over the repetitions (to rounding where nothing varies). Every repetition has its own seed and carries the
commit, and a digest of the code, that computed it.

Each item gets three answers.

- **Claims**: does what the paper says of the item hold? Every claim is a paired comparison on our repetitions.
  *Yes* if Wilcoxon's signed-rank test puts the effect above zero at {LEVEL:g} (one-sided), *no* if the interval of
  the mean effect ({100 - 200 * LEVEL:g} %) stays below the least effect that would bear the paper out, which is
  {HALF:g} of the paper's own where it prints one. Where the paper says that things are alike, the interval must
  lie within a band.
- **Level**: are the numbers the paper's? A number agrees if the interval of its difference from the paper's, with
  the uncertainty of both, lies within a band: {HALF:g} of the effect that the table is about or
  of the paper's own spread, by measure, stated below each table. (Bands follow from the paper's numbers where it
  prints any to take them from; the others were set when earlier runs of ours were known.) It does not if the
  interval lies outside. *Yes* for a table in which {MOST:.0%} of the numbers agree, *no* if more than
  {1 - MOST:.0%} do not.
- **Order**: of two methods that the paper sets apart by more than a band, on the same data and by the same
  measure, is the same one ahead here? A paired test as for claims; shares as for level.

A wide interval is never agreement: it leaves the answer *undecided*, and so do fewer than {LEAST_REPETITIONS}
repetitions. Where nothing is random one run decides. Times and p-values of the papers are shown and not judged;
where the paper's data are not public, no level is judged.
"""

EXPLAINED = "explained"
"""Where the documentation puts the executable pages of this folder's `explained`."""


def explained_pages() -> list[Path]:
    """Return the scripts of the executable pages."""
    return sorted((Path(__file__).parent / EXPLAINED).glob("plot_*.py"))


def badge(answer: Answer) -> str:
    """Return an answer in its colour."""
    return f'<span style="color:{COLOURS[answer]};font-weight:bold">{answer}</span>'


def verdict_of(name: str, folder: Path) -> tuple[Verdict, int] | None:
    """Return the verdict on a stored run and its repetitions, or None if there is no run."""
    results = (folder / name).with_suffix(".jsonl")
    records = read_results(results)[1] if results.exists() else []
    return (judge(catalogue.load(name), records), len(records)) if records else None


def scoreboard(folder: Path) -> list[str]:
    """Return a line for every item: its three answers, and why."""
    lines = ["| item | claims | level | order | runs | why |", "|---|---|---|---|---:|---|"]
    for name in catalogue.names():
        link = f"[{name}]({FOLDER}/{name.split('/')[0]}.md)"
        found = verdict_of(name, folder)
        if found is None:
            lines.append(f"| {link} | | | | 0 | {MISSING} |")
            continue
        verdict, repetitions = found
        answers = (verdict.claimed, verdict.level.answer, verdict.order.answer)
        lines.append(f"| {link} | {' | '.join(map(badge, answers))} | {repetitions} | {verdict.reason} |")
    return lines


def counts(folder: Path) -> str:
    """Return how many items have which answers, in words."""
    verdicts = [found[0] for name in catalogue.names() if (found := verdict_of(name, folder))]
    parts = []
    for title, answers in (
        ("claims", [verdict.claimed for verdict in verdicts]),
        ("level", [verdict.level.answer for verdict in verdicts]),
        ("order", [verdict.order.answer for verdict in verdicts]),
    ):
        judged = [answer for answer in answers if answer is not Answer.NONE]
        each = ", ".join(f"{judged.count(answer)} {answer}" for answer in COLOURS if answer in judged)
        parts.append(f"{title} of {len(judged)} items: {each}")
    return "; ".join(parts) + "."


def front_page(folder: Path) -> str:
    """Return the page with the scoreboard."""
    contents = ["```{toctree}", ":hidden:", ""]
    contents += [f"{FOLDER}/{paper}" for paper in catalogue.PAPERS.values()]
    contents.append(f"{EXPLAINED}/index")
    contents.append("```")
    board = ["## Scoreboard", "", counts(folder).capitalize(), "", *scoreboard(folder)]
    unsaid = [
        "",
        "## What the papers do not say",
        "",
        "Executable pages, computed when the documentation is built:",
        "",
    ]
    unsaid += [f"- {{doc}}`{EXPLAINED}/{page.stem}`" for page in explained_pages()]
    return "\n".join([INTRODUCTION, *board, *unsaid, "", *contents]) + "\n"


def paper_page(paper: str, folder: Path) -> str:
    """Return the page of a paper: a section for every item, pictures beside numbers."""
    title = import_module(f"reproductions.{paper}").__doc__.strip()
    sections = [_section(name, folder) for name in catalogue.names() if name.startswith(f"{paper}/")]
    return "\n".join([f"# {title}\n", *sections])


def _section(name: str, folder: Path) -> str:
    item = catalogue.load(name)
    results = (folder / name).with_suffix(".jsonl")
    header, records = read_results(results) if results.exists() else ({}, [])
    if not records:
        return f"## {name}: {item.title}\n\n{MISSING.capitalize()}.\n\n{item.notes}\n"
    text = to_markdown(name, item, header, records)
    if (folder / f"{name}.png").exists():
        head, _, rest = text.partition("\n\n")
        text = f"{head}\n\n![{item.title}](../../reproductions/results/{name}.png)\n\n{rest}"
    return text


def pages(folder: Path) -> dict[Path, str]:
    """Return the text of every page that is made of stored results."""
    texts = {DOCS / "reproductions.md": front_page(folder)}
    texts |= {DOCS / FOLDER / f"{paper}.md": paper_page(paper, folder) for paper in catalogue.PAPERS.values()}
    return texts


def write_documentation(folder: Path) -> list[Path]:
    """Write the pages, and return where they are."""
    (DOCS / FOLDER).mkdir(exist_ok=True)
    texts = pages(folder)
    for path, text in texts.items():
        write_atomically(path, text)
    return list(texts)
