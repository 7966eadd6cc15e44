"""The page of promises: every test that it names is there, and it counts them right."""

import re
from pathlib import Path

import pytest

from tests.contract import test_certificates
from tests.faults import test_altered_files, test_files, test_fits, test_memory, test_time
from tests.fuzz import points, test_campaign

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "promises.md").read_text("utf-8")
COUNTS = {
    f"{len(test_certificates.MACHINES)} machines on {len(test_certificates.ROWS)} kinds of rows",
    f"{len(points.POINTS)} points",
    f"{4 * test_campaign.CALLS} calls in the suite",
    f"{3 * len(test_fits.MACHINES)} failed fits",
    f"{len(test_fits.MACHINES)} failing callbacks",
    f"8 threads of {len(test_fits.MACHINES)} machines",
    f"{len(test_memory.MACHINES)} kernel machines",
    f"{len(test_time.TIMED)} machines",
    f"{test_files.KILLS} kills of each of the three",
    f"every array of {len(test_altered_files.MODELS)} models",
}
NAMED = sorted(set(re.findall(r"`(tests/[\w/.]+(?:::\w+)*)`", PAGE)))


@pytest.mark.parametrize("name", NAMED)
def test_what_the_page_names_is_there(name):
    path, *parts = name.split("::")
    assert (ROOT / path).exists()
    for part in parts:
        assert re.search(rf"(def|class) {part}\b", (ROOT / path).read_text("utf-8"))


@pytest.mark.parametrize("words", sorted(COUNTS))
def test_what_the_page_counts_is_right(words):
    assert words in PAGE


def test_the_page_names_most_of_the_tests():
    assert len(NAMED) > 20
