"""
What the losses want
====================

At a point where the classes have probabilities 0.2, 0.38 and 0.42, the third class is the best answer. Each panel
shows the expected loss over the plane of scores that sum to zero; colours tell which class has the highest score,
and the cross marks the lowest point of the grid.

Fisher consistent losses end inside the right region wherever they are asked: that of Lee, Lin & Wahba, the
reinforced one (gamma up to 1/2), the squared hinges and the logistic loss. "ats" ends there too at this point,
which proves nothing. Weston and Watkins' ends at the border between the second and the third class (Lemma 2 of
Lee, Lin & Wahba), where "mmr" ends as well; Crammer and Singer's, "adm" and "atm" end at zero, a tie.
"""

import matplotlib.pyplot as plt
import numpy as np

from polymargin.coding import zero_sum_basis
from polymargin.problems.hinge import LOSSES

probabilities = np.array([0.2, 0.38, 0.42])
labels = np.arange(3)
weights = probabilities[:, None] * (1 - np.eye(3))
names = [name for name, loss in LOSSES.items() if loss.over(labels, weights).zero_sum]

side = np.linspace(-3, 3, 121)
plane = np.stack(np.meshgrid(side, side), axis=-1)
scores = plane @ zero_sum_basis(3).T

figure, axes = plt.subplots(3, 4, figsize=(13, 10), sharex=True, sharey=True, layout="constrained")
for axis in axes.flat[len(names) :]:
    axis.remove()
for axis, name in zip(axes.flat, names, strict=False):
    loss = LOSSES[name].over(labels, weights)
    expected = np.array([[loss.value(np.tile(f, (3, 1))) for f in row] for row in scores])
    axis.imshow(
        scores.argmax(axis=-1), extent=(-3, 3, -3, 3), origin="lower", cmap="Pastel1", vmin=0, vmax=8, alpha=0.7
    )
    axis.contour(side, side, expected, levels=15, colors="0.3", linewidths=0.6)
    best = np.unravel_index(expected.argmin(), expected.shape)
    axis.plot(*plane[best], "kx", markersize=10, markeredgewidth=2)
    axis.set(title=f"{name}: {np.round(scores[best], 2)}", xticks=[], yticks=[])
plt.show()
