"""LIBSVM files, whose classes may be names."""

import io
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.datasets import load_svmlight_file


def read(path: Path, n_features: int | None = None) -> tuple[Any, pd.Series]:
    """Return the sparse matrix and the classes of a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            X, numbers = load_svmlight_file(str(path), n_features=n_features)
            return X, pd.Series(numbers)
        except ValueError:
            named = _with_codes(path)
            if named is None:
                raise
            content, names = named
            X, codes = load_svmlight_file(io.BytesIO(content), n_features=n_features)
            return X, pd.Series([names[int(code)] for code in codes])


def _with_codes(path: Path) -> tuple[bytes, list[str]] | None:
    """Return the content with numbers for the names of classes, and the names; None where there are no names."""
    if path.suffix in (".gz", ".bz2"):
        return None
    codes: dict[bytes, int] = {}
    lines = []
    for line in path.read_bytes().splitlines():
        words = line.split(b"#")[0].split(None, 1)
        if words:
            code = codes.setdefault(words[0], len(codes))
            lines.append(b"%d %s" % (code, words[1] if len(words) > 1 else b""))
    if not codes or any(b":" in name for name in codes) or all(_is_number(name) for name in codes):
        return None
    return b"\n".join(lines) + b"\n", [name.decode("utf-8", "replace") for name in codes]


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
