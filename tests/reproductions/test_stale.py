"""Stored runs against the code as it is: digests, recomputed repetitions, and bringing runs up to date."""

import json
import textwrap

import numpy as np
import pytest

from reproductions import __main__ as command
from reproductions import catalogue, stale
from reproductions.declare import Band, Reproduction, Theirs, UnavailableError
from reproductions.provenance import digest, sources
from reproductions.run import Record, compute, read_results, run, seed_of
from tests.conftest import SHARED

QUICK_SECONDS = 3.0
"""Stored repetitions that took less CPU time than this are computed anew by the test suite."""

STORED = [
    pytest.param(name, results, id=name)
    for name, results in stale.stored_runs(command.FOLDER)
    if stale.cheapest(read_results(results)[1]).seconds < QUICK_SECONDS
]


@pytest.mark.parametrize(("name", "results"), STORED)
def test_stored_numbers_come_out_again(name, results):
    try:
        checked = stale.check(name, results, recompute=True, data_home=str(SHARED))
    except UnavailableError as error:
        pytest.skip(f"its data are not at hand: {error}")
    assert checked.stands, checked.line()


def test_some_stored_runs_are_quick_enough_to_be_checked():
    assert len(STORED) >= 5


def test_stored_runs_have_their_own_seeds_and_no_gaps():
    for name, results in stale.stored_runs(command.FOLDER):
        header, records = read_results(results)
        assert header["reproduction"] == name
        assert not header["quick"]
        numbers = [record.repetition for record in records]
        assert numbers == list(range(len(records)))
        assert [record.seed for record in records] == [seed_of(name, number) for number in numbers]


# --- the digest ---


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of two modules; returns a function that writes them and gives the digest of a function."""
    (tmp_path / "reproductions").mkdir()
    (tmp_path / "reproductions" / "__init__.py").write_text("")

    def repetition():
        """Stand for a function of the project's module."""

    repetition.__module__ = "reproductions.table"
    repetition.__qualname__ = "repetition"
    version = 0

    def of(table, helper):
        nonlocal version
        version += 1
        root = tmp_path / str(version)
        (root / "reproductions").mkdir(parents=True)
        (root / "reproductions" / "table.py").write_text(textwrap.dedent(table))
        (root / "reproductions" / "helper.py").write_text(textwrap.dedent(helper))
        return digest(repetition, root), sources(repetition, root)

    return of


TABLE = """
    from reproductions.helper import used, unused
    NOTES = "a note"
    GRID = (1, 2)

    def repetition(context):
        return used(GRID)
"""
HELPER = """
    def used(grid):
        return inner(grid) + 1

    def inner(grid):
        return sum(grid)

    def unused():
        return 3
"""


def test_digest_follows_what_is_called_and_nothing_else(project):
    before, found = project(TABLE, HELPER)
    assert set(found) == {
        "reproductions.table:repetition",
        "reproductions.table:GRID",
        "reproductions.helper:used",
        "reproductions.helper:inner",
    }
    assert project(TABLE.replace("a note", "another"), HELPER)[0] == before
    assert project(TABLE, HELPER.replace("return 3", "return 4"))[0] == before
    assert (
        project(TABLE, HELPER.replace("def used(grid):", 'def used(grid):\n        """Docs."""  # comment'))[0]
        == before
    )
    assert project(TABLE.replace("(1, 2)", "(1, 3)"), HELPER)[0] != before
    assert project(TABLE, HELPER.replace("sum(grid)", "max(grid)"))[0] != before


def test_digest_of_a_real_table_reaches_the_compiled_solver():
    reached = sources(catalogue.load("multicategory/replicates").repetition)
    assert any(place.startswith("polymargin._native.") for place in reached)
    assert not any(place.startswith("reproductions.rules") for place in reached)


def test_every_item_has_a_digest():
    digests = {name: digest(catalogue.load(name).repetition) for name in catalogue.names()}
    assert len(set(digests.values())) == len(digests)


# --- checking and resuming ---

SHIFT = {"value": 0.0}


def draw(context):
    value = float(np.random.default_rng(context.seed).normal())
    return {("a",): value + SHIFT["value"], ("seconds",): float(np.random.default_rng().normal())}


