"""Polymargin inside what others have built; packages of the extra [ecosystem] are skipped where absent."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn import set_config
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import MulticategorySVC, ProximalSVC, SparseSVC


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    names = np.array(["red", "rosé", "white"])
    return pd.DataFrame(StandardScaler().fit_transform(X), columns=X.columns), names[y]


def test_metadata_routing(wine):
    X, y = wine
    weight = np.arange(1.0, len(y) + 1)
    set_config(enable_metadata_routing=True)
    try:
        machine = ProximalSVC().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), machine)
        routed = pipeline.fit(X, y, sample_weight=weight)
        folds = cross_validate(pipeline, X, y, params={"sample_weight": weight}, cv=3)
    finally:
        set_config(enable_metadata_routing=False)
    by_hand = ProximalSVC().fit(StandardScaler().fit(X).transform(X), y, sample_weight=weight)
    np.testing.assert_allclose(routed[-1].coef_, by_hand.coef_, rtol=1e-9)
    assert min(folds["test_score"]) > 0.8


def test_set_output(wine):
    X, y = wine
    steps = make_column_transformer((StandardScaler(), list(X.columns)), verbose_feature_names_out=False)
    model = make_pipeline(steps, SparseSVC(C=0.1)).set_output(transform="pandas").fit(X, y)
    assert model[-1].feature_names_in_.tolist() == X.columns.tolist()


def test_halving_search(wine):
    X, y = wine
    search = HalvingGridSearchCV(MulticategorySVC(kernel="rbf"), {"C": [0.01, 1.0]}, cv=3, random_state=0)
    assert search.fit(X, y).best_params_ == {"C": 1.0}


def test_permutation_importance(wine):
    X, y = wine
    model = SparseSVC(C=0.02).fit(X, y)
    found = permutation_importance(model, X, y, n_repeats=3, random_state=0)
    unused = np.setdiff1d(np.arange(X.shape[1]), model.selected_features_)
    assert len(unused) > 0
    assert not found.importances_mean[unused].any()
    assert found.importances_mean.max() > 0.05


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_joblib_backends(wine, backend):
    X, y = wine
    search = GridSearchCV(ProximalSVC(), {"C": [0.1, 10.0]}, cv=3, n_jobs=2)
    with joblib.parallel_backend(backend):
        search.fit(X, y)
    assert search.best_score_ > 0.9


def test_dask_backend_of_joblib(wine):
    distributed = pytest.importorskip("distributed", reason="the extra [dask] is not installed")
    X, y = wine
    with (
        distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None),
        joblib.parallel_backend("dask"),
    ):
        search = GridSearchCV(ProximalSVC(), {"C": [0.1, 10.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9


@pytest.mark.filterwarnings("ignore")
def test_shap_linear_explainer(wine):
    shap = pytest.importorskip("shap", reason="the extra [ecosystem] is not installed")
    X, y = wine
    model = ProximalSVC().fit(X.to_numpy(), y)
    values = shap.LinearExplainer((model.coef_[0], model.intercept_[0]), X.to_numpy()).shap_values(X.to_numpy())
    scores = model.decision_function(X.to_numpy())[:, 0]
    sums = values.sum(axis=1)
    np.testing.assert_allclose(sums - sums.mean(), scores - scores.mean(), atol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_shap_kernel_explainer(wine):
    shap = pytest.importorskip("shap", reason="the extra [ecosystem] is not installed")
    X, y = wine
    model = MulticategorySVC(kernel="rbf").fit(X.to_numpy()[:, :4], y)
    background = X.to_numpy()[:10, :4]
    explainer = shap.KernelExplainer(model.decision_function, background)
    values = np.asarray(explainer.shap_values(X.to_numpy()[:2, :4], silent=True))
    scores = model.decision_function(X.to_numpy()[:2, :4])
    expected = model.decision_function(background).mean(axis=0)
    np.testing.assert_allclose(values.sum(axis=1), scores - expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_imbalanced_learn(wine):
    pipelines = pytest.importorskip("imblearn.pipeline", reason="the extra [ecosystem] is not installed")
    from imblearn.over_sampling import RandomOverSampler

    X, y = wine
    X, y = X[:150], y[:150]
    model = pipelines.make_pipeline(RandomOverSampler(random_state=0), MulticategorySVC(kernel="linear"))
    assert model.fit(X, y).score(X, y) > 0.95


@pytest.mark.filterwarnings("ignore")
def test_mlflow(wine, tmp_path):
    flavour = pytest.importorskip("mlflow.sklearn", reason="the extra [ecosystem] is not installed")
    from mlflow import pyfunc

    X, y = wine
    model = make_pipeline(StandardScaler(), MulticategorySVC(kernel="rbf")).fit(X, y)
    where = str(tmp_path / "model")
    flavour.save_model(model, where, pip_requirements=["polymargin"], serialization_format="cloudpickle")
    assert pyfunc.load_model(where).predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.filterwarnings("ignore")
def test_skore(wine):
    skore = pytest.importorskip("skore", reason="the extra [ecosystem] is not installed")
    X, y = wine
    report = skore.EstimatorReport(ProximalSVC(), X_train=X[::2], y_train=y[::2], X_test=X[1::2], y_test=y[1::2])
    assert report.metrics.accuracy() > 0.9
