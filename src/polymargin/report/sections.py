"""The sections that every report has."""

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from polymargin.inspection import DecisionVectorDisplay, RiskCoverageDisplay
from polymargin.inspection._plotting import class_colours
from polymargin.report.evidence import Evidence
from polymargin.report.figures import figure
from polymargin.report.markup import Content, Markup, definitions, join, paragraph, table, tag
from polymargin.selection.rejection import Tally

TABLE_ROWS = 500
"""Predictions that the table of a report holds at most."""

ROUNDING = 1e-15
"""Gaps below are those of rounding."""

MACHINES = {
    "MulticategorySVC": "the multicategory support vector machine of Lee, Lin & Wahba (2004)",
    "ProximalSVC": "the proximal support vector machine of Fung & Mangasarian (2005)",
    "SparseSVC": "the support vector machine with class-specific variables of Guo (2010)",
    "SparseSVCCV": "the support vector machine with class-specific variables of Guo (2010), tuned",
    "SharedStructureSVC": "the classifiers with shared structure of Vural, Fung, Rosales & Dy (2009)",
    "TraceNormSVC": "the classifiers of low rank of Amit, Fink, Srebro & Ullman (2007)",
    "RobustSVC": "the robust support vector machine with utilities of Liu, Wu & He (2011)",
    "NewtonRefinement": "the Newton refinement of Fung & Mangasarian (2005) around another classifier",
}


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: its anchor, its heading, one sentence that says what it is for, and the rest."""

    anchor: str
    title: str
    lead: Content
    body: Markup


def number(value: float) -> str:
    """Return a number with four digits that count."""
    return f"{value:.4g}".replace("e-0", "e-").replace("e+0", "e+")


def gap_text(gap: float) -> str:
    """Return a gap in as many digits as mean anything."""
    return f"{gap:.1e}" if gap >= ROUNDING else f"< {ROUNDING:.0e}"


def key_figures(evidence: Evidence) -> list[tuple[str, str, str]]:
    """Return the few numbers that stand at the top: name, value, remark."""
    n, n_accepted, wrong = len(evidence.labels), int(evidence.accepted.sum()), int(evidence.wrong.sum())
    figures = [
        ("Error on held-out rows", f"{evidence.error:.1%}", f"{wrong:,} of {n_accepted:,}"),
        (
            "Mean cost",
            number(evidence.expected_cost),
            "with the costs given" if evidence.costs_given else "an error costs 1",
        ),
    ]
    if evidence.parts.rejector is not None:
        figures.append(("Rejected as too weak", f"{1 - n_accepted / n:.1%}", f"{n - n_accepted:,} of {n:,}"))
    certificate = getattr(evidence.parts.machine, "certificate_", None)
    if certificate is not None:
        kind = "proven" if certificate.kind == "global" else "of the last convex step"
        figures.append(("Relative gap", gap_text(certificate.gap), kind))
    figures.append(_size_of(evidence.parts.machine))
    return figures


def _size_of(machine: Any) -> tuple[str, str, str]:
    if hasattr(machine, "selected_features_"):
        used = len(machine.selected_features_)
        return "Variables used", f"{used:,}", f"of {machine.n_features_in_:,}"
    if getattr(machine, "support_", None) is not None:
        return "Support vectors", f"{len(machine.support_):,}", "training rows that matter"
    if hasattr(machine, "landmarks_"):
        return "Landmarks", f"{np.shape(machine.landmarks_)[0]:,}", "where the kernel is placed"
    return "Variables", f"{machine.n_features_in_:,}", f"{len(machine.classes_)} classes"


def fitted(evidence: Evidence) -> Section:
    """Say what was fitted, and how it was certified."""
    parts = evidence.parts
    machine, name = parts.machine, type(parts.machine).__name__
    about: list[Content] = [tag("strong", name), f", {MACHINES.get(name, 'a classifier of Polymargin')}."]
    if parts.steps:
        about.append(f" Rows first go through {', '.join(type(step).__name__ for _, step in parts.steps)}.")
    if parts.search is not None:
        about.append(f" {type(parts.search).__name__} chose its parameters.")
    if parts.rejector is not None:
        about.append(" Weak predictions are rejected.")
    given, left = ([(tag("code", key), text) for key, text in parameters] for parameters in parameters_of(machine))
    body = [paragraph(*about)]
    if given:
        body.append(definitions(given, class_="parameters"))
    if left:
        body.append(
            tag(
                "details",
                tag("summary", f"{len(left)} parameters at their defaults"),
                definitions(left, class_="parameters"),
            )
        )
    return Section(
        "fitted",
        "What was fitted",
        "The machine, its settings, and the proof that came with its solution.",
        join([*body, *_certificate(machine)]),
    )


def parameters_of(machine: Any) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the parameters that differ from their defaults, and those that do not, as they are written."""
    given: list[tuple[str, str]] = []
    left: list[tuple[str, str]] = []
    for name, parameter in inspect.signature(type(machine)).parameters.items():
        value = getattr(machine, name)
        text = short_repr(value)
        is_default = value is parameter.default or text == repr(parameter.default)
        (left if is_default else given).append((name, text))
    return given, left


