"""Margins from a table: what slot m of an example of class y sees of the scores."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.hinge.losses import Array


@dataclass(frozen=True, slots=True)
class Table:
    """The linear part of margins, ``<directions[y, m], f>``.

    Attributes
    ----------
    directions : (k, slots, k).
    """

    directions: Array

    def slopes(self, labels: NDArray[np.intp], F: Array) -> Array:
        """Return the linear part of the margins of examples of the classes `labels` at the scores `F`."""
        slopes = np.empty((len(F), self.directions.shape[1]))
        for own, table in enumerate(self.directions):
            rows = np.flatnonzero(labels == own)
            slopes[rows] = F[rows] @ table.T
        return slopes

    def pull(self, labels: NDArray[np.intp], dual: Array) -> Array:
        """Return the adjoint of `slopes`."""
        pull = np.empty((len(dual), self.directions.shape[2]))
        for own, table in enumerate(self.directions):
            rows = np.flatnonzero(labels == own)
            pull[rows] = dual[rows] @ table
        return pull


def single_scores(n_classes: int) -> Array:
    """Return the table (k, k, k) of hinges that see single scores, those of functions that sum to zero."""
    return np.broadcast_to(np.eye(n_classes) - 1.0 / n_classes, (n_classes, n_classes, n_classes))


def differences(n_classes: int) -> Array:
    """Return the table (k, k, k) of margins that are differences to the score of the own class."""
    return np.eye(n_classes)[None, :, :] - np.eye(n_classes)[:, None, :]


def signed_scores(n_classes: int) -> Array:
    """Return the table (k, k, k) of hinges that see minus the score of the own class and those of the others."""
    signs = np.ones((n_classes, n_classes)) - 2.0 * np.eye(n_classes)
    return signs[:, :, None] * single_scores(n_classes)
