"""Kernel machines made smaller: points, accuracy, and the certificate beside the largest change on rows not seen.

python -m benchmarks.compression [--rows 1000] [--markdown FILE]
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.common import Goals, Table, markdown_option, mixture, real_data
from benchmarks.prediction import digits
from polymargin import MulticategorySVC, compress

DATA = {
    "digits": digits,
    "pendigits": lambda: real_data("pendigits"),
    "satimage": lambda: real_data("satimage"),
    "segment": lambda: real_data("segment"),
    "waveform": lambda: real_data("waveform"),
    "mixture": lambda: mixture(3000, 20, 5, separation=2.0),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000, help="training rows at most")
    markdown_option(parser)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    sizes, changes = ("points", "before"), ("certificate", "realised", "decisions", "accuracy", "change")
    table, goals = Table(("data", "max_loss", *sizes, *changes, "time/fit"), width=12), Goals()
    for name, load in DATA.items():
        data = load()
        if data is None:
            print(f"{name}: left out")
            continue
        X, X_test, y, y_test = train_test_split(*data, train_size=given.rows, stratify=data[1], random_state=0)
        start = time.process_time()
        model = MulticategorySVC(kernel="rbf", tol=1e-4).fit(X, y)
        fitted = time.process_time() - start
        for max_loss in (1.0, 0.3, 0.1):
            start = time.process_time()
            small = compress(model, max_loss=max_loss, X=X_test)
            seconds = time.process_time() - start
            accuracies = [float(np.mean(one.predict(X_test) == y_test)) for one in (model, small.model)]
            table.add(
                data=name,
                max_loss=max_loss,
                points=small.n_points,
                before=small.n_points_before,
                certificate=small.bound,
                realised=small.largest_change,
                decisions=f"{small.n_changed}/{small.n_rows}",
                accuracy=accuracies[0],
                change=accuracies[1] - accuracies[0],
                **{"time/fit": seconds / fitted},
            )
            realised = small.largest_change / small.bound
            goals.at_most(f"{name}, max_loss {max_loss}, realised to certificate", realised, 1.0)
    goals.report()
    table.write(given.markdown, "python -m benchmarks.compression", goals)


if __name__ == "__main__":
    main()
