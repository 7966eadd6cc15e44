r"""
Why loss (1) cannot give Guo's tables
=====================================

Guo states the loss :math:`\sum_{j \ne y} [f_j(x) + 1]_+` with scores that sum to zero. In his Example 1 the
scores of the four classes are :math:`10x_1 + 5x_2, 5x_2, -5x_2, -10x_1 - 5x_2`. Here it meets Weston and
Watkins' loss on that example without any noise variable, on many rows and with next to no penalty: what is lost
is lost by the loss.
"""

from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from polymargin import MulticategorySVC
from polymargin.datasets import make_class_specific

train, test = (make_class_specific(1, n, n_noise=0, random_state=n) for n in (600, 4000))
losses = {"loss (1)": "lee", "Weston-Watkins": "weston"}
machines = {
    name: MulticategorySVC(10.0, loss=loss, kernel="linear", tol=1e-3).fit(train.data, train.target)
    for name, loss in losses.items()
}
print(f"{'':16}error   predicted as classes 1 to 4, percent")
for name, machine in machines.items():
    predicted = machine.predict(test.data)
    shares = 100 * np.bincount(predicted, minlength=4) / len(predicted)
    print(f"{name:16}{100 * np.mean(predicted != test.target):5.1f}   {shares.round(1)}")
best = test.probabilities.argmax(axis=1)
shares = 100 * np.bincount(best, minlength=4) / len(best)
print(f"{'Bayes rule':16}{100 * np.mean(best != test.target):5.1f}   {shares.round(1)}")

# %%
# Loss (1) asks every wrong class for a score below -1 and the right one for nothing: a class whose region is a
# wedge between two others would have to stand above them where a linear score cannot. Its machine gives up such
# classes. The loss is consistent, but for functions that are free, not for linear ones.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained", sharey=True)
side = np.linspace(-1, 1, 200)
plane = np.column_stack([part.ravel() for part in np.meshgrid(side, side)])
rules = {name: machine.predict for name, machine in machines.items()}
rules["Bayes rule"] = lambda X: test.class_probabilities(X).argmax(axis=1)
for ax, (name, rule) in zip(axes, rules.items(), strict=True):
    ax.contourf(side, side, rule(plane).reshape(200, 200), levels=np.arange(5) - 0.5, cmap="Pastel1")
    ax.set(title=name, xlabel="$x_1$")
axes[0].set_ylabel("$x_2$")

# %%
# The stored runs of Tables 1 and 2, with all 100 noise variables: error of adaptive fusion beside the paper's.

from reproductions import catalogue, report  # noqa: E402
from reproductions.judge import summarise  # noqa: E402
from reproductions.run import read_results  # noqa: E402

for name in ("sparse/example1", "sparse/example1lee", "sparse/example2", "sparse/example2lee"):
    stored = (Path(report.__file__).parent / "results" / name).with_suffix(".jsonl")
    if stored.exists():
        rows = {row.key: row for row in summarise(catalogue.load(name), read_results(stored)[1])}
        row = rows["APF", "error"]
        print(f"{name:20} {row.ours:5.1f} ({row.repetitions} repetitions), the paper has {row.theirs:.1f}")
