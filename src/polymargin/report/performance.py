"""What the model gets right and wrong, and how strong its predictions are."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.inspection import (
    DecisionVectorDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    SetSizeDisplay,
)
from polymargin.report.evidence import Evidence
from polymargin.report.figures import figure
from polymargin.report.markup import Content, Markup, join, paragraph, table, tag
from polymargin.report.section import Section, class_label, crowding, number
from polymargin.selection.thresholds import Tally
from polymargin.selection.weakness import minimises_paper_loss

DRAWN_ROWS = 160
"""Rows of which decision vectors are drawn at most."""

NEGLIGIBLE = 1e-3
"""Part of the margin, or of a usual lead, that is nothing to a reader."""


def errors(evidence: Evidence) -> Section:
    """Show the confusion matrix with the costs."""
    k = len(evidence.names)
    confusion = evidence.confusion
    counts = confusion[:, :k]
    total = evidence.total_costs
    rejects = evidence.parts.rejector is not None
    head: list[Content] = ["true ↓ predicted →"]
    head += [tag("th", class_label(evidence, j), scope="col") for j in range(k)]
    head += ["rejected", "recall"] if rejects else ["recall"]
    right, said = counts.diagonal(), counts.sum(axis=0)
    # Of nothing, no share is known: 0/0 is not 0 %.
    recalls = ["-" if np.isnan(share) else f"{share:.1%}" for share in evidence.recalls]
    precisions = [f"{right[j] / said[j]:.1%}" if said[j] else "-" for j in range(k)]
    body = []
    for i in range(k):
        cells = [_count_cell(evidence, confusion, total, i, j) for j in range(k)]
        if rejects:
            cells.append(tag("td", tag("b", f"{confusion[i, k]:,}"), class_="none"))
        cells.append(tag("td", recalls[i], class_="margin"))
        body.append(tag("tr", tag("th", class_label(evidence, i), scope="row"), *cells))
    last = precisions + [""] * (1 + rejects)
    body.append(
        tag("tr", tag("th", "precision", scope="row"), *(tag("td", text, class_="margin") for text in last))
    )
    remark = paragraph(
        "Recall is the share of a class that is recognised, precision the share of its predictions that "
        "are right; - where there is nothing to take a share of. The redder a cell, the more it costs in all.",
        class_="note",
    )
    matrix = table(
        head, body, caption="Confusion matrix with costs", class_=f"confusion{crowding(k)}", id="confusion"
    )
    return Section("errors", "Right and wrong", _errors_in_words(evidence, counts, total), join([matrix, remark]))


def _count_cell(
    evidence: Evidence, confusion: NDArray[np.intp], total: NDArray[np.float64], i: int, j: int
) -> Markup:
    """Return the cell of class i predicted as j: the darker, the larger its share of the class or the cost."""
    count = int(confusion[i, j])
    content = [tag("b", f"{count:,}")]
    if i == j:
        kind, strength = "right", count / max(1, confusion[i].sum())
    else:
        kind, strength = "wrong", total[i, j] / total.max() if total.any() else 0.0
        if evidence.prices is not None:
            content += [tag("small", f"cost {number(total[i, j])} in all")] if count else []
        elif evidence.costs_differ:
            content.append(tag("small", f"cost {number(evidence.costs[i, j])}"))
    return tag("td", *content, class_=kind if count else "none", style=f"--strength:{strength:.3f}")


def _errors_in_words(evidence: Evidence, counts: NDArray[np.intp], total: NDArray[np.float64]) -> str:
    n, wrong = int(evidence.accepted.sum()), int(evidence.wrong.sum())
    if not wrong:
        return f"All {n:,} accepted predictions of held-out rows are right."
    mean = number(evidence.expected_cost)
    words = f"{wrong:,} of {n:,} predictions are wrong; a prediction costs {mean} on average."
    by_row = evidence.prices is not None
    if by_row:
        words += (
            f" Each row has costs of its own; the most probable class, costs ignored, would cost "
            f"{number(evidence.cost_of_the_most_probable)}."
        )
    if total.any():
        i, j = np.unravel_index(total.argmax(), total.shape)
        count, each = int(counts[i, j]), number(float(total[i, j] / counts[i, j]))
        words += (
            f" Taking {evidence.names[i]} for {evidence.names[j]} makes up {total[i, j] / total.sum():.0%} of the "
            f"cost ({count:,} row{'s' if count > 1 else ''} at {each}{' on average' if by_row else ''})."
        )
    return words


def strengths(evidence: Evidence) -> Section:
    """Show the decision vectors, and how errors thin out among strong predictions."""
    names = np.array(evidence.names, dtype=object)
    vectors = DecisionVectorDisplay(
        scores=evidence.scores,
        losses=evidence.losses,
        classes=names,
        labels=names[evidence.labels],
        threshold=evidence.threshold,
    )
    tally = Tally.of(evidence.losses, evidence.predicted == evidence.labels, np.ones(len(evidence.labels)))
    coverage, risk = tally.accepted / tally.accepted[-1], tally.errors / tally.accepted
    last = int(np.searchsorted(tally.loss, evidence.threshold, side="right")) - 1
    chosen = (float(coverage[last]), float(risk[last])) if last >= 0 else None
    curve = RiskCoverageDisplay(coverage=coverage, risk=risk, chosen=chosen, name="held-out rows")
    paper = minimises_paper_loss(evidence.parts.machine)
    caption = (
        "Decision vectors: the score of every class for the held-out rows, coloured by their true class, and the "
        f"loss of the predicted class{'' if paper else ' (minus its lead over the next one)'}. Above the dotted "
        "line a prediction is weak."
    )
    if len(evidence.labels) > DRAWN_ROWS:
        caption += f" Of {len(evidence.labels):,} rows an even sample of about {DRAWN_ROWS} is drawn."
    pictures = [
        figure(
            lambda ax: vectors.plot(ax=ax, max_rows=DRAWN_ROWS).description,
            (9.4, vectors.size[1]),
            name="vectors",
            caption=caption,
        ),
        figure(
            lambda ax: curve.plot(ax).description,
            (6.4, 3.2),
            name="coverage",
            caption="Errors among the strongest predictions, as more and more of them are accepted.",
        ),
    ]
    return Section("strengths", "How strong the predictions are", _strengths_in_words(evidence), join(pictures))


def probabilities(evidence: Evidence) -> list[Section]:
    """Show whether the model's own probabilities come true, and the sizes of its sets; nothing without them."""
    probable = evidence.parts.probable
    if probable is None:
        return []
    names = np.array(evidence.names, dtype=object)
    labels = names[evidence.labels]
    reliability = ReliabilityDisplay.from_probabilities(probable.probabilities, labels, names)
    own = probable.probabilities[np.arange(len(labels)), evidence.labels]
    log_loss = float(-np.log(np.maximum(own, np.finfo(np.float64).tiny)).mean())
    lead = (
        f"The model's own probabilities, from left-out scores of its training rows ({probable.model.method_} "
        f"map): their log loss on the held-out rows is {number(log_loss)}."
    )
    pictures = [
        figure(
            lambda ax: reliability.plot(ax).description,
            (6.4, 4.4),
            name="reliability",
            caption="Of held-out rows of like probability of a class, the share that are of the class, with 95 % "
            "intervals; the larger a point, the more rows. Probabilities that come true lie on the dotted line.",
        )
    ]
    if probable.sets is not None and probable.coverage is not None:
        sizes = SetSizeDisplay.from_sets(probable.sets, labels, names, probable.coverage)
        held = probable.sets[np.arange(len(labels)), evidence.labels].mean()
        lead += f" Its sets hold the true class of {held:.1%} of them, asked for {probable.coverage:.1%}."
        pictures.append(
            figure(
                lambda ax: sizes.plot(ax).description,
                (6.4, 3.2),
                name="sets",
                caption="How many classes the sets of the held-out rows have: one class is certain, more are "
                "ambiguous, none is novel.",
            )
        )
    return [Section("probabilities", "Whether probabilities come true", lead, join(pictures))]


