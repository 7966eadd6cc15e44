"""What is in a report, without a browser: every number and every label."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import (
    MulticategorySVC,
    PredictionSetClassifier,
    ProbabilityClassifier,
    ProximalSVC,
    RobustSVC,
    SparseSVC,
    expected_cost,
    report,
)
from polymargin.report.calibration import Calibration, cross_fitted
from polymargin.report.evidence import Evidence
from polymargin.report.predictions import TABLE_ROWS
from polymargin.report.section import number
from tests.report.models import COMMON, NAMES, OWN, fitted, page_of, wine
from tests.simulate import blobs

VOID = {"meta", "link", "input"}


class Page(HTMLParser):
    """A page taken apart: its elements with their attributes, and the text of every element with an id."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.texts = [], [], {}
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append((tag, dict(attributes).get("id")))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, text):
        for _, identity in self.open:
            if identity:
                self.texts[identity] = self.texts.get(identity, "") + text

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.mark.parametrize("family", OWN)
def test_sections_pictures_and_escaping(family):
    text = page_of(family)
    page = Page(text)
    assert {section["id"] for section in page.all("section")} == {*COMMON, *OWN[family]}
    anchors = [link["href"][1:] for link in page.all("a")]
    assert set(anchors) <= {attributes.get("id") for _, attributes in page.elements}
    identities = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(identities) == len(set(identities))
    pictures = page.all("svg")
    assert len(pictures) >= 2
    for picture in pictures:
        assert picture["role"] == "img"
        assert re.search(r"\d", picture["aria-label"])
    assert [script.get("type") for script in page.all("script")] == ["application/json", "application/json", None]
    assert "i" not in {tag for tag, _ in page.elements}
    for name in NAMES:
        assert str(name) in page.texts["errors"]
        assert str(name) in page.texts["predictions"]
    assert "<script>alert" not in text
    assert not re.search(r'(?:src|href)="(?!#|data:)', text)


def test_the_numbers_are_those_of_the_model():
    _, _, X, y = wine()
    model = fitted("multicategory")
    machine, predicted = model[-1], model.predict(X)
    page = Page(page_of("multicategory"))
    evidence = Evidence.of(model, X, y)
    confusion = [[np.sum((y == a) & (predicted == b)) for b in machine.classes_] for a in machine.classes_]
    np.testing.assert_array_equal(evidence.confusion[:, :3], confusion)
    np.testing.assert_array_equal(evidence.confusion[:, 3], 0)
    assert evidence.expected_cost == pytest.approx(expected_cost(y, predicted, machine.cost_matrix))
    assert f"{machine.certificate_.primal:.8g}" in page.texts["fitted"]
    assert "Certified" in page.texts["fitted"]
    assert "StandardScaler" in page.texts["fitted"]
    assert f"{np.sum(predicted != y)} of {len(y)} predictions are wrong" in page.texts["errors"]
    data, order = json.loads(page.texts["report-data"]), np.argsort(NAMES)
    assert data["classes"] == NAMES[order].tolist()
    assert data["costs"] == [
        [machine.cost_matrix.get((a, b), float(a != b)) for b in NAMES[order]] for a in NAMES[order]
    ]


def test_costs_may_be_given_to_the_report():
    _, _, X, y = wine()
    costs = np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0.0]])
    page = Page(report.build(fitted("sparse"), X, y, cost_matrix=costs, command="retrain <now>"))
    assert json.loads(page.texts["report-data"])["costs"] == costs.tolist()
    assert page.texts["retrain-command"] == "retrain <now>"
    values = [float(field["value"]) for field in page.all("input") if "data-cost" in field]
    assert values == costs[~np.eye(3, dtype=bool)].tolist()


