"""scikit-learn's checks of the classifiers that give probabilities."""

from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from polymargin import MulticategorySVC, PredictionSetClassifier, ProbabilityClassifier, ProximalSVC


@parametrize_with_checks(
    [
        ProbabilityClassifier(MulticategorySVC()),
        ProbabilityClassifier(MulticategorySVC(kernel="linear", loss="weston"), method="temperature"),
        ProbabilityClassifier(ProximalSVC(), method="vector"),
        ProbabilityClassifier(LogisticRegression()),
        ProbabilityClassifier(GaussianNB(), method="sigmoid"),
        PredictionSetClassifier(MulticategorySVC()),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
