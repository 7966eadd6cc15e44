"""Fitted models in files: written whole or not at all, and read without running any code of the file.

The files are `skops` archives: arrays and a schema that names types. Reading one builds objects of the types named
here, and of those of numpy, scipy and scikit-learn that skops trusts by itself; a file that names any other type
is refused before anything is built.
"""

import copy
import io
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from polymargin.costs import resolve_cost_matrix, resolve_utility
from polymargin.estimators.multicategory import FitRecord, MulticategorySVC
from polymargin.estimators.parts import MarginClassifier
from polymargin.estimators.proximal import ProximalSVC
from polymargin.estimators.refinement import NewtonRefinement
from polymargin.estimators.robust import RobustSVC
from polymargin.estimators.shared import SharedStructureSVC
from polymargin.estimators.sparse import SparseSVC
from polymargin.estimators.trace_norm import TraceNormSVC
from polymargin.files import write_atomically
from polymargin.gram import Kernel, KernelFeatures, NystroemMap
from polymargin.moments import ClassMoments
from polymargin.problems.certificate import Certificate
from polymargin.problems.penalties import PENALTIES
from polymargin.selection.budget import BudgetSearch, Trial
from polymargin.selection.calibration import IsotonicMap, SigmoidMap, SoftmaxMap
from polymargin.selection.left_out import LeftOut
from polymargin.selection.multicategory import MarginSearch
from polymargin.selection.prediction_sets import PredictionSetClassifier, _Fold
from polymargin.selection.probabilities import ProbabilityClassifier
from polymargin.selection.proximal import ProximalSVCCV
from polymargin.selection.rejection import RejectOptionClassifier, StrengthCurve
from polymargin.selection.robust import RobustSearch
from polymargin.selection.scoring import CostScorer
from polymargin.selection.shared import SharedStructureSearch
from polymargin.selection.sparse import SparseSVCCV
from polymargin.solvers.ridge.refinement import Refinement
from polymargin.solvers.trace import Trace, TraceRow
from polymargin.soundness import check_sound

TRUSTED = (
    _Fold,
    BudgetSearch,
    Certificate,
    ClassMoments,
    CostScorer,
    FitRecord,
    IsotonicMap,
    Kernel,
    KernelFeatures,
    LeftOut,
    MarginSearch,
    MulticategorySVC,
    NewtonRefinement,
    NystroemMap,
    PredictionSetClassifier,
    ProbabilityClassifier,
    ProximalSVC,
    ProximalSVCCV,
    Refinement,
    RejectOptionClassifier,
    RobustSVC,
    RobustSearch,
    SharedStructureSVC,
    SharedStructureSearch,
    SigmoidMap,
    SoftmaxMap,
    SparseSVC,
    SparseSVCCV,
    StrengthCurve,
    Trace,
    TraceNormSVC,
    Trial,
    TraceRow,
    *(type(penalty) for penalty in PENALTIES.values()),
)
"""The types of ours that a file may name: classifiers, and the plain records that fitted ones hold."""

TRUSTED_OF_OTHERS = (
    "numpy.dtype",
    "scipy.sparse._csc.csc_array",
    "scipy.sparse._csc.csc_matrix",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.model_selection._split.StratifiedKFold",
)
"""Plain data that models hold, preprocessing and searches included, and skops does not trust by itself."""

FORMAT = 1
"""Version of what a file holds; raised when older readers could not make sense of it."""


@dataclass(frozen=True, slots=True)
class SavedModel:
    """What a file holds.

    Attributes
    ----------
    model : the fitted classifier, or a pipeline that ends in one.
    metadata : what `save` was told about it: plain values, lists and dicts.
    """

    model: Any
    metadata: dict[str, Any]


def save(model: Any, path: str | os.PathLike, *, metadata: Mapping[str, Any] | None = None) -> None:
    """Write a fitted model to a file.

    Costs and utilities that were given as dicts or data frames are stored as arrays in the order of `classes_`.

    Parameters
    ----------
    model : fitted classifier of Polymargin, or pipeline that ends in one
    path : path
        The file, by convention NAME.skops; replaced if it exists.
    metadata : mapping or None, default=None
        Whatever a reader should know: plain values, lists and dicts.

    Raises
    ------
    TypeError
        The model is none of ours.
    ValueError
        The model is not fitted, or holds something that no file can hold, a function for example.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import ProximalSVC, persistence
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     persistence.save(ProximalSVC().fit(X, y), f"{folder}/iris.skops", metadata={"target": "species"})
    ...     saved = persistence.load(f"{folder}/iris.skops")
    >>> saved.metadata, saved.model.predict(X[:2])
    ({'target': 'species'}, array([0, 0]))
    """
    skops_io = _skops()
    _check_ours(model, TypeError, "model")
    if not hasattr(model, "classes_"):
        raise ValueError("model must be fitted before it is saved.")
    try:
        check_sound(model)
    except ValueError as error:
        raise ValueError(f"model cannot be saved, it is not sound: {error}") from error
    content = {
        "format": FORMAT,
        "polymargin": version("polymargin"),
        "metadata": dict(metadata or {}),
        "model": _with_plain_costs(copy.deepcopy(model), model.classes_),
    }
    try:
        data = skops_io.dumps(content)
    except Exception as error:  # skops meets whatever a user put into a parameter
        raise ValueError(f"model cannot be saved, one of its parameters is no plain data: {error}") from error
    foreign = _foreign_types(skops_io, data)
    if foreign:
        raise ValueError(f"model cannot be saved, it holds objects that would not be read: {', '.join(foreign)}.")
    write_atomically(path, data)


