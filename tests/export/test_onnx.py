"""Every estimator and kernel through onnxruntime: the labels and the scores of the model itself."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

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

onnx = pytest.importorskip("onnx", reason="the extra [onnx] is not installed")
ort = pytest.importorskip("onnxruntime", reason="the extra [onnx] is not installed")

import skl2onnx  # noqa: E402

from polymargin.export import compare, to_onnx  # noqa: E402
from tests.simulate import blobs  # noqa: E402

KERNELS = ("linear", "rbf", "poly", "sigmoid", "laplacian")
KERNEL_MACHINES = (
    MulticategorySVC(),
    ProximalSVC(),
    SharedStructureSVC(),
    TraceNormSVC(),
    RobustSVC(),
)
PRECISIONS = ("single", "double")


@cache
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:150] / 16, y[:150], X[150:1150] / 16


@cache
def blob_rows(n_classes=3, shift=0.0):
    """Blobs of text labels; with a shift far from the origin, where distances cancel in single precision."""
    X, y = blobs(np.random.default_rng(n_classes), 1120, 6, n_classes)
    return X[:120] + shift, np.array(["ash", "beech", "cedar", "date", "elm"])[y[:120]], X[120:] + shift


DATA = {"digits": digits, "three blobs": blob_rows, "two blobs": lambda: blob_rows(2)}


def agree(model, data, most_ties=2):
    X, y, rows = DATA[data]()
    model = clone(model).fit(X, y)
    for precision in PRECISIONS:
        graph = to_onnx(model, X, precision=precision)
        agreement = compare(model, graph, rows)
        assert agreement.n_rows == 1000
        assert len(agreement.ties) <= most_ties, agreement
        assert agreement.holds, agreement
        assert agreement.difference <= agreement.tolerance, agreement
    return graph


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("landmarks", [None, 20])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("machine", KERNEL_MACHINES, ids=repr)
def test_every_kernel(machine, kernel, landmarks, data):
    given = {"kernel": kernel, "landmarks": landmarks, "random_state": 0, "C": 0.1}
    model = clone(machine).set_params(**given, **({"gamma": 0.01} if kernel == "sigmoid" else {}))
    graph = agree(model, data)
    assert {entry.domain for entry in graph.opset_import} == {""}  # plain operators only


OTHERS = (
    MulticategorySVC(loss="crammer"),
    SparseSVC(C=0.1),
    SparseSVC(C=1e-9),  # no variable is used
    SharedStructureSVC(scheme="ovo"),
    TraceNormSVC(scheme="ovo", kernel="rbf"),
    MarginSearch(Cs=[0.1, 1.0], gammas=[0.1, 1.0]),
    ProximalSVCCV(Cs=[0.1, 1.0]),
    SparseSVCCV(n_Cs=3, cv=2),
    SharedStructureSearch(Cs=[0.1], penalty_fractions=[1e-3], cv=2),
    RejectOptionClassifier(MulticategorySVC(), quantile=0.8),
    RejectOptionClassifier(ProximalSVC(), quantile=0.8),
    RejectOptionClassifier(make_pipeline(StandardScaler(), ProximalSVC(refine=True)), coverage=0.7),
    RejectOptionClassifier(RidgeClassifier(), quantile=0.8),
    NewtonRefinement(LinearSVC()),
    NewtonRefinement(make_pipeline(StandardScaler(), ProximalSVC(kernel="rbf", landmarks=20, random_state=0))),
    make_pipeline(StandardScaler(), RejectOptionClassifier(MulticategorySVC(), quantile=0.8)),
    make_pipeline(StandardScaler(), "passthrough", GridSearchCV(ProximalSVC(), {"C": [1.0, 10.0]}, cv=2)),
    GridSearchCV(make_pipeline(StandardScaler(), ProximalSVC()), {"proximalsvc__C": [1.0, 10.0]}, cv=2),
    RandomizedSearchCV(MulticategorySVC(), {"C": [0.1, 1.0]}, n_iter=2, cv=2),
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("model", OTHERS, ids=lambda model: " ".join(repr(model).split())[:60])
def test_searches_wrappers_and_pipelines(model, data):
    # Sparse scores that use few variables, or none, are often exactly equal.
    agree(model, data, most_ties=1000 if isinstance(model, SparseSVC) else 2)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("costly", [False, True])
@pytest.mark.parametrize("method", ["temperature", "vector", "matrix", "sigmoid", "isotonic"])
def test_probabilities(method, costly, data):
    X, y, rows = DATA[data]()
    costs = "ordinal" if costly else None
    model = ProbabilityClassifier(make_pipeline(StandardScaler(), ProximalSVC()), method=method, cost_matrix=costs)
    model.fit(X, y)
    for precision in PRECISIONS if method != "isotonic" else ["double"]:  # its steps are as steep as they like
        graph = to_onnx(model, X, precision=precision)
        assert [output.name for output in graph.graph.output] == ["label", "probabilities"]
        agreement = compare(model, graph, rows)
        assert len(agreement.ties) <= (0 if method != "isotonic" else 200), agreement
        assert agreement.holds, agreement


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("coverage_of", ["all", "class"])
@pytest.mark.parametrize(("cv", "form"), [(None, "plus"), (3, "plus"), (3, "minmax")])
@pytest.mark.parametrize("misfit", ["lac", "aps", "raps"])
def test_prediction_sets(misfit, cv, form, coverage_of, data):
    X, y, rows = DATA[data]()
    inner = PredictionSetClassifier(
        ProximalSVC(), misfit=misfit, cv=cv, form=form, coverage_of=coverage_of, method="vector", coverage=0.8
    )
    model = make_pipeline(StandardScaler(), inner).fit(X, y)
    for precision in PRECISIONS:
        graph = to_onnx(model, X, precision=precision)
        assert [output.name for output in graph.graph.output] == ["label", "probabilities", "sets"]
        agreement = compare(model, graph, rows)
        # The last classes of rows that are easy have sums of 1 to within 1e-6, like those of left-out rows.
        assert len(agreement.ties) <= (5 if misfit == "lac" else 60), agreement
        assert agreement.holds, agreement


def test_sets_that_differ_are_noticed():
    X, y, rows = digits()
    model, other = (
        PredictionSetClassifier(ProximalSVC(), coverage=c, method="vector").fit(X, y) for c in (0.5, 0.99)
    )
    agreement = compare(model, to_onnx(other, X), rows)
    assert agreement.difference < 1e-10  # the probabilities are the same
    assert len(agreement.different) > 0


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_single_precision_survives_rows_far_from_the_origin(kernel):
    X, y, rows = blob_rows(3, shift=1000.0)
    model = MulticategorySVC(kernel=kernel, gamma=0.5).fit(X.astype(np.float32).astype(float), y)
    assert compare(model, to_onnx(model, X, precision="single"), rows).holds


def test_models_of_sparse_rows():
    X, y, rows = digits()
    model = MulticategorySVC(C=0.1).fit(sparse.csr_array(X), y)
    assert compare(model, to_onnx(model, sparse.csr_array(X)), sparse.csr_array(rows)).holds


@pytest.mark.parametrize("n_rows", [1, 7])
def test_any_number_of_rows(n_rows):
    X, y, rows = digits()
    model = MulticategorySVC(C=0.1).fit(X, y)
    session = ort.InferenceSession(to_onnx(model, X.astype(np.float32)).SerializeToString())
    labels, scores = session.run(None, {"X": rows[:n_rows].astype(np.float32)})
    assert labels.tolist() == model.predict(rows[:n_rows]).tolist()
    assert scores.dtype == np.float32
    assert scores.shape == (n_rows, 10)


@pytest.mark.parametrize(
    "names",
    [[3, 1, 2], [0.5, 1.5, 2.5], ["x", "y", "z"], np.array([True, False]), [2**40, 1, 5]],
    ids=["integers", "numbers", "text", "truth", "large"],
)
def test_labels_keep_their_type(names):
    X, y, rows = blob_rows(2 if len(names) == 2 else 3)
    labels = np.asarray(names)[np.unique(y, return_inverse=True)[1]]
    if labels.dtype.kind == "f":
        labels = labels * 2  # scikit-learn takes whole numbers only
    model = ProximalSVC().fit(X, labels)
    session = ort.InferenceSession(to_onnx(model, X).SerializeToString())
    found = session.run(["label"], {"X": rows})[0]
    assert found.tolist() == model.predict(rows).tolist()


def mixed_frame(n):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {"height": rng.normal(size=n), "count": rng.integers(0, 9, n), "leaf": rng.choice(["oak", "fir"], n)}
    )
    total = frame["height"] + 0.3 * frame["count"] + (frame["leaf"] == "oak")
    y = np.where(total > 2, "high", "low")
    frame.loc[::7, "height"] = np.nan
    return frame, y


@pytest.mark.parametrize("rejecting", [False, True])
def test_a_whole_pipeline_by_skl2onnx_itself(rejecting):
    """Imputer, scaler, encoder, classifier, reject option: with nothing of ours but the import.

    In single precision: onnxruntime has no imputer in double.
    """
    frame, y = mixed_frame(300)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    features = make_column_transformer((numbers, ["height", "count"]), (OneHotEncoder(), ["leaf"]))
    machine = MulticategorySVC(kernel="rbf")
    model = make_pipeline(features, RejectOptionClassifier(machine, quantile=0.8) if rejecting else machine)
    frame = frame.astype({"count": float})
    model.fit(frame, y)
    graph = skl2onnx.to_onnx(model, frame[:1].astype({"height": np.float32, "count": np.float32}))
    assert compare(model, graph, frame).holds


def test_integer_columns_of_a_frame():
    X, y = load_digits(return_X_y=True, as_frame=True)
    X, y = X.iloc[:1200, 20:30].astype(int), y[:1200]
    model = MulticategorySVC(kernel="linear", C=0.01).fit(X[:200], y[:200])
    assert compare(model, to_onnx(model, X), X[200:]).different.size == 0


def test_older_versions_of_onnx():
    X, y, rows = digits()
    model = RejectOptionClassifier(MulticategorySVC(C=0.1), quantile=0.8).fit(X, y)
    graph = skl2onnx.to_onnx(model, X[:1], target_opset=15)
    assert {entry.version for entry in graph.opset_import} == {15}
    assert compare(model, graph, rows).holds


def test_a_graph_of_another_model_does_not_agree():
    X, y, rows = digits()
    model, other = ProximalSVC(C=1.0).fit(X, y), ProximalSVC(C=1e-3).fit(X, y)
    agreement = compare(model, to_onnx(other, X), rows)
    assert not agreement.holds
    assert len(agreement.different) > 0


class TestBadInput:
    def test_unfitted(self):
        with pytest.raises(NotFittedError, match="not fitted"):
            to_onnx(MulticategorySVC(), np.ones((1, 2)))

    @pytest.mark.parametrize("kernel", ["precomputed", lambda X, Y: X @ Y.T])
    @pytest.mark.parametrize(
        "wrap", [lambda model: model, make_pipeline, RejectOptionClassifier, PredictionSetClassifier]
    )
    def test_kernels_without_a_form(self, kernel, wrap):
        X, y, _ = blob_rows()
        X = X @ X.T if kernel == "precomputed" else X
        model = wrap(MulticategorySVC(kernel=kernel)).fit(X, y)
        with pytest.raises(ValueError, match="has no ONNX form"):
            to_onnx(model, X)

    @pytest.mark.parametrize("shape", [(3, 5), (6,), (0, 6)])
    def test_rows_of_the_wrong_shape(self, shape):
        X, y, _ = blob_rows()
        with pytest.raises(ValueError, match="X must hold at least one row of 6 columns"):
            to_onnx(ProximalSVC().fit(X, y), np.zeros(shape))

    def test_rows_of_the_wrong_type(self):
        X, y, _ = blob_rows()
        with pytest.raises(TypeError, match="X must be numbers"):
            to_onnx(ProximalSVC().fit(X, y), np.full((2, 6), "a"))

    def test_columns_of_text_without_a_step_that_encodes(self):
        X, y, _ = blob_rows()
        frame = pd.DataFrame(X, columns=list("abcdef"))
        model = RejectOptionClassifier(ProximalSVC()).fit(frame, y)
        with pytest.raises(TypeError, match="X must be numbers, got the column 'c' of type"):
            to_onnx(model, frame.assign(c="oak"))

    def test_columns_of_another_name_or_order(self):
        X, y, _ = blob_rows()
        frame = pd.DataFrame(X, columns=list("abcdef"))
        model = ProximalSVC().fit(frame, y)
        with pytest.raises(ValueError, match="fitted with, but it lacks 'b'"):
            to_onnx(model, frame.rename(columns={"b": "g"}))
        with pytest.raises(ValueError, match="has them in another order"):
            to_onnx(model, frame[list("bacdef")])

    def test_unknown_precision(self):
        X, y, _ = blob_rows()
        with pytest.raises(ValueError, match="precision must be"):
            to_onnx(ProximalSVC().fit(X, y), X, precision="half")

    def test_wrapped_classifiers_without_a_formula(self):
        X, y, _ = blob_rows()
        with pytest.raises(ValueError, match="SVC has no ONNX form here"):
            to_onnx(RejectOptionClassifier(SVC()).fit(X, y), X)
        with pytest.raises(ValueError, match="SVC has no ONNX form here"):
            to_onnx(PredictionSetClassifier(SVC()).fit(X, y), X)
        with pytest.raises(ValueError, match="ProbabilityClassifier has no ONNX form here"):
            to_onnx(RejectOptionClassifier(ProbabilityClassifier(ProximalSVC()), cv=3).fit(X, y), X)
