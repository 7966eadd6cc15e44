"""A page of suspect labels: the worst of them with their rows, and which classes are mistaken for which."""

from importlib.metadata import version
from importlib.resources import files
from typing import Any

from polymargin.report.markup import paragraph, render, table, tag
from polymargin.selection.labels import LabelSuspicion

SHOWN_ROWS = 100
SHOWN_COLUMNS = 12


def suspects_page(suspicion: LabelSuspicion, X: Any, *, title: str) -> str:
    """Return one self-contained HTML page.

    Parameters
    ----------
    suspicion : what `suspect_labels` found.
    X : the rows it was found for; columns of a DataFrame are shown beside the suspects.
    title : of the page.
    """
    found = suspicion.table()
    worst = found.head(SHOWN_ROWS)
    names = list(X.columns)[:SHOWN_COLUMNS] if hasattr(X, "columns") else []
    body = []
    for entry in worst.itertuples():
        values = [_shown(X[name].iloc[entry.row]) for name in names]
        judged = (entry.row + 1, entry.was, entry.should_be, f"{entry.sure:.3f}", f"{entry.own:.3f}")
        body.append(tag("tr", *(tag("td", value) for value in (*judged, *values))))
    head = ("row", "was", "should be", "sure", "own", *map(str, names))
    sections = (
        tag("h2", "The most suspect labels"),
        paragraph(
            f"{len(found)} of {len(suspicion.rows)} rows are more probably of another class, by predictions that "
            f"left them out; the first {len(worst)} are shown. Sure: the probability of what it should be, of the "
            "two.",
            class_="lead",
        ),
        table(head, body, caption="suspect labels", tall=True),
        tag("h2", "Which classes are mistaken for which"),
        paragraph(
            "Of the rows that are confidently of a class (column), the share labelled as each class (row), with "
            "95 % intervals.",
            class_="lead",
        ),
        _noise(suspicion),
    )
    style = (files("polymargin.report") / "page.css").read_text("utf-8")
    safe = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<meta name="generator" content="polymargin {render(version("polymargin"))}">'
        f'<meta http-equiv="Content-Security-Policy" content="{safe}">'
        f"<title>{render(title)}</title><style>\n{style}</style></head>\n<body><header>"
        f'<p class="kind">Polymargin labels</p><h1>{render(title)}</h1></header>\n'
        f"<main>{''.join(map(render, sections))}</main></body></html>\n"
    )


def _noise(suspicion: LabelSuspicion) -> Any:
    noise = suspicion.noise
    body = []
    for i, label in enumerate(noise.classes):
        cells = [
            f"{noise.share[i, j]:.3f} ({noise.lower[i, j]:.3f} to {noise.upper[i, j]:.3f})"
            for j in range(len(noise.classes))
        ]
        body.append(tag("tr", tag("th", str(label), scope="row"), *(tag("td", cell) for cell in cells)))
    return table(("labelled", *(f"is {label}" for label in noise.classes)), body, caption="noise matrix")


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
