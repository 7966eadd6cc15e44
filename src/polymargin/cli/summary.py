"""The summary of a fit: what was fitted, how it was certified, and what it does on held-out rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from sklearn.metrics import confusion_matrix

from polymargin import expected_cost
from polymargin.cli._terminal import make_table
from polymargin.cli.methods import machine_of

SHOWN_CLASSES = 15
"""Classes up to which the whole confusion matrix is shown, beyond only the most frequent errors."""

SHOWN_ERRORS = 10


def show_summary(
    console: Console,
    model: Any,
    train: tuple[Any, NDArray],
    held_out: tuple[Any, NDArray] | None,
    costs: NDArray[np.float64] | None,
    seconds: float,
) -> None:
    """Print a summary of a fitted pipeline."""
    machine = machine_of(model)
    n_rows, n_features = len(train[1]), machine.n_features_in_
    lines = [
        ("method", type(machine).__name__),
        ("training", f"{n_rows} rows, {n_features} features, {len(machine.classes_)} classes, {seconds:.2f} s"),
        ("certificate", certificate_line(machine)),
    ]
    if hasattr(machine, "selected_features_"):
        lines.append(("variables", f"{len(machine.selected_features_)} of {n_features} used"))
    if hasattr(machine, "suspect_labels_"):
        lines.append(("suspect", f"{len(machine.suspect_labels_)} labels of the training rows"))
    table = make_table(None, "")
    table.show_header = False
    table.add_column("")
    for name, value in lines:
        table.add_row(name, value)
    if held_out is not None:
        X, y = held_out
        predicted = plain_predictions(model, X)
        table.add_row("held out", f"{len(y)} rows")
        table.add_row("error", f"{np.mean(predicted != y):.4f}")
        table.add_row("expected cost", f"{expected_cost(y, predicted, costs, labels=machine.classes_):.4f}")
        if hasattr(model[-1], "threshold_"):
            accepted = model.predict(X) == predicted
            wrong = np.mean(predicted[accepted] != y[accepted]) if accepted.any() else 0.0
            table.add_row("rejected", f"{1 - accepted.mean():.4f} of them; error among the others {wrong:.4f}")
    console.print(table)
    if held_out is not None:
        console.print(confusion_table(y, predicted, machine.classes_))


def certificate_line(machine: Any) -> str:
    """Say what was proven about the fit."""
    certificate = machine.certificate_
    what = "global optimum" if certificate.kind == "global" else "stationary point"
    verdict = "" if machine.converged_ else ", not within its tolerance"
    return f"{what}, relative gap {certificate.gap:.1e}{verdict}"


def plain_predictions(model: Any, X: Any) -> NDArray:
    """Return the predictions of a pipeline without any rejections."""
    last = model[-1]
    if not hasattr(last, "threshold_"):
        return model.predict(X)
    return last.estimator_.predict(model[:-1].transform(X))


def confusion_table(y: NDArray, predicted: NDArray, classes: NDArray) -> Any:
    """Return the confusion matrix, or of many classes the most frequent errors, as a table."""
    counts = confusion_matrix(y, predicted, labels=classes)
    names = [str(label) for label in classes]
    if len(classes) <= SHOWN_CLASSES:
        table = make_table("held-out rows, true classes by predicted ones", "true", *names)
        for name, row in zip(names, counts, strict=True):
            table.add_row(name, *(str(count) if count else "." for count in row))
        return table
    table = make_table(
        f"the {SHOWN_ERRORS} most frequent errors of {len(classes)} classes", "true", "predicted", "rows"
    )
    np.fill_diagonal(counts, 0)
    for at in np.argsort(-counts, axis=None, kind="stable")[:SHOWN_ERRORS]:
        i, j = divmod(int(at), len(classes))
        if counts[i, j]:
            table.add_row(names[i], names[j], str(counts[i, j]))
    return table