def load(path: str | os.PathLike) -> SavedModel:
    """Read a model from a file that `save` wrote; no code of the file is run.

    Parameters
    ----------
    path : path

    Returns
    -------
    SavedModel
        The model, and the metadata stored with it.

    Raises
    ------
    ValueError
        The file is no model, is damaged, or names a type that is not trusted.
    OSError
        The file cannot be read.
    """
    skops_io = _skops()
    data = Path(path).read_bytes()
    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise ValueError(f"{path} is no saved model, or is damaged: it is not a whole zip archive.")
    try:
        foreign = _foreign_types(skops_io, data)
        content = None if foreign else skops_io.loads(data, trusted=_trusted_names())
    except Exception as error:  # the schema is whatever somebody wrote
        reason = error.args[0] if error.args else type(error).__name__
        raise ValueError(f"{path} is no saved model, or is damaged: {reason}") from error
    if foreign:
        raise ValueError(f"{path} is refused: it names what a model of ours never holds: {', '.join(foreign)}.")
    if not isinstance(content, dict) or not {"format", "metadata", "model"} <= set(content):
        raise ValueError(f"{path} is no model saved by polymargin: it holds a {type(content).__name__}.")
    if content["format"] != FORMAT:
        raise ValueError(
            f"{path} has format {content['format']!r}, this version of polymargin reads format {FORMAT}; it was "
            f"written by polymargin {content.get('polymargin')}."
        )
    _check_ours(content["model"], ValueError, f"{path}: the model")
    if not isinstance(content["metadata"], dict):
        raise ValueError(f"{path} is damaged: its metadata are a {type(content['metadata']).__name__}.")
    try:
        check_sound(content["model"])
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    return SavedModel(content["model"], content["metadata"])


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError('Models are stored with skops: pip install "polymargin[skops]".') from error
    return skops.io


def _trusted_names() -> list[str]:
    return [*TRUSTED_OF_OTHERS, *(f"{trusted.__module__}.{trusted.__qualname__}" for trusted in TRUSTED)]


def _foreign_types(skops_io: Any, data: bytes) -> list[str]:
    """Return the types that a file names and that neither we nor skops trust; builds nothing."""
    return sorted(set(skops_io.get_untrusted_types(data=data)) - set(_trusted_names()))


def _check_ours(model: Any, kind: type[Exception], name: str) -> None:
    """Refuse what is neither a classifier of ours nor a pipeline that ends in one."""
    inner = model
    if isinstance(inner, Pipeline) and inner.steps:
        inner = inner.steps[-1][1]
    if isinstance(inner, GridSearchCV):
        inner = inner.estimator
    if not isinstance(
        inner,
        (
            BudgetSearch,
            MarginClassifier,
            PredictionSetClassifier,
            ProbabilityClassifier,
            RejectOptionClassifier,
            NewtonRefinement,
        ),
    ):
        raise kind(
            f"{name} must be a classifier of polymargin, alone or at the end of a pipeline, got "
            f"{type(inner).__name__}."
        )


def _with_plain_costs(value: Any, classes: Any) -> Any:
    """Give each estimator within `value` its costs as an array: files know no data frames, no pairs as keys."""
    if isinstance(value, (list, tuple)):
        for item in value:
            _with_plain_costs(item, classes)
    elif isinstance(value, BaseEstimator):
        for name, attribute in vars(value).items():
            labelled = isinstance(attribute, Mapping) or hasattr(attribute, "columns")
            if name == "cost_matrix" and labelled:
                value.cost_matrix = resolve_cost_matrix(attribute, classes)
            elif name == "utility" and labelled:
                value.utility = resolve_utility(attribute, classes)
            else:
                _with_plain_costs(attribute, classes)
    return value
