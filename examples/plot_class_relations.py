"""
Classes that learn from each other
==================================

`SharedStructureSVC` mixes one base classifier a class by a matrix M that it learns. Two questions: does sharing
help when there are few rows, and what does M say of the classes?
"""

# %%
# Learning curves
# ---------------
# Figure 2 of Vural et al. (2009) on the digits: a few training rows, at least one of each digit, a tenth of the
# rest for the choice of both penalties, the rest for the test. One-vs-rest ridge is the same machine with M fixed
# at the identity. It stands here twice, because weighing the classes equally is a rival to sharing, and the
# curves show which of the two is worth more: where few rows make the classes uneven, the weights are. The paper's
# gain from sharing over one-vs-rest does not come out here.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from polymargin import SharedStructureSearch, SharedStructureSVC
from polymargin.inspection import ClassRelationDisplay, related_classes

X, y = load_digits(return_X_y=True)
X = X / 16.0
sizes, n_trials = [20, 40, 80, 160, 320], 4
Cs, penalties = 10.0 ** np.arange(-4, 3), 10.0 ** np.arange(-4, 3, 2)
machines = {
    "one-vs-rest": SharedStructureSVC(fixed_relations=np.eye(10)),
    "one-vs-rest, balanced": SharedStructureSVC(fixed_relations=np.eye(10), class_weight="balanced"),
    "fast": SharedStructureSVC(formulation="fast"),
    "original": SharedStructureSVC(max_iter=5),
    "original, balanced": SharedStructureSVC(class_weight="balanced", max_iter=5),
    "trace norm, balanced": SharedStructureSVC(bounds=None, tol=1e-4, class_weight="balanced"),
}


def tuned_accuracy(machine, size, seed):
    """Test accuracy after choosing both penalties on the validation rows."""
    shuffled = np.random.default_rng(seed).permutation(len(y))
    one_of_each = shuffled[np.unique(y[shuffled], return_index=True)[1]]
    order = np.concatenate([one_of_each, np.setdiff1d(shuffled, one_of_each, assume_unique=True)])
    train, validation, test = np.split(order, [size, size + (len(y) - size) // 10])
    rows = np.concatenate([train, validation])
    split = [(np.arange(size), np.arange(size, len(rows)))]
    alone = machine.fixed_relations is not None  # then the relation penalty is a constant
    tried = penalties[:1] if alone else penalties
    search = SharedStructureSearch(machine, Cs=Cs, relation_penalties=tried, cv=split)
    best = search.fit(X[rows], y[rows]).best_estimator_
    return best.fit(X[train], y[train]).score(X[test], y[test])


curves = {
    name: [np.mean([tuned_accuracy(machine, size, seed) for seed in range(n_trials)]) for size in sizes]
    for name, machine in machines.items()
}
_, ax = plt.subplots()
for name, curve in curves.items():
    ax.plot(sizes, curve, marker="o", linestyle="--" if name.startswith("one") else "-", label=name)
    print(f"{name:>22}: " + "  ".join(f"{accuracy:.3f}" for accuracy in curve))
ax.set(xscale="log", xlabel="training rows", ylabel="test accuracy")
ax.legend()

# %%
# The relations of the digits
# ---------------------------
# Column j of M is what the final classifier of digit j takes from the base classifiers. Signs are shown as they
# are; the strongest pairs are those that look alike.
model = SharedStructureSVC(C=0.1, relation_penalty=10.0, class_weight="balanced").fit(X, y)
off_diagonal = np.where(np.eye(10, dtype=bool), 0.0, model.relation_)
_, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5))
display = ClassRelationDisplay.from_estimator(
    model, ax=left, vmin=-abs(off_diagonal).max(), vmax=abs(off_diagonal).max()
)
display.plot_dendrogram(right)
left.set_title("M (the diagonal is beyond the colours)")
print(related_classes(model, n_pairs=6).round(3).to_string(index=False))
print(model.certificate_)
plt.show()
