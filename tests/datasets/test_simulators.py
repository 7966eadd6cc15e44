"""Every simulator: its seed, its probabilities against its labels, its Bayes error against sampling."""

import pickle
from functools import partial

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from polymargin import datasets

SIMULATORS = {
    "competing_interval": datasets.make_competing_interval,
    "scenario_1": partial(datasets.make_interval_scenario, 1),
    "scenario_2": partial(datasets.make_interval_scenario, 2),
    "scenario_3": partial(datasets.make_interval_scenario, 3),
    "waveform": datasets.make_waveform,
    "class_specific_1": partial(datasets.make_class_specific, 1, n_noise=3),
    "class_specific_2": partial(datasets.make_class_specific, 2, n_noise=3),
    "triangle": datasets.make_triangle,
    "triangle_flipped": partial(datasets.make_triangle, flip=0.15),
    "curved": datasets.make_curved,
    "curved_clean": partial(datasets.make_curved, flip=0.0),
    "related_classes": datasets.make_related_classes,
}
SIZED = {
    "unbalanced_pair": (datasets.make_unbalanced_pair, (0.85, 0.15)),
    "unbalanced_rings": (datasets.make_unbalanced_rings, (0.8, 0.1, 0.1)),
}


def draw(name, n, seed):
    if name in SIZED:
        make, shares = SIZED[name]
        return make(n_samples=tuple(round(n * share) for share in shares), random_state=seed)
    return SIMULATORS[name](n_samples=n, random_state=seed)


each = pytest.mark.parametrize("name", [*SIMULATORS, *SIZED])


@each
def test_seed_decides(name):
    first, again, other = draw(name, 60, 3), draw(name, 60, 3), draw(name, 60, 4)
    np.testing.assert_array_equal(first.data, again.data)
    np.testing.assert_array_equal(first.target, again.target)
    assert not np.array_equal(first.data, other.data)


@each
def test_bayes_error_and_probabilities_agree_with_a_large_sample(name):
    """The labels follow the probabilities (in total and where they are high), and both the Bayes error."""
    sample = draw(name, 100_000, 5)
    p, y = sample.probabilities, sample.target
    n = len(y)
    assert p.shape == (n, y.max() + 1)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    assert p.min() >= 0
    expected_risk = 1.0 - p.max(axis=1)
    assert abs(expected_risk.mean() - sample.bayes_error) < 5 * expected_risk.std() / np.sqrt(n) + 1e-6
    # Calibration: among rows whose class-j probability lies in a bin, class j has the mean probability as share.
    for j in range(p.shape[1]):
        for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1.01)):
            members = (p[:, j] >= low) & (p[:, j] < high)
            if members.sum() > 50:
                spread = np.sqrt((p[members, j] * (1 - p[members, j])).sum()) / members.sum()
                assert abs((y[members] == j).mean() - p[members, j].mean()) < 5 * spread + 1e-9


@each
def test_class_probabilities_is_a_function_that_pickles(name):
    sample = draw(name, 40, 0)
    np.testing.assert_array_equal(sample.class_probabilities(sample.data), sample.probabilities)
    function = pickle.loads(pickle.dumps(sample.class_probabilities))
    np.testing.assert_array_equal(function(sample.data), sample.probabilities)


def test_competing_interval_is_the_papers():
    p = datasets.make_competing_interval(random_state=0).class_probabilities(np.array([[0.0], [0.5], [1.0]]))
    expected = np.array([0.97, 0.97 * np.exp(-1.5), 0.97 * np.exp(-3)])
    np.testing.assert_allclose(p[:, 0], expected, atol=1e-15)
    np.testing.assert_allclose(p[:, 2], np.exp(-2.5 * np.array([1.44, 0.49, 0.04])), atol=1e-15)


@pytest.mark.parametrize(
    ("scenario", "lead", "slope"), [(1, (0.7, 0.1), 0.6), (2, (0.45, 0.3), 0.4), (3, (0.45, 0.35), 0.3)]
)
def test_scenarios_bayes_error_is_exact(scenario, lead, slope):
    """p_1 and p_2 cross at x^4 = (a - b)/(2 slope); the integral of the higher one is a polynomial's."""
    (a, b), cross = lead, ((lead[0] - lead[1]) / (2 * slope)) ** 0.25
    highest = a * cross - slope * cross**5 / 5 + b * (1 - cross) + slope * (1 - cross**5) / 5
    assert datasets.make_interval_scenario(scenario).bayes_error == pytest.approx(1 - highest, abs=1e-9)


