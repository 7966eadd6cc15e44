"""Extrapolation of a fixed-point iteration from its last steps."""

import numpy as np
from numpy.typing import NDArray

from polymargin.solvers.shared.settings import DEFAULTS, SharedSettings


class Anderson:
    """Mix the last images of a map so that the steps mixed alike are shortest (Anderson 1965).

    Parameters
    ----------
    memory : number of differences of steps that are mixed.
    tuning : SharedSettings
    """

    def __init__(self, memory: int, tuning: SharedSettings = DEFAULTS):
        self.memory, self.tuning = memory, tuning
        self.forget()

    def forget(self) -> None:
        """Begin anew: what was seen is of no use for what comes."""
        self.places: list[NDArray[np.float64]] = []
        self.steps: list[NDArray[np.float64]] = []

    @property
    def has_mixed(self) -> bool:
        """Whether the last answer was an extrapolation, not the image itself."""
        return len(self.steps) > 1

    def __call__(self, place: NDArray[np.float64], image: NDArray[np.float64]) -> NDArray[np.float64]:
        """Take in the `image` of a `place`, and return the place to go to."""
        self.places = [*self.places, place][-1 - self.memory :]
        self.steps = [*self.steps, image - place][-1 - self.memory :]
        if not self.has_mixed:
            return image
        of_steps = np.diff([step.ravel() for step in self.steps], axis=0).T
        of_places = np.diff([place.ravel() for place in self.places], axis=0).T
        shares = np.linalg.lstsq(of_steps, self.steps[-1].ravel(), rcond=self.tuning.least_difference)[0]
        return image - ((of_places + of_steps) @ shares).reshape(image.shape)
