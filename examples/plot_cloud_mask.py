"""
A cloud mask with asymmetric costs
==================================

Satellite scenes are clear, or hold clouds of water or of ice. A cloud that is taken for clear sky spoils the
measurements made below it; a clear scene thrown away is only a loss of data. So the first error costs more, and
that cost belongs into the training: thin ice clouds lie on clear sky, and the boundary between them must move.

The scenes are simulated: two features, a reflectance and the logarithm of a ratio of two radiances, in the manner
of section 6.2 of Lee, Lin & Wahba, whose profiles are not public.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import confusion_matrix

from polymargin import MarginSearch, MulticategorySVC, RejectOptionClassifier, expected_cost

CLEAR, LIQUID, ICE = "clear", "liquid", "ice"


def draw_scenes(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw clear scenes, liquid clouds, and ice clouds from bright ones down to thin ones."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, size=n, p=(0.2, 0.3, 0.5))
    reflectance = np.choose(
        kind, [rng.normal(0.08, 0.03, n), 0.15 + 0.7 * rng.beta(2, 2, n), 0.05 + 0.8 * rng.beta(1, 2, n)]
    )
    ratio = np.choose(
        kind,
        [rng.normal(0.15, 0.1, n), rng.normal(0.05, 0.08, n), 0.15 + 0.5 * reflectance + rng.normal(0, 0.1, n)],
    )
    return np.column_stack([reflectance, ratio]) * 4, np.array([CLEAR, LIQUID, ICE])[kind]


X, y = draw_scenes(400, seed=0)
X_test, y_test = draw_scenes(10_000, seed=1)
missed_clouds = {(LIQUID, CLEAR): 4.0, (ICE, CLEAR): 4.0}

# %%
# The same search twice, with equal costs and with missed clouds four times as dear. C and the kernel width are
# chosen by the cost of left-out rows, which needs no refit.
searches = {
    "equal costs": MarginSearch(MulticategorySVC(), Cs=[1, 10, 100]).fit(X, y),
    "missed clouds cost 4": MarginSearch(MulticategorySVC(cost_matrix=missed_clouds), Cs=[1, 10, 100]).fit(X, y),
}
for name, search in searches.items():
    predicted = search.predict(X_test)
    missed = np.mean((y_test != CLEAR) & (predicted == CLEAR))
    print(f"{name}: error {np.mean(predicted != y_test):.3f}, missed clouds {missed:.3f}, ", end="")
    print(f"expected cost {expected_cost(y_test, predicted, missed_clouds):.3f}")
    print(confusion_matrix(y_test, predicted, labels=[CLEAR, LIQUID, ICE]))

# %%
# The region of clear sky shrinks; the other boundary stays where it was.
across, up = np.linspace(-0.2, 3.6, 200), np.linspace(-1.0, 3.2, 200)
grid = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, (name, search) in zip(axes, searches.items(), strict=True):
    regions = np.searchsorted(search.classes_, search.predict(grid)).reshape(200, 200)
    ax.contourf(across, up, regions, levels=[-0.5, 0.5, 1.5, 2.5], cmap="Pastel1")
    for label in search.classes_:
        ax.scatter(*X[y == label].T, s=6, label=label)
    ax.set(title=name, xlabel="reflectance (scaled)")
axes[0].set_ylabel("log ratio (scaled)")
axes[0].legend()

# %%
# Thin ice over clear sky stays in doubt whatever the costs. With equal costs, the mask can say so instead: scenes
# too close to call are rejected, as many as it takes to keep the error among the others at 5 %.
careful = RejectOptionClassifier(searches["equal costs"].best_estimator_, target_error=0.05).fit(X, y)
predicted, reasons = careful.predict_with_reason(X_test)
accepted = reasons == "accepted"
wrong = np.mean(predicted[accepted] != y_test[accepted])
print(f"{accepted.mean():.2f} of the scenes accepted, error among them {wrong:.3f}")
plt.show()
