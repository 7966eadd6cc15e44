"""A short campaign, and every call that was once a defect."""

from pathlib import Path

import pytest

from tests.fuzz.oracle import judge
from tests.fuzz.recipes import Recipe, draw

CORPUS = (Path(__file__).parent / "corpus.jsonl").read_text().splitlines()
CALLS = 100


@pytest.mark.parametrize("line", CORPUS, ids=lambda line: Recipe.from_json(line).target)
def test_what_was_once_a_defect(line):
    verdict = judge(Recipe.from_json(line))
    assert verdict.kind != "defect", verdict.reason


@pytest.mark.parametrize("part", range(4))
def test_a_short_campaign_finds_nothing(part):
    found = {number: judge(draw(0, number)) for number in range(part * CALLS, (part + 1) * CALLS)}
    defects = {number: verdict.reason for number, verdict in found.items() if verdict.kind == "defect"}
    assert defects == {}
    assert sum(verdict.kind == "right" for verdict in found.values()) > CALLS // 4
