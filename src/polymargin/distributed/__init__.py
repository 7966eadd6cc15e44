"""The same machines on Dask: rows stay in their partitions, on whatever scheduler is active, and sums travel.

Estimators reach this package by themselves when they are given Dask collections; nothing here need be called. It
is the only place that imports Dask.
"""

from polymargin.distributed._input import training_set
from polymargin.distributed._output import by_partitions

__all__ = ["by_partitions", "training_set"]
