"""The public way to extend Polymargin: what a part of your own inherits from, and what verifies it.

>>> from polymargin import ElasticNetPenalty, ReinforcedLoss
>>> from polymargin.extend import check_loss, check_penalty
>>> check_penalty(ElasticNetPenalty(l1_ratio=0.2))
>>> check_loss(ReinforcedLoss(gamma=0.4))
"""

from polymargin.extend.loss import check_loss
from polymargin.extend.penalty import check_penalty
from polymargin.extend.solver import check_solver
from polymargin.problems.hinge import HingePoint, HingeProblem, Loss, Losses
from polymargin.problems.penalties import Atoms, Penalty
from polymargin.solvers.contract import Progress, Settings, Solution, Solver, Status, accepts_kinds

__all__ = [
    "Atoms",
    "HingePoint",
    "HingeProblem",
    "Loss",
    "Losses",
    "Penalty",
    "Progress",
    "Settings",
    "Solution",
    "Solver",
    "Status",
    "accepts_kinds",
    "check_loss",
    "check_penalty",
    "check_solver",
]
