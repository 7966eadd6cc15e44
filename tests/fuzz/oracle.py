"""The judge of a call: its outcome is right, a clean refusal, or a defect."""

import ast
import inspect
import re
import signal
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy
import sklearn
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics.pairwise import pairwise_kernels

import polymargin
from polymargin.costs import resolve_cost_matrix
from tests.fuzz.recipes import TARGETS, Recipe, argument, data

CPU_SECONDS = 30.0
"""Time after which a call on so few rows counts as one that does not end."""
OURS, SCIKIT_LEARN = Path(polymargin.__file__).parent, Path(sklearn.__file__).parent
NUMERICAL = Path(np.__file__).parent, Path(scipy.__file__).parent
CLEAN = (ValueError, TypeError, FloatingPointError, NotFittedError)
ROUNDING = 1e-6


@dataclass(frozen=True)
class Verdict:
    """What became of a call: "right", "refused" or "defect", and why."""

    kind: str
    reason: str = ""


class Said(NamedTuple):
    """A warning, and the file that called the numerical function from which it came."""

    message: Any
    category: type[Warning]
    filename: str
    lineno: int
    caller: str


class OutOfTimeError(BaseException):
    """Raised by the clock, past every `except Exception`."""


@contextmanager
def clock(seconds: float) -> Iterator[None]:
    """Raise after so many seconds of the processor."""

    def ring(signum: int, frame: Any) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def judge(recipe: Recipe) -> Verdict:
    """Make the call and judge what comes of it."""
    try:
        parameters = {name: argument(value) for name, value in recipe.parameters.items()}
        X, y, weights = data(recipe)
    except (TypeError, ValueError, IndexError, np.exceptions.ComplexWarning):
        return Verdict("refused", "numpy itself cannot make these rows")
    said: list[Said] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = partial(_note, said)
        try:
            with clock(CPU_SECONDS):
                verdict = _call(recipe, parameters, X, y, weights)
        except OutOfTimeError as late:
            frames = [frame for frame in traceback.extract_tb(late.__traceback__) if str(OURS) in frame.filename]
            where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames[-6:]))
            return Verdict("defect", f"did not end within {CPU_SECONDS:g} CPU seconds: {where}")
        except Exception as error:
            return Verdict("defect", f"could not be judged: {type(error).__name__}: {str(error)[:160]}")
    for warning in said:
        allowed = (ConvergenceWarning, DataConversionWarning)
        ours = issubclass(warning.category, UserWarning) and "polymargin" in str(warning.filename)
        kind = warning.category
        if kind in allowed or ours or (kind is UserWarning or kind is FutureWarning):
            continue
        if _is_of_scikit_learn(recipe) and str(SCIKIT_LEARN) in warning.caller:
            continue  # what the user's own RidgeClassifier says of its rows
        place = f"{Path(warning.filename).name}:{warning.lineno}"
        return Verdict("defect", f"{warning.category.__name__} at {place}: {str(warning.message)[:100]}")
    return verdict


def _note(said: list[Said], message: Any, category: type[Warning], filename: str, lineno: int, *rest: Any) -> None:
    """Note a warning; `warnings.showwarning` during a call."""
    frames = (frame.filename for frame in reversed(traceback.extract_stack()))
    beneath = (warnings.__file__, __file__, *map(str, NUMERICAL))
    caller = next((name for name in frames if not name.startswith(beneath)), filename)
    said.append(Said(message, category, filename, lineno, caller))


def _is_of_scikit_learn(recipe: Recipe) -> bool:
    """Tell whether a call is about a classifier of scikit-learn's, which has its own words."""
    return "Ridge" in recipe.parameters.get("estimator", "Ridge" if recipe.target == "NewtonRefinement" else "")


