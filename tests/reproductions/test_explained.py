"""The executable pages run, and show what their text says."""

import re
import runpy

import matplotlib.pyplot as plt
import pytest

from reproductions.document import explained_pages

NUMBER = r"(-?[\d.]+)"
SHOWN = {
    "plot_gacv": rf"GACV +is least at log2 lambda = {NUMBER}\n(?:.*\n)*?leave-one-out +is least at .* = {NUMBER}",
    "plot_one_versus_rest": rf"alone: .* mean {NUMBER}\n.*together: .* mean {NUMBER}",
    "plot_loss": rf"loss \(1\) +{NUMBER} .*\nWeston-Watkins +{NUMBER} ",
    "plot_collapse": rf"from our starts .*, {NUMBER} % of them found",
    "plot_sharing": rf"largest score {NUMBER}, farthest from a mixture of ridge's ([\d.e-]+)",
}
"""Of each page two numbers, of which its text says the first to be far larger; of the collapse one, near 100."""


@pytest.mark.parametrize("page", explained_pages(), ids=lambda page: page.stem)
def test_page(page, capsys, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    plt.switch_backend("agg")
    runpy.run_path(str(page))
    plt.close("all")
    found = re.search(SHOWN[page.stem], capsys.readouterr().out)
    assert found, "the page no longer prints what the test looks for"
    larger, smaller = float(found[1]), float(found[2]) if found.re.groups > 1 else 90.0
    assert larger > smaller
    if page.stem == "plot_gacv":
        assert larger - smaller >= 4
    elif page.stem != "plot_collapse":
        assert larger > 2 * smaller
