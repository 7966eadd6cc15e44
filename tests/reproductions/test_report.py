"""Ours beside theirs: averages, errors, verdicts, CSV and Markdown; the page of the docs."""

import csv
import io
import re

import numpy as np
import pytest

from reproductions import __main__ as command
from reproductions import catalogue, document
from reproductions.declare import Table, Theirs
from reproductions.report import summarise, to_csv, to_markdown, verdict
from reproductions.run import Record, header_of, read_results, seed_of

HEADER = {"reproduction": "p/t", "command": "python -m reproductions p t", "quick": False, "version": "0"}


def table_of(paper, **options):
    return Table("a table", ("method",), paper, lambda context: {}, repetitions=3, **options)


def records_of(columns):
    n = len(next(iter(columns.values())))
    return [Record(i, 100 + i, {key: column[i] for key, column in columns.items()}, 0.1) for i in range(n)]


def test_summary_is_means_with_standard_errors():
    table = table_of({("a",): Theirs(2.0, 3.0)}, paper_repetitions=9)
    (row,) = summarise(table, records_of({("a",): [1.0, 2.0, 6.0]}))
    assert row.ours == 3.0
    assert row.error == pytest.approx(np.std([1, 2, 6], ddof=1) / np.sqrt(3))
    assert (row.theirs, row.their_error, row.difference) == (2.0, 1.0, 1.0)
    (row,) = summarise(table_of({}, medians=("a",)), records_of({("a",): [1.0, 2.0, 6.0]}))
    assert row.ours == 2.0


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        ([1.0, 2.0, 3.0, 4.0, 5.0], "reproduced (5 of 5"),
        ([1.0, 2.0, 3.0, 4.0, 9.0], "reproduced (4 of 5"),
        ([11.0, 12.0, 13.0, 14.0, 15.0], "reproduced in order, not in level (0 of 5"),
        ([15.0, 14.0, 13.0, 12.0, 11.0], "not reproduced (0 of 5"),
    ],
)
def test_verdicts_follow_from_the_numbers(ours, expected):
    paper = {(str(i),): Theirs(float(i)) for i in range(1, 6)} | {("time",): Theirs(1.0, judged=False)}
    columns = {(str(i),): [value, value] for i, value in enumerate(ours, 1)} | {("time",): [50.0, 50.0]}
    table = table_of(paper)
    assert verdict(table, summarise(table, records_of(columns))).startswith(expected)


def test_csv_and_markdown_hold_every_number():
    table = table_of({("a",): Theirs(2.0)}, notes="A note.", digits=1)
    records = records_of({("a",): [1.0, 2.0, 6.0], ("own",): [0.5, 0.5, 0.5]})
    rows = summarise(table, records)
    read = list(csv.DictReader(io.StringIO(to_csv(table, rows))))
    assert [float(read[0][name]) for name in ("ours", "theirs", "difference")] == [3.0, 2.0, 1.0]
    assert read[1]["theirs"] == ""
    text = to_markdown("p/t", table, HEADER, records, rows)
    assert "| a | 3.0 (1.5) | 2.0 | +1.0 |" in text
    assert "| own | 0.5 (0.0) |  |  |" in text
    assert "`python -m reproductions p t --repetitions 3`" in text
    assert text.endswith("A note.\n")


def test_every_reproduction_is_declared():
    for name in catalogue.names():
        assert catalogue.load(name).title
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
    """Figure 3 of paper 1 and Figure 1 of paper 2 only illustrate; the rest of each paper is here."""
    expected = {
        "multicategory": "table1 table2 table3 table4 replicates figure1 figure2 figure4 figure5 radiance",
        "proximal": "table1 table2 figures2to4 figures5and6",
        "sparse": "example1 example2 example1lee example2lee table3 table4 figure1 figure2",
        "shared": "figure1 figure2 figure2relations figure2reduced",
        "robust": "table1 table2 table3 figure1 figure2",
    }
    names = {f"{paper}/{table}" for paper, tables in expected.items() for table in tables.split()}
    assert set(catalogue.names()) == names


def test_rows_of_fewer_repetitions_say_so():
    table = table_of({})
    records = [Record(i, i, {("a",): 1.0} | ({("b",): 2.0} if i == 0 else {}), 1.0) for i in range(3)]
    text = to_markdown("p/t", table, HEADER, records, summarise(table, records))
    assert "| b | 2.00 |  |  | 1 |" in text
    assert "| a | 1.00 (0.00) |  |  | 3 |" in text


def test_one_repetition_of_many_is_preliminary():
    rows = summarise(table_of({("a",): Theirs(1.0)}), records_of({("a",): [1.0]}))
    assert verdict(table_of({}), rows).startswith("preliminary (one repetition): reproduced (1 of 1")


def test_claims_without_numbers_are_judged_by_the_table():
    table = table_of({}, judge=lambda rows: f"seen {rows[0].ours:g}")
    assert verdict(table, summarise(table, records_of({("a",): [1.0, 3.0]}))) == "seen 2"


def test_documentation_is_what_the_stored_results_give():
    """Nothing in the page is typed by hand: regenerating it changes nothing."""
    page = document.DOCUMENT.read_text()
    assert page == document.documentation(command.FOLDER)
    for name in catalogue.names():
        assert f"| {name} |" in page
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", page):
        assert (document.DOCUMENT.parent / picture).stat().st_size > 0


def test_stored_results_are_of_full_runs_with_their_own_seeds():
    for results in command.FOLDER.glob("*/*.jsonl"):
        header, records = read_results(results)
        name = f"{results.parent.name}/{results.stem}"
        assert header == header_of(name, quick=False) | {"version": header["version"]}
        assert [record.repetition for record in records] == list(range(len(records)))
        assert [record.seed for record in records] == [seed_of(name, number) for number in range(len(records))]


def test_a_page_without_results_says_what_is_missing(tmp_path):
    page = document.documentation(tmp_path)
    assert page.count(f"| {document.MISSING} |") == len(catalogue.names())
