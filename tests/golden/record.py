"""What is stored of a fit, and how far two records of the same fit are apart."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tests.golden.cases import CASES, Case

STORE = Path(__file__).parent / "fits.json"
SHOWN = 12
"""Rows whose scores are stored; the predictions are stored of all but ties."""
TIE = 1e-9


def fitted(case: Case) -> dict[str, Any]:
    """Fit a case and note objectives, gap, scores and predictions."""
    X, y, weights = case.data()
    estimator = clone(case.estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(X, y, sample_weight=weights)
    certificate = estimator.certificate_
    scores = estimator.decision_function(X)
    shown = np.linspace(0, len(y) - 1, SHOWN).astype(int)
    return {
        "primal": certificate.primal,
        "dual": certificate.dual,
        "gap": certificate.gap,
        "scores": np.atleast_2d(scores[shown].T).T.tolist(),
        "predictions": "".join(np.where(_tied(scores), ".", estimator.predict(X).astype(str))),
    }


def _tied(scores: np.ndarray) -> np.ndarray:
    """Tell which rows have no class ahead of the others by more than rounding."""
    if scores.ndim == 1:
        return np.abs(scores) <= TIE
    second, first = np.sort(scores, axis=1)[:, -2:].T
    return first - second <= TIE


def load() -> dict[str, dict[str, Any]]:
    """Return the stored records."""
    return json.loads(STORE.read_text())


def write(part: str = "") -> None:
    """Fit the cases with `part` in their names and store the records, one on a line; the others stay."""
    stored = load() if part else {}
    records = {name: fitted(case) if part in name else stored[name] for name, case in CASES.items()}
    lines = [f"{json.dumps(name)}: {json.dumps(record)}" for name, record in records.items()]
    STORE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def distance(stored: dict[str, Any], now: dict[str, Any]) -> tuple[float, float, int]:
    """Return how far objective, scores (relative to the largest) and predictions (their number) are apart."""
    objective = abs(now["primal"] - stored["primal"]) / max(1.0, abs(stored["primal"]))
    before, after = np.array(stored["scores"]), np.array(now["scores"])
    scores = float(np.abs(after - before).max() / max(1.0, np.abs(before).max()))
    both = zip(stored["predictions"], now["predictions"], strict=True)
    changed = sum(a != b for a, b in both if "." not in (a, b))
    return objective, scores, changed
