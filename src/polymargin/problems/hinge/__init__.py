"""The hinge machines and their kin: their losses, one file each, and the problem that they state.

`LOSSES` are those that have a name; `polymargin.extend` says how to add one.
"""

from polymargin.problems.hinge.boxes import BoxLosses, boxes, hinges
from polymargin.problems.hinge.crammer import Crammer, crammer_singer
from polymargin.problems.hinge.curved import Curve, CurvedLosses, curved, pairs
from polymargin.problems.hinge.lee import Lee, lee_lin_wahba
from polymargin.problems.hinge.losses import Loss, Losses
from polymargin.problems.hinge.polyhedral import Moves, PolyhedralLosses, polyhedral
from polymargin.problems.hinge.problem import (
    HingeMeasures,
    HingePoint,
    HingeProblem,
    PartitionedHinge,
    PartitionedPoint,
    features_of,
)
from polymargin.problems.hinge.simplices import (
    SHORT_ROW,
    PairLosses,
    SimplexLosses,
    leaders,
    row_maxima,
    simplices,
)
from polymargin.problems.hinge.weston import Weston, weston_watkins

LOSSES: dict[str, Loss] = {"lee": Lee(), "weston": Weston(), "crammer": Crammer()}
"""The losses that have a name."""

__all__ = [
    "LOSSES",
    "SHORT_ROW",
    "BoxLosses",
    "Crammer",
    "Curve",
    "CurvedLosses",
    "HingeMeasures",
    "HingePoint",
    "HingeProblem",
    "Lee",
    "Loss",
    "Losses",
    "Moves",
    "PairLosses",
    "PartitionedHinge",
    "PartitionedPoint",
    "PolyhedralLosses",
    "SimplexLosses",
    "Weston",
    "boxes",
    "crammer_singer",
    "curved",
    "features_of",
    "hinges",
    "leaders",
    "lee_lin_wahba",
    "pairs",
    "polyhedral",
    "row_maxima",
    "simplices",
    "weston_watkins",
]
