"""ProximalSVC on Dask, from a Parquet directory that this benchmark writes, on one and on two worker processes.

Shown are rows per second, peak memory of a worker, bytes that reach the client (from the sockets' own counters,
at two numbers of rows), parallel efficiency; and beside it scikit-learn's SGDClassifier, fed with the same chunks.

    python -m benchmarks.distributed [--quick] [--rows N]
"""

import argparse
import contextlib
import logging
import multiprocessing
import os
import socket
import struct
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import dask.dataframe as dd  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402
from sklearn.linear_model import SGDClassifier  # noqa: E402

from benchmarks.common import Goals, Table  # noqa: E402
from polymargin import ProximalSVC  # noqa: E402

FEATURES, CLASSES, CHUNK = 50, 10, 500_000
COLUMNS = [f"x{at}" for at in range(FEATURES)]
BYTES_RECEIVED = 128
"""Offset of `tcpi_bytes_received` in Linux's struct tcp_info."""


def chunk_of(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels: Gaussian classes whose centres are the same in every chunk."""
    centres = 0.4 * np.random.default_rng(0).normal(size=(CLASSES, FEATURES)).astype(np.float32)
    rng = np.random.default_rng([1, seed])
    y = rng.integers(0, CLASSES, n)
    X = rng.standard_normal((n, FEATURES), dtype=np.float32)
    X += centres[y]
    return X, y


def write(directory: Path, n_rows: int, chunk: int) -> None:
    """Write one uncompressed Parquet file a chunk; noise does not compress."""
    for part, first in enumerate(range(0, n_rows, chunk)):
        X, y = chunk_of(part, min(chunk, n_rows - first))
        columns = [pa.array(column) for column in np.asfortranarray(X).T]
        table = pa.table([*columns, pa.array(y)], names=[*COLUMNS, "label"])
        pq.write_table(table, directory / f"{part:05}.parquet", compression=None, use_dictionary=False)


def _serve(n_workers: int, connection) -> None:
    """Run a cluster in a process of its own, so that the sockets of this one are the client's alone."""
    quiet = logging.CRITICAL
    with LocalCluster(
        n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=quiet
    ) as cluster:
        connection.send(cluster.scheduler_address)
        connection.recv()


@contextlib.contextmanager
def cluster(n_workers: int) -> Iterator[Client]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(n_workers, theirs))
    process.start()
    with Client(ours.recv()) as client:
        client.wait_for_workers(n_workers)
        client.run(_loaded)
        yield client
    ours.send("stop")
    process.join()


def _loaded() -> None:
    """Import on a worker what a fit needs there, so that this is not timed."""
    import dask.dataframe  # noqa: F401

    import polymargin.distributed  # noqa: F401


def _peak_megabytes() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def bytes_received() -> int:
    """Bytes that all open TCP connections of this process have received so far."""
    total = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if "socket" not in os.readlink(f"/proc/self/fd/{name}"):
                continue
            with socket.socket(fileno=os.dup(int(name))) as connection:
                if connection.family in (socket.AF_INET, socket.AF_INET6):
                    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, BYTES_RECEIVED + 8)
                    total += struct.unpack_from("Q", info, BYTES_RECEIVED)[0]
    return total


def fit(directory: Path) -> ProximalSVC:
    table = dd.read_parquet(directory)
    return ProximalSVC(C=1.0).fit(table[COLUMNS], table["label"])


def measured(directory: Path, n_rows: int, n_workers: int) -> dict:
    with cluster(n_workers) as client:
        before, start = bytes_received(), time.perf_counter()
        model = fit(directory)
        seconds = time.perf_counter() - start
        received = bytes_received() - before
        peak = max(client.run(_peak_megabytes).values())
    X, y = chunk_of(10**6, 100_000)
    return {
        "machine": "ProximalSVC",
        "rows": n_rows,
        "workers": n_workers,
        "seconds": seconds,
        "rows/s": n_rows / seconds,
        "peak MB": peak,
        "to client kB": received / 1e3,
        "accuracy": float(np.mean(model.predict(pd.DataFrame(X, columns=COLUMNS)) == y)),
    }


def incremental(directory: Path, n_rows: int) -> dict:
    """One pass of SGDClassifier over the same files in this process."""
    model, start = SGDClassifier(), time.perf_counter()
    for path in sorted(directory.glob("*.parquet")):
        frame = pq.read_table(path)
        X = np.column_stack([frame[name].to_numpy() for name in COLUMNS])
        model.partial_fit(X, frame["label"].to_numpy(), classes=np.arange(CLASSES))
    seconds = time.perf_counter() - start
    X, y = chunk_of(10**6, 100_000)
    return {
        "machine": "SGDClassifier",
        "rows": n_rows,
        "workers": "-",
        "seconds": seconds,
        "rows/s": n_rows / seconds,
        "accuracy": float(model.score(X, y)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a hundredth of the rows")
    parser.add_argument("--rows", type=int, default=20_000_000)
    options = parser.parse_args()
    n_rows = options.rows // 100 if options.quick else options.rows
    chunk = min(CHUNK, n_rows // 8)
    columns = ("machine", "rows", "workers", "seconds", "rows/s", "peak MB", "to client kB", "accuracy")
    table, goals = Table(columns, width=13), Goals()
    with tempfile.TemporaryDirectory() as name:
        directory, half = Path(name, "all"), Path(name, "half")
        directory.mkdir()
        half.mkdir()
        start = time.perf_counter()
        write(directory, n_rows, chunk)
        print(f"written: {n_rows} x {FEATURES}, k = {CLASSES}, {time.perf_counter() - start:.0f} s", flush=True)
        for path in directory.glob("*[02468].parquet"):
            (half / path.name).hardlink_to(path)
        table.add(**(one := measured(directory, n_rows, 1)))
        table.add(**(two := measured(directory, n_rows, 2)))
        table.add(**(fewer := measured(half, n_rows // 2, 2)))
        table.add(**incremental(directory, n_rows))
    print(f"parallel efficiency on two workers: {one['seconds'] / two['seconds'] / 2:.2f}")
    goals.at_most("peak memory of a worker, GB", max(one["peak MB"], two["peak MB"]) / 1e3, 1.5)
    growth = two["to client kB"] / fewer["to client kB"] - 1.0
    goals.at_most("growth of the bytes to the client when rows and partitions double", growth, 0.1)
    goals.report()


if __name__ == "__main__":
    main()
