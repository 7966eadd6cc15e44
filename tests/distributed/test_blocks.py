"""What is read within the tasks that use it, and what is left to the scheduler."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from polymargin.distributed._blocks import Fit
from polymargin.distributed._input import blocks_of

pytestmark = pytest.mark.usefixtures("threads")


def loaded(part):
    return da.from_delayed(dask.delayed(np.full)((4, 2), float(part)), (4, 2), dtype=float)


def test_partitions_are_read_by_the_tasks_that_use_them():
    blocks = blocks_of([da.concatenate([loaded(part) for part in range(3)])], Fit())
    assert not blocks.graph
    assert blocks.reduce(np.add, np.sum) == 8.0 * (0 + 1 + 2)


def test_rows_and_labels_of_one_table_are_read_once():
    reads = []

    def read(part):
        reads.append(part)
        return pd.DataFrame({"a": [1.0 + part, 2.0], "b": [0.0, 1.0], "label": [0, 1]})

    table = dd.from_map(read, range(3), meta=pd.DataFrame({"a": [1.0], "b": [1.0], "label": [1]}))
    blocks = blocks_of([table[["a", "b"]], table["label"]], Fit())
    assert not blocks.graph
    sums = blocks.reduce(np.add, lambda block: np.array([block[0].to_numpy().sum(), block[1].sum()]))
    np.testing.assert_array_equal(sums, [3 * 4.0 + 3.0, 3.0])
    assert sorted(reads) == [0, 1, 2]


def test_what_several_partitions_use_is_left_to_the_scheduler():
    shared = loaded(3)
    blocks = blocks_of([da.concatenate([shared + 0.0, shared + 1.0])], Fit())
    assert all(isinstance(part, list) for part in blocks.parts)
    assert blocks.reduce(np.add, np.sum) == 8.0 * (3 + 4)


def test_data_at_hand_stay_where_they_are():
    blocks = blocks_of([da.from_array(np.ones((6, 2)), chunks=(3, 2)).persist()], Fit())
    assert all(isinstance(part, list) for part in blocks.parts)
    assert blocks.reduce(np.add, np.sum) == 12.0
