"""All displays share one style, describe themselves and draw where they are told to."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot

from polymargin import (
    MarginSearch,
    MulticategorySVC,
    PredictionSetClassifier,
    ProbabilityClassifier,
    ProximalSVCCV,
    RejectOptionClassifier,
    RobustSVC,
    SharedStructureSVC,
    SparseSVC,
    inspection,
    sparse_path,
)
from polymargin.inspection import _plotting
from tests.simulate import blobs

mpl.use("Agg")
LABELS = np.array(["_first", "a$b$c", "日本 \u0007"])


@pytest.fixture(scope="module")
def data():
    X, y = blobs(np.random.default_rng(0), 60, 3, 3, spread=2.0)
    return X, LABELS[y]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


DISPLAYS = {
    "ClassRelationDisplay": (lambda X, y: (SharedStructureSVC(C=0.1).fit(X, y),), "3 by 3 relation matrix"),
    "CriterionPathDisplay": (lambda X, y: (ProximalSVCCV(Cs=[1.0, 10.0]).fit(X, y),), "Accuracy of left-out rows"),
    "CriterionSurfaceDisplay": (
        lambda X, y: (MarginSearch(Cs=[0.1, 1.0], gammas=[0.1, 1.0]).fit(X, y),),
        "left-out cost over 2 values of C and 2 of gamma",
    ),
    "DecisionVectorDisplay": (
        lambda X, y: (MulticategorySVC().fit(X, y), X, y),
        "scores of 3 classes for 60 of 60",
    ),
    "LabelNoiseDisplay": (lambda X, y: (RobustSVC().fit(X, y),), "margins of 60 training rows"),
    "ReliabilityDisplay": (
        lambda X, y: (ProbabilityClassifier(MulticategorySVC()).fit(X, y), X, y),
        "3 classes",
    ),
    "RiskCoverageDisplay": (
        lambda X, y: (RejectOptionClassifier(MulticategorySVC()).fit(X, y),),
        "share of errors",
    ),
    "SeparationMapDisplay": (lambda X, y: (SparseSVC(C=0.1).fit(X, y),), "variables by 3 pairs of classes"),
    "SetSizeDisplay": (
        lambda X, y: (PredictionSetClassifier(MulticategorySVC()).fit(X, y), X, y),
        "Sizes of 60 sets",
    ),
}


def test_every_display_is_listed():
    drawn = {name for name in inspection.__all__ if name.endswith("Display")}
    assert drawn == {*DISPLAYS, "CoefficientPathDisplay"}


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
@pytest.mark.parametrize("name", DISPLAYS)
def test_from_estimator_draws_on_given_axes_and_describes_itself(data, name):
    fit, words = DISPLAYS[name]
    before = dict(mpl.rcParams)
    figure, ax = pyplot.subplots()
    display = getattr(inspection, name).from_estimator(*fit(*data), ax=ax)
    assert display.figure_ is figure
    panels = getattr(display, "axes_", None)
    assert (display.ax_ is ax) if panels is None else all(panel.figure is figure for panel in panels)
    assert words in display.description
    figure.canvas.draw()
    assert dict(mpl.rcParams) == before
    own = getattr(inspection, name).from_estimator(*fit(*data))
    assert own.figure_ is not figure


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
def test_coefficient_paths_take_the_place_of_given_axes(data):
    path = sparse_path(*data, n_Cs=4)
    figure, ax = pyplot.subplots()
    display = inspection.CoefficientPathDisplay.from_path(path, ax=ax)
    assert len(display.axes_) == 3
    assert all(panel.figure is figure for panel in display.axes_)
    figure.canvas.draw()


def test_neutral_marks_follow_the_style_of_the_user(data):
    with pyplot.style.context("dark_background"):
        display = inspection.LabelNoiseDisplay.from_estimator(RobustSVC().fit(*data))
        assert display.line_.get_color() == "white"


def test_labels_are_drawn_as_they_stand():
    _, ax = pyplot.subplots()
    for label in ("a$x^2$b", "_hidden", "plain"):
        ax.plot([0, 1], label=_plotting.label_text(label))
    shown = [text.get_text().replace("\u200b", "").replace(r"\$", "$") for text in ax.legend().get_texts()]
    assert shown == ["a$x^2$b", "_hidden", "plain"]
    assert len(_plotting.label_text("x" * 500)) == _plotting.LONGEST_LABEL
    assert "\x07" not in _plotting.label_text("\x07")


@pytest.mark.parametrize("k", [2, 10, 11, 40])
def test_classes_have_colours_of_their_own(k):
    assert len({mpl.colors.to_hex(colour) for colour in _plotting.class_colours(k)}) == k


def test_the_middle_of_diverging_shades_is_the_background():
    shades = _plotting.shades("#0000ff", "#ff0000")
    assert shades(0.5)[3] < 0.02
    np.testing.assert_allclose([shades(0.0), shades(1.0)], [[0, 0, 1, 1], [1, 0, 0, 1]])


def test_without_matplotlib_the_extra_is_named():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from polymargin.inspection import CriterionSurfaceDisplay as D\n"
        "import numpy as np\n"
        "D(Cs=np.ones(1), gammas=np.ones(1), criterion=np.ones((1, 1)), chosen=(1.0, 1.0)).plot()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install polymargin[plot]" in run.stderr.splitlines()[-1]
