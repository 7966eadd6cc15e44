"""The hinge machines and their kin: their losses, one file each, and the problem that they state.

`LOSSES` are those that have a name; `polymargin.extend` says how to add one.
"""

from polymargin.problems.hinge.adm import AdmLoss
from polymargin.problems.hinge.atm import AtmLoss
from polymargin.problems.hinge.ats import AtsLoss
from polymargin.problems.hinge.boxes import BoxLosses, boxes, hinges
from polymargin.problems.hinge.catalogue import LOSSES, check_loss_argument, loss_of
from polymargin.problems.hinge.crammer import CrammerLoss, crammer_singer
from polymargin.problems.hinge.curved import Curve, CurvedLosses, curved, pairs
from polymargin.problems.hinge.lee import LeeLoss, lee_lin_wahba
from polymargin.problems.hinge.logistic import LogisticLoss
from polymargin.problems.hinge.losses import Loss, Losses
from polymargin.problems.hinge.mmr import MmrLoss
from polymargin.problems.hinge.one_vs_rest import OneVsRestLoss
from polymargin.problems.hinge.polyhedral import Moves, PolyhedralLosses, polyhedral
from polymargin.problems.hinge.problem import (
    HingeMeasures,
    HingePoint,
    HingeProblem,
    PartitionedHinge,
    PartitionedPoint,
    features_of,
)
from polymargin.problems.hinge.reinforced import ReinforcedLoss
from polymargin.problems.hinge.simplices import (
    SHORT_ROW,
    PairLosses,
    SimplexLosses,
    leaders,
    row_maxima,
    simplices,
    two_largest,
)
from polymargin.problems.hinge.squares import SquaredLeeLoss, SquaredWestonLoss
from polymargin.problems.hinge.weston import WestonLoss, weston_watkins

__all__ = [
    "LOSSES",
    "SHORT_ROW",
    "AdmLoss",
    "AtmLoss",
    "AtsLoss",
    "BoxLosses",
    "CrammerLoss",
    "Curve",
    "CurvedLosses",
    "HingeMeasures",
    "HingePoint",
    "HingeProblem",
    "LeeLoss",
    "LogisticLoss",
    "Loss",
    "Losses",
    "MmrLoss",
    "Moves",
    "OneVsRestLoss",
    "PairLosses",
    "PartitionedHinge",
    "PartitionedPoint",
    "PolyhedralLosses",
    "ReinforcedLoss",
    "SimplexLosses",
    "SquaredLeeLoss",
    "SquaredWestonLoss",
    "WestonLoss",
    "boxes",
    "check_loss_argument",
    "crammer_singer",
    "curved",
    "features_of",
    "hinges",
    "leaders",
    "lee_lin_wahba",
    "loss_of",
    "pairs",
    "polyhedral",
    "row_maxima",
    "simplices",
    "two_largest",
    "weston_watkins",
]
