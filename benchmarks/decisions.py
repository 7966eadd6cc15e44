"""Costs in training, or probabilities and least expected cost, or both: expected test cost under random costs.

python -m benchmarks.decisions [--quick] [--rows 400] [--matrices 50] [--data NAME ...]

Cost matrices are log-normal with unit spread, scaled to a mean of one off the diagonal. Columns, all with an rbf
kernel and C and gamma chosen by `MarginSearch` at equal costs unless said otherwise:

    ignored       the class of highest score, costs ignored
    training      costs in the training, at the C and gamma of equal costs
    decided       ProbabilityClassifier, the class of least expected cost
    both          trained with the costs, then calibrated and decided
    weights       costs as class weights, the summed costs of a true class
    svc           SVC by GridSearchCV, CalibratedClassifierCV (sigmoid, five folds), least expected cost
    logistic      LogisticRegression, least expected cost

Simulated classes go from overlapping (separation 1) to nearly apart (4); real data sets are drawn at random.
"""

import argparse
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from benchmarks.common import Table, mixture, real_data
from polymargin import Decider, MarginSearch, MulticategorySVC, ProbabilityClassifier

COLUMNS = ("ignored", "training", "decided", "both", "weights", "svc", "logistic")
REAL = ("waveform", "vehicle", "satimage", "segment", "pendigits")
CS, WIDTHS = (0.25, 1.0, 4.0, 16.0), (0.25, 0.5, 1.0, 2.0)


def random_costs(rng: np.random.Generator, k: int) -> np.ndarray:
    """Draw a matrix of log-normal costs with a mean of one off the diagonal."""
    costs = np.exp(rng.normal(size=(k, k)))
    np.fill_diagonal(costs, 0.0)
    return costs * (k * (k - 1) / costs.sum())


def mean_cost(costs: np.ndarray, classes: np.ndarray, y: np.ndarray, predicted: np.ndarray) -> float:
    """Return the mean cost of predictions."""
    return float(costs[np.searchsorted(classes, y), np.searchsorted(classes, predicted)].mean())


def compare(train: tuple, test: tuple, matrices: int, seed: int) -> np.ndarray:
    """Return the test costs (matrices, columns)."""
    (X, y), (T, t) = train, test
    classes = np.unique(y)
    gamma = 1.0 / (X.shape[1] * X.var())
    search = MarginSearch(MulticategorySVC(loss="lee"), Cs=CS, gammas=[w * gamma for w in WIDTHS]).fit(X, y)
    machine = MulticategorySVC(loss="lee", **search.best_params_)
    decided = ProbabilityClassifier(machine).fit(X, y)
    grid = GridSearchCV(SVC(), {"C": CS, "gamma": [w * gamma for w in WIDTHS]}, cv=5).fit(X, y)
    svc = CalibratedClassifierCV(SVC(**grid.best_params_), cv=5, ensemble=False).fit(X, y)
    logistic = LogisticRegression(max_iter=2000).fit(X, y)
    plain = machine.fit(X, y).predict(T)
    P = {"decided": decided.predict_proba(T), "svc": svc.predict_proba(T), "logistic": logistic.predict_proba(T)}
    rng = np.random.default_rng(seed)
    results = np.empty((matrices, len(COLUMNS)))
    for at in range(matrices):
        costs = random_costs(rng, len(classes))
        trained = clone(machine).set_params(cost_matrix=costs)
        both = ProbabilityClassifier(trained, cost_matrix=costs).fit(X, y)
        weights = dict(zip(classes.tolist(), costs.sum(axis=1), strict=True))
        predicted = {
            "ignored": plain,
            "training": both.estimator_.predict(T),
            "both": both.predict(T),
            "weights": clone(machine).set_params(class_weight=weights).fit(X, y).predict(T),
        }
        for name, probabilities in P.items():
            model = {"decided": decided, "svc": svc, "logistic": logistic}[name]
            predicted[name] = Decider(model, cost_matrix=costs).decide(probabilities)
        results[at] = [mean_cost(costs, classes, t, predicted[name]) for name in COLUMNS]
    return results


def samples(names: list[str], rows: int):
    """Yield a name, training and test rows: simulations first, then real data."""
    for separation in (1.0, 2.0, 4.0):
        for n in (rows // 4, 2 * rows):
            X, y = mixture(n + 2000, 5, 4, separation=separation)
            yield f"mix {separation:g}, {n}", (X[:n], y[:n]), (X[n:], y[n:])
    for name in names:
        data = real_data(name)
        if data is None:
            print(f"{name}.npz is absent")
            continue
        X, y = data
        order = np.random.default_rng(0).permutation(len(y))
        train, test = order[:rows], order[rows : rows + 2000]
        yield name, (X[train], y[train]), (X[test], y[test])


def main() -> None:
    """Print the mean test cost of every column, and by how many standard errors it is above the best."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few matrices, 200 rows")
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--matrices", type=int, default=50)
    parser.add_argument("--data", nargs="*", default=list(REAL))
    arguments = parser.parse_args()
    rows, matrices = (200, 4) if arguments.quick else (arguments.rows, arguments.matrices)
    warnings.simplefilter("ignore")
    print(f"mean test cost over {matrices} random cost matrices, {rows} training rows of real data")
    table = Table(("data", *COLUMNS, "best"), width=13)
    within = 0
    for name, train, test in samples(arguments.data, rows):
        results = compare(train, test, matrices, seed=1)
        means = results.mean(axis=0)
        best = int(means.argmin())
        difference = results[:, COLUMNS.index("decided")] - results[:, best]
        within += difference.mean() <= difference.std(ddof=1) / np.sqrt(matrices)
        table.add(data=name, **dict(zip(COLUMNS, means.tolist(), strict=True)), best=COLUMNS[best])
    print(f"'decided' is within one standard error of the best column in {within} of {len(table.rows)} lines")


if __name__ == "__main__":
    main()
