"""`polymargin demo`: the main job on embedded data."""

import time

import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from polymargin import MulticategorySVC, ProximalSVC, RobustSVC, SharedStructureSVC, SparseSVC, expected_cost

COSTLY = {(0, 2): 10.0, (1, 2): 10.0}
"""Calling a wine of the first or the second class the third is ten times as bad as any other error."""

MODELS = (
    ("MulticategorySVC", MulticategorySVC(), "no"),
    ("MulticategorySVC", MulticategorySVC(cost_matrix=COSTLY), "yes"),
    ("ProximalSVC", ProximalSVC(), "no"),
    ("SparseSVC", SparseSVC(C=0.1), "no"),
    ("SparseSVC", SparseSVC(C=0.1, cost_matrix=COSTLY), "yes"),
    ("SharedStructureSVC", SharedStructureSVC(bounds=None), "no"),
    ("RobustSVC", RobustSVC(), "no"),
    ("RobustSVC", RobustSVC(cost_matrix=COSTLY), "yes"),
)


def run() -> int:
    """Fit, certify and print a table of held-out errors and expected costs."""
    X, y = load_wine(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    scaler = StandardScaler().fit(X_train)
    print("wine, half of it held out; calling a wine of class 0 or 1 class 2 costs ten times as much\n")
    columns = ("with costs", "error", "mean cost", "certified gap", "variables", "seconds")
    print(f"{'':<18} " + " ".join(f"{column:>13}" for column in columns))
    for name, model, with_costs in MODELS:
        start = time.perf_counter()
        model.fit(scaler.transform(X_train), y_train)
        seconds = time.perf_counter() - start
        predicted = model.predict(scaler.transform(X_test))
        cost = expected_cost(y_test, predicted, COSTLY)
        used = len(model.selected_features_) if isinstance(model, SparseSVC) else X.shape[1]
        print(
            f"{name:<18} {with_costs:>13} {np.mean(predicted != y_test):13.3f} {cost:13.3f} "
            f"{model.certificate_.gap:13.1e} {used:13d} {seconds:13.3f}"
        )
    return 0
