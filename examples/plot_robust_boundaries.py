"""
Utilities move the boundaries
=============================

Figures 1 and 2 of Liu, Wu & He (2011). Three Gaussian classes around the corners of a triangle are told apart by
machines whose utility matrices are the identity but for an entry a: that of taking class 1 for class 2 (first
row), for class 2 or 3 (second row), or of taking class 2 or 3 for class 1 (third row). As a grows, the classes
that are the more useful to predict take over more of the plane.

In the paper the regions of the second row mix as a grows: where no class holds half of the expected utility, the
machine it starts from is zero, and stays zero there. `RobustSVC` also starts at the machine without utilities, and
keeps the fit of the lower objective; ``start_`` tells which one that was.
"""

import matplotlib.pyplot as plt
import numpy as np

from polymargin import RobustSVC
from polymargin.datasets import make_triangle

LEVELS = (0.0, 0.2, 0.4, 0.6)
SIDE = np.linspace(-2.5, 2.5, 121)
GRID = np.stack(np.meshgrid(SIDE, SIDE), axis=-1).reshape(-1, 2)


def utility(kind, a):
    """Utilities (16) of the paper."""
    matrix = np.eye(3)
    if kind == 1:
        matrix[0, 1] = a
    elif kind == 2:
        matrix[0, 1:] = a
    else:
        matrix[1:, 0] = a
    return matrix


def draw(sample, title, **settings):
    """Draw the regions of the classes for the three kinds of utilities."""
    figure, axes = plt.subplots(3, len(LEVELS), figsize=(10, 7.5), sharex=True, sharey=True, layout="constrained")
    for kind, row in enumerate(axes, start=1):
        for a, axis in zip(LEVELS, row, strict=True):
            machine = RobustSVC(utility=utility(kind, a), **settings).fit(sample.data, sample.target)
            regions = machine.predict(GRID).reshape(len(SIDE), len(SIDE))
            axis.contourf(SIDE, SIDE, regions, levels=[-0.5, 0.5, 1.5, 2.5], cmap="Pastel1")
            axis.scatter(*sample.data.T, c=sample.target, s=2, cmap="Set1", vmax=8)
            axis.set(title=f"$U_{{{kind},{a:g}}}$, start: {machine.start_}", xlim=(-2.5, 2.5), ylim=(-2.5, 2.5))
            share = np.bincount(regions.ravel(), minlength=3) / regions.size
            print(f"{title}, U_{kind},{a:g}: shares of the plane {share.round(2)}, from {machine.start_}")
    figure.suptitle(title)


# %%
# Linear boundaries (Figure 1): 1600 points.
draw(make_triangle(1600, random_state=0), "linear", C=0.01)

# %%
# A Gaussian kernel (Figure 2): 400 points here, 800 in the paper.
draw(make_triangle(400, random_state=0), "rbf", C=0.1, kernel="rbf", gamma=0.5)
plt.show()
