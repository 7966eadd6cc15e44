"""Real data sets of the papers and of our benchmarks: read from a folder, else downloaded once from OpenML."""

import io
import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml, get_data_home
from sklearn.utils import Bunch

from polymargin.checks import check_choice
from polymargin.files import write_atomically

FOLDER_VARIABLE = "POLYMARGIN_DATA"


@dataclass(frozen=True)
class Benchmark:
    """What a data set must look like: its shape and the sorted sizes of its classes; where OpenML has it."""

    shape: tuple[int, int]
    class_sizes: tuple[int, ...]
    openml: int | None = None
    file: str | None = None


# fmt: off
_LETTER_SIZES = (
    734, 734, 736, 739, 747, 748, 752, 753, 755, 758, 761, 764, 766,
    768, 773, 775, 783, 783, 786, 787, 789, 792, 796, 803, 805, 813,
)
# fmt: on
_NCI60_SIZES = (1, 1, 1, 1, 1, 2, 5, 6, 6, 7, 7, 8, 9, 9)

# OpenML has other versions of waveform (40 variables), satimage (6,430 rows) and leukemia (two classes).
BENCHMARKS = {
    "covtype": Benchmark((581012, 54), (2747, 9493, 17367, 20510, 35754, 211840, 283301), 1596),
    "glass": Benchmark((214, 9), (9, 13, 17, 29, 70, 76), 41),
    "khan_srbct": Benchmark((83, 2308), (11, 18, 25, 29)),
    "khan_srbct_test25": Benchmark((25, 2308), (3, 5, 5, 6, 6)),
    "letter": Benchmark((20000, 16), _LETTER_SIZES, 6),
    "leukemia": Benchmark((72, 7129), (9, 25, 38), file="leukemia3"),
    "mnist": Benchmark((70000, 784), (6313, 6824, 6825, 6876, 6903, 6958, 6990, 7141, 7293, 7877), 554),
    "nci60": Benchmark((64, 6830), _NCI60_SIZES),
    "pendigits": Benchmark((10992, 16), (1055, 1055, 1055, 1055, 1056, 1142, 1143, 1143, 1144, 1144), 32),
    "satimage": Benchmark((6435, 36), (626, 703, 707, 1358, 1508, 1533)),
    "segment": Benchmark((2310, 19), (330,) * 7, 36),
    "usps": Benchmark((9298, 256), (708, 716, 792, 821, 824, 834, 852, 929, 1269, 1553), 41082),
    "vehicle": Benchmark((846, 18), (199, 212, 217, 218), 54),
    "vowel": Benchmark((990, 10), (90,) * 11, 307),
    "waveform": Benchmark((5000, 21), (1647, 1657, 1696)),
    "webkb": Benchmark((4199, 7770), (504, 930, 1124, 1641)),
}


def fetch_benchmark(name: str, data_home: str | os.PathLike | None = None) -> Bunch:
    """Load a real data set from a folder, or download it once from OpenML where it has the same set.

    The folder is `data_home`, else the environment variable ``POLYMARGIN_DATA``, else ``polymargin`` in
    scikit-learn's data folder. It holds NAME.npz with `X`, `y` and, where known, `feature_names`, `train_idx` and
    `test_idx` (sparse data: `X_data`, `X_indices`, `X_indptr`, `X_shape`). Nothing is scaled. Shape and class
    sizes are verified before anything is returned or kept. The numbers of the sets on OpenML are from its
    catalogue and were not tried over a network: a set that is not the one expected is refused, not returned.

    Parameters
    ----------
    name : str
        One of covtype, glass, khan_srbct, khan_srbct_test25 (the 20 test arrays and five of other tissues),
        letter, leukemia, mnist, nci60, pendigits, satimage, segment, usps, vehicle, vowel, waveform, webkb.
    data_home : path or None, default=None

    Returns
    -------
    Bunch
        `data` (float64; float32 for covtype and mnist; CSR counts for webkb), `target`, `feature_names`,
        `train_indices`, `test_indices` (None where unknown: OpenML's copies come without the usual split, and with
        its own names of the classes).

    Raises
    ------
    FileNotFoundError
        The set is not in the folder and is not on OpenML in this form.
    ConnectionError
        The set is not in the folder and could not be downloaded.
    ValueError
        The data are not the set that they should be.

    Examples
    --------
    >>> from polymargin.datasets import fetch_benchmark
    >>> vehicle = fetch_benchmark("vehicle")  # doctest: +SKIP
    >>> vehicle.data.shape  # doctest: +SKIP
    (846, 18)
    """
    check_choice("name", name, list(BENCHMARKS))
    benchmark = BENCHMARKS[name]
    folder = _folder(data_home)
    path = folder / f"{benchmark.file or name}.npz"
    if path.exists():
        stored = _read(path)
        _verify(stored, benchmark, str(path))
        return stored
    stored = _download(name, benchmark, path)
    _verify(stored, benchmark, f"OpenML's data set {benchmark.openml}")
    _write(stored, path)
    return stored