def _strengths_in_words(evidence: Evidence) -> Any:
    n, weak = len(evidence.labels), int(np.count_nonzero(evidence.losses > evidence.threshold))
    if not np.isfinite(evidence.threshold):
        return "No threshold tells weak predictions from strong ones: " + (
            "all are rejected." if evidence.threshold < 0 else "none is rejected, or too few right ones are there."
        )
    words = f"{weak:,} of {n:,} predictions are weak: {_weakness_in_words(evidence)} "
    if evidence.threshold_is_left_out:
        return words + "Left-out predictions of the training rows set this threshold; weak ones are rejected."
    return words + (
        "95 % of the right predictions here are stronger. RejectOptionClassifier would set the threshold from "
        "left-out training rows, and reject."
    )


def _weakness_in_words(evidence: Evidence) -> str:
    """Say what being weaker than the threshold means for the scores of a row."""
    threshold, typical = evidence.threshold, float(np.median(evidence.losses))
    if not minimises_paper_loss(evidence.parts.machine):
        lead = max(-threshold, 0.0)
        if lead <= NEGLIGIBLE * max(-typical, 0.0):
            return "the two highest scores are practically equal."
        return (
            f"the highest score leads the next by less than {number(lead)}, where half of all rows have a lead "
            f"of at least {number(-typical)}."
        )
    if threshold <= NEGLIGIBLE:
        return "the scores fall short of the full margin, which the machine asks for, by any amount."
    return (
        f"the scores fall short of the full margin, which the machine asks for, by more than {number(threshold)} "
        "in all (a row without any preference falls short by 1)."
    )
