"""
Costs of rows and the Bayes rule
================================

What predicting a class costs where it is wrong depends on the row: the three prices grow in three directions.
Class probabilities are known, so the least expected cost that any rule can have is known, too. Over the number
of training rows are drawn the costs of two ways to use the prices, in the training (``fit(X, y, costs=...)``)
and in the decisions (``Decider``, by probabilities), and of ignoring them. Both ways approach the Bayes rule;
ignoring the prices stays away from it, however many rows there are. The probabilities are those of the logistic
loss: with many rows the scores of a hinge tell which class is best, and no longer by how much.
"""

import matplotlib.pyplot as plt
import numpy as np

from polymargin import Decider, MulticategorySVC, ProbabilityClassifier
from polymargin.datasets import make_triangle

SIZES = (50, 100, 200, 400, 800, 1600)
SAMPLES = 5
DIRECTIONS = np.array([[1.0, 0.0], [-0.5, np.sqrt(0.75)], [-0.5, -np.sqrt(0.75)]])


def prices(X):
    """Return what each class costs each row where it is wrong."""
    return np.exp(1.5 * X @ DIRECTIONS.T)


fresh = make_triangle(5000, random_state=0)
expected = prices(fresh.data) * (1.0 - fresh.probabilities)
bayes = expected.min(axis=1).mean()


def cost_of(predicted):
    """Return the expected cost of predictions of the fresh rows, by the true probabilities."""
    return expected[np.arange(len(predicted)), predicted].mean()


def costs_at(n, seed):
    """Return the costs of the three ways with n training rows."""
    sample = make_triangle(n, random_state=seed)
    X, y = sample.data, sample.target
    costs = np.where(y[:, None] == np.arange(3), 0.0, prices(X))
    machine = MulticategorySVC(tol=1e-3)
    ignored = machine.fit(X, y).predict(fresh.data)
    trained = machine.fit(X, y, costs=costs).predict(fresh.data)
    decider = Decider(ProbabilityClassifier(MulticategorySVC(loss="logistic", tol=1e-3)).fit(X, y))
    return cost_of(trained), cost_of(decider.predict(fresh.data, prices(fresh.data))), cost_of(ignored)


found = np.array([[costs_at(n, seed) for seed in range(1, SAMPLES + 1)] for n in SIZES])
print("cost over that of the Bayes rule")
for n, row in zip(SIZES, found.mean(axis=1) / bayes, strict=True):
    print(f"{n:4} rows: in the training {row[0]:.3f}, in the decisions {row[1]:.3f}, ignored {row[2]:.3f}")

figure, ax = plt.subplots()
for at, name in enumerate(("costs in the training", "costs in the decisions", "costs ignored")):
    ax.errorbar(SIZES, found[..., at].mean(axis=1), found[..., at].std(axis=1) / np.sqrt(SAMPLES), label=name)
ax.axhline(bayes, color="black", linestyle="--", label="Bayes rule")
ax.set(xscale="log", xlabel="training rows", ylabel="expected cost of a prediction")
ax.set_xticks(SIZES, [str(n) for n in SIZES])
ax.legend()
plt.show()
