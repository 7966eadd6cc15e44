"""ProximalSVC beside a bare Gram matrix, and beside least-squares and linear classifiers.

python -m benchmarks.proximal [--quick]
"""

import argparse
import subprocess
import sys

import numpy as np
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

from benchmarks.common import Goals, Table, mixture, peak_megabytes, real_data, seconds_of
from polymargin import ProximalSVC, proximal_path

CHOOSING_ROWS = 40_000
"""Training rows of covtype on which penalty and balance are chosen."""


def linear_in_one_pass(goals: Goals, n: int) -> None:
    """(a) One pass over the rows, at about the cost of the bare Gram matrix."""
    print(f"\n(a) linear, {n} x 50, 10 classes, double precision")
    X, y = mixture(n, 50, 10, separation=1.0)
    gram, _ = seconds_of(lambda: X.T @ X, repeats=20)
    table = Table(("fit", "seconds", "ratio", "accuracy"), width=22)
    table.add(fit="X.T @ X", seconds=gram, ratio=1.0)
    rivals = {
        "balanced": ProximalSVC(refine=False),
        "balanced and refined": ProximalSVC(),
        "RidgeClassifier": RidgeClassifier(),
        "LDA": LinearDiscriminantAnalysis(),
        "LinearSVC": LinearSVC(max_iter=20),
    }
    for name, model in rivals.items():
        slow = name in ("LDA", "LinearSVC")
        seconds, fitted = seconds_of(lambda model=model: model.fit(X, y), repeats=1 if slow else 20)
        ratio = seconds / gram
        table.add(fit=name, seconds=seconds, ratio=ratio, accuracy=float(fitted.score(X[::10], y[::10])))
        if name == "balanced":
            goals.at_most("(a) balanced fit / bare X.T @ X", ratio, 1.6)
        if name == "balanced and refined":
            goals.at_most("(a) balanced and refined fit / bare X.T @ X", ratio, 1.6)


