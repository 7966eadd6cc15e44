"""From Dask collections to validated blocks of rows: every partition is checked where it is, and named if bad."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import dask
import dask.array
import numpy as np
from dask.core import flatten
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from polymargin.blocks import joined
from polymargin.checks import check_entries
from polymargin.costs import resolve_cost_matrix, resolve_row_costs
from polymargin.distributed._blocks import DaskBlocks, Fit, read_in_place
from polymargin.estimators.parts import MarginClassifier, PartitionedSet, TrainingSet


def training_set(
    estimator: MarginClassifier,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    costs: Any = None,
    weigh_classes: bool = True,
) -> PartitionedSet:
    """Validate the partitions of `X`, `y`, `sample_weight` and `costs` (n, k), and learn the classes.

    Labels and weights are passed over first. The rows themselves are read and checked when a sum asks for them.
    """
    X = as_rows(X)
    validate_data(estimator, stand_in(X), skip_check_array=True)
    columns = Columns.of(X)
    fit = Fit()
    labelled = [_aligned("y", y, X)]
    if sample_weight is not None:
        labelled.append(_aligned("sample_weight", sample_weight, X))
    priced = [] if costs is None else [_aligned_costs(costs, X)]
    rows, labels = blocks_of([X, *priced, *labelled], fit), blocks_of(labelled, fit)
    partition = rows.spread(list(range(len(rows.parts))))

    counts = labels.reduce(joined, _count_labels, partition)
    classes = _classes_of(counts)
    numbers, totals, lightest = _tabulate(counts, classes)
    factors = np.ones(len(classes))
    if weigh_classes:
        factors = estimator._class_factors(classes, totals.sum(axis=0))
    matrix = resolve_cost_matrix(getattr(estimator, "cost_matrix", None), classes)
    used = np.flatnonzero(numbers.any(axis=1))
    if priced:
        charged = np.array(blocks_of([*priced, *labelled], fit).reduce(joined, _count_charged))
        weighted = int(numbers.sum())
        estimator._warn_of_free_rows(weighted - int(charged.sum()), weighted)
        used = np.flatnonzero(charged)
    sets = rows.map(_checked_rows, partition, columns, classes, factors, matrix, bool(priced))
    sizes = np.array([count.n_rows for count in counts])
    return PartitionedSet(
        sets.restricted(used.tolist()),
        classes,
        matrix,
        numbers[used],
        totals.sum(axis=0) * factors,
        float((lightest * factors).min()),
        (np.cumsum(sizes) - sizes)[used],
        columns.number,
        columns.dtype,
    )


def as_rows(X: Any) -> Any:
    """Return a Dask collection of rows with whole rows in every partition, or raise if it is no such thing."""
    if not hasattr(X, "columns") and getattr(X, "ndim", None) != 2:
        raise TypeError(
            "X must be a Dask array of two dimensions or a Dask DataFrame, got "
            f"{type(X).__module__}.{type(X).__name__}."
        )
    if hasattr(X, "numblocks") and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    return X


def stand_in(X: Any) -> Any:
    """Return no rows of `X`, in memory: they have its columns, which scikit-learn checks."""
    return X._meta if hasattr(X, "columns") else np.empty((0, X.shape[1]))


@dataclass(frozen=True, slots=True)
class Columns:
    """What every partition must have.

    Attributes
    ----------
    names : names of the columns of a DataFrame; None for arrays.
    number : number of columns.
    dtype : single precision if all columns are, otherwise double.
    """

    names: list | None
    number: int
    dtype: np.dtype

    @classmethod
    def of(cls, X: Any) -> "Columns":
        """Return the columns of a Dask array or DataFrame."""
        named = hasattr(X, "columns")
        dtypes = list(X.dtypes) if named else [X.dtype]
        single = all(dtype == np.float32 for dtype in dtypes)
        names = list(X.columns) if named else None
        return cls(
            names, X.shape[1] if names is None else len(names), np.dtype(np.float32 if single else np.float64)
        )

    def check(self, X: Any) -> Any:
        """Return the rows of a partition as a finite array, or raise if their columns are others."""
        if self.names is not None and list(X.columns) != self.names:
            missing = [name for name in self.names if name not in X.columns]
            extra = [name for name in X.columns if name not in self.names]
            raise ValueError(
                f"X must have the columns of the other partitions in their order; {missing} are missing, {extra} "
                "are not among them."
            )
        X = check_array(X, accept_sparse="csr", dtype=self.dtype, ensure_min_samples=0, input_name="X")
        if X.shape[1] != self.number:
            raise ValueError(f"X must have {self.number} columns, as other partitions have, got {X.shape[1]}.")
        check_entries("X", X)
        return X


@contextmanager
def naming(partition: int) -> Iterator[None]:
    """Say of an error in which partition it was found."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"In partition {partition}: {error}") from None


