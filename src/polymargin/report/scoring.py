"""The scoring form: the model itself in the page, for a row that the reader types in."""

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline

from polymargin.estimators.parts import scoring_of
from polymargin.estimators.refinement import NewtonRefinement
from polymargin.report.additive import AdditiveSteps, Column
from polymargin.report.evidence import Evidence
from polymargin.report.markup import Markup, data_script, paragraph, table, tag
from polymargin.report.section import Section, class_label
from polymargin.selection.weakness import minimises_paper_loss

MOST_NUMBERS = 150_000
"""Numbers of a model that a page holds at most, about 1.6 megabytes of text."""

MOST_FIELDS = 60
"""Variables that a form has at most: nobody fills in more."""

RESULTS = (("Decision", "scored-decision"), ("Strength", "scored-strength"), ("Runner-up", "scored-rival"))
"""What the script fills in: title and id."""


def scoring_form(evidence: Evidence, X: Any) -> list[Section]:
    """Return the form, or nothing where the model is too large or its preprocessing no sum over columns.

    Nor where the model decides by probabilities of its own: the script of the page decides by scores.
    """
    if evidence.parts.probable is not None:
        return []
    inner_steps, machine, refined = _taken_apart(evidence.parts.machine)
    model = _model(machine, refined)
    steps = AdditiveSteps.of([*evidence.parts.steps, *inner_steps], X) if model is not None else None
    if model is None or steps is None or len(steps.columns) > MOST_FIELDS:
        return []
    lead = "Type in a row and see what the model makes of it. It is in this page: nothing is sent anywhere."
    form = tag(
        "form",
        *(_field(at, column) for at, column in enumerate(steps.columns)),
        tag("button", "Typical values", type="reset"),
        tag("p", id="scoring-problem", role="alert", class_="problem"),
        id="scoring-form",
        class_="scoring",
        autocomplete="off",
    )
    figures = tag(
        "div",
        *(tag("div", tag("span", title), tag("output", "…", id=identity)) for title, identity in RESULTS),
        class_="figures",
        aria_live="polite",
    )
    scores = table(
        ["Class", "Score", "Probability"],
        (
            tag(
                "tr",
                tag("th", class_label(evidence, j), scope="row"),
                tag("td", "…", class_="number", data_score=j),
                tag("td", "…", class_="number", data_probability=j),
            )
            for j in range(len(evidence.names))
        ),
        caption="Scores of the row",
    )
    pushes = table(
        ["Variable", "Pushes to the decision by"], [], caption="What the variables do", id="scored-pushes"
    )
    data = model | _decision(evidence) | _fields(steps)
    body = tag(
        "div", form, figures, scores, tag("h3", "Which variables push where"), paragraph(PUSHES), pushes,
        data_script("scoring-data", data),
    )  # fmt: skip
    return [Section("scoring", "Try the model", lead, body)]


PUSHES = (
    "How much of the decision's lead over the runner-up would go if the variable had its typical value (the mean "
    "of the held-out rows, or their most frequent category) and all others stayed."
)


def _field(at: int, column: Column) -> Markup:
    if column.levels is None:
        value = repr(column.typical)
        inner = tag("input", type="number", step="any", value=value, data_variable=at)
    else:
        options = (
            tag("option", str(level), value=place, selected="" if level == column.typical else None)
            for place, level in enumerate(column.levels)
        )
        inner = tag("select", *options, data_variable=at)
    return tag("label", tag("span", column.name), inner)


def _taken_apart(machine: Any) -> tuple[list, Any, NewtonRefinement | None]:
    """Return what a refinement is around, a pipeline taken apart, and the refinement itself if there is one."""
    if not isinstance(machine, NewtonRefinement):
        return [], machine, None
    if not isinstance(machine.estimator_, Pipeline):
        return [], machine.estimator_, machine
    *steps, (_, last) = machine.estimator_.steps
    return [step for step in steps if step[1] not in (None, "passthrough")], last, machine


def _model(machine: Any, refined: NewtonRefinement | None) -> dict[str, Any] | None:
    """Return the formula of the scores as plain data, None where it is too large or not one of numbers."""
    scoring = scoring_of(machine)
    if scoring is None:
        return None
    kernel = scoring.kernel
    if kernel is not None and (callable(kernel.kernel.name) or kernel.kernel.name == "precomputed"):
        return None
    if scoring.weights.size + (0 if kernel is None else np.prod(kernel.points.shape)) > MOST_NUMBERS:
        return None
    model: dict[str, Any] = {
        "weights": _doubles(scoring.weights),
        "intercept": np.asarray(scoring.intercept, dtype=float).tolist(),
        "columns": None if scoring.columns is None else scoring.columns.tolist(),
        "votes": None if scoring.votes is None else scoring.votes.tolist(),
        "kernel": None,
        "refinement": None if refined is None else [part.tolist() for part in refined._affine()],
    }
    if kernel is not None:
        shape, points = kernel.kernel, kernel.points
        model["kernel"] = {key: getattr(shape, key) for key in ("name", "gamma", "degree", "coef0")}
        model["points"] = _doubles(points.toarray() if sparse.issparse(points) else points)
    return model


def _decision(evidence: Evidence) -> dict[str, Any]:
    """Return how scores become probabilities, a loss, a strength and a decision."""
    rejector = evidence.parts.rejector
    curve = None
    if rejector is not None:
        curve = [rejector._strength.X_thresholds_.tolist(), rejector._strength.y_thresholds_.tolist()]
    return {
        "temperature": float(evidence.calibration.temperature),
        "offsets": evidence.calibration.offsets.tolist(),
        "paperLoss": minimises_paper_loss(evidence.parts.machine),
        "threshold": None if rejector is None else min(rejector._one_threshold("The report"), np.finfo(float).max),
        "strength": curve,
    }


def _fields(steps: AdditiveSteps) -> dict[str, Any]:
    return {
        "typical": _doubles(steps.typical),
        "fields": [
            {
                "name": column.name,
                "typical": column.typical if column.levels is None else column.levels.index(column.typical),
                "isNumber": column.levels is None,
                "effects": _doubles(column.effects),
            }
            for column in steps.columns
        ],
    }


def _doubles(values: NDArray) -> str:
    """Return numbers as the text of little-endian double precision."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode("ascii")
