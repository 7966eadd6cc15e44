"""A penalty of one's own: ordered classes of which neighbours get the same coefficient."""

from dataclasses import dataclass

import numpy as np

from polymargin.extend import Atoms, Penalty


@dataclass(frozen=True)
class OrderedFusion(Penalty):
    """``sum_j sum_k |w_{k+1,j} - w_kj|``: along ordered classes a coefficient changes in few steps.

    Every w that sums to zero is a sum of steps: 0 up to class s and 1 after it, centred. A step has penalty 1, and
    gains the sum of the centred g over the classes after it.
    """

    def value(self, coef):
        """Return J(W)."""
        return float(np.abs(np.diff(coef, axis=0)).sum())

    def polars(self, G, *, above=1.0):
        """Return what the best step gains."""
        return np.abs(_sums_after(G)).max(axis=0)

    def best_atoms(self, G, variables):
        """Return the best step."""
        step = np.abs(_sums_after(G[:, variables])).argmax(axis=0)
        after = np.arange(len(G)) > step[:, None]
        return Atoms(variables, after.astype(np.float64), np.ones(len(variables)))

    def combine(self, atoms, multipliers, n_features):
        """Return centred sums of steps."""
        coef = super().combine(atoms, multipliers, n_features)
        return coef - coef.mean(axis=0)


def _sums_after(G):
    """Return for every step s the sum of the centred g over the classes after s, (k - 1, p)."""
    centred = G - G.mean(axis=0)
    return np.cumsum(centred[::-1], axis=0)[-2::-1]
