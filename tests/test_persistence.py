"""Models survive the way into a file and back, and a file can run no code."""

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
import skops.io
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import polymargin
from polymargin import (
    BudgetSearch,
    MarginSearch,
    MulticategorySVC,
    NewtonRefinement,
    PredictionSetClassifier,
    ProbabilityClassifier,
    ProximalSVC,
    ProximalSVCCV,
    RejectOptionClassifier,
    RobustSearch,
    RobustSVC,
    SharedStructureSearch,
    SharedStructureSVC,
    SparseSVC,
    SparseSVCCV,
    TraceNormSVC,
    make_cost_scorer,
    persistence,
)
from tests.simulate import blobs

COSTS = {("ash", "cedar"): 4.0}
MODELS = [
    MulticategorySVC(),
    MulticategorySVC(kernel="linear", loss="weston", cost_matrix=COSTS),
    MulticategorySVC(landmarks=10, random_state=0, priors={"ash": 0.2, "beech": 0.3, "cedar": 0.5}),
    MarginSearch(MulticategorySVC(cost_matrix=COSTS), Cs=[0.1, 1.0], gammas=[0.1, 1.0]),
    RobustSearch(Cs=[0.1, 1.0], cv=2),
    ProximalSVC(),
    ProximalSVC(kernel="rbf", landmarks=10, random_state=0),
    ProximalSVCCV(),
    NewtonRefinement(LinearSVC(random_state=0)),
    SparseSVC(C=0.1, cost_matrix=COSTS),
    SparseSVCCV(n_Cs=3, cv=2),
    SharedStructureSVC(),
    SharedStructureSVC(kernel="rbf", scheme="ovo"),
    SharedStructureSearch(Cs=[0.1, 1.0], penalty_fractions=[0.01, 0.1], cv=2),
    TraceNormSVC(),
    RobustSVC(utility={("ash", "cedar"): 0.5}),
    GridSearchCV(RobustSVC(), {"C": [0.1, 1.0]}, cv=2, scoring=make_cost_scorer(None)),
    RejectOptionClassifier(MulticategorySVC(cost_matrix=COSTS)),
    RejectOptionClassifier(SharedStructureSVC(), coverage=0.9),
    BudgetSearch(MulticategorySVC(cost_matrix=COSTS), {"C": [0.1, 1.0]}, budget=300, random_state=0),
    ProbabilityClassifier(MulticategorySVC(cost_matrix=COSTS)),
    PredictionSetClassifier(MulticategorySVC()),
]


@pytest.fixture(scope="module")
def data():
    X, labels = blobs(np.random.default_rng(0), 60, 4, 3)
    return X, np.array(["ash", "beech", "cedar"])[labels]


@pytest.fixture(scope="module")
def saved(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.skops"
    persistence.save(ProximalSVC().fit(*data), path, metadata={"target": "tree"})
    return path


def answer(model, X):
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return model.prediction_loss(X) if hasattr(model, "prediction_loss") else model.predict(X)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: repr(model).replace("\n", "").replace(" ", ""))
def test_round_trip(model, data, tmp_path):
    X, y = data
    model.fit(X, y)
    path = tmp_path / "model.skops"
    persistence.save(model, path, metadata={"classes": ["ash"], "n": 3})
    again = persistence.load(path)
    np.testing.assert_array_equal(answer(again.model, X), answer(model, X))
    np.testing.assert_array_equal(again.model.predict(X), model.predict(X))
    assert again.metadata == {"classes": ["ash"], "n": 3}
    if hasattr(model, "certificate_"):
        assert again.model.certificate_ == model.certificate_


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array, sparse.csc_array])
def test_sparse_rows(container, data, tmp_path):
    X = container(np.where(np.abs(data[0]) < 0.5, 0.0, data[0]))
    for model in (MulticategorySVC(), ProximalSVC(kernel="rbf", landmarks=10), SparseSVC()):
        model.fit(X, data[1])
        persistence.save(model, tmp_path / "model.skops")
        again = persistence.load(tmp_path / "model.skops").model
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_every_public_estimator_is_among_them():
    names = [getattr(polymargin, name) for name in polymargin.__all__]  # loads what is lazy
    public = {value for value in names if isinstance(value, type) and hasattr(value, "fit")}
    assert public <= {type(model) for model in MODELS}
    assert public <= set(persistence.TRUSTED)