def short_repr(value: Any) -> str:
    """Return how a value is written in Python, or of what shape it is where that would be long."""
    if hasattr(value, "shape") and np.size(value) > 12:
        return f"{type(value).__name__} of shape {value.shape}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 90 else text[:86] + " ..."


def _certificate(machine: Any) -> list[Markup]:
    certificate = getattr(machine, "certificate_", None)
    if certificate is None:
        return [paragraph("This wrapper has no certificate of its own.", class_="note")]
    converged, tol = bool(machine.converged_), float(machine.tol)
    if certificate.kind == "global":
        words = (
            f"The optimal value of the training problem lies between {certificate.dual:.8g}, the dual "
            f"objective, and {certificate.primal:.8g}, that of the solution: no other could be better by more "
            f"than this gap, relatively {gap_text(certificate.gap)}."
        )
    else:
        words = (
            "The training problem is not convex, so that a global optimum cannot be proven. What can be is how "
            f"far the last convex step was solved: its optimal value lies between {certificate.dual:.8g} and "
            f"{certificate.primal:.8g}."
        )
    if converged:
        state = tag("span", "Certified", class_="badge good")
        words += f" The tolerance, {tol:g}, was reached."
    else:
        state = tag("span", "Not within the tolerance", class_="badge bad")
        factor = certificate.gap / tol
        words += f" The gap is {number(factor)} times the tolerance, {tol:g}."
        if getattr(machine, "max_iter", -1) not in (-1, None):
            words += f" The iterations were limited to {machine.max_iter}."
    numbers = [
        ("Primal objective", f"{certificate.primal:.8g}"),
        ("Dual objective", f"{certificate.dual:.8g}"),
        ("Relative gap", f"{certificate.gap:.2e}"),
        ("Infeasibility", f"{certificate.infeasibility:.1e}"),
        ("Iterations", f"{machine.n_iter_:,}"),
    ]
    return [
        tag(
            "div",
            tag("h3", "Certificate ", state),
            paragraph(words),
            definitions(numbers, class_="numbers"),
            class_="panel",
        )
    ]


def errors(evidence: Evidence) -> Section:
    """Show the confusion matrix with the costs."""
    confusion, costs, names = evidence.confusion, evidence.costs, evidence.names
    k, rejects = len(names), evidence.parts.rejector is not None
    shown = confusion if rejects else confusion[:, :k]
    totals = np.maximum(confusion.sum(axis=1), 1)
    weighted = confusion[:, :k] * costs
    heaviest = max(float(weighted.max()), 1e-300)
    body = []
    for i in range(k):
        cells = []
        for j in range(shown.shape[1]):
            count = int(shown[i, j])
            if j == i:
                kind, strength, remark = "right", count / totals[i], ""
            elif j < k:
                kind, strength = "wrong", float(weighted[i, j]) / heaviest
                remark = f"cost {number(costs[i, j])}"
            else:
                kind, strength, remark = "rejected", 0.0, ""
            content: list[Content] = [tag("b", f"{count:,}")]
            if remark:
                content.append(tag("small", remark))
            cells.append(tag("td", *content, class_=kind if count else "none", style=f"--strength:{strength:.3f}"))
        recall = confusion[i, i] / totals[i]
        cells.append(tag("td", f"{recall:.1%}", class_="margin"))
        body.append(tag("tr", tag("th", class_label(evidence, i), scope="row"), *cells))
    head: list[Content] = [
        "true ↓ predicted →",
        *(tag("th", class_label(evidence, j), scope="col") for j in range(k)),
    ]
    head += (["rejected"] if rejects else []) + ["found"]
    found = confusion[:, :k].diagonal() / np.maximum(confusion[:, :k].sum(axis=0), 1)
    last = [f"{share:.1%}" for share in found] + [""] * (shown.shape[1] - k + 1)
    body.append(tag("tr", tag("th", "trusted", scope="row"), *(tag("td", text, class_="margin") for text in last)))
    matrix = table(head, body, caption="Confusion matrix with costs", class_="confusion", id="confusion")
    return Section(
        "errors",
        "Right and wrong",
        _errors_in_words(evidence, weighted),
        join(
            [
                matrix,
                paragraph(
                    "“Found”: the share of a class that is recognised. “Trusted”: the share of the predictions "
                    "of a class that are right.",
                    class_="note",
                ),
            ]
        ),
    )


