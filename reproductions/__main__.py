"""The command line: ``python -m reproductions robust table1 --quick``."""

import argparse
import sys
from pathlib import Path

from reproductions import catalogue
from reproductions.declare import Context, Figure, UnavailableError
from reproductions.document import write_documentation
from reproductions.report import save_figure, write_report
from reproductions.run import read_results, run_table, seed_of

FOLDER = Path(__file__).parent / "results"
QUICK_REPETITIONS = 2


def main(arguments: list[str] | None = None) -> int:
    """Run what the arguments ask for; the exit code counts what could not be made."""
    options = parser().parse_args(arguments)
    if options.list:
        for name in catalogue.names():
            print(f"{name:32} {catalogue.load(name).title}")
        return 0
    if options.document:
        print(write_documentation(options.output or FOLDER))
        return 0
    if options.paper is None:
        parser().print_help()
        return 2
    try:
        chosen = choose(options.paper, options.table)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    output = options.output or (FOLDER / "quick" if options.quick else FOLDER)
    skipped = 0
    for name in chosen:
        try:
            reproduce(name, output, options)
        except UnavailableError as error:
            print(f"{name} skipped: {error}", file=sys.stderr)
            skipped += 1
    return 1 if skipped == len(chosen) else 0


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
    parser.add_argument("--document", action="store_true", help="write docs/reproductions.md from stored results")
    return parser


def choose(paper: str, table: str | None) -> list[str]:
    """Return the names of what is to be reproduced."""
    if paper == "all":
        return catalogue.names()
    family = catalogue.PAPERS.get(paper, paper)
    if family not in catalogue.PAPERS.values():
        raise ValueError(f"paper must be 1 to 5, {', '.join(catalogue.PAPERS.values())} or all, got {paper!r}.")
    if table is not None:
        catalogue.load(f"{family}/{table}")
        return [f"{family}/{table}"]
    return [name for name in catalogue.names() if name.startswith(f"{family}/")]


def reproduce(name: str, output: Path, options: argparse.Namespace) -> None:
    """Run one table or draw one figure, and write what came out."""
    path = output / name
    what = catalogue.load(name)
    if isinstance(what, Figure):
        draw(name, what, path, options)
        return
    repetitions = options.repetitions or (QUICK_REPETITIONS if options.quick else what.repetitions)
    results = path.with_suffix(".jsonl")
    records = run_table(
        name,
        what,
        results,
        repetitions=repetitions,
        jobs=options.jobs,
        quick=options.quick,
        data_home=options.data,
        shown=True,
    )
    print(write_report(name, what, read_results(results)[0], records, results))


def draw(name: str, figure: Figure, path: Path, options: argparse.Namespace) -> None:
    """Draw a figure as SVG and PNG."""
    context = Context(seed_of(name, 0), options.quick, options.data)
    save_figure(name, lambda: figure.draw(context), path)
    print(f"{name}: {path.with_suffix('.svg')}, {path.with_suffix('.png')}")


if __name__ == "__main__":
    raise SystemExit(main())