def test_triangle_bayes_error_is_exact():
    """The region of the first class is the wedge |x_2| < sqrt(3) x_1."""

    def inside(x):
        return norm.pdf(x, 1, 0.7) * (2 * norm.cdf(np.sqrt(3) * x / 0.7) - 1)

    exact = 1 - quad(inside, 0, 9, epsabs=1e-12)[0]
    assert datasets.make_triangle().bayes_error == pytest.approx(exact, abs=2e-6)
    flipped = 1 - (0.075 + 0.775 * (1 - exact))
    assert datasets.make_triangle(flip=0.15).bayes_error == pytest.approx(flipped, abs=2e-6)


def test_unbalanced_sizes_are_exact():
    assert np.bincount(datasets.make_unbalanced_pair(random_state=0).target).tolist() == [85, 15]
    assert np.bincount(datasets.make_unbalanced_rings(random_state=0).target).tolist() == [400, 50, 50]


def test_class_specific_variables_do_not_separate_the_pairs_of_the_paper():
    W = datasets.make_class_specific(1).coefficients
    assert W.shape == (4, 102)
    assert W[1, 0] == W[2, 0]
    assert W[0, 1] == W[1, 1]
    assert W[2, 1] == W[3, 1]
    W = datasets.make_class_specific(2).coefficients
    assert W.shape == (5, 103)
    assert (W[0, 0], W[2, 0]) == (W[1, 0], W[3, 0])
    assert W[1, 1] == W[2, 1] == W[3, 1]
    assert (W[1, 2], W[3, 2]) == (W[2, 2], W[4, 2])
    noise = datasets.make_class_specific(1, 20_000, random_state=0).data[:, 2:]
    assert abs(noise.std() - 8) < 0.02


def test_curved_is_symmetric():
    probabilities = datasets.make_curved(flip=0.0).class_probabilities
    X = np.random.default_rng(0).uniform((-3, -6), (3, 6), size=(50, 2))
    np.testing.assert_allclose(probabilities(X * [-1, 1]), probabilities(X)[:, ::-1], atol=1e-12)


def test_flip_labels_frequencies():
    flipped = datasets.flip_labels(np.zeros(100_000, dtype=int), 0.15, n_classes=3, random_state=0)
    np.testing.assert_allclose(np.bincount(flipped) / 100_000, [0.85, 0.075, 0.075], atol=0.005)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: datasets.make_competing_interval(0), ValueError, "n_samples"),
        (lambda: datasets.make_waveform(2.5), TypeError, "n_samples"),
        (lambda: datasets.make_interval_scenario(4), ValueError, "scenario must be 1, 2 or 3"),
        (lambda: datasets.make_class_specific(3), ValueError, "example must be 1 or 2"),
        (lambda: datasets.make_class_specific(n_noise=-1), ValueError, "n_noise"),
        (lambda: datasets.make_triangle(flip=0.7), ValueError, "flip must be below"),
        (lambda: datasets.make_curved(flip=-0.1), ValueError, "flip"),
        (lambda: datasets.make_unbalanced_pair(100), TypeError, "sizes of the 2 classes"),
        (lambda: datasets.make_unbalanced_rings((1, 2)), ValueError, "sizes of the 3 classes"),
        (lambda: datasets.flip_labels([0.5, 1.0]), ValueError, "integer labels"),
        (lambda: datasets.flip_labels([0, 5], n_classes=3), ValueError, "n_classes=3"),
        (lambda: datasets.gckl([[0.0, 0.0]], [[1.0]]), ValueError, "one shape"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_criteria_are_their_definitions():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(30, 3))
    scores -= scores.mean(axis=1, keepdims=True)
    p = rng.dirichlet(np.ones(3), size=30)
    costs = np.array([[0, 1, 4], [2, 0, 1], [1, 3, 0.0]])
    hinge = rate = 0.0
    for f, q in zip(scores, p, strict=True):
        for j in range(3):
            expected = sum(q[true] * costs[true, j] for true in range(3))
            hinge += max(f[j] + 0.5, 0) * expected / 30
            rate += (j == f.argmax()) * expected / 30
    assert datasets.gckl(scores, p, costs) == pytest.approx(hinge)
    assert datasets.misrate(scores, p, costs) == pytest.approx(rate)
    bayes = np.where(np.arange(3) == p.argmax(axis=1)[:, None], 1.0, -0.5)
    assert datasets.misrate(bayes, p) == pytest.approx(1 - p.max(axis=1).mean())
    assert datasets.gckl(bayes, p) == pytest.approx(1.5 * (1 - p.max(axis=1).mean()))