def covertype(quick: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels of covtype, or a mixture of its shape."""
    data = real_data("covtype")
    if data is None:
        print("covtype.npz is absent: a mixture of its shape instead")
        data = mixture(581_012, 54, 7, separation=1.0)
    X, y = data
    rows = np.random.default_rng(0).permutation(len(X))[: 40_000 if quick else None]
    return X[rows], y[rows]


def covertype_kernels(goals: Goals, quick: bool) -> None:
    """(b) Covertype, linear and with a reduced Gaussian kernel, each fit in a fresh process to see its memory."""
    n_landmarks = 200 if quick else 1000
    print(f"\n(b) covtype, linear and rbf with {n_landmarks} landmarks; a fifth of the rows is for testing")
    table = Table(("fit", "seconds", "accuracy", "peak MB"), width=26)
    rows = {}
    for name in ("linear", "rbf", "Nystroem+RidgeClassifier", "Nystroem+LinearSVC"):
        command = [sys.executable, "-m", "benchmarks.proximal", "--covertype", name]
        answer = subprocess.run(command + ["--quick"] * quick, capture_output=True, text=True, check=True).stdout
        seconds, accuracy, peak = map(float, answer.split()[-3:])
        rows[name] = (seconds, accuracy)
        table.add(fit=name, seconds=seconds, accuracy=accuracy, **{"peak MB": peak})
    rival = rows["Nystroem+RidgeClassifier"]
    goals.at_most("(b) rbf / Nystroem+RidgeClassifier, seconds", rows["rbf"][0] / rival[0], 1.3)
    goals.at_most("(b) accuracy lost to Nystroem+RidgeClassifier", max(0.0, rival[1] - rows["rbf"][1]), 0.0)


def covertype_fit(name: str, quick: bool) -> None:
    """Fit one machine to covtype and print seconds, accuracy and peak memory."""
    n_landmarks = 200 if quick else 1000
    X, y = covertype(quick)
    cut = 4 * len(X) // 5
    gamma = 1.0 / X.shape[1]
    nystroem = Nystroem(gamma=gamma, n_components=n_landmarks, random_state=0)
    strengths = [
        {"balance": [True], "C": 2.0 ** np.arange(16, 41, 6)},
        {"balance": [False], "C": 2.0 ** np.arange(0, 25, 6)},
    ]
    model, grid = {
        "linear": (ProximalSVC(), strengths),
        "rbf": (
            ProximalSVC(
                kernel="rbf", gamma=gamma, landmarks=n_landmarks, landmark_method="kmeans", random_state=0
            ),
            strengths,
        ),
        "Nystroem+RidgeClassifier": (
            make_pipeline(nystroem, RidgeClassifier()),
            {
                "ridgeclassifier__alpha": 10.0 ** np.arange(-6, 3, 2),
                "ridgeclassifier__class_weight": [None, "balanced"],
            },
        ),
        "Nystroem+LinearSVC": (
            make_pipeline(nystroem, LinearSVC(max_iter=20)),
            {"linearsvc__C": 10.0 ** np.arange(-2, 2), "linearsvc__class_weight": [None, "balanced"]},
        ),
    }[name]
    # the strength of the penalty, and whether to balance the classes, are chosen on training rows alone, a sample
    # of them; the time of this does not count
    sample, split = slice(0, min(cut, CHOOSING_ROWS)), ShuffleSplit(1, test_size=0.25, random_state=0)
    chosen = GridSearchCV(model, grid, cv=split, refit=False).fit(X[sample], y[sample]).best_params_
    if chosen.get("balance"):
        # balancing makes the weights of a class sum to one: of more rows C has to be larger for each to weigh the
        # same, as they do in the rivals
        chosen["C"] *= cut / (0.75 * (sample.stop - sample.start))
    model = clone(model).set_params(**chosen)
    seconds, _ = seconds_of(lambda: model.fit(X[:cut], y[:cut]), repeats=1)
    peak = peak_megabytes()
    print(chosen)
    print(seconds, model.score(X[cut:], y[cut:]), peak)


def path_of_C(goals: Goals, quick: bool) -> None:
    """(c) 36 values of C from one pass and one decomposition per class."""
    n = 20_000 if quick else 100_000
    print(f"\n(c) a path of 36 values of C, {n} x 200, 10 classes")
    X, y = mixture(n, 200, 10, separation=0.5)
    model = ProximalSVC(refine=False)
    Cs = 2.0 ** np.arange(36)
    fit, _ = seconds_of(lambda: model.fit(X, y), repeats=5)
    path, _ = seconds_of(lambda: proximal_path(model, X, y, Cs), repeats=3)
    fits, _ = seconds_of(lambda: [model.set_params(C=C).fit(X, y) for C in Cs], repeats=1)
    table = Table(("what", "seconds", "fits"))
    for what, seconds in (("one fit", fit), ("path", path), ("36 fits", fits)):
        table.add(what=what, seconds=seconds, fits=seconds / fit)
    goals.at_most("(c) path / one fit", path / fit, 3.0)
    goals.at_most("(c) path / 36 fits", path / fits, 0.1)


def stream(goals: Goals, quick: bool) -> None:
    """(d) Ten million rows in chunks, in a fresh process to see its memory."""
    n = 1_000_000 if quick else 10_000_000
    print(f"\n(d) {n} x 50 through partial_fit in chunks of 100,000")
    command = [sys.executable, "-m", "benchmarks.proximal", "--stream", str(n)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    seconds, peak = map(float, answer.split()[-2:])
    print(f"{seconds:.1f} s with the generation of the rows, peak {peak:.0f} MB")
    goals.at_most("(d) peak megabytes", peak, 1000.0)


def stream_fit(n: int) -> None:
    def run() -> ProximalSVC:
        model, rng = ProximalSVC(), np.random.default_rng(0)
        centres = rng.normal(size=(10, 50))
        for _ in range(n // 100_000):
            y = rng.integers(0, 10, 100_000)
            model.partial_fit(centres[y] + rng.standard_normal((100_000, 50)), y, classes=np.arange(10))
        return model

    seconds, _ = seconds_of(run, repeats=1)
    print(seconds, peak_megabytes())


def one_from_rest(quick: bool) -> None:
    """Compare with the paper's rival, one-from-rest quadratic programs, which are scikit-learn's SVC."""
    n = 1000 if quick else 4000
    print(f"\nOne-from-rest quadratic programs (OFRQP) beside the proximal machine, {n} x 16, 10 classes")
    X, y = mixture(2 * n, 16, 10, separation=1.2)
    table = Table(("machine", "seconds", "accuracy"), width=24)
    machines = {
        "proximal, linear": ProximalSVC(),
        "OFRQP, linear": OneVsRestClassifier(SVC(kernel="linear")),
        "proximal, rbf, 15 %": ProximalSVC(C=1000.0, kernel="rbf", landmarks=0.15, random_state=0),
        "OFRQP, rbf": OneVsRestClassifier(SVC()),
    }
    for name, model in machines.items():
        seconds, fitted = seconds_of(lambda model=model: model.fit(X[:n], y[:n]), repeats=1)
        table.add(machine=name, seconds=seconds, accuracy=float(fitted.score(X[n:], y[n:])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller data")
    parser.add_argument("--part", choices=("a", "b", "c", "d", "rival"), help="only one part")
    parser.add_argument("--covertype", help=argparse.SUPPRESS)
    parser.add_argument("--stream", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.covertype:
        return covertype_fit(arguments.covertype, arguments.quick)
    if arguments.stream:
        return stream_fit(arguments.stream)
    print(f"{_openmp_effective_n_threads()} thread(s)")
    goals = Goals()
    parts = {
        "a": lambda: linear_in_one_pass(goals, 100_000 if arguments.quick else 1_000_000),
        "b": lambda: covertype_kernels(goals, arguments.quick),
        "c": lambda: path_of_C(goals, arguments.quick),
        "d": lambda: stream(goals, arguments.quick),
        "rival": lambda: one_from_rest(arguments.quick),
    }
    for name, run in parts.items():
        if arguments.part in (None, name):
            run()
    print()
    goals.report()
    return None


if __name__ == "__main__":
    main()
