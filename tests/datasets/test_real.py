"""Loading, verifying, downloading (a stand-in for OpenML) and caching of real data."""

from urllib.error import URLError

import numpy as np
import pytest
from sklearn.utils import Bunch

from polymargin.datasets import fetch_benchmark, log_entropy, real, standardize_arrays, top_terms
from tests.conftest import SHARED

SMALL = [name for name in real.BENCHMARKS if name not in ("covtype", "mnist")]


def glass_like(rng):
    """Return data of the shape and class sizes of glass."""
    sizes = real.BENCHMARKS["glass"].class_sizes
    return rng.normal(size=(214, 9)), np.repeat(np.arange(6), sizes)


@pytest.fixture
def no_network(monkeypatch):
    def refuse(**_):
        raise URLError("no route to host")

    monkeypatch.setattr(real, "fetch_openml", refuse)


@pytest.mark.parametrize("name", SMALL)
def test_every_set_of_the_data_folder_is_what_it_should_be(name, real_data, no_network):
    stored = real_data(real.BENCHMARKS[name].file or name)
    sample = fetch_benchmark(name, data_home=SHARED)
    assert sample.data.shape == real.BENCHMARKS[name].shape
    assert sample.data.dtype == np.float64
    np.testing.assert_array_equal(sample.target, stored["y"])
    if sample.train_indices is not None:
        both = np.concatenate([sample.train_indices, sample.test_indices])
        np.testing.assert_array_equal(np.sort(both), np.arange(len(sample.target)))


def test_environment_names_the_folder(tmp_path, monkeypatch, no_network):
    X, y = glass_like(np.random.default_rng(0))
    np.savez(tmp_path / "glass.npz", X=X, y=y)
    monkeypatch.setenv("POLYMARGIN_DATA", str(tmp_path))
    np.testing.assert_array_equal(fetch_benchmark("glass").data, X)


def test_wrong_data_are_refused(tmp_path):
    X, y = glass_like(np.random.default_rng(0))
    np.savez(tmp_path / "glass.npz", X=X, y=np.where(y == 0, 1, y))
    with pytest.raises(ValueError, match="not the expected data set"):
        fetch_benchmark("glass", data_home=tmp_path)
    np.savez(tmp_path / "glass.npz", X=X[:, :5], y=y)
    with pytest.raises(ValueError, match=r"shape \(214, 5\)"):
        fetch_benchmark("glass", data_home=tmp_path)


def test_offline_and_missing_says_what_to_do(tmp_path, no_network):
    with pytest.raises(ConnectionError, match=r"glass\.npz is not in .*POLYMARGIN_DATA.*with a connection"):
        fetch_benchmark("glass", data_home=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"OpenML does not have webkb.*POLYMARGIN_DATA"):
        fetch_benchmark("webkb", data_home=tmp_path)


def test_unknown_name_is_named():
    with pytest.raises(ValueError, match="name must be one of 'covtype', 'glass'"):
        fetch_benchmark("iris")


def test_download_is_verified_and_kept(tmp_path, monkeypatch):
    X, y = glass_like(np.random.default_rng(1))
    calls = []

    def fetch(**options):
        calls.append(options["data_id"])
        return Bunch(data=X, target=y.astype(str).astype(object), feature_names=[f"v{j}" for j in range(9)])

    monkeypatch.setattr(real, "fetch_openml", fetch)
    home = tmp_path / "new"
    first = fetch_benchmark("glass", data_home=home)
    again = fetch_benchmark("glass", data_home=home)
    assert calls == [41]
    assert [file.name for file in home.iterdir()] == ["glass.npz"]
    for sample in (first, again):
        np.testing.assert_array_equal(sample.data, X)
        np.testing.assert_array_equal(sample.target, y)
        assert list(sample.feature_names) == [f"v{j}" for j in range(9)]
    monkeypatch.setattr(real, "fetch_openml", lambda **_: Bunch(data=X[:5], target=y[:5], feature_names=range(9)))
    with pytest.raises(ValueError, match="OpenML's data set 54 is not the expected"):
        fetch_benchmark("vehicle", data_home=home)
    assert [file.name for file in home.iterdir()] == ["glass.npz"]


def test_downloaded_vowel_loses_speaker_and_sex(tmp_path, monkeypatch):
    X = np.random.default_rng(2).normal(size=(990, 12))
    names = ["Speaker_Number", "Sex", *[f"Feature_{j}" for j in range(10)]]
    found = Bunch(data=X, target=np.repeat([f"h{j}d" for j in range(11)], 90), feature_names=names)
    monkeypatch.setattr(real, "fetch_openml", lambda **_: found)
    np.testing.assert_array_equal(fetch_benchmark("vowel", data_home=tmp_path).data, X[:, 2:])


def test_log_entropy_is_its_definition():
    counts = np.random.default_rng(3).poisson(0.7, size=(40, 12)).astype(float)
    counts[:, 3] = 0.0
    counts[:, 4] = 2.0
    counts[:, 5] = np.arange(40) == 7
    expected = np.zeros_like(counts)
    for j in range(12):
        if counts[:, j].sum() == 0:
            continue
        p = counts[:, j] / counts[:, j].sum()
        e = 1 + sum(q * np.log(q) for q in p if q > 0) / np.log(40)
        expected[:, j] = e * np.log(1 + counts[:, j])
    weighted = log_entropy(counts)
    np.testing.assert_allclose(weighted.toarray(), expected, atol=1e-12)
    assert abs(expected[:, 4]).max() < 1e-12
    assert expected[7, 5] == pytest.approx(np.log(2))
    np.testing.assert_array_equal(top_terms(weighted, 3), np.argsort(-expected.sum(axis=0))[:3])


def test_webkb_has_the_papers_terms(real_data):
    real_data("webkb")
    pages = fetch_benchmark("webkb", data_home=SHARED)
    counts = pages.data[pages.test_indices]
    occurring = np.flatnonzero(np.asarray(counts.sum(axis=0)).ravel())
    assert counts.shape[0] == 1396
    assert abs(len(occurring) - 4800) <= 2
    top = top_terms(log_entropy(counts), 100)
    assert pages.feature_names[top[0]] == "system"


def test_standardized_srbct_arrays_have_the_papers_principal_components(real_data):
    """Top 100 genes by BSS/WSS: 27.52, 23.12, 15.89 and 3.48 % of the variation (Lee et al., section 6.1)."""
    from sklearn.decomposition import PCA
    from sklearn.feature_selection import SelectKBest, f_classif

    real_data("khan_srbct")
    arrays = fetch_benchmark("khan_srbct", data_home=SHARED)
    X, y = standardize_arrays(arrays.data)[arrays.train_indices], arrays.target[arrays.train_indices]
    shares = PCA(4).fit(SelectKBest(f_classif, k=100).fit_transform(X, y)).explained_variance_ratio_
    np.testing.assert_allclose(100 * shares, [27.52, 23.12, 15.89, 3.48], atol=0.005)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: standardize_arrays([[1.0, -1.0]], logged=False), "positive"),
        (lambda: standardize_arrays([[1.0, 1.0]]), "constant row 0"),
        (lambda: log_entropy([[1, -1], [0, 2]]), "non-negative"),
        (lambda: top_terms([[1.0, 2.0]], 3), "at most the number of terms"),
    ],
)
def test_bad_input_of_preprocessing_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
