"""Embedded data for the demo, and the five families on them."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_wine
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import MulticategorySVC, ProximalSVC, RobustSVC, SharedStructureSVC, SparseSVC, expected_cost
from polymargin.cli._terminal import make_table, results
from polymargin.datasets import make_waveform

MISSED = {("alarm", "left"): 5.0, ("alarm", "right"): 5.0}
"""To miss an alarm costs five times as much as any other error."""


@dataclass(frozen=True, slots=True)
class Example:
    """Embedded data: half of the rows train, half are held out."""

    name: str
    what: str
    X: pd.DataFrame
    y: NDArray
    costs: Any
    models: tuple[Any, ...]


def examples() -> list[Example]:
    """Return the examples, with the models to fit to each."""
    wine = load_wine(as_frame=True)
    cultivars = np.array(["first", "second", "third"])[wine.target.to_numpy()]
    waves = make_waveform(800, random_state=0)
    signals = pd.DataFrame(waves.data, columns=[f"time {at}" for at in range(1, 22)])
    kinds = np.array(["alarm", "left", "right"])[waves.target]
    return [
        Example("wine", "three cultivars by 13 measurements", wine.data, cultivars, None, _families(None)),
        Example(
            "waveform",
            "three kinds of noisy signals, a missed alarm costs 5, other errors 1",
            signals,
            kinds,
            MISSED,
            _families(None, MISSED),
        ),
    ]


def _families(*costs: Any) -> tuple[Any, ...]:
    """Return the five families, once for each of the `costs` where they can act in the training."""
    return (
        *(MulticategorySVC(cost_matrix=matrix) for matrix in costs),
        ProximalSVC(),
        *(SparseSVC(C=0.1, cost_matrix=matrix) for matrix in costs),
        SharedStructureSVC(bounds=None, class_weight="balanced"),
        *(RobustSVC(C=0.1, cost_matrix=matrix) for matrix in costs),
    )


def show_example(example: Example, X: Any, X_test: Any, y: NDArray, y_test: NDArray) -> list[Pipeline]:
    """Fit every model to one example and print one line each; return the fitted models."""
    title = f"{example.name}: {example.what}; {len(y)} rows, as many held out"
    columns = ("costs", "error", "expected cost", "gap", "used", "seconds")
    table = make_table(title, "", *columns)
    fitted = []
    for machine in example.models:
        model = make_pipeline(StandardScaler().set_output(transform="pandas"), machine)
        started = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - started
        predicted = model.predict(X_test)
        table.add_row(
            type(machine).__name__,
            "yes" if machine.get_params().get("cost_matrix") is not None else "no",
            f"{np.mean(predicted != y_test):.3f}",
            f"{expected_cost(y_test, predicted, example.costs):.3f}",
            f"{max(machine.certificate_.gap, 0.0):.1e}",
            str(len(getattr(machine, "selected_features_", range(X.shape[1])))),
            f"{seconds:.3f}",
        )
        fitted.append(model)
    results().print(table)
    return fitted
