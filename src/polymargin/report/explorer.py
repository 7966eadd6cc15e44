"""The cost explorer: decisions by the Bayes rule under costs that the reader edits."""

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.inspection._plotting import class_colours
from polymargin.report.evidence import Evidence, weighs_classes
from polymargin.report.fitted import parameters_of
from polymargin.report.markup import Content, Markup, data_script, join, paragraph, table, tag
from polymargin.report.predictions import table_rows
from polymargin.report.section import FEW_CLASSES, Section, class_label, crowding, number

STORED_NUMBERS = 400_000
"""Probabilities that a page holds at most; of more rows an even share is kept."""

RESULTS = (
    ("Mean cost", "explored-cost", "of these decisions at these costs"),
    ("Mean cost of the model", "model-cost", "of its own decisions at these costs"),
    ("Errors", "explored-errors", "of these decisions"),
    ("Decisions changed", "explored-changes", "by your edits"),
)
"""What the script fills in: title, id and remark."""


def explorer(evidence: Evidence, command: str | None) -> Section:
    """Return the editable cost matrix and what follows from it; the page's script does the arithmetic."""
    k, n, kept = len(evidence.names), len(evidence.labels), len(explored_rows(evidence))
    sample = "" if kept == n else f" Of the {n:,} rows an even sample of {kept:,} is used."
    rule = paragraph(
        "Each row goes to the class of least expected cost, argmin",
        tag("sub", "j"),
        " Σ",
        tag("sub", "l"),
        " cost(l, j) p",
        tag("sub", "l"),
        "(x), the Bayes rule (4) of Lee, Lin & Wahba, with the probabilities p that scores stand for; where an "
        f"edit does not change what the rule says, the model's own decision stands.{sample}",
        class_="note",
    )
    origin = tag(
        "details",
        tag("summary", "How scores became probabilities"),
        paragraph(_calibration_in_words(evidence), class_="note"),
    )
    cells = [
        [tag("td", data_cell=f"{i},{j}", class_="right" if i == j else "wrong") for j in range(k)]
        for i in range(k)
    ]
    confusion = _class_table(
        evidence,
        cells,
        caption="Confusion matrix under the edited costs",
        class_=f"confusion{crowding(k)}",
        id="explored",
    )
    figures = tag(
        "div",
        *(
            tag("div", tag("span", title), tag("output", "…", id=identity), tag("small", remark))
            for title, identity, remark in RESULTS
        ),
        class_="figures",
        aria_live="polite",
    )
    body = [
        rule,
        origin,
        tag(
            "div", _form(evidence), tag("div", tag("h3", "Decisions at these costs"), confusion), class_="explorer"
        ),
        figures,
        _with_these_costs(evidence, command),
        tag("noscript", paragraph("The cost explorer needs JavaScript.", class_="problem")),
        data_script("report-data", page_data(evidence)),
    ]
    return Section(
        "costs",
        "What if errors had other prices?",
        "Edit a cost, and see which held-out rows would be decided otherwise, and what that costs.",
        join(body),
    )


def _form(evidence: Evidence) -> Markup:
    k = len(evidence.names)
    cells = [[_cost_cell(evidence, i, j) for j in range(k)] for i in range(k)]
    buttons = tag(
        "div",
        tag("button", "Reset", type="reset", id="reset-costs"),
        tag("button", "Equal costs", type="button", id="equal-costs"),
        tag("button", "Save costs.csv", type="button", id="save-costs"),
        class_="controls",
    )
    return tag(
        "form",
        tag("h3", "Costs"),
        _class_table(evidence, cells, caption="Costs, to be edited", class_=f"costs{crowding(k)}"),
        buttons,
        tag("p", "", id="cost-problem", role="alert", class_="problem"),
        id="cost-form",
        autocomplete="off",
    )


def _cost_cell(evidence: Evidence, i: int, j: int) -> Markup:
    if i == j:
        return tag("td", "0", class_="diagonal")
    field = tag(
        "input",
        type="number",
        min="0",
        step="any",
        value=repr(float(evidence.costs[i, j])).removesuffix(".0"),
        inputmode="decimal",
        aria_label=f"Cost of predicting {evidence.names[j]} where {evidence.names[i]} is true",
        data_cost=f"{i},{j}",
    )
    return tag("td", field)