def blocks_of(collections: list, fit: Fit) -> DaskBlocks:
    """Return blocks of the collections' partitions side by side, each a list with one part of every collection."""
    graph: dict[Any, Any] = {}
    keys = []
    for collection in collections:
        if hasattr(collection, "simplify"):
            # a table: optimised by Dask, columns can be other ones, or small partitions become one (2026.8)
            collection = collection.simplify()
        else:
            (collection,) = dask.optimize(collection)
        graph.update(collection.__dask_graph__())
        keys.append(flatten(collection.__dask_keys__()))
    parts, left = read_in_place(graph, list(map(list, zip(*keys, strict=True))))
    return DaskBlocks(parts, left, fit)


def _aligned(name: str, values: Any, X: Any) -> Any:
    """Return `values`, one per row of `X`, with its partitions."""
    known = hasattr(X, "chunks") and not np.isnan(X.chunks[0]).any()
    if not dask.is_dask_collection(values):
        if not known:
            raise TypeError(
                f"{name} must be a Dask array or Series with the partitions of X, whose sizes are not known, got "
                f"{type(values).__name__}."
            )
        values = dask.array.from_array(np.asarray(values), chunks=(X.shape[0],))
    if getattr(values, "ndim", 1) == 2 and hasattr(values, "columns"):
        if len(values.columns) != 1:
            raise ValueError(f"{name} must have one column, got {list(values.columns)}.")
        values = values[values.columns[0]]
    if known and hasattr(values, "chunks") and not np.isnan(values.chunks[0]).any():
        if values.shape[0] != X.shape[0]:
            raise ValueError(f"{name} must have one entry per row of X, {X.shape[0]}, got {values.shape[0]}.")
        return values.rechunk({0: X.chunks[0]})
    if values.npartitions != X.npartitions:
        raise ValueError(
            f"{name} must have as many partitions as X, {X.npartitions}, got {values.npartitions}; those at the "
            "same place belong together."
        )
    return values


def _aligned_costs(costs: Any, X: Any) -> Any:
    """Return the costs of rows with whole rows and the partitions of `X`."""
    if not dask.is_dask_collection(costs):
        table = np.asarray(costs, dtype=np.float64)
        if table.ndim != 2:
            raise ValueError(f"costs must have one row per row of X and one column per class, got {table.shape}.")
        costs = dask.array.from_array(table, chunks=table.shape)
    elif hasattr(costs, "columns"):
        raise TypeError("costs must be a Dask array with a column per class in order, got a Dask DataFrame.")
    elif costs.ndim == 2 and costs.numblocks[1] > 1:
        costs = costs.rechunk({1: -1})
    return _aligned("costs", costs, X)


def _count_charged(priced: list) -> list[int]:
    """Count the rows of a partition that have weight, and costs other than zero."""
    costs, _, *weights = (np.asarray(part) for part in priced)
    charged = costs.any(axis=1) if costs.ndim == 2 else costs != 0
    return [int((charged & (weights[0] > 0) if weights else charged).sum())]


@dataclass(frozen=True, slots=True)
class _LabelCounts:
    """The labels of a partition: its rows; numbers, summed and least weights of those of positive weight."""

    partition: int
    n_rows: int
    labels: NDArray
    numbers: NDArray[np.intp]
    totals: NDArray[np.float64]
    lightest: NDArray[np.float64]


