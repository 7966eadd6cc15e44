"""The command line: ``python -m reproductions robust table1 --quick``."""

import argparse
import sys
from pathlib import Path

from reproductions import catalogue
from reproductions.declare import Context, Reproduction, UnavailableError
from reproductions.document import write_documentation
from reproductions.judge import judge
from reproductions.report import claim_lines, finding_line, save_figure, summary, write_report
from reproductions.run import header_of, read_results, run, seed_of, write_results
from reproductions.stale import check, mark_verified, stored_runs

FOLDER = Path(__file__).parent / "results"
QUICK_REPETITIONS = 2


def main(arguments: list[str] | None = None) -> int:
    """Run what the arguments ask for; the exit code is zero if all of it could be done."""
    options = parser().parse_args(arguments)
    try:
        chosen = choose(options.paper, options.table)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    folder = options.output or FOLDER
    if options.list:
        for name in catalogue.names():
            print(f"{name:32} {catalogue.load(name).title}")
        return 0
    if options.document:
        print("\n".join(map(str, write_documentation(folder))))
        return 0
    if options.verdict:
        return print_verdicts(chosen, folder)
    if options.stale or options.resume:
        return check_stored(chosen, folder, options)
    if options.paper is None:
        parser().print_help()
        return 2
    return reproduce_all(chosen, options)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m reproductions", description=__doc__)
    parser.add_argument("paper", nargs="?", help="a paper by number (1 to 5) or family, or 'all'")
    parser.add_argument("table", nargs="?", help="one of its tables or figures; all of them if left out")
    parser.add_argument("--list", action="store_true", help="name everything that can be reproduced")
    parser.add_argument("--repetitions", type=int, help="how many; more than before continue a stored run")
    parser.add_argument("--jobs", type=int, default=1, help="repetitions side by side")
    parser.add_argument("--data", help="folder of the real data; default: POLYMARGIN_DATA")
    parser.add_argument("--quick", action="store_true", help="a small version, within a minute")
    parser.add_argument("--output", type=Path, help="folder of the results")
    parser.add_argument("--verdict", action="store_true", help="judge the stored numbers again; takes seconds")
    parser.add_argument("--document", action="store_true", help="write the pages of docs from stored results")
    parser.add_argument(
        "--stale",
        action="store_true",
        help="compute one repetition of every stored run anew, and list what differs",
    )
    parser.add_argument(
        "--within", type=float, help="with --stale: recompute only repetitions that took fewer CPU seconds"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="bring stored runs up to date: check them, and run again what differs",
    )
    return parser


def choose(paper: str | None, table: str | None) -> list[str]:
    """Return the names of what is asked for, all if nothing is."""
    if paper in (None, "all"):
        return catalogue.names()
    family = catalogue.PAPERS.get(paper, paper)
    if family not in catalogue.PAPERS.values():
        raise ValueError(f"paper must be 1 to 5, {', '.join(catalogue.PAPERS.values())} or all, got {paper!r}.")
    if table is not None:
        catalogue.load(f"{family}/{table}")
        return [f"{family}/{table}"]
    return [name for name in catalogue.names() if name.startswith(f"{family}/")]


def reproduce_all(chosen: list[str], options: argparse.Namespace) -> int:
    """Run the chosen items, skipping those whose data are not here."""
    output = options.output or (FOLDER / "quick" if options.quick else FOLDER)
    skipped = 0
    for name in chosen:
        try:
            reproduce(name, output, options)
        except UnavailableError as error:
            print(f"{name} skipped: {error}", file=sys.stderr)
            skipped += 1
    return 1 if skipped == len(chosen) else 0


def reproduce(name: str, output: Path, options: argparse.Namespace) -> None:
    """Run the repetitions of an item, draw it if it is a picture, and write what came out."""
    item = catalogue.load(name)
    results = (output / name).with_suffix(".jsonl")
    repetitions = options.repetitions or min(
        item.repetitions, QUICK_REPETITIONS if options.quick else item.repetitions
    )
    records = run(
        name,
        item,
        results,
        repetitions=repetitions,
        jobs=options.jobs,
        quick=options.quick,
        data_home=options.data,
        shown=True,
    )
    if item.draw is not None:
        draw(name, item, output / name, options)
    print(write_report(name, item, read_results(results)[0], records, results))


def draw(name: str, item: Reproduction, path: Path, options: argparse.Namespace) -> None:
    """Draw the picture of the first repetition as SVG and PNG."""
    context = Context(seed_of(name, 0), options.quick, options.data)
    save_figure(name, lambda: item.draw(context), path)


def print_verdicts(chosen: list[str], folder: Path) -> int:
    """Judge the stored numbers of the chosen items, every finding in a line."""
    runs = [(name, results) for name, results in stored_runs(folder) if name in chosen]
    for name, results in runs:
        item = catalogue.load(name)
        records = read_results(results)[1]
        verdict = judge(item, records)
        print(f"{name} ({len(records)} repetitions): {summary(verdict)}")
        print(f"  {verdict.reason}")
        if len(chosen) == 1:
            print("\n".join(claim_lines(verdict, item.digits)))
            for title, statement in (("level", verdict.level), ("order", verdict.order)):
                for finding in statement.findings:
                    print(f"{title}: {finding_line(finding, item.digits)}")
    return 0 if runs else 1


def check_stored(chosen: list[str], folder: Path, options: argparse.Namespace) -> int:
    """Print which stored runs stand; with --resume note what stands, and run again what does not."""
    within = float("inf") if options.within is None else options.within
    fallen = unknown = 0
    for name, results in stored_runs(folder):
        if name not in chosen:
            continue
        records = read_results(results)[1]
        try:
            cheap = min(record.seconds for record in records) <= within
            checked = check(name, results, recompute=cheap, data_home=options.data)
        except UnavailableError as error:
            print(f"{name:32} not checked: {error}")
            continue
        print(checked.line(), flush=True)
        if options.resume and cheap:
            bring_up_to_date(name, results, checked.stands, checked.recomputed, options)
        else:
            fallen += bool(checked.differing)
            unknown += checked.recomputed is None and not checked.current
    if fallen or unknown:
        print(f"Stored runs that differ: {fallen}; of other code and not recomputed: {unknown}.")
        return 1
    print("Every stored run stands.")
    return 0


def bring_up_to_date(
    name: str, results: Path, stands: bool, repetition: int | None, options: argparse.Namespace
) -> None:
    """Note that a run stands, or compute its repetitions again and put them in its place when all are done."""
    item = catalogue.load(name)
    if stands and repetition is not None:
        mark_verified(item, results, repetition)
        return
    anew = results.with_suffix(".anew")
    count = len(read_results(results)[1])
    records = run(name, item, anew, repetitions=count, jobs=options.jobs, data_home=options.data, shown=True)
    write_results(results, header_of(name, quick=False), records)
    anew.unlink()
    write_report(name, item, read_results(results)[0], records, results)


if __name__ == "__main__":
    raise SystemExit(main())
