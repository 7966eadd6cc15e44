"""What every Display needs: matplotlib on demand, and one style.

A display draws on the axes it is given, or on a figure of its own, and never touches the user's colours of text
and background, so that dark styles work: what is neither a class nor a value is drawn in the colour of the text.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, TypeVar

import numpy as np

Plot = TypeVar("Plot", bound=Callable[..., Any])

PALETTE = (
    "#3d7cc9", "#e1812c", "#3a9a6b", "#c44e6e", "#8a65c4", "#a58a1d", "#2f9fb0", "#a0705a", "#d173b5", "#7f8894",
)  # fmt: skip
"""Colours of classes and lines, of middle lightness: they stand out on white as on black."""

LONGEST_LABEL = 28
"""Characters of a label that are drawn; the middle of a longer one is left out."""


@contextmanager
def style() -> Iterator[None]:
    """Draw in the common style within this context; say which extra is missing without matplotlib."""
    try:
        import matplotlib as mpl
        from cycler import cycler
    except ImportError as error:
        raise ImportError(
            "Displays need matplotlib, which is not installed: pip install polymargin[plot]."
        ) from error
    settings: Any = {
        "axes.prop_cycle": cycler(color=PALETTE),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": "medium",
        "legend.frameon": False,
        "legend.fontsize": "small",
        "xtick.labelsize": "small",
        "ytick.labelsize": "small",
    }
    with mpl.rc_context(settings):
        yield


def styled(plot: Plot) -> Plot:
    """Make the method `plot` draw in the common style."""

    @wraps(plot)
    def plot_in_style(*arguments: Any, **options: Any) -> Any:
        with style():
            return plot(*arguments, **options)

    return plot_in_style  # type: ignore[return-value]


def new_axes(ax: Any = None, size: tuple[float, float] | None = None) -> Any:
    """Return `ax` without its upper and right spine, or the axes of a new figure of `size` inches."""
    if ax is None:
        from matplotlib import pyplot

        return pyplot.subplots(figsize=size, layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def new_panels(ax: Any, shape: tuple[int, int], size: tuple[float, float], **options: Any) -> Any:
    """Return panels (an array of axes of `shape`): in the place of one axes, those given, or on a new figure.

    `options` are those of `Figure.subplots`, `ax` is None, axes, or one axes a panel.
    """
    if ax is None:
        from matplotlib import pyplot

        return pyplot.subplots(*shape, figsize=size, layout="constrained", squeeze=False, **options)[1]
    if hasattr(ax, "get_subplotspec"):
        place = ax.get_subplotspec()
        ax.set_axis_off()
        ratios = options.pop("height_ratios", None)
        grid = place.subgridspec(*shape, height_ratios=ratios)
        return grid.subplots(squeeze=False, **options)
    panels = np.ravel(np.asarray(ax, dtype=object))
    if len(panels) != shape[0] * shape[1]:
        raise ValueError(f"ax must be one axes, or hold one per panel, {shape[0] * shape[1]}, got {len(panels)}.")
    for panel in panels:
        new_axes(panel)
    return panels.reshape(shape)


def ink() -> str:
    """Return the colour of text: for lines and marks that stand for no class."""
    from matplotlib import rcParams

    return rcParams["text.color"]


def background() -> str:
    """Return the colour of what is behind the plot: for gaps between things."""
    from matplotlib import rcParams

    return rcParams["axes.facecolor"]


@cache
def class_colours(n_classes: int) -> tuple[str, ...]:
    """Return a colour a class: the palette, or as many hues as are needed beyond it."""
    if n_classes <= len(PALETTE):
        return PALETTE[:n_classes]
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return tuple(to_hex(colour) for colour in colormaps["turbo"](np.linspace(0.06, 0.94, n_classes)))


def shades(*colours: str) -> Any:
    """Return a colour map: from nothing to one colour, or from one through nothing to another.

    Nothing is transparent rather than white, so that it is the background, whatever that is.
    """
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    if len(colours) == 1:
        stops = [to_rgba(colours[0], 0.0), to_rgba(colours[0], 1.0)]
    else:
        low, high = colours
        stops = [to_rgba(low, 1.0), to_rgba(low, 0.0), to_rgba(high, 0.0), to_rgba(high, 1.0)]
        return LinearSegmentedColormap.from_list("diverging", list(zip((0.0, 0.5, 0.5, 1.0), stops, strict=True)))
    return LinearSegmentedColormap.from_list("shades", stops)


def heat_map(ax: Any, values: Any, *, columns: Sequence[Any], rows: Sequence[Any], **mesh: Any) -> Any:
    """Draw a matrix with names for its columns and rows, the first row at the top; return the mesh."""
    at_columns, at_rows = np.arange(len(columns)), np.arange(len(rows))
    image = ax.pcolormesh(at_columns, at_rows, np.asarray(values, dtype=np.float64), shading="nearest", **mesh)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    names = [label_text(name) for name in columns]
    crowded = 0.09 * sum(len(name) + 2 for name in names) > 0.6 * ax.figure.get_figwidth()
    turn = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
    ax.set_xticks(at_columns, names, **turn)
    ax.set_yticks(at_rows, [label_text(name) for name in rows])
    ax.invert_yaxis()
    return image


def label_text(label: Any) -> str:
    r"""Return a label as matplotlib must be given it to draw it as it stands.

    Dollar signs do not begin a formula, a leading underscore does not hide a line from the legend, what cannot be
    printed is replaced, and of long labels the middle is left out.

    >>> label_text("a$b$"), label_text("x" * 40)
    ('a\\$b\\$', 'xxxxxxxxxxxxxx…xxxxxxxxxxxxx')
    """
    text = "".join(character if character.isprintable() else "\ufffd" for character in str(label))
    if len(text) > LONGEST_LABEL:
        half = LONGEST_LABEL // 2
        text = f"{text[:half]}…{text[1 - half :]}"
    return ("\u200b" if text.startswith("_") else "") + text.replace("$", r"\$")
