"""How weak a prediction is: the loss of the predicted class, that of the paper or minus its lead."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def prediction_losses(machine: Any, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Loss of the predicted class: the paper's where the machine minimises it, else minus the winner's lead."""
    return paper_loss(scores) if minimises_paper_loss(machine) else gap_loss(scores)


def paper_loss(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Loss of the predicted class, sum_{j != yhat} [f_j + 1/(k-1)]_+."""
    hinges = np.maximum(scores + 1.0 / (scores.shape[1] - 1), 0.0)
    return hinges.sum(axis=1) - hinges.max(axis=1)


def gap_loss(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Minus the difference of the two highest scores."""
    ordered = np.partition(scores, -2, axis=1)
    return ordered[:, -2] - ordered[:, -1]


def minimises_paper_loss(machine: Any) -> bool:
    """Tell whether the machine, perhaps the last step of a pipeline or found by a search, has ``loss="lee"``."""
    machine = getattr(machine, "best_estimator_", machine)
    if hasattr(machine, "steps"):
        return minimises_paper_loss(machine.steps[-1][1])
    return getattr(machine, "loss", None) == "lee"
