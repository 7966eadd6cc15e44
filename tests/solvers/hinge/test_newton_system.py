"""The curvature of many classes, formed without the table of all pairs of classes."""

import numpy as np
import pytest
from scipy import sparse

from polymargin import MulticategorySVC, RobustSVC
from polymargin.coding import class_pairs, zero_sum_basis
from polymargin.problems.hinge import SimplexLosses
from polymargin.problems.hinge.weston import weston_watkins
from polymargin.solvers.hinge import _rows, _slots
from polymargin.solvers.hinge._class_curvature import in_basis, pairs_of_atoms
from polymargin.solvers.hinge._slots import BoxSlots, SimplexSlots


def spelled_out(slots, theta, X):
    """Twin of `curvature`: the sum over rows and atoms."""
    weights = slots.atom_weights(theta, slice(0, len(X)))
    atoms = slots.atoms.toarray()
    return np.einsum("it,tc,td,ip,iq->pcqd", weights, atoms, atoms, X, X, optimize=True)


def simplex_slots(rng, n, k, one_each):
    example = np.arange(n) if one_each else rng.permutation(np.repeat(np.arange(n), 2))
    anchor = rng.integers(0, k, len(example))
    return SimplexSlots(SimplexLosses(example, anchor, rng.uniform(0.5, 2.0, len(example)), 1.0, n, k))


@pytest.mark.parametrize("kind", ["simplex", "simplices", "sparse rows"])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_curvature_of_maxima(k, kind):
    rng = np.random.default_rng(k)
    n, p = 30, 3
    slots = simplex_slots(rng, n, k, one_each=kind != "simplices")
    X, theta = rng.normal(size=(n, p)), rng.uniform(size=(len(slots.example), k))
    rows = sparse.csr_array(X) if kind == "sparse rows" else X
    np.testing.assert_allclose(slots.curvature(theta, rows), spelled_out(slots, theta, X), atol=1e-12)


def test_curvature_where_one_slot_has_nearly_all():
    """What is left of the others does not cancel."""
    rng = np.random.default_rng(0)
    slots = simplex_slots(rng, 20, 5, one_each=True)
    X, theta = rng.normal(size=(20, 2)), rng.uniform(1e-9, 2e-9, size=(20, 5))
    theta[np.arange(20), rng.integers(0, 5, 20)] = 1e9
    expected = spelled_out(slots, theta, X)
    np.testing.assert_allclose(slots.curvature(theta, X), expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("k", [2, 3, 7])
def test_curvature_of_hinges(k):
    rng = np.random.default_rng(k)
    y = rng.integers(0, k, 30)
    losses = weston_watkins(y, np.where(np.eye(k)[y] > 0, 0.0, rng.uniform(0.5, 2.0, (30, k))))
    slots = BoxSlots(losses)
    X, theta = rng.normal(size=(30, 3)), rng.uniform(0.1, 2.0, size=(len(slots.example), 2))
    np.testing.assert_allclose(slots.curvature(theta, X), spelled_out(slots, theta, X), atol=1e-12)


@pytest.mark.parametrize("kind", ["pairs", "classes"])
def test_curvature_in_a_basis(kind):
    k, p = 5, 3
    first, second = class_pairs(k).T
    atoms = np.eye(k) if kind == "classes" else np.eye(k)[first] - np.eye(k)[second]
    grams = np.random.default_rng(k).normal(size=(len(atoms), p, p))
    coordinates, basis = atoms @ zero_sum_basis(k), zero_sum_basis(k)
    expected = np.einsum("ta,tb,tpq->apbq", coordinates, coordinates, grams).reshape((k - 1) * p, -1)
    of_pairs = pairs_of_atoms(sparse.csr_array(atoms)) @ grams.reshape(len(atoms), -1)
    in_classes = of_pairs.reshape(k, k, p, p).transpose(2, 0, 3, 1)
    np.testing.assert_allclose(in_basis(in_classes, basis), expected, atol=1e-13)


@pytest.mark.parametrize("machine", ["hinge", "logistic", "weston", "crammer"])
def test_many_classes_make_no_table_of_rows_by_pairs(machine, monkeypatch):
    """The same solution, and the same number of iterations, as by a Gram for every pair of classes."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 6

    def fitted():
        if machine in ("hinge", "logistic"):
            return RobustSVC(loss=machine, kernel="linear", solver="interior_point").fit(X, y)
        return MulticategorySVC(loss=machine, kernel="linear", solver="interior_point").fit(X, y)

    few = fitted()
    monkeypatch.setattr(_rows, "is_by_class", lambda n_atoms, k: n_atoms > k)
    monkeypatch.setattr("polymargin.solvers.hinge._newton_system.is_by_class", _rows.is_by_class)
    for kind in (_slots.SimplexSlots, _slots.BoxSlots):
        monkeypatch.setattr(kind, "atom_weights", lambda *_: pytest.fail("a table of rows by pairs"))
    many = fitted()
    assert many.certificate_.primal == pytest.approx(few.certificate_.primal, rel=1e-4)
    assert many.certificate_.gap <= 1e-4
    assert abs(many.n_iter_ - few.n_iter_) <= 3
