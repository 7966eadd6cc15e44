"""Stability selection: how often a variable, or what it separates, is selected over random halves of the data."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import column_or_1d

from polymargin.checks import check_flag, check_integer, check_labels, check_real, check_seed
from polymargin.estimators.sparse import SparseClassifier
from polymargin.selection.folds import asked_by
from polymargin.selection.progress import side_by_side


@dataclass(frozen=True, slots=True)
class Stability:
    """Selection frequencies over resamples.

    Attributes
    ----------
    features : (n_features,) how often a variable was selected.
    separations : (n_pairs, n_features) how often it separated the classes of a pair; pairs (0, 1), (0, 2), ... of
        `classes`.
    n_resamples : number of resamples.
    classes, feature_names : what pairs and columns stand for.
    """

    features: NDArray[np.float64]
    separations: NDArray[np.float64]
    n_resamples: int
    classes: NDArray
    feature_names: NDArray


def stability_selection(
    estimator: SparseClassifier,
    X: Any,
    y: Any,
    *,
    n_resamples: int = 50,
    fraction: float = 0.5,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Stability:
    """Fit a sparse machine to random parts of the data and count what it selects (Meinshausen & Bühlmann, 2010).

    Parameters
    ----------
    estimator : SparseSVC or SparseSVCCV
    X, y : training rows and their classes
    n_resamples : int, default=50
    fraction : float, default=0.5
        Share of the rows of every class in a resample, which are drawn without replacement.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int or None, default=None
        Fits made side by side.
    verbose : bool, default=False
        Log how far it is, to the logger "polymargin".

    Returns
    -------
    Stability

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import SparseSVC, stability_selection
    >>> stable = stability_selection(SparseSVC(C=0.02), *load_iris(return_X_y=True), n_resamples=5, random_state=0)
    >>> stable.features
    array([0., 0., 1., 0.])
    """
    if not isinstance(estimator, SparseClassifier):
        raise TypeError(f"estimator must be a SparseSVC or SparseSVCCV, got {estimator!r}.")
    n_resamples = check_integer("n_resamples", n_resamples, at_least=1)
    fraction = check_real("fraction", fraction, above=0.0, at_most=1.0)
    check_flag("verbose", verbose)
    check_seed("random_state", random_state)
    X, y = indexable(X, y)
    check_labels("y", column_or_1d(y))
    splitter = StratifiedShuffleSplit(n_resamples, train_size=fraction, random_state=random_state)
    with asked_by("fraction", fraction, len(y)):
        parts = [part for part, _ in splitter.split(np.zeros((len(y), 1)), y)]
    arguments = ((estimator, X, y, part) for part in parts)
    fits = list(side_by_side(_separated, arguments, n_jobs, total=n_resamples, label="resamples", shown=verbose))
    model = fits[0][1]
    separations = np.mean([separated for separated, _ in fits], axis=0)
    features = np.mean([separated.any(axis=0) for separated, _ in fits], axis=0)
    names = getattr(model, "feature_names_in_", np.arange(model.n_features_in_))
    return Stability(features, separations, n_resamples, model.classes_, names)


def _separated(
    estimator: SparseClassifier, X: Any, y: Any, part: NDArray[np.intp]
) -> tuple[NDArray[np.bool_], SparseClassifier]:
    model = clone(estimator).fit(_safe_indexing(X, part), _safe_indexing(y, part))
    return ~model.fused_pairs_, model
