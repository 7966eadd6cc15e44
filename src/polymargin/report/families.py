"""The sections that only some models have: variables, relations, suspect labels, searches."""

from typing import Any

import numpy as np

from polymargin.estimators.robust import RobustSVC
from polymargin.estimators.shared import SharedStructureSVC
from polymargin.estimators.sparse import SparseClassifier
from polymargin.inspection import (
    ClassRelationDisplay,
    CriterionPathDisplay,
    CriterionSurfaceDisplay,
    LabelNoiseDisplay,
    SeparationMapDisplay,
    related_classes,
)
from polymargin.inspection.criterion import SearchTable
from polymargin.problems.robust import margins
from polymargin.report.evidence import Evidence
from polymargin.report.figures import figure
from polymargin.report.markup import Content, join, paragraph, table, tag
from polymargin.report.section import Section, cell_of, class_label, number, sortable
from polymargin.selection.multicategory import MarginSearch
from polymargin.selection.proximal import ProximalSVCCV
from polymargin.selection.shared import SharedStructureSearch
from polymargin.selection.sparse import SparseSVCCV

MAP_VARIABLES = 300
"""Variables that the map has room for: its labels keep their size, and its box scrolls."""

SEEN_VARIABLES = 40
"""Variables beyond which it does."""

LISTED_PAIRS = 10
LISTED_SUSPECTS = 100


def family_sections(evidence: Evidence) -> list[Section]:
    """Return the sections that the machine and the search around it ask for."""
    machine, search = evidence.parts.machine, evidence.parts.search
    found = []
    if isinstance(machine, SparseClassifier):
        found.append(variables(evidence, machine))
    if isinstance(machine, SharedStructureSVC):
        found.append(relations(evidence, machine))
    if isinstance(machine, RobustSVC):
        found.append(suspects(evidence, machine))
    if isinstance(search, MarginSearch | ProximalSVCCV | SharedStructureSearch | SparseSVCCV):
        found.append(criterion(search))
    return found


def variables(evidence: Evidence, machine: SparseClassifier) -> Section:
    """Show which variable separates which classes, as a map and as a table of all of them."""
    names = np.array(evidence.parts.features, dtype=object)
    selected = machine.selected_features_
    title, n = "Which variable separates which classes", len(selected)
    lead = f"{n:,} of {machine.n_features_in_:,} variables have a part in the decisions."
    if not n:
        return Section("variables", title, lead, paragraph("C is so small that no variable has entered."))
    ranges = np.ptp(machine.coef_, axis=0)
    order = selected[np.argsort(-ranges[selected], kind="stable")]
    k = len(evidence.names)
    pairs, shown = k * (k - 1) // 2, min(n, MAP_VARIABLES)

    def draw(ax: Any) -> str:
        return SeparationMapDisplay.from_estimator(machine, names=names, max_variables=shown, ax=ax).description

    limit = "" if n <= shown else f" The {shown} with the widest range of coefficients; the table has all."
    separation_map = figure(
        draw,
        (float(np.clip(3.2 + 0.42 * pairs, 4.5, 14.0)), 1.5 + 0.26 * shown),
        name="separations",
        caption=f"Filled where the variable (row) separates the pair of classes (column).{limit}",
        tall=shown > SEEN_VARIABLES,
    )
    rows = (
        tag(
            "tr",
            tag("th", names[j], scope="row"),
            tag("td", separation_in_words(machine.coef_[:, j], evidence.names), class_="words"),
            cell_of(ranges[j]),
            *(cell_of(value) for value in machine.coef_[:, j]),
        )
        for j in order
    )
    head = [sortable("Variable", "text"), sortable("What it separates", "text"), sortable("Range", "number")]
    head += [sortable(class_label(evidence, c), "number") for c in range(k)]
    search = tag("input", type="search", id="find-variable", placeholder="a name or a class")
    body = [
        separation_map,
        tag(
            "div",
            tag("label", "Search ", search),
            tag("span", "", id="found-variables", role="status"),
            tag("button", "Save as CSV", type="button", id="save-variables"),
            class_="controls",
        ),
        table(
            head,
            rows,
            caption="Variables: what they separate, the range of their coefficients, and these, class by class",
            class_="sortable",
            id="variables-table",
            tall=True,
        ),
        paragraph("On paper the first rows only: all are on the screen.", class_="note on-paper"),
    ]
    return Section("variables", title, lead, join(body))


def separation_in_words(coef: Any, names: tuple[str, ...]) -> str:
    """Say which classes a variable separates, from its coefficients.

    >>> separation_in_words(np.array([2.0, -1.0, -1.0]), ("a", "b", "c"))
    'separates a from b and c: high values speak for a.'
    >>> separation_in_words(np.array([2.0, -0.5, -1.5]), ("a", "b", "c"))
    'separates all classes; the higher it is, the more it speaks for a, then b, then c.'
    """
    groups = [[names[c] for c in np.flatnonzero(coef == value)] for value in np.unique(coef)[::-1]]
    if len(groups) == 2:
        high, low = (listed(group) for group in groups)
        return f"separates {high} from {low}: high values speak for {high}."
    ranking = ", then ".join(listed(group) for group in groups)
    what = "all classes" if len(groups) == len(names) else f"{len(groups)} groups of classes"
    return f"separates {what}; the higher it is, the more it speaks for {ranking}."


