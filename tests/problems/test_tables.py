"""Tables of margins that are not spelled out are those that are."""

import tracemalloc

import numpy as np
import pytest

from polymargin.problems.hinge.tables import Differences, KeptTable, SingleScores


@pytest.mark.parametrize("kind", [SingleScores, Differences])
@pytest.mark.parametrize("k", [2, 3, 6])
def test_rule_is_its_table(kind, k):
    """Slopes, pulls, rows, sums over columns and atoms are those of the table of all directions."""
    rng = np.random.default_rng(k)
    rule, n = kind(k), 40
    table = KeptTable(np.array(rule.directions))
    labels = rng.integers(0, k, n)
    slots = (labels + rng.integers(1, k, n)) % k
    F, dual, t, entries = rng.normal(size=(n, k)), rng.random((n, k)), rng.normal(size=k), rng.random(n)
    assert (rule.n_slots, rule.n_classes) == (table.n_slots, table.n_classes)
    np.testing.assert_array_equal(rule.rows(labels, slots), table.rows(labels, slots))
    np.testing.assert_allclose(rule.slopes(labels, F), table.slopes(labels, F), atol=1e-14)
    np.testing.assert_allclose(rule.pull(labels, dual), table.pull(labels, dual), atol=1e-14)
    mine, theirs = rule.columns(labels, slots), table.columns(labels, slots)
    np.testing.assert_allclose(mine.growth(t), theirs.growth(t), rtol=1e-13)
    np.testing.assert_allclose(mine.growth(t), np.exp(np.sum(table.rows(labels, slots) * t, axis=1)), rtol=1e-13)
    some = rng.random(n) < 0.5
    again = mine.following(mine.kind[:3], some)
    np.testing.assert_array_equal(again.growth(t), np.concatenate([mine.growth(t)[:3], mine.growth(t)[some]]))
    np.testing.assert_allclose(mine.sums(entries), theirs.sums(entries), atol=1e-13)
    np.testing.assert_allclose(mine.outer(entries), theirs.outer(entries), atol=1e-13)
    for atoms, number in (rule.atoms(labels, slots), table.atoms(labels, slots)):
        of_slots, expected = atoms.toarray()[number], table.rows(labels, slots)
        signs = np.sign(np.sum(of_slots * expected, axis=1))
        np.testing.assert_allclose(signs[:, None] * of_slots, expected, atol=1e-15)


def test_differences_of_many_classes_take_no_room():
    """What 400 classes need is a table of pairs at most, not one of their third power."""
    tracemalloc.start()
    table, labels = Differences(400), np.arange(400)
    table.columns(labels, (labels + 1) % 400).outer(np.ones(400))
    table.atoms(labels, (labels + 1) % 400)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 400**2