def test_costs_by_label_become_arrays_and_the_model_is_not_touched(data, tmp_path):
    X, y = data
    classes = ["ash", "beech", "cedar"]
    for costs in (COSTS, pd.DataFrame([[0, 1, 4], [1, 0, 1], [1, 1, 0]], classes, classes)):
        model = MulticategorySVC(cost_matrix=costs).fit(X, y)
        persistence.save(model, tmp_path / "model.skops")
        assert model.cost_matrix is costs
        stored = persistence.load(tmp_path / "model.skops").model.cost_matrix
        np.testing.assert_array_equal(stored, [[0, 1, 4], [1, 0, 1], [1, 1, 0]])


def test_pipelines_carry_their_preprocessing(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"größe": rng.normal(size=40), "farbe": rng.choice(["rot", "blau", "grün"], 40)})
    frame.loc[3, "größe"] = np.nan
    y = np.where(frame["farbe"] == "rot", "a", np.where(frame["größe"] > 0, "b", "c"))
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), ["größe"]),
        (OneHotEncoder(handle_unknown="warn", sparse_output=False), ["farbe"]),
        verbose_feature_names_out=False,
    )
    model = make_pipeline(columns, SparseSVC()).set_output(transform="pandas").fit(frame, y)
    persistence.save(model, tmp_path / "model.skops")
    again = persistence.load(tmp_path / "model.skops").model
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))
    assert again[-1].feature_names_in_.tolist() == ["größe", "farbe_blau", "farbe_grün", "farbe_rot"]


def test_what_cannot_be_saved(data, tmp_path):
    X, y = data
    path = tmp_path / "model.skops"
    with pytest.raises(TypeError, match="LogisticRegression"):
        persistence.save(LogisticRegression().fit(X, y), path)
    with pytest.raises(ValueError, match="fitted"):
        persistence.save(MulticategorySVC(), path)
    with pytest.raises(ValueError, match="kernel_of_mine"):
        persistence.save(MulticategorySVC(kernel=kernel_of_mine).fit(X, y), path)
    assert not path.exists()


def kernel_of_mine(A, B):
    return A @ B.T


