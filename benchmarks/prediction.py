"""Predictions of one row and of ten thousand: ours, SVC's and LogisticRegression's, and all three in onnxruntime.

python -m benchmarks.prediction [--quick] [--markdown FILE]

CPU times of one process with one thread, the best of several, as ratios to that of SVC's `predict`.
"""

import argparse
import time
import warnings
from functools import partial

import numpy as np
import onnxruntime
import skl2onnx
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.common import Goals, Table, markdown_option, mixture, real_data
from polymargin import MulticategorySVC
from polymargin.export import to_onnx

SIZES = {1: 300, 10_000: 1}
"""Rows at once, and calls that are timed together."""


def digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return X / 16, y


DATA = {
    "digits": digits,
    "pendigits": lambda: real_data("pendigits"),
    "satimage": lambda: real_data("satimage"),
    "mixture": lambda: mixture(3000, 20, 5, separation=2.0),
}


def cpu_seconds(works, calls, repeats):
    """Best CPU time of a call of each, measured in turns so that other processes disturb all alike."""
    best = dict.fromkeys(works, np.inf)
    for _ in range(repeats):
        for name, work in works.items():
            start = time.process_time()
            for _ in range(calls):
                work()
            best[name] = min(best[name], (time.process_time() - start) / calls)
    return best


def session_of(graph):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda rows: session.run(None, {"X": rows})


def measure(name, X, y, table, goals, repeats):
    machines = {
        "ours": MulticategorySVC(kernel="rbf", tol=1e-3).fit(X, y),
        "SVC": SVC().fit(X, y),
        "LR": LogisticRegression(max_iter=1000).fit(X, y),
    }
    rows = np.resize(X, (max(SIZES), X.shape[1]))
    graphs = {
        "ours, onnx": to_onnx(machines["ours"], X, precision="double"),
        "ours, onnx32": to_onnx(machines["ours"], X, precision="single"),
        "SVC, onnx32": skl2onnx.to_onnx(machines["SVC"], X[:1].astype(np.float32)),
        "LR, onnx32": skl2onnx.to_onnx(machines["LR"], X[:1].astype(np.float32), options={"zipmap": False}),
    }
    runs = {key: session_of(graph) for key, graph in graphs.items()}
    for size, calls in SIZES.items():
        part, single = rows[:size], rows[:size].astype(np.float32)
        works = {key: partial(machine.predict, part) for key, machine in machines.items()}
        works |= {key: partial(run, single if "32" in key else part) for key, run in runs.items()}
        seconds = cpu_seconds(works, calls, repeats)
        ratios = {key: seconds[key] / seconds["SVC"] for key in works}
        points = f"{len(machines['ours'].support_)}/{len(machines['SVC'].support_)}"
        table.add(data=name, points=points, rows=size, **{"SVC ms": 1e3 * seconds["SVC"]}, **ratios)
        goals.at_most(f"{name}, {size} rows, ours to SVC", ratios["ours"], 1.0 if size == 1 else 0.5)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the data that scikit-learn has")
    markdown_option(parser)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    columns = ("ours", "LR", "ours, onnx", "ours, onnx32", "SVC, onnx32", "LR, onnx32")
    table, goals = Table(("data", "points", "rows", "SVC ms", *columns), width=13), Goals()
    with threadpool_limits(1):
        for name, load in DATA.items():
            data = load() if not given.quick or name == "digits" else None
            if data is None:
                print(f"{name}: left out")
                continue
            X, y = data
            measure(name, X[:3000], y[:3000], table, goals, repeats=5)
    goals.report()
    table.write(given.markdown, "python -m benchmarks.prediction", goals)


if __name__ == "__main__":
    main()
