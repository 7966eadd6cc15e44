"""The scoring form: what the page computes is what the model computes."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, LinearSVC

from polymargin import (
    MulticategorySVC,
    NewtonRefinement,
    ProximalSVC,
    RejectOptionClassifier,
    SharedStructureSVC,
    TraceNormSVC,
    report,
)
from polymargin.report.additive import AdditiveSteps
from tests.report import browser
from tests.report.models import OWN, fitted, page_of, wine

KERNELS = ("linear", "rbf", "poly", "sigmoid", "laplacian")
needs_browser = pytest.mark.skipif(browser.missing() is not None, reason=str(browser.missing()))


@pytest.fixture(scope="module")
def driver():
    with browser.chromium() as driver:
        yield driver


def mixed(n=90):
    """Numbers, whole numbers, categories and missing values."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "height": rng.normal(1000.0, 3.0, n),
            "count": rng.integers(0, 9, n),
            "leaf <b>": rng.choice(["oak", "fir", "</script>"], n),
        }
    )
    y = np.array(["a", "b", "c"])[(frame["count"] // 3).clip(0, 2)]
    frame.loc[frame.index % 11 == 3, "height"] = np.nan
    return frame, y


def mixed_model():
    frame, y = mixed()
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    steps = make_column_transformer((numbers, ["height", "count"]), (OneHotEncoder(), ["leaf <b>"]))
    machine = RejectOptionClassifier(MulticategorySVC(C=0.3), quantile=0.7)
    return make_pipeline(steps, machine).fit(frame, y), frame, y


def scored(driver, rows):
    """Type rows in one after the other; return scores, decisions and strengths."""
    script = """
    const entries = [...document.querySelectorAll("#scoring-form [data-variable]")];
    return arguments[0].map((row) => {
      entries.forEach((entry, at) => {
        if (entry.tagName === "SELECT") {
          entry.value = [...entry.options].findIndex((option) => option.textContent === row[at]);
        } else entry.value = row[at];
      });
      document.getElementById("scoring-form").dispatchEvent(new Event("input"));
      return [
        [...document.querySelectorAll("[data-score]")].map((cell) => Number(cell.dataset.value)),
        Number(document.getElementById("scored-decision").dataset.value),
        Number(document.getElementById("scored-strength").dataset.value),
        document.getElementById("scoring-problem").textContent,
      ];
    });
    """
    answers = driver.execute_script(script, [[_plain(value) for value in row] for row in rows])
    assert browser.console(driver) == []
    assert {answer[3] for answer in answers} == {""}
    return tuple(np.array([answer[at] for answer in answers]) for at in range(3))


def _plain(value):
    return value if isinstance(value, str) else repr(float(value))


def opened(driver, page, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page, "utf-8")
    browser.resize(driver, 1000, 900)
    browser.open_page(driver, path)


def scores_of(model, X):
    inner = model[-1].estimator_ if isinstance(model[-1], RejectOptionClassifier) else model[-1]
    scores = inner.decision_function(model[:-1].transform(X))
    return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores


@needs_browser
@pytest.mark.parametrize("family", OWN)
def test_every_family_scores_in_the_browser_as_in_python(driver, tmp_path, family):
    model, X = fitted(family), wine()[2][:20]
    opened(driver, page_of(family), tmp_path)
    scores, decisions, _ = scored(driver, X.to_numpy().tolist())
    expected = scores_of(model, X)
    np.testing.assert_allclose(scores, expected, rtol=0.0, atol=1e-6)
    rejected = family == "reject"
    labels = model.predict(X)
    names = [*model.classes_, model[-1].reject_label_] if rejected else [*model.classes_]
    assert [names[int(decision)] for decision in decisions] == labels.tolist()


@needs_browser
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "machine", [MulticategorySVC(), TraceNormSVC(scheme="ovo", landmarks=15, random_state=0)], ids=repr
)
def test_every_kernel_and_pairs_that_vote(driver, tmp_path, kernel, machine):
    X, y, X_test, y_test = wine()
    model = make_pipeline(StandardScaler(), machine.set_params(kernel=kernel, gamma=0.05)).fit(X, y)
    opened(driver, report.build(model, X_test, y_test), tmp_path)
    scores, _, _ = scored(driver, X_test[:20].to_numpy().tolist())
    np.testing.assert_allclose(scores, scores_of(model, X_test[:20]), rtol=0.0, atol=1e-6)


@needs_browser
@pytest.mark.parametrize("inner", [RidgeClassifier(), make_pipeline(StandardScaler(), LinearSVC())], ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_refinements_of_other_classifiers(driver, tmp_path, inner, n_classes):
    X, y, X_test, y_test = wine()
    kept, kept_test = (part.isin(np.unique(y)[:n_classes]) for part in (y, y_test))
    model = make_pipeline(StandardScaler(), NewtonRefinement(inner)).fit(X[kept], y[kept])
    opened(driver, report.build(model, X_test[kept_test], y_test[kept_test]), tmp_path)
    rows = X_test[kept_test][:20]
    scores, _, _ = scored(driver, rows.to_numpy().tolist())
    np.testing.assert_allclose(scores, scores_of(model, rows), rtol=0.0, atol=1e-6)


@needs_browser
def test_categories_rejection_strength_and_pushes(driver, tmp_path):
    model, frame, y = mixed_model()
    opened(driver, report.build(model, frame, y), tmp_path)
    rows = frame.dropna()[:30]
    scores, decisions, strengths = scored(driver, rows.to_numpy(dtype=object).tolist())
    np.testing.assert_allclose(scores, scores_of(model, rows), rtol=0.0, atol=1e-6)
    rejector = model[-1]
    np.testing.assert_allclose(strengths, rejector.prediction_strength(model[:-1].transform(rows)), atol=1e-9)
    names = [*rejector.classes_, rejector.reject_label_]
    assert [names[int(decision)] for decision in decisions] == model.predict(rows).tolist()
    assert (decisions == -1).any()
    pushes = driver.execute_script(
        "return [...document.querySelectorAll('#scored-pushes td')].map(cell => +cell.dataset.push)"
    )
    assert len(pushes) == 3
    assert sorted(pushes, key=abs, reverse=True) == pushes
    # The first push, by hand: the row with its count at the mean.
    last, middle = rows.iloc[[-1]], rows.iloc[[-1]].astype({"count": float})
    middle["count"] = frame.dropna()["count"].mean()
    best, rival = np.argsort(-scores[-1])[:2]
    by_hand = [np.subtract(*scores_of(model, row)[0, [best, rival]]) for row in (last, middle)]
    assert np.isclose(pushes, by_hand[0] - by_hand[1], atol=1e-9).any()


@needs_browser
def test_an_empty_field_is_named_and_the_last_row_stays(driver, tmp_path):
    opened(driver, page_of("multicategory"), tmp_path)
    before = driver.find_element("id", "scored-strength").text
    entry = driver.find_element("css selector", "#scoring-form input")
    entry.clear()
    driver.execute_script("document.getElementById('scoring-form').dispatchEvent(new Event('input'))")
    assert "Every field needs a number" in driver.find_element("id", "scoring-problem").text
    assert entry.get_attribute("aria-invalid") == "true"
    assert driver.find_element("id", "scored-strength").text == before
    assert browser.console(driver) == []


def has_form(model, X, y):
    return 'id="scoring-form"' in report.build(model, X, y)


def test_models_that_the_page_cannot_hold_have_no_form():
    X, y, X_test, y_test = (part[:60] for part in wine())
    assert has_form(ProximalSVC().fit(X, y), X_test, y_test)
    assert not has_form(MulticategorySVC(kernel=lambda A, B: A @ B.T, C=1e-6).fit(X, y), X_test, y_test)
    rows, digit = load_digits(return_X_y=True)
    assert not has_form(ProximalSVC().fit(rows, digit), rows[:50], digit[:50])  # too many fields
    spread = make_pipeline(StandardScaler(), PolynomialFeatures(2), ProximalSVC()).fit(X, y)
    assert not has_form(NewtonRefinement(SVC()).fit(X, y), X_test, y_test)  # no formula
    assert not has_form(spread, X_test, y_test)  # products of columns are no sum over them
    assert not has_form(ProximalSVC().fit(sparse.csr_array(X), y), sparse.csr_array(X_test), y_test)


def test_steps_that_are_sums_and_steps_that_are_not():
    model, frame, _ = mixed_model()
    steps = AdditiveSteps.of(model.steps[:-1], frame)
    assert [column.levels for column in steps.columns] == [None, None, ("</script>", "fir", "oak")]
    row = frame.dropna().iloc[7]
    np.testing.assert_allclose(steps.features(list(row)), model[:-1].transform(frame.dropna()[7:8])[0], atol=1e-9)
    logarithm = [("log", FunctionTransformer(np.log1p))]
    assert AdditiveSteps.of(logarithm, np.abs(np.random.default_rng(0).normal(size=(9, 2)))) is None
    assert AdditiveSteps.of([], np.full((3, 2), np.nan)) is None


def test_shared_structure_of_two_classes():
    X, y, X_test, y_test = wine()
    first, second = (np.isin(part, np.unique(y)[:2]) for part in (y, y_test))
    model = SharedStructureSVC(C=0.1).fit(X[first], y[first])
    assert has_form(model, X_test[second], y_test[second])
