"""A matrix times a few columns, compiled and by BLAS: python -m benchmarks.products [--quick].

CPU seconds of one thread, as ratios of BLAS's better layout (``A @ V`` or ``V.T @ A``) to ours; more is better.
The solvers' matrices are symmetric, so that both are at hand. Then whole solutions with and without it.
"""

import argparse
import time
from collections.abc import Callable
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.common import Table, mixture
from polymargin import MulticategorySVC
from polymargin.gram import products, skinny_product

OPERATIONS = 1e8
"""Multiplications of one measurement, at least."""


def cpu_seconds(work: Callable[[], object], operations: float, repeats: int = 3) -> float:
    """Best CPU time of one call, of some runs of as many calls as there is time for."""
    work()
    calls = max(1, int(OPERATIONS / operations))
    best = np.inf
    for _ in range(repeats):
        began = time.process_time()
        for _ in range(calls):
            work()
        best = min(best, (time.process_time() - began) / calls)
    return best


def single_products(quick: bool) -> None:
    """Multiply matrices of several sizes with several numbers of columns."""
    table = Table(("precision", "n", "k", "ms", "BLAS ms", "ratio"))
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        for n in (1000,) if quick else (500, 1000, 2000, 4000):
            root = rng.normal(size=(n, n))
            matrix = (root + root.T).astype(dtype)
            for k in (3, 10, 26) if quick else (2, 3, 5, 8, 10, 16, 20, 26, 40):
                V = rng.normal(size=(n, k)).astype(dtype)
                transposed = np.ascontiguousarray(V.T)
                ours = cpu_seconds(lambda A=matrix, V=V: skinny_product(A, V), n * n * k)
                theirs = min(
                    cpu_seconds(lambda A=matrix, V=V: A @ V, n * n * k),
                    cpu_seconds(lambda A=matrix, V=transposed: V @ A, n * n * k),
                )
                table.add(
                    **{"precision": np.dtype(dtype).name, "n": n, "k": k, "ms": 1e3 * ours,
                       "BLAS ms": 1e3 * theirs, "ratio": theirs / ours}
                )  # fmt: skip


def whole_solutions() -> None:
    """Fit overlapping classes, which splitting solves, with the compiled product and with BLAS."""
    print()
    table = Table(("n", "k", "seconds", "BLAS", "ratio", "methods"))
    for n, k in ((2000, 10), (4000, 10)):
        X, y = mixture(n, 10, k, separation=1.0)
        seconds = {}
        for compiled in (True, False):
            with patch.object(products, "available", return_value=compiled):
                began = time.process_time()
                model = MulticategorySVC(tol=1e-3).fit(X, y)
                seconds[compiled] = time.process_time() - began
        ours, theirs = seconds[True], seconds[False]
        methods = "+".join(row.method for row in model.trace_.rows)
        table.add(n=n, k=k, seconds=ours, BLAS=theirs, ratio=theirs / ours, methods=methods)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one size, a few seconds")
    quick = parser.parse_args().quick
    with threadpool_limits(1):
        single_products(quick)
        if not quick:
            whole_solutions()


if __name__ == "__main__":
    main()
