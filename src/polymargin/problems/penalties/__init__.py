"""Penalties of the sparse machines, one file each; `PENALTIES` are those that have a name.

Guo (2010) has l1, the sup-norm and pairwise fusion. A new penalty is a class in a file of its own that inherits
from `Penalty`; an entry in `PENALTIES` gives it a name.
"""

from polymargin.problems.penalties.elastic_net import ElasticNetPenalty
from polymargin.problems.penalties.fusion import FusionPenalty, pair_differences
from polymargin.problems.penalties.group_lasso import GroupLassoPenalty
from polymargin.problems.penalties.lasso import LassoPenalty
from polymargin.problems.penalties.penalty import Atoms, Penalty, PriceRule
from polymargin.problems.penalties.ridge import RidgePenalty
from polymargin.problems.penalties.supnorm import SupnormPenalty
from polymargin.problems.penalties.weights import adaptive_weights

PENALTIES: dict[str, Penalty] = {
    "fusion": FusionPenalty(),
    "supnorm": SupnormPenalty(),
    "l1": LassoPenalty(),
    "l2": RidgePenalty(),
    "elastic_net": ElasticNetPenalty(),
    "group": GroupLassoPenalty(),
}
"""The penalties that a name stands for, with all weights 1."""

__all__ = [
    "PENALTIES",
    "Atoms",
    "ElasticNetPenalty",
    "FusionPenalty",
    "GroupLassoPenalty",
    "LassoPenalty",
    "Penalty",
    "PriceRule",
    "RidgePenalty",
    "SupnormPenalty",
    "adaptive_weights",
    "pair_differences",
]
