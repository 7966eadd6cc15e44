"""The summary of a fit: what was fitted, how it was certified, and what it does on held-out rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from polymargin import Decider, expected_cost
from polymargin.cli._terminal import make_table
from polymargin.cli.methods import machine_of
from polymargin.cli.training import Job, Trained, held_out_costs

SHOWN_CLASSES = 15
"""Classes up to which the whole confusion matrix is shown, beyond only the most frequent errors."""

SHOWN_ERRORS = 10


def show_summary(console: Any, trained: Trained, job: Job, costs: NDArray[np.float64] | None) -> None:
    """Print a summary of a fitted pipeline."""
    predicted = None if job.held_out is None else held_out_predictions(trained, job)
    table = make_table(None, "")
    table.show_header = False
    table.add_column("")
    for name, value in summary_lines(trained, job, costs, predicted):
        table.add_row(name, value)
    console.print(table)
    if job.held_out is not None and predicted is not None:
        classes = machine_of(trained.model).classes_
        console.print(class_table(job.held_out[1], predicted, classes))
        console.print(confusion_table(job.held_out[1], predicted, classes))


def summary_lines(
    trained: Trained, job: Job, costs: NDArray[np.float64] | None, predicted: NDArray | None
) -> list[tuple[str, str]]:
    """Return what was fitted, how it was certified and what `predicted` says on held-out rows, in words."""
    machine = machine_of(trained.model)
    n_features = machine.n_features_in_
    loss = f" (loss {machine.loss})" if hasattr(machine, "loss") else ""
    some = "" if trained.is_complete else f" of {len(job.train[1])}, as many as the budget allowed"
    lines = [
        ("method", f"{type(machine).__name__}{loss}"),
        (
            "training",
            f"{trained.n_rows} rows{some}, {n_features} features, {len(machine.classes_)} classes, "
            f"{trained.seconds:.2f} s",
        ),
        ("certificate", certificate_line(machine)),
    ]
    if hasattr(trained.model[-1], "predict_proba"):
        lines.append(("decisions", decisions_line(trained.model[-1], by_row=trained.choice.decides_by_row)))
    if hasattr(machine, "selected_features_"):
        lines.append(("variables", f"{len(machine.selected_features_)} of {n_features} used"))
    if hasattr(machine, "suspect_labels_"):
        lines.append(("suspect", f"{len(machine.suspect_labels_)} labels of the training rows"))
    if job.held_out is not None and predicted is not None:
        row_costs = held_out_costs(job)
        prices = {"cost_matrix": costs} if row_costs is None else {"costs": row_costs}
        lines += held_out_lines(trained.model, *job.held_out, predicted, prices)
    return lines


def held_out_lines(
    model: Any, X: Any, y: NDArray, predicted: NDArray, prices: dict[str, Any]
) -> list[tuple[str, str]]:
    """Return what the held-out rows say of a model, in words; `prices` as `expected_cost` takes them."""
    classes = machine_of(model).classes_
    found = [float(np.mean(predicted[y == label] == label)) for label in classes if (y == label).any()]
    lines = [
        ("held out", f"{len(y)} rows"),
        ("error", f"{np.mean(predicted != y):.4f}"),
        ("balanced accuracy", f"{np.mean(found):.4f}, the mean over the classes of what is found of each"),
        ("expected cost", f"{expected_cost(y, predicted, labels=classes, **prices):.4f}"),
    ]
    never = [str(label) for label in classes if (y == label).any() and not (predicted[y == label] == label).any()]
    if never:
        lines.append(("never found", f"{', '.join(never)}: no held-out row of such a class was recognised"))
    lines += probability_lines(model, X, y)
    if hasattr(model[-1], "threshold_"):
        accepted = model.predict(X) == predicted
        wrong = f"{np.mean(predicted[accepted] != y[accepted]):.4f}" if accepted.any() else "unknown"
        lines.append(("rejected", f"{1 - accepted.mean():.4f} of them; error among the others {wrong}"))
    return lines


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """Held-out rows by class: counts of true by predicted classes, and what follows from them."""

    names: list[str]
    confusion: NDArray[np.int_]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Rows, predictions, precision and recall of every class; of nothing no share is known: 0/0 is None."""
        right, true, said = self.confusion.diagonal(), self.confusion.sum(axis=1), self.confusion.sum(axis=0)
        return [
            {
                "class": name,
                "rows": int(true[j]),
                "predicted": int(said[j]),
                "precision": float(right[j] / said[j]) if said[j] else None,
                "recall": float(right[j] / true[j]) if true[j] else None,
            }
            for j, name in enumerate(self.names)
        ]


