import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from polymargin import SparseSVC, stability_selection
from polymargin.datasets import make_class_specific


@pytest.fixture(scope="module")
def sample():
    drawn = make_class_specific(1, 150, n_noise=8, random_state=0)
    drawn.data = StandardScaler().fit_transform(drawn.data)
    return drawn


def test_frequencies_are_shares_of_the_fits_on_stratified_halves(sample):
    frame = pd.DataFrame(sample.data, columns=[f"v{j}" for j in range(10)])
    stable = stability_selection(SparseSVC(C=0.1), frame, sample.target, n_resamples=6, random_state=0)
    assert stable.features.shape == (10,)
    assert stable.separations.shape == (6, 10)
    np.testing.assert_allclose(stable.separations * 6, np.round(stable.separations * 6))
    assert np.all(stable.features >= stable.separations.max(axis=0))
    assert np.all(stable.features[:2] == 1.0)
    assert stable.features[2:].mean() < 0.9
    assert stable.feature_names.tolist() == frame.columns.tolist()


def test_a_seed_repeats_and_jobs_do_not_matter(sample):
    arguments = (SparseSVC(C=0.1), sample.data, sample.target)
    one = stability_selection(*arguments, n_resamples=3, random_state=1)
    two = stability_selection(*arguments, n_resamples=3, random_state=1, n_jobs=2)
    np.testing.assert_array_equal(one.separations, two.separations)


def test_bad_arguments(sample):
    X, y = sample.data, sample.target
    with pytest.raises(TypeError, match="estimator must be a SparseSVC or SparseSVCCV"):
        stability_selection(LinearSVC(), X, y)
    with pytest.raises(ValueError, match="n_resamples must be"):
        stability_selection(SparseSVC(), X, y, n_resamples=0)
    with pytest.raises(ValueError, match="fraction must be"):
        stability_selection(SparseSVC(), X, y, fraction=1.5)