def test_rows_may_have_costs_of_their_own():
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), MulticategorySVC(C=0.001)).fit(X[::2], y[::2])
    held_out, true = X[1::2], y[1::2]
    costs = np.random.default_rng(0).lognormal(size=(len(true), 3)) * (np.arange(3) != true[:, None])
    evidence = Evidence.of(model, held_out, true, row_costs=costs)
    predicted = model.predict(held_out)
    assert (predicted != true).any()
    charged = costs[np.arange(len(true)), predicted]
    np.testing.assert_array_equal(evidence.row_costs, charged)
    assert evidence.expected_cost == pytest.approx(charged.mean())
    by_pair = [[charged[(true == i) & (predicted == j)].sum() for j in range(3)] for i in range(3)]
    np.testing.assert_allclose(evidence.total_costs, by_pair)
    ignoring = costs[np.arange(len(true)), evidence.probabilities.argmax(axis=1)].mean()
    assert evidence.cost_of_the_most_probable == pytest.approx(ignoring)
    page = report.build(model, held_out, true, costs=costs)
    assert f"costs ignored, would cost {number(ignoring)}." in page
    with pytest.raises(ValueError, match="two ways to price errors"):
        report.build(model, held_out, true, costs=costs, cost_matrix="ordinal")
    with pytest.raises(ValueError, match=r"costs must have shape \(89, 3\)"):
        report.build(model, held_out, true, costs=costs[:-1])
    with pytest.raises(ValueError, match="zero for the own class"):
        report.build(model, held_out, true, costs=costs + 1.0)


def test_a_fit_that_did_not_converge_says_by_how_much():
    X, y, held_X, held_y = wine()
    model = make_pipeline(StandardScaler(), MulticategorySVC(max_iter=1, tol=1e-12))
    with pytest.warns(UserWarning, match="duality gap"):
        model.fit(X, y)
    text = Page(report.build(model, held_X, held_y)).texts["fitted"]
    assert "Not within the tolerance" in text
    factor = model[-1].certificate_.gap / 1e-12
    assert f"{factor:.4g}".replace("e+0", "e+") in text
    assert "limited to 1" in text


def test_every_variable_has_a_row_that_says_what_it_separates():
    machine, text = fitted("sparse")[-1], Page(page_of("sparse")).texts["variables-table"]
    table = machine.separations()
    columns = wine()[0].columns
    for row in table.to_dict("records"):
        groups = row["partition"].split(" > ")
        if len(groups) == 2:
            high, low = (group.replace(" = ", " and ") for group in groups)
            assert f"{columns[row['feature']]}separates {high} from {low}" in text
        else:
            assert f"{columns[row['feature']]}separates all classes" in text


def test_two_hundred_genes_are_a_table_and_a_map_in_boxes_that_scroll():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = pd.DataFrame(rng.normal(size=(60, 200)) + 0.3 * y[:, None], columns=[f"gene {j}" for j in range(200)])
    model = SparseSVC(penalty="l2", C=1.0).fit(X, y)
    page = Page(report.build(model, X, y))
    assert "200 of 200 variables" in page.texts["variables"]
    assert sum(attributes.get("scope") == "row" for attributes in page.all("th")) >= 200
    drawn = page.texts["separations-picture"].split("\n")
    assert {line.strip() for line in drawn} >= set(X.columns)
    assert {attributes["class"] for attributes in page.all("div") if "tall" in attributes.get("class", "")} == {
        "scroll tall",
        "scroll plot tall",
    }


@pytest.mark.parametrize(("machine", "meaning"), [
    (MulticategorySVC(C=1e3), "fall short of the full margin"),
    (ProximalSVC(), "the highest score leads the next by less than"),
])  # fmt: skip
def test_thresholds_are_said_in_words(machine, meaning):
    X, y, held_X, held_y = wine()
    model = make_pipeline(StandardScaler(), machine).fit(X, y)
    text = Page(report.build(model, held_X, held_y)).texts["strengths"]
    lead = text[: text.index("RejectOptionClassifier would")]
    assert meaning in lead
    assert not re.search(r"\de-\d", lead)


def test_suspects_are_those_of_the_machine():
    machine, text = fitted("robust")[-1], Page(page_of("robust")).texts["suspects"]
    used = np.sum(~np.isnan(machine.suspicion_))
    assert f"{len(machine.suspect_labels_)} of {used} training rows" in text


