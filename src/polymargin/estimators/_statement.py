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
from polymargin.solvers.ridge.class_qr import ClassQR, gram_matrices, qr_per_class
from polymargin.solvers.ridge.exact import cholesky_would_fail
from polymargin.solvers.ridge.settings import RidgeSettings


class Statement(NamedTuple):
    """The same problem twice, and the moments of the data.

    Attributes
    ----------
    moments : None where they are many, and more unknowns than rows do not need them.
    equations : the problem by moments; None where the rows are no more than the unknowns.
    rows : the problem by rows.
    class_qr : of the rows, where the normal equations are too ill-conditioned.
    """

    moments: ClassMoments | None
    equations: NormalEquations | None
    rows: RowProblem
    class_qr: ClassQR | None = None


def brought_together(
    data: TrainingSet | PartitionedSet, features: KernelFeatures | None
) -> TrainingSet | PartitionedSet:
    """Return the data; rows in partitions that are no more than the unknowns come into memory."""
    return data.gathered() if data.n_rows <= _width(data, features) else data


def state_problem(
    data: TrainingSet | PartitionedSet,
    features: KernelFeatures | None,
    C: float,
    *,
    balance: bool,
    tuning: RidgeSettings,
) -> Statement:
    """State the problem by rows and, where these are more than the unknowns, by the moments."""
    sides = Sides.one_vs_rest(data.totals, balance)
    if isinstance(data, PartitionedSet):
        moments = class_moments(data, features)
        blocks = data.blocks.map(_rows_of, sides, C, features)
        return Statement(moments, NormalEquations(moments, sides, C), PartitionedRows(blocks, sides, C))
    n, width = data.n_rows, _width(data, features)
    rows = _rows_of(data, sides, C, features)
    if features is not None and 8 * n * width <= tuning.kept_bytes:
        rows = replace(rows, X=np.asarray(features(data.X), dtype=np.float64), transform=None)
    if n <= width and 8 * data.n_classes * (width + 1) ** 2 > tuning.kept_bytes:
        return Statement(None, None, rows)
    if rows.transform is not None and n > width and cholesky_would_fail(rows, tuning):
        class_qr = qr_per_class(rows)
        moments = ClassMoments(gram_matrices(class_qr, data.n_classes))
        return Statement(moments, NormalEquations(moments, sides, C), rows, class_qr)
    moments = class_moments(replace(data, X=rows.X), rows.transform)
    return Statement(moments, NormalEquations(moments, sides, C) if n > width else None, rows)


def _width(data: TrainingSet | PartitionedSet, features: KernelFeatures | None) -> int:
    return data.n_features if features is None else features.landmarks.shape[0]


def _rows_of(data: TrainingSet, sides: Sides, C: float, features: KernelFeatures | None) -> ProximalRows:
    return ProximalRows(data.X, data.labels, data.weights, sides, C, features)
