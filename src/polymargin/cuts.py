"""Steepest cuts between classes: which set of them has the largest sum for what it costs to cut it off."""

import numpy as np
from numpy.typing import NDArray

from polymargin._native.steepest_cut import steepest_cuts as find_steepest_cuts


def steepest_cuts(
    G: NDArray[np.float64], weights: NDArray[np.float64], *, above: float = -1.0
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return ``max_S g(S) / F(S)`` of every column of G, with the cut F(S) and the members of the set S.

    Parameters
    ----------
    G : (k, m) values of the classes; the mean of a column is taken off.
    weights : (k (k - 1) / 2, m) positive weights of the pairs of classes, in the order of `coding.class_pairs`.
    above : columns without a ratio greater than this get it instead of their own, a cut of zero and no members;
        negative where every column is to have a set.

    Examples
    --------
    >>> steepest_cuts(np.array([[2.0], [1.0], [-3.0]]), np.array([[10.0], [1.0], [1.0]]))
    (array([1.5]), array([2.]), array([[ True,  True, False]]))
    """
    k, m = G.shape
    values = np.ascontiguousarray((G - G.mean(axis=0)).T)
    order = np.argsort(-values, axis=1, kind="stable")
    ratios, costs, members = np.empty(m), np.empty(m), np.empty((m, k), dtype=np.uint8)
    find_steepest_cuts(
        values,
        order,
        np.ascontiguousarray(weights.T),
        above,
        np.empty((k, k)),
        np.empty((k, k)),
        np.empty((2, k)),
        np.empty((2, k), dtype=np.intp),
        np.empty(k, dtype=np.uint8),
        ratios,
        costs,
        members,
    )
    return ratios, costs, members.astype(bool)