def _folder(data_home: str | os.PathLike | None) -> Path:
    if data_home is not None:
        return Path(data_home).expanduser()
    if os.environ.get(FOLDER_VARIABLE):
        return Path(os.environ[FOLDER_VARIABLE]).expanduser()
    return Path(get_data_home()) / "polymargin"


def _read(path: Path) -> Bunch:
    with np.load(path, allow_pickle=False) as arrays:
        if "X_shape" in arrays:
            parts = (arrays["X_data"].astype(np.float64), arrays["X_indices"].astype(np.int32), arrays["X_indptr"])
            X: Any = sp.csr_array(parts, shape=tuple(arrays["X_shape"]))
        else:
            X = arrays["X"]
            # Integers mark the two large sets, which single precision holds exactly in half the memory.
            X = X.astype(np.float32) if X.dtype.kind in "iu" else X
        names, train, test = (arrays.get(key) for key in ("feature_names", "train_idx", "test_idx"))
        return _pack(X, arrays["y"], names, train, test)


def _pack(
    X: Any, y: NDArray, names: Any = None, train: NDArray | None = None, test: NDArray | None = None
) -> Bunch:
    return Bunch(data=X, target=y, feature_names=names, train_indices=train, test_indices=test)


def _verify(stored: Bunch, benchmark: Benchmark, source: str) -> None:
    sizes = tuple(sorted(np.unique(stored.target, return_counts=True)[1].tolist()))
    if stored.data.shape != benchmark.shape or sizes != benchmark.class_sizes:
        raise ValueError(
            f"{source} is not the expected data set: it has shape {stored.data.shape} and class sizes {sizes}, "
            f"expected {benchmark.shape} and {benchmark.class_sizes}. Remove or replace it."
        )


def _download(name: str, benchmark: Benchmark, path: Path) -> Bunch:
    advice = (
        f"Put {path.name} there (arrays X and y, see the documentation of fetch_benchmark), or name a folder that "
        f"holds it by data_home or the environment variable {FOLDER_VARIABLE}"
    )
    if benchmark.openml is None:
        raise FileNotFoundError(f"{path.name} is not in {path.parent}, and OpenML does not have {name}. {advice}.")
    parser = "pandas" if find_spec("pandas") else "liac-arff"
    try:
        found = fetch_openml(data_id=benchmark.openml, as_frame=False, parser=parser, n_retries=1)
    except OSError as error:
        raise ConnectionError(
            f"{path.name} is not in {path.parent}, and OpenML's data set {benchmark.openml} could not be "
            f"downloaded ({type(error).__name__}: {error}). {advice}, or try again with a connection."
        ) from error
    X, names = np.asarray(found.data), np.asarray(found.feature_names)
    if name == "vowel":
        # OpenML adds the speaker and the sex to the ten measurements.
        measured = np.char.startswith(names.astype(str), "Feature")
        X, names = X[:, measured], names[measured]
    dtype = np.float32 if name in ("covtype", "mnist") else np.float64
    labels = np.asarray(found.target).astype(str)
    is_numeric = all(label.removeprefix("-").isdigit() for label in np.unique(labels))
    return _pack(X.astype(dtype), labels.astype(np.int64) if is_numeric else labels, names.astype(str))


def _write(stored: Bunch, path: Path) -> None:
    """Keep the set; a run that dies half-way leaves no broken file under the final name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, X=stored.data, y=stored.target, feature_names=stored.feature_names)
    write_atomically(path, buffer.getvalue())