def _errors_in_words(evidence: Evidence, weighted: Any) -> str:
    n, wrong = int(evidence.accepted.sum()), int(evidence.wrong.sum())
    if not wrong:
        return f"All {n:,} accepted predictions of held-out rows are right."
    mean = number(evidence.expected_cost)
    words = f"{wrong:,} of {n:,} predictions are wrong; a prediction costs {mean} on average."
    order = np.argsort(-weighted, axis=None)
    i, j = np.unravel_index(order[0], weighted.shape)
    if weighted[i, j] > 0:
        share, count = weighted[i, j] / weighted.sum(), int(evidence.confusion[i, j])
        words += (
            f" Taking {evidence.names[i]} for {evidence.names[j]} makes up {share:.0%} of the cost "
            f"({count:,} row{'s' if count > 1 else ''} at {number(float(evidence.costs[i, j]))})."
        )
    return words


def class_label(evidence: Evidence, position: int) -> Markup:
    """Return a class's name with its colour."""
    return tag(
        "span",
        evidence.names[position],
        class_="class",
        style=f"--class:{hex_colours(len(evidence.names))[position]}",
    )


def hex_colours(n_classes: int) -> list[str]:
    """Return the colours of the classes as CSS takes them."""
    from matplotlib.colors import to_hex

    return [to_hex(colour) for colour in class_colours(n_classes)]


def strengths(evidence: Evidence) -> Section:
    """Show the decision vectors, and how errors thin out among strong predictions."""
    k = len(evidence.names)
    names = np.array(evidence.names, dtype=object)

    def draw_vectors(ax: Any) -> str:
        display = DecisionVectorDisplay(
            scores=evidence.scores,
            losses=evidence.losses,
            classes=names,
            labels=names[evidence.labels],
            threshold=evidence.threshold,
        ).plot(ax=ax, max_rows=160)
        return display.description

    tally = Tally.of(evidence.losses, evidence.predicted == evidence.labels, np.ones(len(evidence.labels)))
    coverage, risk = tally.accepted / tally.accepted[-1], tally.errors / tally.accepted
    last = int(np.searchsorted(tally.loss, evidence.threshold, side="right")) - 1

    def draw_curve(ax: Any) -> str:
        chosen = (float(coverage[last]), float(risk[last])) if last >= 0 else None
        return (
            RiskCoverageDisplay(coverage=coverage, risk=risk, chosen=chosen, name="held-out rows")
            .plot(ax)
            .description
        )

    weak = int(np.count_nonzero(evidence.losses > evidence.threshold))
    n, threshold = len(evidence.labels), number(evidence.threshold)
    lead = f"{weak:,} of {n:,} predictions are weaker than the threshold {threshold}, "
    if evidence.threshold_is_left_out:
        lead += "which left-out predictions of the training rows set."
    else:
        lead += (
            "the loss that 95 % of the right predictions here stay below. RejectOptionClassifier would set it "
            "from left-out training rows, and reject."
        )
    height = float(np.clip(4.5 / k, 0.4, 0.9)) * k + 1.9
    return Section(
        "strengths",
        "How strong the predictions are",
        lead,
        join(
            [
                figure(
                    draw_vectors, (8.2, height), name="vectors",
                    caption="Decision vectors: the score of every class for the held-out rows, coloured by their "
                    "true class, and the loss of the predicted class. Above the dotted line a prediction is weak.",
                ),
                figure(
                    draw_curve, (6.4, 3.2), name="coverage",
                    caption="Errors among the strongest predictions, as more and more of them are accepted.",
                ),
            ]
        ),
    )  # fmt: skip


def predictions(evidence: Evidence) -> Section:
    """List predictions, the weakest where there are too many, in a table that can be sorted."""
    n = len(evidence.labels)
    kept = table_rows(evidence)
    head = [
        _sortable(title, kind)
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
                tag("td", number(evidence.losses[i]), class_="number", data_value=repr(float(evidence.losses[i]))),
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
                    class_="predictions",
                    id="predictions-table",
                ),
            ]
        ),
    )


def table_rows(evidence: Evidence) -> Any:
    """Return the rows of the table of predictions, weakest first."""
    return np.argsort(-evidence.losses, kind="stable")[:TABLE_ROWS]


def _sortable(title: str, kind: str) -> Markup:
    return tag("th", tag("button", title, type="button"), scope="col", aria_sort="none", data_kind=kind)
