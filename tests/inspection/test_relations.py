"""Tables and displays of class relations."""

import numpy as np
import pytest

from polymargin import SharedStructureSVC
from polymargin.datasets import make_related_classes
from polymargin.inspection import ClassRelationDisplay, related_classes
from tests.simulate import blobs

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


@pytest.fixture
def named():
    X, y = blobs(np.random.default_rng(0), 80, 4, 4)
    return SharedStructureSVC(0.1).fit(X, np.array(["ant", "bee", "cat", "dog"])[y])


def test_table_lists_the_strongest_pairs_first(named):
    table = related_classes(named)
    assert table.shape == (6, 5)
    assert table["strength"].is_monotonic_decreasing
    position = {name: index for index, name in enumerate(named.classes_)}
    for row in table.itertuples():
        a, b = position[row.class_a], position[row.class_b]
        assert (row.b_from_a, row.a_from_b) == (named.relation_[a, b], named.relation_[b, a])
        assert row.strength == abs(row.b_from_a) + abs(row.a_from_b)
    assert len(related_classes(named, n_pairs=2)) == 2


def test_related_classes_of_the_five_class_plane_are_found():
    data = make_related_classes(400, random_state=0)
    model = SharedStructureSVC(
        1.0, kernel="rbf", gamma=0.5, landmarks=60, class_weight="balanced", max_iter=5, random_state=0
    ).fit(data.data, data.target)
    strongest = related_classes(model, n_pairs=2)
    names = sorted(model.classes_.tolist())
    assert {frozenset(pair) for pair in strongest[["class_a", "class_b"]].to_numpy().tolist()} == {
        frozenset(names[:2]),
        frozenset(names[2:4]),
    }


def test_heat_map_shows_the_matrix_with_class_names(named):
    display = ClassRelationDisplay.from_estimator(named)
    np.testing.assert_array_equal(display.image_.get_array(), named.relation_)
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == named.classes_.tolist()
    low, high = display.image_.get_clim()
    assert low == -high


def test_dendrogram_joins_the_strongest_pair_first(named):
    display = ClassRelationDisplay.from_estimator(named).plot_dendrogram()
    strongest = related_classes(named, n_pairs=1).iloc[0]
    leaves = display.dendrogram_["ivl"]
    assert set(leaves) == set(named.classes_)
    assert abs(leaves.index(strongest.class_a) - leaves.index(strongest.class_b)) == 1


def test_one_vs_one_has_a_heat_map_of_pairs_and_no_tree():
    X, y = blobs(np.random.default_rng(0), 60, 4, 4)
    model = SharedStructureSVC(0.1, scheme="ovo", n_base=3).fit(X, y)
    display = ClassRelationDisplay.from_estimator(model)
    assert display.final_names[:2] == ["0 / 1", "0 / 2"]
    assert display.base_names == ["base 0", "base 1", "base 2"]
    with pytest.raises(ValueError, match="as many base as final classifiers"):
        display.plot_dendrogram()
    with pytest.raises(ValueError, match="scheme='ovr' and n_base = n_classes"):
        related_classes(model)


def test_two_classes_have_a_tree_of_one_join():
    X, y = blobs(np.random.default_rng(0), 40, 3, 2)
    display = ClassRelationDisplay.of(SharedStructureSVC(0.1).fit(X, y)).plot_dendrogram()
    assert set(display.dendrogram_["ivl"]) == {"0", "1"}
    assert "0" in display.dendrogram_description
