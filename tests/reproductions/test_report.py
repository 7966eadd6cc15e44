"""Ours beside theirs: averages, errors, CSV and Markdown; the pages of the docs."""

import csv
import io
import re

import numpy as np
import pytest

from reproductions import __main__ as command
from reproductions import catalogue, document
from reproductions.declare import Band, Reproduction, Theirs
from reproductions.judge import summarise
from reproductions.report import to_csv, to_markdown
from reproductions.run import Record

HEADER = {"reproduction": "p/t", "command": "python -m reproductions p t", "quick": False}


def item_of(paper, **options):
    return Reproduction("a table", ("method",), lambda context: {}, repetitions=3, paper=paper, **options)


def records_of(columns):
    n = len(next(iter(columns.values())))
    return [Record(i, 100 + i, {key: column[i] for key, column in columns.items()}, 0.1) for i in range(n)]


def test_summary_is_means_with_standard_errors():
    item = item_of({("a",): Theirs(2.0, 3.0)}, paper_repetitions=9)
    (row,) = summarise(item, records_of({("a",): [1.0, 2.0, 6.0]}))
    assert row.ours == 3.0
    assert row.error == pytest.approx(np.std([1, 2, 6], ddof=1) / np.sqrt(3))
    assert (row.theirs, row.their_error, row.difference) == (2.0, 1.0, 1.0)
    (row,) = summarise(item_of({}, medians=("a",)), records_of({("a",): [1.0, 2.0, 6.0]}))
    assert row.ours == 2.0


def test_csv_and_markdown_hold_every_number():
    band = Band(0.5, "half of something")
    item = item_of({("a",): Theirs(2.0)}, notes="A note.", protocol="A grid.", digits=1, band=lambda key: band)
    records = records_of({("a",): [1.0, 2.0, 6.0], ("own",): [0.5, 0.5, 0.5]})
    read = list(csv.DictReader(io.StringIO(to_csv(item, summarise(item, records)))))
    assert [float(read[0][name]) for name in ("ours", "theirs", "difference")] == [3.0, 2.0, 1.0]
    assert read[1]["theirs"] == ""
    text = to_markdown("p/t", item, HEADER, records)
    assert "| a | 3.0 (1.5) | 2.0 | +1.0 | undecided |" in text
    assert "| own | 0.5 (0.0) |  |  |  |" in text
    assert "`python -m reproductions p t --repetitions 3`" in text
    assert "Claims: nothing to judge; level: undecided" in text
    for part in ("*Protocol.* A grid.", "*Bands.* 0.5: half of something.", "*Notes.* A note."):
        assert part in text


def test_rows_of_fewer_repetitions_say_so():
    records = [Record(i, i, {("a",): 1.0} | ({("b",): 2.0} if i == 0 else {}), 1.0) for i in range(3)]
    text = to_markdown("p/t", item_of({}), HEADER, records)
    assert "| b | 2.00 | 1 |" in text
    assert "| a | 1.00 (0.00) | 3 |" in text


def test_fewer_repetitions_than_a_full_run_say_so():
    assert "(a full run has 3)" in to_markdown("p/t", item_of({}), HEADER, records_of({("a",): [1.0, 2.0]}))


def test_every_reproduction_is_declared():
    for name in catalogue.names():
        item = catalogue.load(name)
        assert item.title
        # Each has something that could fail: claims, or numbers of the paper with a band.
        assert item.claims or (item.band is not None and item.paper)
        for claim in item.claims:
            assert claim.comparisons
            assert all(comparison.margin > 0 for comparison in claim.comparisons)
    with pytest.raises(ValueError, match="There is no reproduction 'robust/table9'"):
        catalogue.load("robust/table9")


def test_list_and_wrong_names(capsys):
    assert command.main(["--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == catalogue.names()
    assert command.main(["7"]) == 2
    assert command.main(["proximal", "table9"]) == 2
    assert "There is no reproduction" in capsys.readouterr().err


def test_the_list_names_every_table_and_figure_that_the_papers_have():
    """Figure 5 of paper 1 is with its Table 5 (radiance); Figure 1 of paper 2 only illustrates."""
    expected = {
        "multicategory": "table1 table2 table3 table4 replicates figure1 figure2 figure3 figure4 radiance",
        "proximal": "table1 table2 ties figures2to4 figures5and6",
        "sparse": "example1 example2 example1lee example2lee weights table3 table4 figure1 figure2",
        "shared": "figure1 figure2 figure2relations figure2reduced figure2width",
        "robust": "table1 table2 table3 figure1 figure2",
    }
    names = {f"{paper}/{table}" for paper, tables in expected.items() for table in tables.split()}
    assert set(catalogue.names()) == names


def test_documentation_is_what_the_stored_results_give():
    """Nothing in the pages is typed by hand: regenerating them changes nothing."""
    for path, text in document.pages(command.FOLDER).items():
        assert path.read_text() == text
        for picture in re.findall(r"!\[.*?\]\((.*?)\)", text):
            assert (path.parent / picture).stat().st_size > 0
    front = (document.DOCS / "reproductions.md").read_text()
    for name in catalogue.names():
        assert f"| [{name}]" in front
    for page in document.explained_pages():
        assert f"{{doc}}`explained/{page.stem}`" in front


def test_verdicts_are_recomputed_from_stored_numbers(capsys):
    assert command.main(["robust", "table3", "--verdict"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("robust/table3")
    assert "p = " in printed
    assert "level: " in printed


def test_pages_without_results_say_what_is_missing(tmp_path):
    texts = document.pages(tmp_path)
    assert texts[document.DOCS / "reproductions.md"].count(f"| {document.MISSING} |") == len(catalogue.names())
