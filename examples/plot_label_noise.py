"""
Finding wrong labels
====================

One label in ten of the digits is replaced by a random other one. A truncated machine gives up on rows that
contradict the rest; these are the rows of ``suspect_labels_``. The second figure shows the boundaries of a linear
machine on three classes as the utility of taking the first class for the second grows (Figure 1 of Liu, Wu & He).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from polymargin import RobustSVC
from polymargin.datasets import flip_labels, make_triangle
from polymargin.inspection import LabelNoiseDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, train_size=600, random_state=0, stratify=y)
noisy = flip_labels(y_train, 0.1, random_state=0)
wrong = noisy != y_train

model = RobustSVC(kernel="rbf").fit(X_train, noisy)
suspects = np.isin(np.arange(len(noisy)), model.suspect_labels_)
print(f"precision {wrong[suspects].mean():.3f}, recall {suspects[wrong].mean():.3f} of the suspects")
hinge = SVC().fit(X_train, noisy)
print(f"test accuracy: robust {model.score(X_test, y_test):.3f}, SVC {hinge.score(X_test, y_test):.3f}")
LabelNoiseDisplay.from_estimator(model, known=wrong)

# %%
sample = make_triangle(800, random_state=0)
side = np.linspace(-3, 3, 201)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 4, figsize=(14, 3.6), sharey=True, layout="constrained")
for axis, a in zip(axes, (0.0, 0.2, 0.4, 0.6), strict=True):
    machine = RobustSVC(C=0.1, utility={(0, 1): a}).fit(sample.data, sample.target)
    regions = machine.predict(grid).reshape(201, 201)
    axis.contourf(side, side, regions, levels=[-0.5, 0.5, 1.5, 2.5], cmap="Pastel1")
    axis.scatter(*sample.data.T, c=sample.target, s=3, cmap="Set1", vmax=8)
    axis.set(title=f"utility of 0 as 1: {a}", xticks=[], yticks=[])
plt.show()
