"""Altered model files: refused in one sentence, or as good as they were; never a NaN without a word."""

import io
import zipfile

import numpy as np
import pytest

from polymargin import MulticategorySVC, ProximalSVC, RobustSVC, SharedStructureSVC, SparseSVC, persistence
from tests.simulate import blobs

MODELS = [
    MulticategorySVC(),
    MulticategorySVC(kernel="linear", loss="weston"),
    MulticategorySVC(landmarks=5, random_state=0),
    ProximalSVC(),
    ProximalSVC(kernel="rbf"),
    SparseSVC(),
    SharedStructureSVC(),
    RobustSVC(),
]
X, Y = blobs(np.random.default_rng(0), 45, 3, 3)


def alterations(array):
    """Yield what an array could have become, each with its name."""
    if array.dtype.kind == "f" and array.size:
        for value in (np.nan, np.inf):
            changed = array.copy()
            changed.flat[-1] = value
            yield f"{value}", changed
    if array.ndim and len(array) > 1:
        yield "one less", array[:-1]
        yield "reversed", array[::-1]
        yield "all the same", np.repeat(array[:1], len(array), axis=0)
    yield "of text", np.full(array.shape, "x")


def rewritten(data, member, content):
    """Return the archive with one member replaced."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, content if name == member else old.read(name))
    return out.getvalue()


@pytest.mark.parametrize("machine", MODELS, ids=repr)
def test_every_altered_array_is_refused_or_harmless(machine, tmp_path):
    path = tmp_path / "model.skops"
    persistence.save(machine.fit(X, Y), path)
    data = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        arrays = {name: np.load(archive.open(name)) for name in archive.namelist() if name.endswith(".npy")}
    tried, told = 0, []
    for member, array in arrays.items():
        for change, altered in alterations(array):
            content = io.BytesIO()
            np.save(content, altered)
            path.write_bytes(rewritten(data, member, content.getvalue()))
            tried += 1
            try:
                model = persistence.load(path).model
            except ValueError as error:
                told.append(str(error))
                continue
            scores = model.decision_function(X)
            assert np.isfinite(scores).all(), (member, change)
            assert set(model.predict(X)) <= set(model.classes_), (member, change)
    assert tried >= 10
    assert told
    assert all(str(path) in sentence for sentence in told)


@pytest.mark.parametrize("machine", MODELS[:4], ids=repr)
def test_bytes_that_flip_are_refused_or_harmless(machine, tmp_path):
    path = tmp_path / "model.skops"
    persistence.save(machine.fit(X, Y), path)
    data, rng = path.read_bytes(), np.random.default_rng(1)
    for _ in range(25):
        altered = bytearray(data)
        altered[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(altered))
        try:
            model = persistence.load(path).model
        except ValueError:
            continue
        assert np.isfinite(model.decision_function(X)).all()


def test_a_model_with_nan_is_not_saved(tmp_path):
    machine = ProximalSVC().fit(X, Y)
    machine.coef_[0, 0] = np.nan
    with pytest.raises(ValueError, match="not sound: coef_ of ProximalSVC must be finite"):
        persistence.save(machine, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())
