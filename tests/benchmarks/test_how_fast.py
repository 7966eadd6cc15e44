"""The page "How fast" from results that are made up."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib")
how_fast = pytest.importorskip("benchmarks.how_fast", reason="benchmarks need their extra")


def entry(part, *case, **seconds):
    return {"part": part, "case": case, "seconds": seconds, "commit": "abc1234", "machine": "2 cores"}


@pytest.fixture
def found():
    fits = {"lee": 0.4, "weston": 0.2, "crammer": np.inf, "SVC": 0.1}
    tolerances = {f"{loss} {tol:g}": 0.1 / tol for loss in how_fast.LOSSES for tol in how_fast.TOLERANCES}
    return [
        entry("kernel", "one", 1000, 1.0, **fits),
        entry("kernel", "two", 1000, 100.0, **fits | {"lee": 0.1}),
        entry("linear", "one", 2000, 0.1, lee=1.0, LinearSVC=2.0),
        *(entry("growth", "one", n, lee=1e-6 * n**2, SVC=1e-5 * n) for n in (500, 1000, 2000)),
        entry("tolerance", "one", 1000, **tolerances),
    ]


def test_the_page_says_what_was_measured(found):
    text = how_fast.page(found)
    lines = text.splitlines()
    assert "| lee | 50% | 50% | 100% | 100% | 100% | 100% |" in lines  # 4 times and once the best
    assert "| crammer | 0% | 0% | 0% | 0% | 0% | 0% |" in lines
    assert "| one | lee | .250 | 1.00 | 4.00 | 2.00 |" in lines
    assert (
        "| lee | 100.000 s | 1000.000 s | 100000.000 s | 10.00 (10.00 to 10.00) | 1000.00 (1000.00 to 1000.00) |"
        in lines
    )
    assert text.count("abc1234; 2 cores; one thread") == 4
    assert how_fast.WITHOUT_R in text


def test_pictures_depend_on_the_results_alone(found, tmp_path):
    growth = how_fast.of_part(found, "growth")
    for name in ("first.svg", "second.svg"):
        how_fast.draw_growth(growth, tmp_path / name)
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()
    how_fast.draw_profiles({"RBF kernel": how_fast.of_part(found, "kernel")}, tmp_path / "profiles.svg")
    assert "SVC" in "".join(ElementTree.parse(tmp_path / "profiles.svg").getroot().itertext())