def class_figures(y: NDArray, predicted: NDArray, classes: NDArray) -> ClassFigures:
    """Count held-out rows by true and predicted class."""
    return ClassFigures([str(label) for label in classes], confusion_matrix(y, predicted, labels=classes))


def decisions_line(classifier: Any, *, by_row: bool = False) -> str:
    """Say by what a classifier with probabilities decides."""
    model = getattr(classifier, "model_", classifier)
    rule = "the most probable class" if model.cost_matrix is None else "the class of least expected cost"
    rule = "the class of least expected cost of each row" if by_row else rule
    return f"{rule}, by probabilities from left-out scores ({model.method_} map)"


def probability_lines(model: Any, X: Any, y: NDArray) -> list[tuple[str, str]]:
    """Return what the held-out rows say of probabilities and sets, where there are some."""
    last, lines = model[-1], []
    features = model[:-1].transform(X)
    at = np.searchsorted(machine_of(model).classes_, y)
    rows = np.arange(len(y))
    if hasattr(last, "predict_proba"):
        own = np.maximum(last.predict_proba(features)[rows, at], np.finfo(np.float64).tiny)
        lines.append(("log loss", f"{-np.log(own).mean():.4f}, of the probabilities of the true classes"))
    if hasattr(last, "predict_set"):
        members = last.predict_set(features)
        lines.append(
            (
                "sets",
                f"{members[rows, at].mean():.4f} hold the true class (asked for {last.coverage:g}), "
                f"{members.sum(axis=1).mean():.2f} classes on average",
            )
        )
    return lines


def class_table(y: NDArray, predicted: NDArray, classes: NDArray) -> Any:
    """Return precision and recall of every class, of many classes those with the lowest recall, as a table."""
    title = "held-out rows by class"
    rows = class_figures(y, predicted, classes).rows
    if len(rows) > SHOWN_CLASSES:
        rows = sorted(rows, key=lambda row: 2.0 if row["recall"] is None else row["recall"])[:SHOWN_CLASSES]
        title += f", the {SHOWN_CLASSES} of {len(classes)} with the lowest recall"
    table = make_table(title, "class", "rows", "predicted", "precision", "recall")
    for row in rows:
        shares = ("-" if row[name] is None else f"{row[name]:.3f}" for name in ("precision", "recall"))
        table.add_row(row["class"], str(row["rows"]), str(row["predicted"]), *shares)
    return table


def certificate_line(machine: Any) -> str:
    """Say what was proven about the fit."""
    certificate = machine.certificate_
    what = "global optimum" if certificate.kind == "global" else "stationary point"
    verdict = "" if machine.converged_ else ", not within its tolerance"
    return f"{what}, relative gap {max(certificate.gap, 0.0):.1e}{verdict}"


def held_out_predictions(trained: Trained, job: Job) -> NDArray:
    """Return the predictions of the held-out rows, without rejections, by their own costs where these decide."""
    assert job.held_out is not None
    if not trained.choice.decides_by_row:
        return plain_predictions(trained.model, job.held_out[0])
    assert job.row_costs is not None
    return Decider(trained.model).predict(job.held_out[0], job.row_costs.held_out)


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