def _call(recipe: Recipe, parameters: dict[str, Any], X: Any, y: Any, weights: Any) -> Verdict:
    target = getattr(polymargin, recipe.target)
    if not isinstance(target, type):
        return _function(recipe, target, parameters, X, y, weights)
    if recipe.target == "Decider":
        return _decider(recipe, parameters, X, y, weights)
    if "estimator" in TARGETS[recipe.target]:
        default: Any = RidgeClassifier() if recipe.target == "NewtonRefinement" else polymargin.ProximalSVC()
        parameters = {"estimator": default, **parameters}
    model = target(**parameters)
    kernel = getattr(model, "kernel", None)
    if isinstance(kernel, str) and kernel == "precomputed" and isinstance(X, np.ndarray) and X.ndim == 2:
        try:
            with np.errstate(all="ignore"):
                X = X @ X.T if X.dtype != bool else X.astype(float) @ X.T.astype(float)
        except (TypeError, ValueError):
            return Verdict("refused", "rows of text, or masked ones, have no inner products")
    try:
        model.fit(X, y, sample_weight=weights) if weights is not None else model.fit(X, y)
    except Exception as error:
        verdict = _refusal(error, recipe, parameters)
        if verdict.kind == "refused":
            return _is_not_fitted(model, X) or verdict
        return verdict
    return _model(recipe, model, X, y, weights)


def _decider(recipe: Recipe, parameters: dict[str, Any], X: Any, y: Any, weights: Any) -> Verdict:
    """Judge decisions under costs by the probabilities of a plain machine."""
    try:
        model = polymargin.ProbabilityClassifier(polymargin.ProximalSVC()).fit(X, y, sample_weight=weights)
        decided = polymargin.Decider(model, **parameters).predict(X)
    except Exception as error:
        return _refusal(error, recipe, parameters)
    if not set(np.asarray(decided).tolist()) <= set(model.classes_.tolist()):
        return Verdict("defect", "decides for what is no class")
    return Verdict("right")


def _function(recipe: Recipe, function: Any, parameters: dict[str, Any], X: Any, y: Any, weights: Any) -> Verdict:
    weighting = {} if weights is None else {"sample_weight": weights}
    try:
        match recipe.target:
            case "expected_cost":
                rolled = None if y is None else np.roll(y, 1, axis=0)
                value = function(y, rolled, **parameters, **weighting)
                return Verdict("right") if np.isfinite(value) else Verdict("defect", f"a cost of {value}")
            case "compress":
                given = {name: parameters.pop(name) for name in ("C", "kernel") if name in parameters}
                model = polymargin.MulticategorySVC(**given).fit(X, y, **weighting)
                smaller = function(model, **{"max_loss": 0.01, **parameters}, X=X).model
                return _model(recipe, smaller, X, y, weights)
            case "gacv" | "loo":
                value = function(polymargin.MulticategorySVC(**parameters).fit(X, y, **weighting))
                return Verdict("right") if np.isfinite(value) else Verdict("defect", f"a value of {value}")
            case "sparse_path":
                found = function(X, y, **parameters, **weighting)
                certificates, arrays = found.certificates, (found.coefs, found.intercepts)
            case "proximal_path":
                models = function(polymargin.ProximalSVC(), X, y, **parameters, **weighting)
                certificates, arrays = [m.certificate_ for m in models], [m.coef_ for m in models]
            case "trace_norm_path":
                found = function(polymargin.TraceNormSVC(), X, y, **parameters, **weighting)
                certificates, arrays = found.certificates, (found.coefs, found.singular_values)
            case _:
                found = function(polymargin.SparseSVC(), X, y, **parameters)
                certificates, arrays = [], (found.features, found.separations)
    except Exception as error:
        return _refusal(error, recipe, parameters)
    if not all(certificate.is_finite for certificate in certificates):
        return Verdict("defect", "a certificate of a path is not finite")
    if not all(np.isfinite(values).all() for values in arrays):
        return Verdict("defect", "coefficients of a path are not finite")
    return Verdict("right")


