"""What is read within the tasks that use it, and what is left to the scheduler."""

import dask
import dask.array as da
import numpy as np
import pytest
from dask.core import flatten

from polymargin.distributed._blocks import DaskBlocks, Fit, read_in_place

pytestmark = pytest.mark.usefixtures("threads")


def graph_and_keys(collection):
    (collection,) = dask.optimize(collection)
    return dict(collection.__dask_graph__()), list(flatten(collection.__dask_keys__()))


def loaded(part):
    return da.from_delayed(dask.delayed(np.full)((4, 2), float(part)), (4, 2), dtype=float)


def total(collection):
    graph, keys = graph_and_keys(collection)
    (parts,) = read_in_place([graph], [keys])
    blocks = DaskBlocks(parts, graph, Fit())
    return keys, parts, graph, blocks.reduce(np.add, np.sum)


def test_partitions_are_read_by_the_tasks_that_use_them():
    keys, parts, graph, answer = total(da.concatenate([loaded(part) for part in range(3)]))
    assert not graph
    assert not set(map(str, keys)) & set(map(str, parts))
    assert answer == 8.0 * (0 + 1 + 2)


def test_what_several_partitions_use_is_computed_once():
    shared = loaded(3)
    keys, parts, graph, answer = total(da.concatenate([shared + 0.0, shared + 1.0]))
    assert parts == keys
    assert graph
    assert answer == 8.0 * (3 + 4)


def test_what_two_collections_use_is_computed_once():
    shared = loaded(3)
    (first, second), (keys, others) = zip(*map(graph_and_keys, (shared, shared)), strict=True)
    assert read_in_place([first, second], [keys, others]) == [keys, others]


def test_data_at_hand_stay_where_they_are():
    keys, parts, _, answer = total(da.from_array(np.ones((6, 2)), chunks=(3, 2)).persist())
    assert parts == keys
    assert answer == 12.0