def test_rejected_rows_have_a_column_and_no_cost():
    _, _, X, y = wine()
    model = fitted("reject")
    predicted = model.predict(X)
    rejected = predicted == model[-1].reject_label_
    assert rejected.any()
    evidence = Evidence.of(model, X, y)
    np.testing.assert_array_equal(evidence.accepted, ~rejected)
    assert evidence.error == np.mean(predicted[~rejected] != y[~rejected])
    page = Page(page_of("reject"))
    assert evidence.confusion[:, 3].sum() == rejected.sum()
    assert json.loads(page.texts["report-data"])["predicted"].count(-1) == rejected.sum()


@pytest.mark.parametrize("k", [2, 12])
def test_two_and_many_classes_arrays_and_integers(k):
    X, y = blobs(np.random.default_rng(0), 60, 3, k)
    page = Page(report.build(ProximalSVC().fit(X, y), X, y))
    data = json.loads(page.texts["report-data"])
    assert data["classes"] == [str(label) for label in range(k)]
    assert len(set(data["colours"])) == k
    assert "ProbabilityClassifier(ProximalSVC(" in page.texts["costs"]


def test_many_rows_stay_a_small_page():
    X, y = blobs(np.random.default_rng(0), 50_000, 4, 10, spread=2.0)
    model = SparseSVC(C=1.0).fit(X[:150], y[:150])
    text = report.build(model, X, y)
    assert len(text.encode()) < 4e6
    page = Page(text)
    data = json.loads(page.texts["report-data"])
    assert len(data["labels"]) == 40_000
    assert f"The {TABLE_ROWS} weakest predictions, those of highest loss, of 50,000." in page.texts["predictions"]
    assert len(data["tablePredicted"]) == TABLE_ROWS


def test_the_page_is_written_whole_or_not_at_all(tmp_path):
    _, _, X, y = wine()
    target = tmp_path / "report.html"
    page = report.build(fitted("sparse"), X, y, path=target)
    assert target.read_text("utf-8") == page == page_of("sparse")
    with pytest.raises(ValueError, match="does not know: 'Riesling'"):
        report.build(fitted("sparse"), X, np.where(y == NAMES[0], "Riesling", y), path=target)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_bad_input_is_refused():
    _, _, X, y = wine()
    with pytest.raises(TypeError, match="model must be a fitted classifier of Polymargin"):
        report.build(StandardScaler().fit(X), X, y)
    with pytest.raises(ValueError, match="must hold the same rows, at least one, got 89 and 3"):
        report.build(fitted("sparse"), X, y[:3])
    with pytest.raises(ValueError, match="at least one, got 0 and 0"):
        report.build(fitted("sparse"), X[:0], y[:0])
    with pytest.raises(ValueError, match="cost_matrix must have shape"):
        report.build(fitted("sparse"), X, y, cost_matrix=np.ones((2, 2)))
    with pytest.raises(ValueError, match="not fitted"):
        report.build(RobustSVC(), X, y)


def test_temperature_has_the_least_log_loss():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(4000, 3)) * 2
    labels = np.array([rng.choice(3, p=row) for row in softmax(truth, axis=1)])
    found = Calibration.fit(truth * 5.0, labels)
    assert found.temperature == pytest.approx(5.0, rel=0.1)
    np.testing.assert_array_equal(found.offsets, 0.0)

    def loss(temperature, offsets):
        logs = np.log(softmax(truth * 5.0 / temperature + offsets, axis=1))
        targets = np.full(logs.shape, 1 / 4003)
        targets[np.arange(4000), labels] = 4001 / 4003
        return -np.mean(np.sum(targets * logs, axis=1))

    around = [loss(found.temperature * factor, 0.0) for factor in (0.99, 1.0, 1.01)]
    assert np.argmin(around) == 1


