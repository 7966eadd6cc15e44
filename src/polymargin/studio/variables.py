"""What columns matter: by how much predictions worsen when one is shuffled, or the size of its coefficients."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin.cli.methods import machine_of
from polymargin.cli.summary import plain_predictions
from polymargin.cli.training import Job
from polymargin.selection.scoring import expected_cost

MOST_SHUFFLED = 200
"""Columns up to which each is shuffled in turn."""

MOST_ROWS = 1_000
REPEATS = 5


def variables(model: Any, job: Job, costs: NDArray | None, *, until: float) -> dict[str, Any]:
    """Return a table of variables, the most important first, and in words what the numbers are."""
    assert job.held_out is not None
    machine = machine_of(model)
    n_columns = job.held_out[0].shape[1]
    if n_columns <= MOST_SHUFFLED and not sparse.issparse(job.held_out[0]):
        return _shuffled(model, job, costs, until)
    if hasattr(machine, "coef_"):
        return _coefficients(model, machine)
    return {
        "meaning": f"Of {n_columns} columns and a kernel none can be weighed alone; the method sparse chooses.",
        "columns": [],
        "rows": [],
    }


def _shuffled(model: Any, job: Job, costs: NDArray | None, until: float) -> dict[str, Any]:
    X, y = job.held_out  # type: ignore[misc]
    rng = np.random.default_rng(0)
    if len(y) > MOST_ROWS:
        some = rng.choice(len(y), MOST_ROWS, replace=False)
        X, y = X.iloc[some], y[some]
    classes = machine_of(model).classes_

    def cost(rows: Any) -> float:
        return expected_cost(y, plain_predictions(model, rows), costs, labels=classes)

    before = cost(X)
    worse: list[list[float]] = []
    for repeat in range(REPEATS):
        if repeat and time.perf_counter() > until:
            break
        worse.append([cost(X.assign(**{name: X[name].to_numpy()[rng.permutation(len(y))]})) for name in X.columns])
    rises = np.array(worse) - before
    mean = rises.mean(axis=0)
    spread = rises.std(axis=0, ddof=1) / np.sqrt(len(rises)) if len(rises) > 1 else np.full(len(mean), np.nan)
    order = np.argsort(-mean, kind="stable")
    return {
        "meaning": f"By how much the expected cost of {len(y)} held-out rows (now {before:.4f}) rises when the "
        f"column is shuffled: the mean of {len(rises)} shuffles, and its standard error.",
        "columns": ["variable", "rise", "standard error"],
        "rows": [
            [str(X.columns[j]), float(mean[j]), None if np.isnan(spread[j]) else float(spread[j])] for j in order
        ],
    }


def _coefficients(model: Any, machine: Any) -> dict[str, Any]:
    coefficients = np.atleast_2d(np.asarray(machine.coef_))
    names = getattr(machine, "feature_names_in_", np.array([f"column {j}" for j in range(coefficients.shape[1])]))
    size = np.sqrt((coefficients**2).sum(axis=0))
    order = np.argsort(-size, kind="stable")
    classes = [str(label) for label in machine.classes_]
    heads = classes if len(coefficients) == len(classes) else [f"row {i}" for i in range(len(coefficients))]
    return {
        "meaning": "Coefficients of the prepared columns, and their size over all classes.",
        "columns": ["variable", "size", *heads],
        "rows": [[str(names[j]), float(size[j]), *coefficients[:, j].tolist()] for j in order],
    }
