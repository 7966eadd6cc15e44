"""Figure 5 of Lee, Lin & Wahba on simulated data: regions with equal costs, and with missed clouds dearer."""

from typing import Any

from reproductions.declare import Context, Figure
from reproductions.multicategory._radiance import machine, make_radiance_like
from reproductions.plane import draw_regions


def draw(context: Context) -> Any:
    """Draw the regions for both costs."""
    from matplotlib import pyplot

    sample = make_radiance_like(100 if context.quick else 370, context.seed % 2**32)
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4.5), sharey=True)
    for ax, cost in zip(axes, (1.0, 1.5), strict=True):
        draw_regions(ax, machine(sample, cost, context), sample, f"cost {cost:g}")
        ax.set_xlabel("reflectance (simulated)")
    return figure


REPRODUCTION = Figure(
    title="Figure 5 on simulated radiance-like data: regions with costs 1 and 1.5",
    draw=draw,
    verdict="not reproducible, the data are not public; the effect is shown on simulated data",
    notes="Simulated: the paper's profiles are not public. Circles are clear sky, triangles liquid and crosses "
    "ice clouds.",
)
