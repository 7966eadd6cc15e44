"""Figure 1 of Guo (2010): which gene separates which tumours, SRBCT and leukemia."""

from typing import Any

from sklearn.model_selection import train_test_split

from polymargin import SparseSVCCV
from polymargin.inspection import SeparationMapDisplay
from reproductions.declare import Context, Figure
from reproductions.sparse._arrays import top_genes


def draw(context: Context) -> Any:
    """Draw the separation maps of adaptive fusion, one round."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 8), layout="constrained")
    for ax, (name, data) in zip(axes, (("SRBCT", "khan_srbct"), ("leukemia", "leukemia")), strict=True):
        arrays = top_genes(context, data)
        X, _, y, _ = train_test_split(
            arrays.data, arrays.target, test_size=1 / 3, stratify=arrays.target, random_state=context.seed
        )
        model = SparseSVCCV(adaptive=True, n_Cs=5 if context.quick else 31, cv=2 if context.quick else 5).fit(X, y)
        SeparationMapDisplay.from_estimator(model, names=arrays.names, ax=ax)
        ax.set_title(name)
    return figure


REPRODUCTION = Figure(
    title="Figure 1: genes by pairs of tumours: black where the gene separates the pair",
    draw=draw,
    verdict="reproduced in order: many genes separate some pairs of tumours only",
    notes="The stored SRBCT data carry no gene names: rows are numbered as there.",
)
