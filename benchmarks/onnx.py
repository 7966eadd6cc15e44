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
            X, y = archive["X"].astype(np.int64), archive["y"]
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


def inputs(model: Any, sample: Sample) -> Iterator[tuple[str, float, Any, Any]]:
    """Yield types of rows, the tolerance in their precision, the model that takes them, and rows."""
    columns = [f"x{j}" for j in range(sample.X.shape[1])]
    whole = make_pipeline(sample.scaler, model)
    yield "float32", SINGLE, model, sample.rows.astype(np.float32)
    yield "float64", DOUBLE, model, sample.rows
    yield "integers", DOUBLE, whole, sample.recorded
    yield "frame32", SINGLE, model, pd.DataFrame(sample.rows.astype(np.float32), columns=columns)
    yield "frame64", DOUBLE, model, pd.DataFrame(sample.rows, columns=columns)
    yield "sparse", DOUBLE, model, sparse.csr_array(sample.rows)


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


def show(table: Table, model: str, sample: Sample, found: dict[str, Agreement]) -> None:
    cells = {}
    for kind, agreement in found.items():
        wrong = f" {len(agreement.different)} WRONG" if len(agreement.different) else ""
        cells[kind] = f"{agreement.difference:.0e}{wrong}"
    ties = sorted({int(at) for agreement in found.values() for at in agreement.ties})
    table.add(model=model, data=sample.name, ties=len(ties), **cells)
    if ties:
        print(f"    rows within 1e-6 of a tie: {', '.join(map(str, ties[:12]))}{' ...' if ties[12:] else ''}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="models whose names hold this")
    parser.add_argument("--data", nargs="+", choices=NAMES, default=NAMES, help="some of the data sets")
    markdown_option(parser)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    kinds = ("float32", "float64", "integers", "frame32", "frame64", "sparse")
    table, goals = Table(("model", "data", *kinds, "ties"), width=10, first=32), Goals()
    worst, different, compared = {SINGLE: 0.0, DOUBLE: 0.0}, 0, 0
    for sample in filter(None, map(Sample.of, given.data)):
        for name, machine in machines():
            if given.only not in name:
                continue
            model = machine.fit(sample.X, sample.y)
            found = {}
            for kind, tolerance, whole, rows in inputs(model, sample):
                found[kind] = agreement = compare(whole, to_onnx(whole, rows), rows)
                worst[tolerance] = max(worst[tolerance], agreement.difference)
                different, compared = different + len(agreement.different), compared + agreement.n_rows
            show(table, name, sample, found)
        if given.only in "imputer, scaler, encoder":
            model, X, rows = mixed(sample)
            agreement = compare(model.fit(X, sample.y), to_onnx(model, X), rows)
            worst[SINGLE] = max(worst[SINGLE], agreement.difference)
            different, compared = different + len(agreement.different), compared + agreement.n_rows
            show(table, "imputer, scaler, encoder", sample, {"frame32": agreement})
    goals.at_most(f"labels that differ, of {compared:,}, ties aside", different, 0)
    goals.at_most("largest difference of a score, single precision", worst[SINGLE], SINGLE)
    goals.at_most("largest difference of a score, double precision", worst[DOUBLE], DOUBLE)
    goals.report()
    table.write(given.markdown, "python -m benchmarks.onnx", goals)
    sys.exit(0 if goals.hold else 1)


if __name__ == "__main__":
    main()