def test_offsets_undo_a_shift():
    rng = np.random.default_rng(1)
    truth = rng.normal(size=(6000, 3)) * 2
    labels = np.array([rng.choice(3, p=row) for row in softmax(truth, axis=1)])
    found = Calibration.fit(truth + np.array([0.0, 1.5, -1.5]), labels, with_offsets=True)
    np.testing.assert_allclose(found.offsets, [0.0, -1.5, 1.5], atol=0.15)


def test_perfect_and_useless_scores_have_finite_temperatures():
    labels = np.array([0, 1, 2] * 5)
    perfect = Calibration.fit(np.eye(3)[labels], labels)
    assert 0 < perfect.temperature < np.inf
    useless = Calibration.fit(np.zeros((15, 3)), labels)
    np.testing.assert_allclose(useless.probabilities(np.zeros((1, 3))), 1 / 3)


def test_no_row_is_judged_by_a_calibration_that_saw_it():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 60)
    scores = rng.normal(size=(60, 3)) + 2.0 * np.eye(3)[labels]
    before = cross_fitted(scores, labels)
    moved = scores.copy()
    moved[7] = [50.0, -50.0, 0.0]
    after = cross_fitted(moved, labels)
    changed = np.flatnonzero(np.abs(after - before).max(axis=1) > 1e-12)
    half = np.empty(60, dtype=bool)
    half[np.argsort(labels, kind="stable")] = np.arange(60) % 2 == 0
    np.testing.assert_array_equal(changed, np.sort(np.append(np.flatnonzero(half != half[7]), 7)))
    np.testing.assert_array_equal(cross_fitted(scores[:1], labels[:1]).shape, (1, 3))


def test_classes_that_are_never_found_are_named():
    X = np.repeat([[0.0], [1.0], [1.0]], [20, 20, 2], axis=0) + np.linspace(0, 0.2, 42)[:, None]
    y = np.repeat(["a", "b", "rare"], [20, 20, 2])
    page = report.build(MulticategorySVC(loss="weston", kernel="linear").fit(X, y), X, y)
    assert "Balanced accuracy" in page
    assert "never found: rare" in page
    assert '<td class="margin">-</td>' in page  # never predicted: of nothing, no share is right


def test_the_snippet_has_the_preparation():
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), MulticategorySVC()).fit(X, y)
    code = "make_pipeline(StandardScaler(), ProbabilityClassifier(MulticategorySVC(), cost_matrix="
    assert code in report.build(model, X, y)


def test_drawn_rows_are_counted():
    X, y = load_wine(return_X_y=True)
    model = MulticategorySVC(kernel="linear").fit(X, y)
    assert "Of 178 rows an even sample of about 160 is drawn." in report.build(model, X, y)
    assert "is drawn" not in report.build(model, X[::2], y[::2])


def test_a_model_with_probabilities_and_sets_is_shown_as_it_decides():
    X, y = load_wine(return_X_y=True)
    costs = {(0, 1): 30.0}
    machine = MulticategorySVC(C=0.1)
    probable = ProbabilityClassifier(machine, cost_matrix=costs)
    model = make_pipeline(StandardScaler(), probable).fit(X[::2], y[::2])
    evidence = Evidence.of(model, X[1::2], y[1::2])
    np.testing.assert_array_equal(evidence.classes[evidence.predicted], model.predict(X[1::2]))
    np.testing.assert_allclose(evidence.probabilities, model.predict_proba(X[1::2]), atol=1e-7)
    assert evidence.costs[0, 1] == 30.0
    assert evidence.expected_cost == pytest.approx(expected_cost(y[1::2], model.predict(X[1::2]), costs))
    text = report.build(model, X[1::2], y[1::2])
    assert "decides for the class of least expected cost" in text
    assert "No held-out row had a say" in text
    sections = {section["id"] for section in Page(text).all("section")}
    assert "probabilities" in sections
    assert "scoring" not in sections
    sets = PredictionSetClassifier(machine, coverage=0.8).fit(X[::2], y[::2])
    assert "asked for 80.0%" in report.build(sets, X[1::2], y[1::2])
