"""Every classifier in onnxruntime beside itself: labels and scores of 1,000 rows of three real data sets.

python -m benchmarks.onnx [--only TEXT] [--markdown FILE]

Rows come as arrays, frames and sparse matrices, in single and double precision, and as the integers that they were
recorded as. Labels must be equal, but for rows where a decision hangs on less than 1e-6, which are counted and
named; scores, probabilities included, may differ by 1e-5 in single precision and 1e-10 in double, absolutely.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from benchmarks.common import DATA, Goals, Table, markdown_option
from polymargin import (
    MarginSearch,
    MulticategorySVC,
    NewtonRefinement,
    PredictionSetClassifier,
    ProbabilityClassifier,
    ProximalSVC,
    ProximalSVCCV,
    RejectOptionClassifier,
    RobustSVC,
    SharedStructureSearch,
    SharedStructureSVC,
    SparseSVC,
    SparseSVCCV,
    TraceNormSVC,
)
from polymargin.export import Agreement, compare, to_onnx

NAMES = ("covtype", "pendigits", "satimage")
"""Data sets: forests, digits and soils, all recorded as integers."""

TRAINING, ROWS = 200, 1000
KERNELS = ("linear", "rbf", "poly", "sigmoid", "laplacian")
SINGLE, DOUBLE = 1e-5, 1e-10
TOLERANCES = {
    "float32": SINGLE,
    "float64": DOUBLE,
    "integers": DOUBLE,
    "frame32": SINGLE,
    "frame64": DOUBLE,
    "sparse": DOUBLE,
}
"""Types of rows, and how far scores may differ in their precision."""

MIXED = "imputer, scaler, encoder"


@dataclass(frozen=True, slots=True)
class Sample:
    """Training rows, standardised, and the rows to compare on, standardised and as recorded."""

    name: str
    X: np.ndarray
    y: np.ndarray
    rows: np.ndarray
    recorded: np.ndarray
    scaler: StandardScaler

    @classmethod
    def of(cls, name: str) -> "Sample | None":
        path = DATA / f"{name}.npz"
        if not path.exists():
            return None
        with np.load(path, allow_pickle=False) as archive:
            part = archive["train_idx"]
            X, y = archive["X"][part].astype(np.int64), archive["y"][part]
        X, rows, y, _ = train_test_split(X, y, train_size=TRAINING, test_size=ROWS, stratify=y, random_state=0)
        scaler = StandardScaler().fit(X)
        return cls(name, scaler.transform(X), y, scaler.transform(rows), rows, scaler)


def machines() -> Iterator[tuple[str, Any]]:
    """Yield all classifiers whose rows are numbers, with their names."""
    for machine in (MulticategorySVC(), ProximalSVC(), SharedStructureSVC(), TraceNormSVC(), RobustSVC()):
        for kernel in KERNELS:
            given = {"kernel": kernel} | ({"gamma": 0.001} if kernel == "sigmoid" else {})
            yield f"{type(machine).__name__}, {kernel}", clone(machine).set_params(**given)
        yield (
            f"{type(machine).__name__}, landmarks",
            clone(machine).set_params(kernel="rbf", landmarks=50, random_state=0),
        )
    for loss in ("weston", "crammer"):
        yield f"MulticategorySVC, {loss}", MulticategorySVC(loss=loss)
    for machine in (SharedStructureSVC, TraceNormSVC):
        yield f"{machine.__name__}, pairs", machine(scheme="ovo", kernel="rbf", landmarks=50, random_state=0)
    yield "SparseSVC", SparseSVC(C=0.1)
    yield "MarginSearch", MarginSearch(Cs=[0.1, 1.0], gammas=[0.1])
    yield "ProximalSVCCV", ProximalSVCCV(Cs=[0.1, 1.0])
    yield "SparseSVCCV", SparseSVCCV(n_Cs=3, cv=2)
    yield "SharedStructureSearch", SharedStructureSearch(Cs=[0.1], penalty_fractions=[1e-3], cv=2)
    yield "GridSearchCV", GridSearchCV(ProximalSVC(kernel="rbf"), {"C": [1.0, 10.0]}, cv=2)
    yield "NewtonRefinement", NewtonRefinement(ProximalSVC(kernel="rbf"))
    yield "NewtonRefinement, LinearSVC", NewtonRefinement(LinearSVC())
    yield "RejectOptionClassifier", RejectOptionClassifier(MulticategorySVC(), quantile=0.8)
    yield "RejectOptionClassifier, Ridge", RejectOptionClassifier(RidgeClassifier(), coverage=0.8)
    for method in ("temperature", "vector", "matrix", "sigmoid", "isotonic"):
        yield f"ProbabilityClassifier, {method}", ProbabilityClassifier(ProximalSVC(kernel="rbf"), method=method)
    for misfit in ("lac", "aps", "raps"):
        yield (
            f"PredictionSetClassifier, {misfit}",
            PredictionSetClassifier(ProximalSVC(kernel="rbf"), misfit=misfit),
        )
    yield "PredictionSetClassifier, folds", PredictionSetClassifier(ProximalSVC(kernel="rbf"), cv=3)


def inputs(model: Any, sample: Sample) -> Iterator[tuple[str, Any, Any]]:
    """Yield types of rows, the model that takes them, and rows."""
    columns = [f"x{j}" for j in range(sample.X.shape[1])]
    whole = make_pipeline(sample.scaler, model)
    yield "float32", model, sample.rows.astype(np.float32)
    yield "float64", model, sample.rows
    yield "integers", whole, sample.recorded
    yield "frame32", model, pd.DataFrame(sample.rows.astype(np.float32), columns=columns)
    yield "frame64", model, pd.DataFrame(sample.rows, columns=columns)
    yield "sparse", model, sparse.csr_array(sample.rows)


def mixed(sample: Sample) -> tuple[Any, pd.DataFrame, np.ndarray]:
    """Return a model of numbers with holes and of categories, with rows to compare on.

    The first two columns lack every tenth entry; the third, cut at its quartiles, is text.
    """

    def frame(rows: np.ndarray) -> pd.DataFrame:
        table = pd.DataFrame(rows.astype(np.float32), columns=[f"x{j}" for j in range(rows.shape[1])])
        table.iloc[::10, :2] = np.nan
        cuts = np.quantile(sample.X[:, 2], [0.25, 0.5, 0.75])
        table["x2"] = np.array(["low", "lower", "higher", "high"])[np.searchsorted(cuts, rows[:, 2])]
        return table

    numbers = [f"x{j}" for j in range(sample.X.shape[1]) if j != 2]
    steps = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers), (OneHotEncoder(), ["x2"])
    )
    return make_pipeline(steps, MulticategorySVC()), frame(sample.X), frame(sample.rows)


def compared(sample: Sample, only: str) -> Iterator[tuple[str, dict[str, Agreement]]]:
    """Yield names of the models, fitted to the sample, and how their graphs agree with them by type of rows."""
    for name, machine in machines():
        if only in name:
            model = machine.fit(sample.X, sample.y)
            yield (
                name,
                {kind: compare(whole, to_onnx(whole, rows), rows) for kind, whole, rows in inputs(model, sample)},
            )
    if only in MIXED:
        model, X, rows = mixed(sample)
        yield MIXED, {"frame32": compare(model.fit(X, sample.y), to_onnx(model, X), rows)}


def summary(found: dict[str, list[Agreement]]) -> dict[str, str | int]:
    """Return the largest differences by type of rows, labels that differ, and how many rows are ties."""
    cells: dict[str, str | int] = {}
    for kind, agreements in found.items():
        wrong = sum(len(agreement.different) for agreement in agreements)
        largest = max(agreement.difference for agreement in agreements)
        cells[kind] = f"{largest:.0e}" + (f" {wrong} WRONG" if wrong else "")
    of_kinds = [[len(agreement.ties) for agreement in agreements] for agreements in found.values()]
    return cells | {"ties": max(map(sum, of_kinds))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="models whose names hold this")
    parser.add_argument("--data", nargs="+", choices=NAMES, default=NAMES, help="some of the data sets")
    markdown_option(parser)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    by_data, by_model = Table(("model", "data", *TOLERANCES, "ties"), width=10, first=32), {}
    for sample in filter(None, map(Sample.of, given.data)):
        for name, found in compared(sample, given.only):
            by_data.add(model=name, data=sample.name, **summary({kind: [one] for kind, one in found.items()}))
            ties = sorted({int(at) for agreement in found.values() for at in agreement.ties})
            if ties:
                print(f"    within 1e-6 of a tie: rows {', '.join(map(str, ties))}")
            for kind, agreement in found.items():
                by_model.setdefault(name, {}).setdefault(kind, []).append(agreement)
    print("\nthe worst over the data sets")
    table, goals = Table(("model", *TOLERANCES, "ties"), width=10, first=32), Goals()
    for name, found in by_model.items():
        table.add(model=name, **summary(found))
    everything = [(kind, one) for found in by_model.values() for kind, group in found.items() for one in group]
    n_rows, wrong = (
        sum(part) for part in zip(*((one.n_rows, len(one.different)) for _, one in everything), strict=True)
    )
    goals.at_most(f"labels and sets that differ, of {n_rows:,}, ties aside", wrong, 0)
    for precision, tolerance in (("single", SINGLE), ("double", DOUBLE)):
        largest = max((one.difference for kind, one in everything if TOLERANCES[kind] == tolerance), default=0.0)
        goals.at_most(f"largest difference of a score, {precision} precision", largest, tolerance)
    goals.report()
    table.write(given.markdown, "python -m benchmarks.onnx", goals)
    sys.exit(0 if goals.hold else 1)


if __name__ == "__main__":
    main()
