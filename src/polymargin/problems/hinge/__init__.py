"""The hinge machines: their losses and the problem that they state."""

from polymargin.problems.hinge.problem import (
    SHORT_ROW,
    BoxLosses,
    HingeMeasures,
    HingePoint,
    HingeProblem,
    PartitionedHinge,
    PartitionedPoint,
    SimplexLosses,
    crammer_singer,
    features_of,
    leaders,
    lee_lin_wahba,
    row_maxima,
    weston_watkins,
)

__all__ = [
    "SHORT_ROW",
    "BoxLosses",
    "HingeMeasures",
    "HingePoint",
    "HingeProblem",
    "PartitionedHinge",
    "PartitionedPoint",
    "SimplexLosses",
    "crammer_singer",
    "features_of",
    "leaders",
    "lee_lin_wahba",
    "row_maxima",
    "weston_watkins",
]
