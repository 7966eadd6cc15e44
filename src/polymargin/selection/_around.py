"""What a classifier around another one says of that one's features and rows."""

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import get_tags


class AroundClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Base of classifiers around an `estimator`."""

    _fitted = "estimator_"
    """Attribute that holds the fitted classifier."""

    @property
    def n_features_in_(self) -> int:
        """Number of features that the classifier saw in `fit`."""
        return getattr(self, self._fitted).n_features_in_

    @property
    def feature_names_in_(self) -> NDArray:
        """Names of the features that the classifier saw in `fit`."""
        return getattr(self, self._fitted).feature_names_in_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.pairwise = inner.sparse, inner.pairwise
        return tags