class Payload:
    """Pickles to a command that leaves a trace."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.system, (f"touch {self.trace}",)


def test_a_pickle_is_refused_and_not_run(tmp_path):
    path, trace = tmp_path / "model.skops", tmp_path / "trace"
    path.write_bytes(pickle.dumps(Payload(trace)))
    with pytest.raises(ValueError, match="no saved model"):
        persistence.load(path)
    assert not trace.exists()
    pickle.loads(path.read_bytes())
    assert trace.exists()  # the payload is real


def archive(path, schema, **files):
    with zipfile.ZipFile(path, "w") as archive:
        if schema is not None:
            archive.writestr("schema.json", schema if isinstance(schema, str) else json.dumps(schema))
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def node(loader, module, name, **rest):
    return {"__loader__": loader, "__module__": module, "__class__": name, **rest}


def text(value):
    return node("JsonNode", "builtins", "str", content=json.dumps(value), is_json=True)


CALLS = [
    ("os", "system"),
    ("posix", "system"),
    ("builtins", "eval"),
    ("builtins", "exec"),
    ("subprocess", "Popen"),
]
NAMES = [
    *CALLS,
    ("polymargin.something.os", "system"),
    ("polymargin.files.os", "system"),
    ("polymargin.files", "write_atomically"),
    ("polymargin.estimators.multicategory.MulticategorySVC.os", "system"),
    ("polymargin.datasets.real", "os"),
    ("sklearn.os", "system"),
]


@pytest.mark.parametrize("loader", ["call", "constructor", "object", "function", "key", "partial", "operator"])
def test_a_crafted_schema_runs_nothing(loader, tmp_path):
    for module, name in NAMES:
        trace = tmp_path / "trace"
        path = tmp_path / "model.skops"
        for protocol in (0, 1, 2):
            schema = {**crafted(loader, module, name, trace), "protocol": protocol, "_skops_version": "0.16"}
            with pytest.raises(ValueError, match=r"is refused|no saved model|no model saved"):
                persistence.load(archive(path, schema))
            assert not trace.exists()


def crafted(loader, module, name, trace):
    """Return the schema of a model that is sound but for one parameter, which names a call."""
    argument = f"touch {trace}" if "eval" not in name and "exec" not in name else f"open({str(trace)!r}, 'w')"
    arguments = node("TupleNode", "builtins", "tuple", content=[text(argument)])
    match loader:
        case "call":
            attack = node("ListNode", module, name, content=[text(argument)])
        case "constructor":
            attack = node("ConstructorFromReduceNode", module, name, content=arguments)
        case "object":
            attack = node("ObjectNode", module, name, content=text(argument))
        case "function":
            attack = node("FunctionNode", module, name)
        case "key":
            types = node("ListNode", "builtins", "list", content=[node("TypeNode", module, name)])
            attack = node("DictNode", "builtins", "dict", key_types=types, content={argument: text(1)})
        case "partial":
            parts = {
                "func": node("FunctionNode", module, name),
                "args": arguments,
                "kwds": text({}),
                "namespace": text(None),
            }
            attack = node("PartialNode", "functools", "partial", content=parts)
        case _:
            attack = node("OperatorFuncNode", "operator", "methodcaller", attrs=arguments)
    parameters = node(
        "DictNode",
        "builtins",
        "dict",
        key_types=node("ListNode", "builtins", "list", content=[node("TypeNode", "builtins", "str")]),
        content={"C": attack},
    )
    return node("ObjectNode", "polymargin.estimators.proximal", "ProximalSVC", content=parameters)


def test_foreign_types_are_named(saved, tmp_path, data):
    class Mine(LogisticRegression):
        pass

    Mine.__qualname__ = Mine.__name__
    path = tmp_path / "model.skops"
    path.write_bytes(skops.io.dumps(Mine().fit(*data)))
    with pytest.raises(ValueError, match=r"refused: .*test_persistence\.Mine"):
        persistence.load(path)
    path.write_bytes(skops.io.dumps(LogisticRegression().fit(*data)))
    with pytest.raises(ValueError, match="no model saved by polymargin: it holds a LogisticRegression"):
        persistence.load(path)
    path.write_bytes(skops.io.dumps({"format": 1, "metadata": {}, "model": LogisticRegression().fit(*data)}))
    with pytest.raises(ValueError, match=r"must be a classifier of polymargin.*LogisticRegression"):
        persistence.load(path)
    path.write_bytes(skops.io.dumps({"format": 99, "metadata": {}, "model": None, "polymargin": "7.0"}))
    with pytest.raises(ValueError, match=r"format 99.*polymargin 7\.0"):
        persistence.load(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"PK\x03\x04", b"x" * 1000, None],
    ids=["empty", "start of a zip", "no zip", "zip without a schema"],
)
def test_what_is_no_model(content, tmp_path):
    path = tmp_path / "model.skops"
    if content is None:
        archive(path, None, note="hello")
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.skops is no saved model"):
        persistence.load(path)


@pytest.mark.parametrize("schema", ["", "[]", "{}", "null", '{"protocol": 1}', '{"protocol": "x"}', "[" * 100_000])
def test_what_is_no_schema(schema, tmp_path):
    with pytest.raises(ValueError, match=r"model\.skops is no saved model"):
        persistence.load(archive(tmp_path / "model.skops", schema))


def test_truncated_anywhere(saved, tmp_path):
    whole = saved.read_bytes()
    path = tmp_path / "model.skops"
    for length in np.linspace(0, len(whole) - 1, 20).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"model\.skops is no saved model"):
            persistence.load(path)


def test_an_array_with_a_pickle_inside_is_refused(saved, tmp_path):
    """numpy files may hold pickles; the ones in a model must not."""
    trace = tmp_path / "trace"
    buffer = io.BytesIO()
    np.save(buffer, np.array([Payload(trace)], dtype=object), allow_pickle=True)
    path = tmp_path / "model.skops"
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            target.writestr(name, buffer.getvalue() if name.endswith(".npy") else source.read(name))
    with pytest.raises(ValueError, match="no saved model"):
        persistence.load(path)
    assert not trace.exists()