def listed(words: list[str]) -> str:
    """Return words with commas and an "and"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def relations(evidence: Evidence, machine: SharedStructureSVC) -> Section:
    """Show what the classes share: the relation matrix, the tree and the strongest pairs."""
    n_base, n_final = machine.relation_.shape
    square = machine.scheme == "ovr" and n_base == len(evidence.names)
    # What classes take from themselves would leave no colours for what they take from others.
    apart = np.abs(machine.relation_[~np.eye(n_base, dtype=bool)]).max() if square else 0.0
    scale = {"vmin": -apart, "vmax": apart} if apart > 0 else {}
    side = float(np.clip(2.4 + 0.32 * n_final, 4.2, 12.0))
    body = [
        figure(
            lambda ax: ClassRelationDisplay.from_estimator(machine, ax=ax, **scale).description,
            (side + 1.2, float(np.clip(1.2 + 0.32 * n_base, 2.8, 12.0))),
            name="relation",
            caption="The relation matrix: what a final classifier (column) takes from a base classifier (row)."
            + (" The diagonal may be beyond the colours." if scale else ""),
        )
    ]
    lead = f"{n_base} base classifiers are mixed into {n_final} final ones."
    if square:
        body.append(
            figure(
                lambda ax: ClassRelationDisplay.of(machine).plot_dendrogram(ax).dendrogram_description,
                (6.4, float(np.clip(1.2 + 0.3 * n_final, 2.4, 10.0))),
                name="tree",
                caption="Classes that share most are joined first.",
            )
        )
        strongest = related_classes(machine, n_pairs=LISTED_PAIRS)
        rows = strongest if isinstance(strongest, list) else strongest.to_dict("records")
        lead += f" {rows[0]['class_a']} and {rows[0]['class_b']} share most."
        cells = ("class_a", "class_b", "strength", "b_from_a", "a_from_b")
        body.append(
            table(
                ["Class", "Class", "Strength", "second from first", "first from second"],
                (
                    tag(
                        "tr",
                        *(tag("td", row[cell] if at < 2 else number(row[cell])) for at, cell in enumerate(cells)),
                    )
                    for row in rows
                ),
                caption="The pairs of classes that share most",
            )
        )
    return Section("relations", "What the classes share", lead, join(body))


def suspects(evidence: Evidence, machine: RobustSVC) -> Section:
    """Show the training labels that the machine mistrusts."""
    n_rows, found = int(np.count_nonzero(~np.isnan(machine.suspicion_))), machine.suspect_labels_
    order = found[np.argsort(machine.suspicion_[found], kind="stable")][:LISTED_SUSPECTS]
    held_out = margins(evidence.scores)[np.arange(len(evidence.labels)), evidence.labels]
    doubted = int(np.count_nonzero(held_out < machine.truncation_))
    body: list[Content] = [
        figure(
            lambda ax: LabelNoiseDisplay.from_estimator(machine, ax=ax).description,
            (6.8, 3.2),
            name="margins",
            caption="Margins of the training rows under their own labels. Left of the line per row has no more "
            "say than any other error.",
        )
    ]
    if len(order):
        body.append(
            table(
                ["Training row", tag("th", "Margin", scope="col", class_="number")],
                (
                    tag(
                        "tr",
                        tag("th", int(i), scope="row"),
                        tag("td", number(machine.suspicion_[i]), class_="number"),
                    )
                    for i in order
                ),
                caption="Suspect labels, the most suspect first",
                class_="narrow",
                tall=True,
            )
        )
        if len(order) < len(found):
            body.append(paragraph(f"The {len(order)} lowest margins of {len(found):,}.", class_="note"))
    lead = (
        f"{len(found):,} of {n_rows:,} training rows contradict the others so much that their loss was "
        f"truncated, at the margin {number(machine.truncation_)}: outliers, or wrong labels. By the same measure "
        f"{doubted:,} of the {len(held_out):,} held-out labels are suspect."
    )
    return Section("suspects", "Which labels are suspect", lead, join(body))


def criterion(search: Any) -> Section:
    """Show what a search saw."""
    seen = SearchTable.of(search)
    kind = CriterionSurfaceDisplay if seen.is_surface else CriterionPathDisplay
    name = seen.name[0].upper() + seen.name[1:]
    chosen = f"C = {number(seen.C[seen.chosen])}"
    if seen.is_surface:
        chosen += f" and {seen.second_name} = {number(float(seen.second[seen.chosen]))}"
    return Section(
        "search",
        "How the parameters were chosen",
        f"{type(search).__name__} tried {len(seen.C):,} models and chose {chosen}, where the {seen.name} is "
        f"{number(seen.criterion[seen.chosen])}.",
        figure(
            lambda ax: kind.from_estimator(search, ax=ax).description,
            (7.2, 3.8),
            name="search",
            caption=f"{name} of every model that was tried; the circle marks the chosen one.",
        ),
    )
