"""The table of predictions, which can be sorted."""

import numpy as np
from numpy.typing import NDArray

from polymargin.report.evidence import Evidence
from polymargin.report.markup import Content, join, paragraph, table, tag
from polymargin.report.section import Section, cell_of, class_label, number, sortable

TABLE_ROWS = 500
"""Predictions that the table of a report holds at most."""


def predictions(evidence: Evidence) -> Section:
    """List predictions, the weakest where there are too many, in a table that can be sorted."""
    n = len(evidence.labels)
    kept = table_rows(evidence)
    head = [
        sortable(title, kind)
        for title, kind in (
            ("Row", "text"), ("True", "text"), ("Predicted", "text"), ("Probability", "number"),
            ("Loss", "number"), ("Cost", "number"), ("With edited costs", "text"),
        )
    ]  # fmt: skip
    cost = evidence.row_costs
    body = []
    for place, i in enumerate(kept):
        predicted, label = int(evidence.predicted[i]), int(evidence.labels[i])
        accepted = bool(evidence.accepted[i])
        probability = float(evidence.probabilities[i, predicted])
        shown: Content = class_label(evidence, predicted) if accepted else tag("em", "rejected")
        wrong = accepted and predicted != label
        body.append(
            tag(
                "tr",
                tag("th", evidence.rows[i], scope="row"),
                tag("td", class_label(evidence, label)),
                tag("td", shown, *([tag("span", "wrong", class_="badge bad")] if wrong else [])),
                tag("td", f"{probability:.3f}", class_="number", data_value=repr(probability)),
                cell_of(evidence.losses[i]),
                tag(
                    "td",
                    number(cost[i]) if accepted else "",
                    class_="number",
                    data_value=repr(float(cost[i])) if accepted else "",
                ),
                tag("td", "", class_="edited", data_place=str(place)),
                data_wrong="1" if wrong else None,
            )
        )
    if len(kept) < n:
        lead = f"The {len(kept):,} weakest predictions, those of highest loss, of {n:,}."
    else:
        lead = f"All {n:,} held-out rows, the weakest prediction first."
    only = tag("label", tag("input", type="checkbox", id="only-wrong"), " only the wrong ones")
    return Section(
        "predictions",
        "Predictions",
        lead,
        join(
            [
                tag("div", only, tag("span", "", id="shown-rows", role="status"), class_="controls"),
                table(
                    head,
                    body,
                    caption="Predictions of held-out rows",
                    class_="sortable predictions",
                    id="predictions-table",
                ),
                paragraph("On paper the first rows only: all are on the screen.", class_="note on-paper"),
            ]
        ),
    )


def table_rows(evidence: Evidence) -> NDArray[np.intp]:
    """Return the rows of the table of predictions, weakest first."""
    return np.argsort(-evidence.losses, kind="stable")[:TABLE_ROWS]
