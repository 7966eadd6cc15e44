"""`polymargin demo`: the main job on embedded data."""

import time

import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from polymargin.costs import resolve_cost_matrix
from polymargin.estimators.multicategory import LOSSES, MulticategorySVC

COSTLY = {(0, 2): 10.0, (1, 2): 10.0}
"""Calling the third wine is ten times as bad as any other error."""


def run() -> int:
    """Fit, certify and print a table of held-out errors and expected costs."""
    X, y = load_wine(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    scaler = StandardScaler().fit(X_train)
    costs = resolve_cost_matrix(COSTLY, np.unique(y))
    print("wine, half of it held out; calling a wine of class 0 or 1 class 2 costs ten times as much\n")
    print(f"{'loss':>8} {'trained with costs':>18} {'error':>7} {'cost':>7} {'certified gap':>13} {'seconds':>8}")
    for loss in LOSSES:
        for cost_matrix in (None, COSTLY) if loss != "crammer" else (None,):
            start = time.perf_counter()
            model = MulticategorySVC(loss=loss, cost_matrix=cost_matrix).fit(scaler.transform(X_train), y_train)
            seconds = time.perf_counter() - start
            predicted = model.predict(scaler.transform(X_test))
            print(
                f"{loss:>8} {'yes' if cost_matrix else 'no':>18} {np.mean(predicted != y_test):7.3f} "
                f"{costs[y_test, predicted].mean():7.3f} {model.certificate_.gap:13.1e} {seconds:8.3f}"
            )
    return 0
