"""`polymargin demo`: the main job on embedded data."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import MulticategorySVC, ProximalSVC, RobustSVC, SharedStructureSVC, SparseSVC, expected_cost
from polymargin.cli._terminal import Debug, make_table, one_line_errors, results, working
from polymargin.cli.fit import write_report
from polymargin.cli.methods import machine_of
from polymargin.datasets import make_waveform
from polymargin.files import check_writable

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


def demo(
    out: Annotated[Path, typer.Option(help="Page to write.")] = Path("polymargin-demo.html"),
    debug: Debug = False,
) -> None:
    """Fit all five families to embedded data, print a table and write a page about one of them."""
    with one_line_errors(debug):
        check_writable(out, "--out")
        for example in examples():
            split = train_test_split(example.X, example.y, test_size=0.5, stratify=example.y, random_state=0)
            with working("fitting", len(split[2])):
                fitted = show_example(example, *split)
        # The last example is the one with costs, and its first model with costs the machine of paper 1.
        model = next(model for model in fitted if machine_of(model).get_params().get("cost_matrix") is not None)
        title = f"Polymargin's demo: {example.name}"
        write_report(model, (split[1], split[3]), example.costs, out, None, title)


def show_example(example: Example, X: Any, X_test: Any, y: NDArray, y_test: NDArray) -> list[Pipeline]:
    """Fit every model to one example and print one line each; return the fitted models."""
    title = f"{example.name}: {example.what}; {len(y)} rows, as many held out"
    columns = ("trained with costs", "error", "expected cost", "certified gap", "variables used", "seconds")
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
            f"{machine.certificate_.gap:.1e}",
            str(len(getattr(machine, "selected_features_", range(X.shape[1])))),
            f"{seconds:.3f}",
        )
        fitted.append(model)
    results().print(table)
    return fitted
