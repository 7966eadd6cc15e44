"""NewtonRefinement: the refinement of Fung & Mangasarian for the scores of any one-vs-rest classifier."""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, has_fit_parameter

from polymargin.checks import (
    LARGEST_KERNEL,
    check_choice,
    check_entries,
    check_finite_rows,
    check_labels,
    check_magnitudes,
    check_weight,
)
from polymargin.estimators._transaction import all_or_nothing, refuses_costs
from polymargin.problems.proximal import Sides
from polymargin.solvers.ridge.refinement import refine_rows


def _estimator_has_scores(self: "NewtonRefinement") -> bool:
    estimator = getattr(self, "estimator_", self.estimator)
    getattr(estimator, "decision_function")  # noqa: B009 - the AttributeError names what is missing
    return True


class NewtonRefinement(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Slide and scale the scores of a one-vs-rest classifier so that margin errors are least.

    The scores ``f_r(x) = s_r(x) + b_r`` of a fitted classifier, with directions of norm ``|v_r|``, become
    ``a_r s_r(x) - g_r``, where every class r, with signs ``d_i``, has its own ::

        min over (a, g)   C/2 sum_i w_i (1 - d_i (a s_i - g))_+^2 + 1/2 (a^2 |v|^2 + g^2)

    Rows beyond their margin no longer matter, which least-squares scores, above all of unbalanced classes, gain
    from. This is (12) of the paper, solved by its Algorithm 1.

    Parameters
    ----------
    estimator : classifier with `decision_function`
        One-vs-rest scorer; where it has `coef_` and `intercept_` (LinearSVC, RidgeClassifier), ``s`` and ``|v|``
        are theirs, otherwise its score is ``s`` itself, with ``|v| = 1``. Wrap a fitted one in scikit-learn's
        `FrozenEstimator` to keep it as it is.
    C : float, default=1.0
        Weight of the summed errors against the penalty.
    refine_weights : {"uniform", "balanced"}, default="uniform"
        Whether rows weigh as given, or a class as much as the rest.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    refinement_ : Refinement
        Scale and offset, Newton steps, objective and gap of every class.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
        Where the classifier has it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from polymargin import NewtonRefinement
    >>> X, y = load_iris(return_X_y=True)
    >>> plain = RidgeClassifier().fit(X, y)
    >>> refined = NewtonRefinement(RidgeClassifier(), C=10.0).fit(X, y)
    >>> round(plain.score(X, y), 2), round(refined.score(X, y), 2)
    (0.85, 0.9)
    """

    def __init__(
        self, estimator: Any, C: float = 1.0, *, refine_weights: Literal["uniform", "balanced"] = "uniform"
    ) -> None:
        self.estimator = estimator
        self.C = C
        self.refine_weights = refine_weights

    @refuses_costs("its squared errors separate one class from the rest, whichever of these is predicted")
    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier and refine its scores on the same rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Whatever the classifier takes.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights; the classifier must take them, too.

        Returns
        -------
        self
        """
        check_weight("C", self.C)
        if not hasattr(self.estimator, "fit"):
            raise TypeError(
                f"estimator must be a classifier with fit and decision_function, got {self.estimator!r}."
            )
        check_choice("refine_weights", self.refine_weights, ("uniform", "balanced"))
        if sample_weight is not None and not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(f"sample_weight must be None, as {self.estimator!r} does not take weights.")
        check_labels("y", column_or_1d(y))
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
            check_magnitudes("sample_weight", weights)
        if sparse.issparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind == "f"):
            check_finite_rows(X.tocsr() if sparse.issparse(X) else X, self)
        weighting = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = clone(self.estimator).fit(X, y, **weighting)
        self.classes_ = self.estimator_.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        weights = _check_sample_weight(sample_weight, y, dtype=np.float64)
        used = np.flatnonzero(weights)  # of other rows the classifier may not even know the class
        labels, weights = np.searchsorted(self.classes_, column_or_1d(y)[used]), weights[used]
        totals = np.bincount(labels, weights, len(self.classes_)).astype(np.float64)
        factors = Sides.one_vs_rest(totals, self.refine_weights == "balanced").factors
        scores, (norms, intercepts) = self._directions(X)[used], self._geometry()
        check_entries("The scores of estimator", scores)
        check_entries("The squared norms of the coefficients of estimator", norms, LARGEST_KERNEL)
        self.refinement_ = refine_rows(scores, labels, weights, factors, norms, -intercepts, self.C)
        return self

    def _geometry(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Squared norms of the directions and intercepts (k,)."""
        k = len(self.classes_)
        coef = getattr(self.estimator_, "coef_", None)
        intercept = getattr(self.estimator_, "intercept_", None)
        if not isinstance(coef, np.ndarray) or intercept is None:
            return np.ones(k), np.zeros(k)
        coef = np.atleast_2d(coef).astype(np.float64)  # squares of half precision would overflow
        norms = np.broadcast_to(np.einsum("ij,ij->i", coef, coef), k).astype(np.float64)
        one_score = k == 2 and len(coef) == 1
        return norms, (np.array([-1.0, 1.0]) if one_score else np.ones(k)) * intercept

    def _directions(self, X: Any) -> NDArray[np.float64]:
        """Return the scores without intercepts (n, k)."""
        scores = np.asarray(self.estimator_.decision_function(X), dtype=np.float64)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])
        if scores.shape[1] != len(self.classes_):
            raise ValueError(
                f"estimator must score every class against the rest, but {self.estimator_!r} gives "
                f"{scores.shape[1]} scores for {len(self.classes_)} classes."
            )
        return scores - self._geometry()[1]

    def _affine(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return a and c (k,) of the refined scores ``a f - c``, f the scores of the classifier."""
        scale = np.asarray(self.refinement_.scale, dtype=np.float64)
        return scale, scale * self._geometry()[1] + self.refinement_.offset

    @available_if(_estimator_has_scores)
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Refined scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
        """
        check_is_fitted(self)
        scores = self.refinement_.scale * self._directions(X) - self.refinement_.offset
        return scores[:, 1] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray:
        """Predict the class of highest refined score.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        winners = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[winners]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        return tags
