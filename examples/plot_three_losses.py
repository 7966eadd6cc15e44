"""
What the three losses want
==========================

At a point where the classes have probabilities 0.2, 0.38 and 0.42, the third class is the best answer. Each panel
shows the expected loss over the plane of scores that sum to zero; colours tell which class has the highest score,
and the cross marks the lowest point of the grid. Only the loss of Lee, Lin & Wahba ends inside the right region:
Weston and Watkins' ends at the border between the second and the third class (Lemma 2 of the paper), Crammer and
Singer's at zero.
"""

import matplotlib.pyplot as plt
import numpy as np

from polymargin.coding import zero_sum_basis
from polymargin.problems.hinge import crammer_singer, lee_lin_wahba, weston_watkins

probabilities = np.array([0.2, 0.38, 0.42])
labels = np.arange(3)
weights = probabilities[:, None] * (1 - np.eye(3))
losses = {
    "Lee, Lin & Wahba": lee_lin_wahba(labels, weights),
    "Weston & Watkins": weston_watkins(labels, weights),
    "Crammer & Singer": crammer_singer(labels, probabilities, 3),
}

side = np.linspace(-2, 2, 121)
plane = np.stack(np.meshgrid(side, side), axis=-1)
scores = plane @ zero_sum_basis(3).T

figure, axes = plt.subplots(1, 3, figsize=(12, 4), sharex=True, sharey=True, layout="constrained")
for axis, (name, loss) in zip(axes, losses.items(), strict=True):
    expected = np.array([[loss.value(np.tile(f, (3, 1))) for f in row] for row in scores])
    axis.imshow(
        scores.argmax(axis=-1), extent=(-2, 2, -2, 2), origin="lower", cmap="Pastel1", vmin=0, vmax=8, alpha=0.7
    )
    axis.contour(side, side, expected, levels=15, colors="0.3", linewidths=0.6)
    best = np.unravel_index(expected.argmin(), expected.shape)
    axis.plot(*plane[best], "kx", markersize=10, markeredgewidth=2)
    axis.set(title=f"{name}: {np.round(scores[best], 2)}", xticks=[], yticks=[])
plt.show()