def _class_table(evidence: Evidence, cells: list[list[Markup]], **options: Any) -> Markup:
    """Return a table of true by predicted classes."""
    k = len(evidence.names)
    head: list[Content] = [
        "true ↓ predicted →",
        *(tag("th", class_label(evidence, j), scope="col") for j in range(k)),
    ]
    rows = (tag("tr", tag("th", class_label(evidence, i), scope="row"), *cells[i]) for i in range(k))
    return table(head, rows, **options)


def _calibration_in_words(evidence: Evidence) -> str:
    if evidence.parts.probable is not None:
        model = evidence.parts.probable.model
        return (
            f"They are the model's own: a map of the scores (method {model.method_!r}), learnt from the scores "
            "that the training rows get when they are left out. No held-out row had a say."
        )
    found = evidence.calibration
    formula, why = f"softmax(scores / T) with the temperature T = {number(found.temperature)}", ""
    if weighs_classes(evidence.parts.machine):
        formula = (
            f"softmax(scores / T + a) with the temperature T = {number(found.temperature)} and an offset a class"
        )
        if len(found.offsets) <= FEW_CLASSES:
            formula += f", a = ({', '.join(f'{offset:+.3g}' for offset in found.offsets)})"
        why = " The offsets undo what the costs or weights of the training did to the scores."
    return (
        f"They are {formula}: what has the least log loss on these held-out rows, with one observation more of "
        "every class in all, so that it is finite where no row is misclassified. For the decisions it is found on "
        f"one half of the rows and used on the other, both ways round: no row is judged by what it taught.{why}"
    )


def _with_these_costs(evidence: Evidence, command: str | None) -> Markup:
    """Say how to have a model that decides by these costs: the command where there is one, and the Python."""
    machine = evidence.parts.machine
    words = (
        "A model that decides by these costs: probabilities from left-out scores, and the class of least expected "
        "cost. Of all ways that were measured this is the cheapest on most data; costs in the training, "
        "cost_matrix of the machine itself, move boundaries that were right where classes are nearly apart."
    )
    given = (pair for pair in parameters_of(machine)[0] if pair[0] not in ("cost_matrix", "utility"))
    inner = f"{type(machine).__name__}({', '.join(f'{key}={text}' for key, text in given)})"
    steps = "".join(f"{' '.join(repr(step).split())}, " for _, step in evidence.parts.steps)
    opening, closing = (f"make_pipeline({steps}", "))") if steps else ("", ")")
    code = f"{opening}ProbabilityClassifier({inner}, cost_matrix="
    commands = [tag("code", code, tag("span", "…", id="python-costs"), f"{closing}.fit(X, y)")]
    if command is not None:
        commands.insert(0, tag("code", command, id="retrain-command"))
    blocks = (tag("pre", code, tabindex="0") for code in commands)
    return tag("div", tag("h3", "With these costs"), paragraph(words), *blocks, class_="panel")


def explored_rows(evidence: Evidence) -> NDArray[np.intp]:
    """Return the rows whose probabilities the page holds."""
    n, k = evidence.scores.shape
    kept = min(n, max(1, STORED_NUMBERS // k))
    return np.linspace(0, n - 1, kept).astype(np.intp)


def page_data(evidence: Evidence) -> dict[str, Any]:
    """Return what the script of the page computes with."""
    rows, listed = explored_rows(evidence), table_rows(evidence)
    decided = np.where(evidence.accepted, evidence.predicted, -1)
    return {
        "classes": list(evidence.names),
        "colours": list(class_colours(len(evidence.names))),
        "costs": evidence.costs.tolist(),
        "labels": evidence.labels[rows].tolist(),
        "predicted": decided[rows].tolist(),
        "probabilities": _base64(evidence.probabilities[rows]),
        "tableProbabilities": _base64(evidence.probabilities[listed]),
        "tablePredicted": decided[listed].tolist(),
    }


def _base64(values: NDArray) -> str:
    """Return numbers as the text of little-endian single precision."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode("ascii")