def _refusal(error: Exception, recipe: Recipe, parameters: dict[str, Any]) -> Verdict:
    """Judge an error: of a plain kind, raised by our checks or scikit-learn's, in words that name an argument."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [Path(frame.filename) for frame in frames]
    found = f"{type(error).__name__} from {places[-1].name}:{frames[-1].lineno}: {str(error)[:160]}"
    theirs = type(parameters.get("estimator")).__module__.startswith("sklearn.")
    if theirs and any(place.is_relative_to(SCIKIT_LEARN / "linear_model") for place in places):
        return Verdict("refused", f"by the user's own classifier: {found}")
    if type(error) not in CLEAN and not (
        isinstance(error, ValueError) and type(error).__module__.startswith("polymargin.")
    ):
        return Verdict("defect", found)
    if any(ord(character) < 32 and character not in "\n\t" for character in str(error)):
        return Verdict("defect", f"control characters in {found!r}")
    if _converts(places):
        return Verdict("refused", found)
    if not (places[-1].is_relative_to(OURS) or places[-1].is_relative_to(SCIKIT_LEARN)):
        return Verdict("defect", f"not from a check: {found}")
    if not _is_meant(frames[-1]):
        return Verdict("defect", f"happened, and was not raised: {found}")
    if places[-1].is_relative_to(SCIKIT_LEARN / "utils"):
        return Verdict("refused", found)  # by its checks of rows and labels, which users of any estimator know
    if not any(re.search(rf"\b{name}\b", str(error)) for name in _arguments(recipe.target)):
        return Verdict("defect", f"names no argument: {found}")
    return Verdict("refused", found)


def _converts(places: list[Path]) -> bool:
    """Tell whether scikit-learn had asked numpy to convert rows, labels or weights, and let its words through."""
    conversion = [SCIKIT_LEARN / "utils" / name for name in ("validation.py", "_array_api.py", "multiclass.py")]
    ours = max((index for index, place in enumerate(places) if place.is_relative_to(OURS)), default=-1)
    return any(place in conversion for place in places[ours + 1 :])


def _is_meant(frame: traceback.FrameSummary) -> bool:
    """Tell whether an error left a `raise` statement: any other line is one on which something went wrong."""
    tree = _parsed(frame.filename)
    return any(
        node.lineno <= frame.lineno <= node.end_lineno for node in ast.walk(tree) if isinstance(node, ast.Raise)
    )


@cache
def _parsed(path: str) -> ast.Module:
    return ast.parse(Path(path).read_text())


@cache
def _arguments(target: str) -> frozenset[str]:
    """Return the names of what can be given to a call, or to the machines within it."""
    called = getattr(polymargin, target)
    calls = [called, getattr(called, "fit", called)]
    if {"estimator", "model"} & set(inspect.signature(called).parameters):
        calls += [getattr(polymargin, name) for name in TARGETS if name.endswith("SVC")]
    named = {name for call in calls for name in inspect.signature(call).parameters}
    return frozenset({"X", "y", "sample_weight", *named, *TARGETS[target]}) - WORDS


WORDS = {"self", "by", "form", "method", "model", "parameters"}
"""Names of arguments that any sentence may hold."""


def _is_not_fitted(model: Any, X: Any) -> Verdict | None:
    """Return a defect if a model whose fit has failed can be used."""
    try:
        model.predict(np.zeros((2, 3)))
    except NotFittedError:
        return None
    except AttributeError:
        if not hasattr(getattr(model, "estimator", model), "decision_function"):
            return None  # what is wrapped is no classifier at all
        return Verdict("defect", "after a failed fit: AttributeError")
    except Exception as error:
        return Verdict("defect", f"after a failed fit: {type(error).__name__}: {error}")
    return Verdict("defect", "after a failed fit the model predicts")


def _model(recipe: Recipe, model: Any, X: Any, y: Any, weights: Any) -> Verdict:
    """Judge a fitted model: scores, predictions, certificate."""
    try:
        predicted = model.predict(X)
        scores = model.decision_function(X) if hasattr(model, "decision_function") else np.zeros(len(predicted))
    except Exception as error:
        return Verdict("defect", f"cannot predict its training rows: {type(error).__name__}: {str(error)[:120]}")
    if not np.isfinite(scores).all():
        return Verdict("defect", "scores of training rows are not finite")
    known = [*model.classes_.tolist(), getattr(model, "reject_label_", None)]
    if not set(np.asarray(predicted).tolist()) <= set(known):
        return Verdict("defect", "predicts what is no class")
    if hasattr(model, "predict_proba"):
        try:
            shares = model.predict_proba(X)
        except Exception as error:
            return Verdict("defect", f"no probabilities: {type(error).__name__}: {str(error)[:120]}")
        if not np.isfinite(shares).all() or shares.min() < 0 or np.abs(shares.sum(axis=1) - 1).max() > 1e-9:
            return Verdict("defect", "probabilities that are none")
    certificate = getattr(model, "certificate_", None)
    if certificate is None:
        return Verdict("right")
    if not certificate.is_finite:
        return Verdict("defect", f"the certificate is {certificate}")
    tol, converged = getattr(model, "tol", None), getattr(model, "converged_", True)
    if converged and certificate.gap < -1e-9:
        return Verdict("defect", f"converged with the dual above the primal: {certificate}")
    if converged and tol is not None and certificate.gap > tol:
        return Verdict("defect", f"converged beyond its tolerance: {certificate}")
    return _objective(recipe, model, X, y, weights) or Verdict("right")


def _objective(recipe: Recipe, model: Any, X: Any, y: Any, weights: Any) -> Verdict | None:
    """Recompute the objective of a converged `MulticategorySVC` from its scores and coefficients."""
    if recipe.target != "MulticategorySVC" or not model.converged_ or model.landmarks is not None:
        return None
    if model.loss not in ("lee", "weston", "crammer"):
        return None
    labels = np.searchsorted(model.classes_, np.asarray(y).ravel())
    labels = np.minimum(labels, len(model.classes_) - 1)  # of rows without weight, whose class may be unknown
    rows = np.asarray(X.todense() if sparse.issparse(X) else X, dtype=np.float64)
    rows = rows.astype(np.float32).astype(np.float64) if np.asarray(X).dtype == np.float32 else rows
    k = len(model.classes_)
    weight = np.ones(len(rows)) if weights is None else np.asarray(weights, dtype=np.float64)
    if np.ndim(weight) == 0:
        weight = np.full(len(rows), float(weight))
    used = weight > 0
    totals = np.bincount(labels, weight, k)
    weight = weight * model._class_factors(model.classes_, totals)[labels]
    costs = weight[:, None] * resolve_cost_matrix(model.cost_matrix, model.classes_)[labels]
    scores = model.decision_function(X)
    scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
    if model.loss == "lee":  # whose scores sum to zero, up to the rounding of coefficients as large as C
        scores = scores - scores.mean(axis=1, keepdims=True)
    losses = _losses(model.loss, scores, labels, costs)[used].sum()
    at_zero = _losses(model.loss, np.zeros_like(scores), labels, costs)[used].sum()
    if hasattr(model, "coef_"):
        norm = float(np.vdot(model.coef_, model.coef_))
    elif model.kernel == "precomputed":
        return None
    else:
        support = model.support_vectors_.astype(np.float64)  # squares of single precision would overflow
        if support.shape[0] == 0:
            return _compared(model, 0.0, losses, at_zero)
        if model.kernel in ("rbf", "laplacian"):
            support = support.toarray() if sparse.issparse(support) else support
            support = support - np.median(support, axis=0)  # distances keep their digits
        K = model.kernel(support, support) if callable(model.kernel) else pairwise_kernels(
            support, metric=model.kernel, filter_params=True, gamma=model._gamma, degree=model.degree,
            coef0=model.coef0,
        )  # fmt: skip
        norm = float(np.vdot(model.dual_coef_, model.dual_coef_ @ K))
    return _compared(model, norm, losses, at_zero)


def _compared(model: Any, norm: float, losses: float, at_zero: float) -> Verdict | None:
    """Compare a certificate with the objective of the model, and with that of zero scores."""
    value = 0.5 * norm + model.C * losses
    reported = model.certificate_.primal
    if abs(value - reported) > max(ROUNDING, model.tol) * max(1.0, abs(reported)):
        return Verdict(
            "defect", f"the certificate's objective {reported:.8g} is not that of the scores, {value:.8g}"
        )
    if model.certificate_.dual > model.C * at_zero * (1 + ROUNDING) + ROUNDING:
        return Verdict("defect", f"a dual of {model.certificate_.dual:.8g} above the objective of zero scores")
    return None


def _losses(loss: str, scores: np.ndarray, labels: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Return the loss of every row by its definition."""
    k = scores.shape[1]
    rows = np.arange(len(scores))
    if loss == "lee":
        return (costs * np.maximum(scores + 1.0 / (k - 1), 0.0)).sum(axis=1)
    behind = np.maximum(2.0 + scores - scores[rows, labels][:, None], 0.0)
    behind[rows, labels] = 0.0
    return (costs * behind).sum(axis=1) if loss == "weston" else costs.max(axis=1) * behind.max(axis=1)
