"""The cost explorer: decisions by the Bayes rule under costs that the reader edits."""

import base64
from typing import Any

import numpy as np

from polymargin.report.evidence import Evidence, weighs_classes
from polymargin.report.markup import Markup, data_script, join, paragraph, table, tag
from polymargin.report.sections import Section, class_label, hex_colours, number, parameters_of, table_rows

STORED_NUMBERS = 400_000
"""Probabilities that a page holds at most; of more rows an even share is kept."""


def explorer(evidence: Evidence, command: str | None) -> Section:
    """Return the editable cost matrix and what follows from it; the page's script does the arithmetic."""
    k = len(evidence.names)
    n, kept = len(evidence.labels), len(explored_rows(evidence))
    head: list[Any] = ["true ↓ predicted →", *(tag("th", class_label(evidence, j), scope="col") for j in range(k))]
    inputs, outputs = [], []
    for i in range(k):
        row = [_cost_input(evidence, i, j) for j in range(k)]
        name = tag("th", class_label(evidence, i), scope="row")
        inputs.append(tag("tr", name, *row))
        cells = (tag("td", data_cell=f"{i},{j}", class_="right" if i == j else "wrong") for j in range(k))
        outputs.append(tag("tr", name, *cells))
    results = [
        ("Mean cost", "explored-cost", "of these decisions at these costs"),
        ("Mean cost, model", "model-cost", "of the model's own decisions at these costs"),
        ("Errors", "explored-errors", "of these decisions"),
        ("Decisions changed", "explored-changes", "by your edits"),
    ]
    sample = "" if kept == n else f" Of the {n:,} rows an even sample of {kept:,} is used."
    body = [
        paragraph(
            "Each row goes to the class of least expected cost, argmin",
            tag("sub", "j"),
            " Σ",
            tag("sub", "l"),
            " cost(l, j) p",
            tag("sub", "l"),
            f"(x), the Bayes rule (4) of Lee, Lin & Wahba. {_calibration_in_words(evidence)}{sample}",
            class_="note",
        ),
        tag(
            "div",
            tag(
                "form",
                table(head, inputs, caption="Costs, to be edited", class_="costs"),
                tag(
                    "div",
                    tag("button", "Reset", type="reset", id="reset-costs"),
                    tag("button", "Equal costs", type="button", id="equal-costs"),
                    tag("button", "Save costs.csv", type="button", id="save-costs"),
                    class_="controls",
                ),
                tag("p", "", id="cost-problem", role="alert", class_="problem"),
                id="cost-form",
                autocomplete="off",
            ),
            table(
                head, outputs, caption="Confusion matrix under the edited costs", class_="confusion", id="explored"
            ),
            class_="explorer",
        ),
        tag(
            "div",
            *(
                tag(
                    "div",
                    tag("span", title),
                    tag("output", "…", id=identity, **{"for": "cost-form"}),
                    tag("small", remark),
                )
                for title, identity, remark in results
            ),
            class_="figures",
            aria_live="polite",
        ),
        *_exact_way(evidence, command),
        tag("noscript", paragraph("The cost explorer needs JavaScript.", class_="problem")),
    ]
    return Section(
        "costs",
        "What if errors had other prices?",
        "Edit a cost, and see which held-out rows would be decided otherwise, and what that costs.",
        join([*body, data_script("report-data", page_data(evidence))]),
    )


def _calibration_in_words(evidence: Evidence) -> str:
    found = evidence.calibration
    if weighs_classes(evidence.parts.machine):
        offsets = ", ".join(f"{offset:+.3g}" for offset in found.offsets)
        formula = (
            f"softmax(scores / T + a) with the temperature T = {number(found.temperature)} and a = ({offsets})"
        )
        why = " The offsets a undo what the costs or weights of the training did to the scores."
    else:
        formula, why = f"softmax(scores / T) with the temperature T = {number(found.temperature)}", ""
    return (
        f"The probabilities p are {formula}, which has the least log loss on these held-out rows, one more "
        f"observation of each class added; being fitted to the rows they judge, they are a little optimistic.{why}"
    )


def _cost_input(evidence: Evidence, i: int, j: int) -> Markup:
    if i == j:
        return tag("td", "0", class_="diagonal")
    label = f"Cost of predicting {evidence.names[j]} where {evidence.names[i]} is true"
    value = repr(float(evidence.costs[i, j])).removesuffix(".0")
    return tag(
        "td",
        tag("input", type="number", min="0", step="any", value=value, inputmode="decimal", aria_label=label,
        data_cost=f"{i},{j}"),
    )  # fmt: skip


def _exact_way(evidence: Evidence, command: str | None) -> list[Markup]:
    """Say how to train with the costs: the command where there is one, and the Python for it."""
    machine = evidence.parts.machine
    name = type(machine).__name__
    takes_costs = "cost_matrix" in machine.get_params()
    if takes_costs:
        words = (
            "Training with these costs is the exact way: the machine then puts its boundaries where they matter."
        )
        others = (
            f"{key}={text}, " for key, text in parameters_of(machine)[0] if key not in ("cost_matrix", "utility")
        )
        prefix = f"{name}({''.join(others)}cost_matrix="
    else:
        words = (
            f"Training with these costs is the exact way, but {name} takes none: MulticategorySVC, SparseSVC and "
            "RobustSVC do."
        )
        prefix = "MulticategorySVC(cost_matrix="
    lines = [paragraph(words)]
    if command is not None:
        lines.append(tag("pre", tag("code", command, id="retrain-command"), tabindex="0"))
    python = tag("code", prefix, tag("span", "…", id="python-costs"), ").fit(X, y)")
    return [tag("div", tag("h3", "The exact way"), *lines, tag("pre", python, tabindex="0"), class_="panel")]


def explored_rows(evidence: Evidence) -> Any:
    """Return the rows whose probabilities the page holds."""
    n, k = evidence.scores.shape
    kept = min(n, max(1, STORED_NUMBERS // k))
    return np.linspace(0, n - 1, kept).astype(np.intp)


def page_data(evidence: Evidence) -> dict[str, Any]:
    """Return what the script of the page computes with."""
    rows, listed = explored_rows(evidence), table_rows(evidence)
    return {
        "classes": list(evidence.names),
        "colours": hex_colours(len(evidence.names)),
        "costs": evidence.costs.tolist(),
        "labels": evidence.labels[rows].tolist(),
        "predicted": np.where(evidence.accepted, evidence.predicted, -1)[rows].tolist(),
        "probabilities": _base64(evidence.probabilities[rows]),
        "tableProbabilities": _base64(evidence.probabilities[listed]),
        "tablePredicted": np.where(evidence.accepted, evidence.predicted, -1)[listed].tolist(),
    }


def _base64(values: Any) -> str:
    """Return numbers as the text of little-endian single precision."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode("ascii")
