"""What sections are made of."""

from dataclasses import dataclass

from polymargin.inspection._plotting import class_colours
from polymargin.report.evidence import Evidence
from polymargin.report.markup import Content, Markup, tag

FEW_CLASSES = 6
"""Classes up to which tables of classes by classes are generous."""


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


def crowding(n_classes: int) -> str:
    """Return the class that makes tables of classes by classes tighter where there are many of them."""
    return "" if n_classes <= FEW_CLASSES else " many"


def class_label(evidence: Evidence, position: int) -> Markup:
    """Return a class's name with its colour."""
    return tag(
        "span",
        evidence.names[position],
        class_="class",
        style=f"--class:{class_colours(len(evidence.names))[position]}",
    )


def sortable(title: Content, kind: str) -> Markup:
    """Return the head of a column by which the page sorts, as "text" or "number"."""
    return tag("th", tag("button", title, type="button"), scope="col", aria_sort="none", data_kind=kind)


def cell_of(value: float) -> Markup:
    """Return the cell of a number, which the page sorts and saves with all its digits."""
    return tag("td", number(value), class_="number", data_value=repr(float(value)))
