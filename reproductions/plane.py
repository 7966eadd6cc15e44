"""Decision regions in the plane."""

from typing import Any

import numpy as np
from sklearn.utils import Bunch


def draw_regions(ax: Any, machine: Any, sample: Bunch, title: str) -> None:
    """Colour the plane by prediction, put the rows on it, and the training correctness into the title."""
    low, high = sample.data.min(axis=0) - 0.5, sample.data.max(axis=0) + 0.5
    first, second = np.meshgrid(np.linspace(low[0], high[0], 250), np.linspace(low[1], high[1], 250))
    regions = machine.predict(np.column_stack([first.ravel(), second.ravel()])).reshape(first.shape)
    ax.contourf(first, second, regions, levels=np.arange(len(machine.classes_) + 1) - 0.5, cmap="Pastel1")
    for label, marker in zip(machine.classes_, "o^xs+", strict=False):
        ax.plot(*sample.data[sample.target == label].T, marker, markersize=3, color="black", fillstyle="none")
    ax.set_title(f"{title}: {100 * machine.score(sample.data, sample.target):.1f} %")