def _count_labels(labelled: list, partition: int) -> list[_LabelCounts]:
    with naming(partition):
        labels, weights = _checked_labels(*labelled)
        used = weights > 0
        found, place = np.unique(labels[used], return_inverse=True)
        numbers = np.bincount(place, minlength=len(found))
        totals = np.bincount(place, weights[used], minlength=len(found)).astype(np.float64)
        lightest = np.full(len(found), np.inf)
        np.minimum.at(lightest, place, weights[used])
        return [_LabelCounts(partition, len(labels), found, numbers, totals, lightest)]


def _checked_labels(y: Any, weights: Any = None) -> tuple[NDArray, NDArray[np.float64]]:
    labels = column_or_1d(y, warn=True)
    if not len(labels):
        return labels, np.zeros(0)
    if labels.dtype.kind == "O" and any(label is None or label != label for label in labels.tolist()):
        raise ValueError("y must hold a label for every row, got missing ones.")
    check_array(labels[:, None], dtype=None, input_name="y")
    check_classification_targets(labels)
    if weights is None:
        return labels, np.ones(len(labels))
    weights = check_array(weights, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weights.shape != labels.shape or (weights < 0).any():
        raise ValueError(
            f"sample_weight must hold a non-negative number for each of the {len(labels)} rows, got shape "
            f"{weights.shape} and least entry {weights.min():g}."
        )
    return labels, weights


def _classes_of(counts: list[_LabelCounts]) -> NDArray:
    """Return the classes of all partitions; labels that cannot be compared are an error."""
    filled = [count for count in counts if len(count.labels)]
    if not filled:
        raise ValueError("X must have at least one row with positive sample_weight, got none.")
    first = filled[0]
    for count in filled:
        if _kind(count.labels) != _kind(first.labels):
            raise ValueError(
                f"In partition {count.partition}: y holds labels of another kind, {count.labels[:3].tolist()}, "
                f"than partition {first.partition}, {first.labels[:3].tolist()}."
            )
    classes = np.unique(np.concatenate([count.labels for count in filled]))
    if len(classes) < 2:
        raise ValueError(
            f"y must hold at least two classes with positive sample_weight, got 1 class: {classes.tolist()}."
        )
    return classes


def _kind(labels: NDArray) -> type:
    return str if isinstance(labels[0], str) else float if labels.dtype.kind in "biuf" else type(labels[0])


def _tabulate(
    counts: list[_LabelCounts], classes: NDArray
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Return numbers of rows, summed and least weights, (partitions, k)."""
    shape = len(counts), len(classes)
    numbers, totals, lightest = np.zeros(shape, dtype=np.intp), np.zeros(shape), np.full(shape, np.inf)
    for at, count in enumerate(counts):
        places = np.searchsorted(classes, count.labels)
        numbers[at, places], totals[at, places], lightest[at, places] = count.numbers, count.totals, count.lightest
    return numbers, totals, lightest


def _checked_rows(
    given: list,
    partition: int,
    columns: Columns,
    classes: NDArray,
    factors: NDArray[np.float64],
    matrix: NDArray[np.float64],
    has_costs: bool,
) -> TrainingSet:
    with naming(partition):
        X, *labelled = given
        costs = labelled.pop(0) if has_costs else None
        X = columns.check(X)
        labels, weights = _checked_labels(*labelled)
        if X.shape[0] != len(labels):
            raise ValueError(f"X and y must have the same number of rows, got {X.shape[0]} and {len(labels)}.")
    n_given, rows = len(weights), np.flatnonzero(weights)
    if len(rows) < n_given:
        X, labels, weights = X[rows], labels[rows], weights[rows]
    codes = np.searchsorted(classes, labels)
    data = TrainingSet(X, codes, classes, weights * factors[codes], matrix, rows)
    if costs is None:
        return data
    with naming(partition):
        return replace(data, row_costs=resolve_row_costs(costs, codes, classes, rows=rows, n_rows=n_given))
