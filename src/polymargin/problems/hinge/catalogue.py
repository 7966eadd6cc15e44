"""The losses that have a name, and what an estimator makes of the argument `loss`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.hinge.adm import AdmLoss
from polymargin.problems.hinge.atm import AtmLoss
from polymargin.problems.hinge.ats import AtsLoss
from polymargin.problems.hinge.contract import check_contract
from polymargin.problems.hinge.crammer import CrammerLoss
from polymargin.problems.hinge.lee import LeeLoss
from polymargin.problems.hinge.logistic import LogisticLoss
from polymargin.problems.hinge.losses import Array, Loss
from polymargin.problems.hinge.mmr import MmrLoss
from polymargin.problems.hinge.one_vs_rest import OneVsRestLoss
from polymargin.problems.hinge.reinforced import ReinforcedLoss
from polymargin.problems.hinge.squares import SquaredLeeLoss, SquaredWestonLoss
from polymargin.problems.hinge.weston import WestonLoss

LOSSES: dict[str, Loss] = {
    "lee": LeeLoss(),
    "weston": WestonLoss(),
    "crammer": CrammerLoss(),
    "mmr": MmrLoss(),
    "adm": AdmLoss(),
    "atm": AtmLoss(),
    "ats": AtsLoss(),
    "one_vs_rest": OneVsRestLoss(),
    "reinforced": ReinforcedLoss(),
    "lee_squared": SquaredLeeLoss(),
    "weston_squared": SquaredWestonLoss(),
    "logistic": LogisticLoss(),
}
"""The losses that have a name."""


def check_loss_argument(loss: Any) -> None:
    """Refuse what is neither one of the names nor an object that is a loss."""
    allowed = f"loss must be one of {', '.join(map(repr, LOSSES))} or an object of a polymargin.extend.Loss"
    if isinstance(loss, type):
        raise TypeError(f"{allowed}, got the class {loss.__name__} instead of an object of it.")
    if isinstance(loss, Loss):
        return
    if not isinstance(loss, str):
        raise TypeError(f"{allowed}, got {loss!r}.")
    if loss not in LOSSES:
        raise ValueError(f"{allowed}, got {loss!r}.")


def loss_of(loss: str | Loss) -> Loss:
    """Return the loss of a name, or the loss itself."""
    return loss if isinstance(loss, Loss) else LOSSES[loss]


def check_given(loss: str | Loss, labels: NDArray[np.intp], costs: Array) -> None:
    """Check an object that a user gave on some of the examples; those with a name are tested."""
    if isinstance(loss, Loss):
        check_contract(loss, labels, costs)
