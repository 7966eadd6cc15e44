import matplotlib
import numpy as np
import pandas as pd
import pytest

from polymargin import SparseSVC, sparse_path, stability_selection
from polymargin.datasets import make_class_specific
from polymargin.inspection import CoefficientPathDisplay, SeparationMapDisplay

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def sample():
    drawn = make_class_specific(1, 150, n_noise=8, random_state=0)
    return pd.DataFrame(drawn.data, columns=[f"gene{j}" for j in range(10)]), np.array(list("abcd"))[drawn.target]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    matplotlib.pyplot.close("all")


def test_the_map_is_black_where_a_variable_separates_a_pair(sample):
    model = SparseSVC(C=0.05).fit(*sample)
    display = SeparationMapDisplay.from_estimator(model)
    drawn = np.asarray(display.image_.get_array())
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    pairs = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert pairs == ["a/b", "a/c", "a/d", "b/c", "b/d", "c/d"]
    assert set(names) == {f"gene{j}" for j in model.selected_features_}
    assert names == model.separations()["feature"].tolist()
    for row, name in zip(drawn, names, strict=True):
        for value, pair in zip(row, pairs, strict=True):
            j = int(name.removeprefix("gene"))
            assert value == (model.pairwise_coef(*pair.split("/"))[j] != 0.0)


def test_the_map_takes_names_axes_and_a_limit(sample):
    X, y = sample
    model = SparseSVC(C=0.05).fit(X.to_numpy(), y)
    _, ax = matplotlib.pyplot.subplots()
    names = [f"{j} (KIT)" for j in range(10)]
    display = SeparationMapDisplay.from_estimator(model, names=names, max_variables=1, ax=ax)
    assert display.ax_ is ax
    assert [label.get_text() for label in ax.get_yticklabels()] == [names[model.separations()["feature"][0]]]


def test_the_map_of_resamples_is_grey(sample):
    stable = stability_selection(SparseSVC(C=0.05), *sample, n_resamples=4, random_state=0)
    display = SeparationMapDisplay.from_stability(stable, at_least=0.75)
    assert len(display.names) == np.sum(stable.features >= 0.75)
    drawn = np.asarray(display.image_.get_array())
    assert np.all(np.diff(drawn.max(axis=1)) <= 0.25)
    assert set(np.unique(drawn)) <= {0.0, 0.25, 0.5, 0.75, 1.0}


def test_the_path_has_a_panel_a_class_and_a_line_a_variable(sample):
    path = sparse_path(*sample, n_Cs=6, eps=0.1)
    display = CoefficientPathDisplay.from_path(path, max_variables=2)
    assert [ax.get_title() for ax in display.axes_] == list("abcd")
    entered = np.flatnonzero(path.coefs.any(axis=(0, 1)))
    assert len(display.lines_) == 4 * len(entered)
    line = display.lines_["c", "gene1"]
    np.testing.assert_array_equal(line.get_ydata(), path.coefs[:, 2, 1])
    assert len(display.axes_[-1].get_legend().get_texts()) == 2
    with pytest.raises(ValueError, match="one per panel, 4, got 1"):
        display.plot(ax=[display.axes_[0]])
