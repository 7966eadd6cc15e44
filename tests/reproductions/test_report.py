"""Ours beside theirs: averages, errors, verdicts, CSV and Markdown; the page of the docs."""

import csv
import io

import numpy as np
import pytest

from reproductions import __main__ as command
from reproductions import catalogue, document
from reproductions.declare import Table, Theirs
from reproductions.report import summarise, to_csv, to_markdown, verdict
from reproductions.run import Record

HEADER = {"reproduction": "p/t", "quick": False, "version": "0"}


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


def test_documentation_is_what_the_stored_results_give():
    """Nothing in the page is typed by hand: regenerating it changes nothing."""
    if not document.DOCUMENT.exists():
        pytest.skip("no full run is stored yet")
    assert document.DOCUMENT.read_text() == document.documentation(command.FOLDER)