ITEM = Reproduction(
    "draws",
    ("measure",),
    draw,
    5,
    paper={("a",): Theirs(0.0)},
    band=lambda key: Band(1.0, "one"),
    timed=("seconds",),
)


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A stored run of five draws under a name of the catalogue's kind."""
    monkeypatch.setattr(catalogue, "names", lambda: ["robust/draws"])
    monkeypatch.setattr(catalogue, "load", lambda name: ITEM)
    monkeypatch.setitem(SHIFT, "value", 0.0)
    results = tmp_path / "robust" / "draws.jsonl"
    run("robust/draws", ITEM, results, repetitions=5)
    return results


def test_a_run_that_stands(stored):
    checked = stale.check("robust/draws", stored, recompute=True)
    assert checked.current
    assert checked.stands
    assert "comes out as stored" in checked.line()


@pytest.mark.parametrize(("shift", "stands"), [(0.0999, True), (0.1001, False)])
def test_numbers_may_differ_by_a_tenth_of_their_band(stored, monkeypatch, shift, stands):
    monkeypatch.setitem(SHIFT, "value", shift)
    checked = stale.check("robust/draws", stored, recompute=True)
    assert checked.stands is stands
    assert ("DIFFERS in 1 numbers" in checked.line()) is not stands


@pytest.mark.parametrize(
    ("spread", "shift", "stands"), [(0.0, 1e-5, False), (1.0, 0.099, True), (1.0, 0.101, False)]
)
def test_numbers_without_a_band_may_differ_by_a_tenth_of_their_spread(spread, shift, stands):
    exact = Reproduction("draws", ("measure",), draw, 5)
    record = compute("robust/draws", exact, 0, False, None)
    near = Record(0, record.seed, record.values | {("a",): record.values["a",] + shift}, 0.0)
    differing = list(stale.differences(exact, record, near, {("a",): spread}))
    assert any("a:" in line for line in differing) is not stands


def test_spreads_are_standard_deviations_over_repetitions():
    records = [Record(at, at, {("a",): value, ("b",): 1.0}, 0.0) for at, value in enumerate((1.0, 3.0))]
    assert stale.spreads(records) == {("a",): 1.0, ("b",): 0.0}


def test_missing_numbers_differ(stored):
    record = read_results(stored)[1][0]
    assert list(stale.differences(ITEM, record, Record(0, record.seed, {}, 0.0), {}))


def test_stale_command_counts_what_does_not_stand(stored, monkeypatch, capsys):
    folder = str(stored.parents[1])
    assert command.main(["--stale", "--output", folder]) == 0
    assert "Every stored run stands." in capsys.readouterr().out
    monkeypatch.setitem(SHIFT, "value", 1.0)
    assert command.main(["--stale", "--output", folder]) == 1
    assert "Stored runs that differ: 1;" in capsys.readouterr().out
    # Too dear to be recomputed, and of other code: it is not said to stand.
    header, *lines = stored.read_text().splitlines()
    other = [json.dumps(json.loads(line) | {"code": "other", "seconds": 50.0}) for line in lines]
    stored.write_text("\n".join([header, *other]) + "\n")
    assert command.main(["--stale", "--within", "10", "--output", folder]) == 1
    printed = capsys.readouterr().out
    assert "other code, not recomputed" in printed
    assert "differ: 0; of other code and not recomputed: 1." in printed


def test_resume_notes_what_stands_and_runs_again_what_differs(stored, monkeypatch):
    folder = str(stored.parents[1])
    before = read_results(stored)[1]
    assert command.main(["--resume", "--output", folder]) == 0
    header, records = read_results(stored)
    assert header["verified"]["code"] == digest(draw)
    assert [record.values for record in records] == [record.values for record in before]
    monkeypatch.setitem(SHIFT, "value", 1.0)
    assert command.main(["--resume", "--output", folder]) == 0
    header, records = read_results(stored)
    assert "verified" not in header
    assert [record.values["a",] for record in records] == pytest.approx([r.values["a",] + 1.0 for r in before])
    assert command.main(["--stale", "--output", folder]) == 0
    assert not list(stored.parent.glob("*.anew"))
