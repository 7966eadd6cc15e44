"""RobustSVC: what it equals, what it finds, what it refuses."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from polymargin import MulticategorySVC, RobustSVC
from polymargin.costs import resolve_utility, utility_of_costs
from polymargin.datasets import flip_labels, make_triangle
from tests.simulate import blobs

COLLAPSING = [[1, 0.2, 0.3], [0.4, 1, 0.1], [0.4, 0.25, 1]]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_without_truncation_and_utilities_it_is_crammer_and_singer(kernel):
    X, y = blobs(np.random.default_rng(0), 80, 4, 3)
    ours = RobustSVC(C=0.5, truncation=-np.inf, kernel=kernel, tol=1e-12).fit(X, y)
    theirs = MulticategorySVC(C=1.0, loss="crammer", kernel=kernel, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(2 * ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    assert ours.certificate_.kind == "global"


def test_two_classes_without_truncation_equal_svc():
    X, y = blobs(np.random.default_rng(1), 60, 3, 2)
    ours = RobustSVC(C=2.0, truncation=-np.inf, tol=1e-13).fit(X, y)
    # f_1 - f_0 has margin 1, and 1/2 sum ||w_j||^2 is 1/4 of its squared norm
    svc = SVC(C=4.0, kernel="linear", tol=1e-10).fit(X, y)  # whose kernel is in single precision
    np.testing.assert_allclose(2 * ours.decision_function(X), svc.decision_function(X), rtol=1e-5, atol=1e-5)


def test_collapse_is_escaped_through_the_second_start():
    sample = make_triangle(400, flip=0.15, random_state=0)
    with pytest.warns(UserWarning, match="predictions noise"):
        stuck = RobustSVC(utility=COLLAPSING, starts=("utility",)).fit(sample.data, sample.target)
    model = RobustSVC(utility=COLLAPSING, starts=("utility", "identity")).fit(sample.data, sample.target)
    assert np.abs(stuck.decision_function(sample.data)).max() < 1e-3
    assert model.start_ == "identity"
    assert model.certificate_.primal < 0.9 * stuck.certificate_.primal
    assert np.abs(model.decision_function(sample.data)).max() > 0.1


def test_history_certificate_and_start_agree():
    sample = make_triangle(200, flip=0.15, random_state=1)
    model = RobustSVC(utility={(0, 1): 0.6, (0, 2): 0.6}).fit(sample.data, sample.target)
    assert set(model.dc_history_) == {"utility", "identity", "local"}
    final = {name: history[-1] for name, history in model.dc_history_.items()}
    assert model.start_ == min(final, key=final.get)
    assert model.certificate_.kind == "stationary"
    assert model.certificate_.primal == pytest.approx(min(final.values()), rel=1e-7)
    assert model.converged_


def test_suspects_are_the_truncated_rows():
    sample = make_triangle(300, flip=0.15, random_state=2)
    weights = np.r_[0.0, 0.0, np.ones(298)]
    model = RobustSVC().fit(sample.data, sample.target, weights)
    scores = model.decision_function(sample.data)
    own = np.searchsorted(model.classes_, sample.target)
    others = scores.copy()
    others[np.arange(300), own] = -np.inf
    margin = scores[np.arange(300), own] - others.max(axis=1)
    np.testing.assert_allclose(model.suspicion_[2:], margin[2:], atol=1e-10)
    assert np.isnan(model.suspicion_[:2]).all()
    np.testing.assert_array_equal(model.suspect_labels_, 2 + np.flatnonzero(margin[2:] < -0.5))
    assert len(model.suspect_labels_)
    assert not len(RobustSVC(truncation=-np.inf).fit(sample.data, sample.target).suspect_labels_)


def test_flipped_digits_are_found():
    X, y = load_digits(return_X_y=True)
    X, y = X[:600] / 16.0, y[:600]
    noisy = flip_labels(y, 0.1, random_state=0)
    flipped = np.flatnonzero(noisy != y)
    model = RobustSVC(C=1.0, kernel="rbf").fit(X, noisy)
    found = np.intersect1d(model.suspect_labels_, flipped)
    assert len(found) >= 0.9 * len(flipped)
    assert len(found) >= 0.9 * len(model.suspect_labels_)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_costly_error_becomes_rarer(kernel):
    sample = make_triangle(300, random_state=3)
    plain = RobustSVC(kernel=kernel).fit(sample.data, sample.target)
    careful = RobustSVC(kernel=kernel, cost_matrix={(0, 1): 10.0, (0, 2): 10.0}).fit(sample.data, sample.target)
    ones = sample.data[sample.target == 0]
    assert (careful.predict(ones) != 0).sum() < (plain.predict(ones) != 0).sum()


def test_rescaled_utilities_need_one_start():
    X, y = blobs(np.random.default_rng(4), 60, 2, 3)
    model = RobustSVC(C=0.5, utility=2 * np.eye(3), starts=("utility", "identity")).fit(X, y)
    assert list(model.dc_history_) == ["utility"]
    same = RobustSVC(C=1.0, starts=("utility", "identity")).fit(X, y)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-10)


def test_zero_utilities_cost_nothing():
    X, y = blobs(np.random.default_rng(5), 90, 2, 3)
    model = RobustSVC(utility=np.diag([1.0, 1.0, 0.0]), starts=("utility",)).fit(X, y)
    assert not np.isin(model.support_, np.flatnonzero(y == 2)).any()


def test_conversion_of_costs_keeps_the_bayes_rule():
    rng = np.random.default_rng(6)
    for _ in range(50):
        costs = rng.uniform(0, 3, (4, 4)) * (1 - np.eye(4))
        utility = utility_of_costs(costs)
        assert (utility >= 0).all()
        assert (utility.min(axis=1) == 0).all()
        probability = rng.dirichlet(np.ones(4))
        assert np.argmax(probability @ utility) == np.argmin(probability @ costs)


def test_forms_of_utility():
    classes = np.array(["a", "b", "c"])
    np.testing.assert_array_equal(resolve_utility(None, classes), np.eye(3))
    np.testing.assert_array_equal(resolve_utility("ordinal", classes), [[2, 1, 0], [0, 1, 0], [0, 1, 2]])
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.arange(9.0).reshape(3, 3), index=list("cba"), columns=list("cba"))
    np.testing.assert_array_equal(resolve_utility(frame, classes), np.arange(9.0).reshape(3, 3)[::-1, ::-1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"utility": [[1, -1, 0], [0, 1, 0], [0, 0, 1]]}, "utility must have finite non-negative"),
        ({"utility": np.zeros((3, 3))}, "utility must have at least one positive"),
        ({"utility": np.eye(2)}, r"utility must have shape \(3, 3\)"),
        ({"utility": {(0, 9): 1.0}}, "utility names the class 9"),
        ({"utility": np.eye(3), "cost_matrix": 1 - np.eye(3)}, "give one of them"),
        ({"truncation": 0.5}, "truncation must be a number and at most 0"),
        ({"truncation": np.nan}, "truncation must be"),
        ({"truncation": "none"}, "truncation must be one of 'auto'"),
        ({"loss": "exponential", "truncation": -np.inf}, "finite with loss='exponential'"),
        ({"loss": "square"}, "loss must be one of"),
        ({"starts": ()}, "starts must be a sequence"),
        ({"starts": "utility"}, "starts must be a sequence"),
        ({"starts": ("zero",)}, "starts must be one of"),
        ({"max_dc_iter": 0}, "max_dc_iter must be"),
        ({"C": 0.0}, "C must be"),
        ({"kernel": "precomputed", "landmarks": 3}, "landmarks must be None"),
    ],
)
def test_bad_input(arguments, message):
    X, y = blobs(np.random.default_rng(7), 30, 2, 3)
    with pytest.raises(ValueError, match=message):
        RobustSVC(**arguments).fit(X, y)


def test_warnings_of_unwise_settings():
    X, y = blobs(np.random.default_rng(8), 60, 2, 3, spread=3.0)
    with pytest.warns(UserWarning, match=r"outside \[-0.5, 0\]"):
        RobustSVC(truncation=-2.0).fit(X, y)
    with pytest.warns(UserWarning, match=r"above the true one for \[0\]"):
        RobustSVC(utility={(0, 1): 2.0}).fit(X, y)


def test_limits_keep_the_best_and_warn():
    sample = make_triangle(300, flip=0.15, random_state=4)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = RobustSVC(utility={(0, 1): 0.6, (0, 2): 0.6}, max_dc_iter=2).fit(sample.data, sample.target)
    assert not model.converged_
    assert model.n_iter_ == 2


def test_local_and_random_starts_lower_the_objective():
    reached = {"two": [], "local": [], "more": []}
    for seed in (1, 3, 5, 9):  # where two starts end above what others reach
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 3, 60)
        X = rng.normal(size=(60, 4)) + rng.normal(size=(3, 4))[y] * 1.5
        y = np.where(rng.random(60) < 0.2, rng.integers(0, 3, 60), y)
        machines = {
            "two": RobustSVC(starts=("utility", "identity")),
            "local": RobustSVC(),
            "more": RobustSVC(n_init=6, random_state=0),
        }
        for name, machine in machines.items():
            reached[name].append(machine.fit(X, y).certificate_.primal)
    two, local, more = (np.array(values) for values in reached.values())
    assert (local <= two * (1 + 1e-9)).all()
    assert (more <= two * (1 + 1e-9)).all()
    assert (local < 0.999 * two).sum() >= 2


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.parametrize("seed", range(5))
def test_smooth_losses_of_weights_far_apart_are_solved(loss, seed):
    """Products of dual variables and slacks must not vanish before what steps on curves leave undone does."""
    X, y = blobs(np.random.default_rng(seed), 50, 2, 3, spread=20.0)
    machine = RobustSVC(loss=loss, class_weight={0: 1000.0, 1: 1e-4, 2: 1e-4}).fit(X, y)
    assert machine.certificate_.gap <= machine.tol


@pytest.mark.parametrize(("seed", "kernel"), [(35, "rbf"), (31, "linear")])
def test_intercepts_without_end_keep_the_certificate(seed, kernel):
    """Where it is best to predict one class alone, exponential losses drive them to 1e9, and digits are lost."""
    rng = np.random.RandomState(seed)
    X = rng.uniform(size=(40, 3))
    X[X < 0.6] = 0.0
    model = RobustSVC(kernel=kernel, loss="exponential").fit(X, (4 * rng.uniform(size=40)).astype(int))
    assert model.status_ == "solved"
    assert np.abs(model.intercept_).max() > 1e6
    assert 0.0 <= model.certificate_.gap + 1e-12 <= model.tol
