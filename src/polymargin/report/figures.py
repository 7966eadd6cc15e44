"""Displays as inline SVG that takes its colours from the page, with a text alternative."""

import io
import re
import warnings
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

from polymargin.inspection._plotting import style
from polymargin.report.markup import Markup, tag

SVG = "http://www.w3.org/2000/svg"
LINK = "{http://www.w3.org/1999/xlink}href"
INK, FRAME, PAPER = "#1b1e24", "#9a9c9f", "#fbfaf7"
"""Stand-ins for colours of the page, which no display uses for anything else: of text, frames and background."""

SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "polymargin",
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.edgecolor": FRAME,
    "axes.facecolor": PAPER,
    "xtick.color": FRAME,
    "ytick.color": FRAME,
    "font.size": 10.5,
}


def figure(
    draw: Callable[[Any], str],
    size: tuple[float, float],
    *,
    name: str,
    caption: str,
    n_axes: int = 1,
    tall: bool = False,
) -> Markup:
    """Return a figure: `draw` is given axes of `size` inches and returns what they show in words.

    `name` sets the ids inside the picture apart from those of other pictures; a `tall` one scrolls in its box.
    """
    with style():
        import matplotlib as mpl
        from matplotlib.figure import Figure

        with mpl.rc_context(SETTINGS), warnings.catch_warnings():
            # The browser has fonts of its own for what matplotlib's cannot show.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            canvas = Figure(figsize=size, layout="constrained")
            axes = canvas.subplots(1, n_axes)
            alternative = draw(axes)
            file = io.StringIO()
            canvas.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    picture = inline_svg(file.getvalue(), name=name, alternative=alternative)
    box = tag("div", picture, class_="scroll plot tall" if tall else "scroll plot", tabindex="0")
    return tag("figure", box, tag("figcaption", caption))


def inline_svg(text: str, *, name: str, alternative: str) -> Markup:
    """Return matplotlib's SVG without what only a file needs, its colours of text and frames left to the page."""
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", LINK[1:].split("}")[0])
    root = ElementTree.fromstring(text)
    for metadata in root.findall(f"{{{SVG}}}metadata"):
        root.remove(metadata)
    for element in root.iter():
        for key, value in list(element.attrib.items()):
            element.attrib[key] = _attribute(key, value, name)
    width = float(root.attrib.pop("width").removesuffix("pt")) * 4 / 3
    root.attrib.pop("height")
    root.attrib |= {
        "role": "img",
        "aria-label": alternative,
        "style": f"width:{width:.0f}px;min-width:min({0.75 * width:.0f}px,30rem)",
        "id": f"{name}-picture",
    }
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _attribute(key: str, value: str, name: str) -> str:
    match key:
        case "id":
            return f"{name}-{value}"
        case "style":
            value = (
                value.replace(INK, "currentColor").replace(FRAME, "var(--frame)").replace(PAPER, "var(--paper)")
            )
            return re.sub(r"url\(#", f"url(#{name}-", value)
        case "clip-path":
            return value.replace("url(#", f"url(#{name}-")
        case "d" | "points":
            return re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", value)
        case _ if key == LINK and value.startswith("#"):
            return f"#{name}-{value[1:]}"
        case _:
            return value
