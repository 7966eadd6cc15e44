"""What every Display needs: matplotlib, on demand."""

from typing import Any


def new_axes(ax: Any = None) -> Any:
    """Return `ax`, or the axes of a new figure; say which extra is missing without matplotlib."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "Displays need matplotlib, which is not installed: pip install polymargin[plot]."
        ) from error
    return pyplot.subplots()[1]
