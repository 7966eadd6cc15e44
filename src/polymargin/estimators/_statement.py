"""What a proximal machine solves: its problem, stated by the moments of the classes and by the rows."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from polymargin.estimators._base import TrainingSet
from polymargin.estimators._moments import class_moments
from polymargin.estimators._partitions import PartitionedSet
from polymargin.gram import KernelFeatures
from polymargin.moments import ClassMoments
from polymargin.problems.proximal import NormalEquations, PartitionedRows, ProximalRows, RowProblem, Sides
from polymargin.solvers.ridge.class_qr import Triangles, class_triangles, gram_matrices
from polymargin.solvers.ridge.exact import squares_will_fail

KEPT_BYTES = 2**27
"""Memory up to which kernel features are computed once, and moments kept that only `partial_fit` will need."""


class Statement(NamedTuple):
    """The same problem twice, and the moments of the data.

    Attributes
    ----------
    moments : None where they are many, and more unknowns than rows do not need them.
    equations : the problem by moments; None where the rows are no more than the unknowns.
    rows : the problem by rows.
    triangles : of the rows, where their squares would be of no use.
    """

    moments: ClassMoments | None
    equations: NormalEquations | None
    rows: RowProblem
    triangles: Triangles | None = None


def brought_together(
    data: TrainingSet | PartitionedSet, features: KernelFeatures | None
) -> TrainingSet | PartitionedSet:
    """Return the data; rows in partitions that are no more than the unknowns come into memory."""
    return data.gathered() if data.n_rows <= _width(data, features) else data


def state_problem(
    data: TrainingSet | PartitionedSet, features: KernelFeatures | None, C: float, *, balance: bool
) -> Statement:
    """State the problem by rows and, where these are more than the unknowns, by the moments."""
    sides = Sides.one_vs_rest(data.totals, balance)
    if isinstance(data, PartitionedSet):
        moments = class_moments(data, features)
        blocks = data.blocks.map(_rows_of, sides, C, features)
        return Statement(moments, NormalEquations(moments, sides, C), PartitionedRows(blocks, sides, C))
    n, width = data.n_rows, _width(data, features)
    rows = _rows_of(data, sides, C, features)
    if features is not None and 8 * n * width <= KEPT_BYTES:
        rows = replace(rows, X=np.asarray(features(data.X), dtype=np.float64), transform=None)
    if n <= width and 8 * data.n_classes * (width + 1) ** 2 > KEPT_BYTES:
        return Statement(None, None, rows)
    if rows.transform is not None and n > width and squares_will_fail(rows):
        triangles = class_triangles(rows)
        moments = ClassMoments(gram_matrices(triangles, data.n_classes))
        return Statement(moments, NormalEquations(moments, sides, C), rows, triangles)
    moments = class_moments(replace(data, X=rows.X), rows.transform)
    return Statement(moments, NormalEquations(moments, sides, C) if n > width else None, rows)


def _width(data: TrainingSet | PartitionedSet, features: KernelFeatures | None) -> int:
    return data.n_features if features is None else features.landmarks.shape[0]


def _rows_of(data: TrainingSet, sides: Sides, C: float, features: KernelFeatures | None) -> ProximalRows:
    return ProximalRows(data.X, data.labels, data.weights, sides, C, features)
