"""
Balancing and refining the proximal machine
===========================================

Least squares pull a plane towards the larger class, and towards points that are far on the right side. Fung and
Mangasarian mend the first by balancing the two sides, the second by a Newton refinement in two variables, in which
points beyond their margin no longer count. The upper row is after their Figures 2 to 4 (85 and 15 points, linear),
the lower one after Figures 5 and 6 (400, 50 and 50 points, Gaussian kernel).
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from polymargin import ProximalSVC
from polymargin.datasets import make_unbalanced_pair, make_unbalanced_rings

machines = {
    "plain": {"balance": False, "refine": False},
    "balanced": {"balance": True, "refine": False},
    "balanced and refined": {"balance": True, "refine": True},
}
samples = [
    (make_unbalanced_pair(random_state=1), {"C": 10.0}),
    (make_unbalanced_rings(random_state=0), {"C": 10.0, "kernel": "rbf", "gamma": 0.05}),
]
colours = ListedColormap(["#9ecae1", "#fdae6b", "#a1d99b"])

figure, axes = plt.subplots(2, 3, figsize=(11, 7.5), layout="constrained")
for row, (sample, options) in zip(axes, samples, strict=True):
    X, y = sample.data, sample.target
    low, high = X.min(axis=0) - 0.5, X.max(axis=0) + 0.5
    grid = np.stack(np.meshgrid(*(np.linspace(a, b, 200) for a, b in zip(low, high, strict=True))), axis=-1)
    for axis, (name, switches) in zip(row, machines.items(), strict=True):
        model = ProximalSVC(**options, **switches).fit(X, y)
        regions = model.predict(grid.reshape(-1, 2)).reshape(200, 200)
        extent = (low[0], high[0], low[1], high[1])
        axis.imshow(regions, extent=extent, origin="lower", aspect="auto", cmap=colours, vmin=0, vmax=2, alpha=0.5)
        axis.scatter(*X.T, c=y, cmap=colours, vmin=0, vmax=2, s=14, edgecolors="0.3", linewidths=0.5)
        axis.set(title=f"{name}: {model.score(X, y):.1%} correct", xticks=[], yticks=[])
plt.show()

# %%
# The refinement also tells which points matter: those within the margin of some class.

model = ProximalSVC(**samples[0][1]).fit(samples[0][0].data, samples[0][0].target)
print(f"{len(model.support_)} of {len(samples[0][0].target)} points are support vectors")
print("Newton steps:", model.refinement_.n_iter)
