"""Costs in training, or probabilities and least expected cost, or both: expected test cost under random costs.

python -m benchmarks.decisions [--quick] [--rows 400] [--matrices 50] [--data NAME ...] [--stored]
    [--markdown FILE]

Cost matrices are log-normal with unit spread, scaled to a mean of one off the diagonal. Columns, all with an rbf
kernel and Lee, Lin & Wahba's loss. `MarginSearch` chooses C and gamma at equal costs unless said otherwise, by
criterion="cost", its default ("error", as costs are equal), or by criterion="log_loss" ("sharp"):

    ignored       error: the class of highest score, costs ignored
    training      error: costs in the training
    searched      costs in the training and in the search, which has the least left-out cost; real data, SEARCHED
                  matrices
    decided       sharp: ProbabilityClassifier(cost_matrix=...), probabilities and the class of least expected cost
    by error      error: the same
    both          sharp: trained with the costs, then calibrated and decided
    weights       error: costs as class weights, the summed costs of a true class
    svc           SVC by GridSearchCV, CalibratedClassifierCV (sigmoid, five folds), least expected cost
    logistic      LogisticRegression, least expected cost

Simulated classes go from overlapping (separation 1) to nearly apart (4), with 100 and 2 x ROWS rows; real data
sets are drawn at random. Results are kept in benchmarks/results, so that a run can be stopped and taken up;
--stored measures nothing.
"""

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from benchmarks.common import Kept, Table, in_markdown, markdown_option, mixture, real_data
from polymargin import Decider, MarginSearch, MulticategorySVC, ProbabilityClassifier

COLUMNS = ("ignored", "training", "decided", "by error", "both", "weights", "svc", "logistic")
COMPARED = ("training", "decided", "both", "weights", "svc")
SEARCHED = 10
REAL = ("waveform", "vehicle", "satimage", "segment", "pendigits")
CS, WIDTHS = (0.25, 1.0, 4.0, 16.0), (0.25, 0.5, 1.0, 2.0)
TEST_ROWS = 2000
SETTINGS = {"version": 2, "Cs": CS, "widths": WIDTHS, "test rows": TEST_ROWS, "spread": 1.0}


def random_costs(seed: int, k: int) -> np.ndarray:
    """Draw a matrix of log-normal costs with a mean of one off the diagonal."""
    costs = np.exp(np.random.default_rng(seed).normal(size=(k, k)))
    np.fill_diagonal(costs, 0.0)
    return costs * (k * (k - 1) / costs.sum())


def mean_cost(costs: np.ndarray, classes: np.ndarray, y: np.ndarray, predicted: np.ndarray) -> float:
    """Return the mean cost of predictions."""
    return float(costs[np.searchsorted(classes, y), np.searchsorted(classes, predicted)].mean())


@dataclass(frozen=True)
class Sample:
    """Training and test rows, and what is fitted to them whatever the costs."""

    name: str
    X: np.ndarray
    y: np.ndarray
    T: np.ndarray
    t: np.ndarray
    is_real: bool = True

    @cached_property
    def gammas(self) -> list[float]:
        """Widths to search."""
        return [width / (self.X.shape[1] * self.X.var()) for width in WIDTHS]

    @cached_property
    def machines(self) -> dict[str, MulticategorySVC]:
        """The machine at equal costs that each criterion chooses."""
        searches = {criterion: self.search(criterion=criterion) for criterion in ("cost", "log_loss")}
        return {
            criterion: MulticategorySVC(**search.fit(self.X, self.y).best_params_).fit(self.X, self.y)
            for criterion, search in searches.items()
        }

    def search(self, *, costs: np.ndarray | None = None, criterion: str = "cost") -> MarginSearch:
        """Return the search for C and the width, under costs where they are given."""
        return MarginSearch(MulticategorySVC(cost_matrix=costs), Cs=CS, gammas=self.gammas, criterion=criterion)

    @cached_property
    def probabilities(self) -> dict[str, tuple[object, np.ndarray]]:
        """Classifiers that need no costs in training, with the probabilities of the test rows."""
        grid = GridSearchCV(SVC(), {"C": CS, "gamma": self.gammas}, cv=5).fit(self.X, self.y)
        models = {
            "decided": ProbabilityClassifier(clone(self.machines["log_loss"])),
            "by error": ProbabilityClassifier(clone(self.machines["cost"])),
            "svc": CalibratedClassifierCV(SVC(**grid.best_params_), cv=5, ensemble=False),
            "logistic": LogisticRegression(max_iter=2000),
        }
        return {name: (m.fit(self.X, self.y), m.predict_proba(self.T)) for name, m in models.items()}

    def compare(self, matrix: int) -> dict[str, float]:
        """Return the test costs of every column under one cost matrix."""
        classes = np.unique(self.y)
        costs = random_costs(matrix, len(classes))
        plain, sharp = self.machines["cost"], self.machines["log_loss"]
        trained = clone(plain).set_params(cost_matrix=costs).fit(self.X, self.y)
        both = ProbabilityClassifier(clone(sharp).set_params(cost_matrix=costs), cost_matrix=costs)
        weights = dict(zip(classes.tolist(), costs.sum(axis=1), strict=True))
        weighted = clone(plain).set_params(class_weight=weights).fit(self.X, self.y)
        predicted = {
            "ignored": plain.predict(self.T),
            "training": trained.predict(self.T),
            "both": both.fit(self.X, self.y).predict(self.T),
            "weights": weighted.predict(self.T),
        }
        if self.is_real and matrix < SEARCHED:
            predicted["searched"] = self.search(costs=costs).fit(self.X, self.y).predict(self.T)
        for name, (model, P) in self.probabilities.items():
            predicted[name] = Decider(model, cost_matrix=costs).decide(P)
        return {name: mean_cost(costs, classes, self.t, found) for name, found in predicted.items()}


def samples(names: list[str], rows: int, separations: list[float]) -> Iterator[Sample]:
    """Yield simulations first, then real data."""
    for separation in separations:
        for n in (100, 2 * rows):
            X, y = mixture(n + TEST_ROWS, 5, 4, separation=separation)
            yield Sample(f"mixture {separation:g}, {n} rows", X[:n], y[:n], X[n:], y[n:], is_real=False)
    for name in names:
        data = real_data(name)
        if data is None:
            print(f"{name}.npz is absent")
            continue
        X, y = data
        order = np.random.default_rng(0).permutation(len(y))
        train, test = order[:rows], order[rows : rows + TEST_ROWS]
        yield Sample(f"{name}, {rows} rows", X[train], y[train], X[test], y[test])


def main() -> None:
    """Print the mean test cost of every column, and how far "decided" is from the best one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few matrices, 200 rows")
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--matrices", type=int, default=50)
    parser.add_argument("--data", nargs="*", default=list(REAL))
    parser.add_argument("--separations", type=float, nargs="*", default=[1.0, 2.0, 4.0])
    parser.add_argument("--stored", action="store_true", help="measure nothing")
    markdown_option(parser)
    arguments = parser.parse_args()
    rows, matrices = (200, 4) if arguments.quick else (arguments.rows, arguments.matrices)
    warnings.simplefilter("ignore")
    kept = Kept("decisions", SETTINGS, only_stored=arguments.stored)
    print("mean test cost over random cost matrices")
    table = Table(("data", "matrices", *COLUMNS, "best", "behind"), width=20)
    drawn = list(samples(arguments.data, rows, arguments.separations))
    # matrix by matrix, so that a run that is stopped has as many of every sample
    for matrix in range(matrices):
        for sample in drawn:
            kept.of((sample.name, matrix), lambda s=sample, m=matrix: s.compare(m))
    for sample in drawn:
        found = (kept.results.get((sample.name, matrix)) for matrix in range(matrices))
        results = [result for result in found if result is not None]
        if len(results) < 2:
            print(f"{sample.name}: not measured")
            continue
        costs = {name: np.array([result[name] for result in results]) for name in COLUMNS}
        best = min(COMPARED, key=lambda name: costs[name].mean())
        difference = costs["decided"] - costs[best]
        error = difference.std(ddof=1) / np.sqrt(len(results))
        behind = 0.0 if best == "decided" else float(difference.mean() / error)
        means = {name: float(cost.mean()) for name, cost in costs.items()}
        table.add(data=sample.name, matrices=len(results), **means, best=best, behind=behind)
    searched = of_searches(kept, drawn)
    verdicts = list(counted(table.rows, searched.rows))
    print("\n".join(verdicts))
    if arguments.markdown is not None:
        command = f"Written by `python -m benchmarks.decisions --stored --markdown {arguments.markdown}`."
        tables = [in_markdown(found.rows, found.columns) for found in (table, searched)]
        lines = [command, *tables, "\n".join(f"- {line}" for line in verdicts)]
        arguments.markdown.write_text("\n\n".join(lines) + "\n", "utf-8")


def of_searches(kept: Kept, drawn: list[Sample]) -> Table:
    """Print the mean test cost under those matrices under which C and gamma were searched for."""
    print("where the search knows the costs")
    table = Table(("data", "matrices", "training", "searched", "decided"), width=20)
    for sample in drawn:
        found = (kept.results.get((sample.name, matrix)) for matrix in range(SEARCHED))
        results = [result for result in found if result is not None]
        if sample.is_real and len(results) >= 2:
            means = {name: float(np.mean([result[name] for result in results])) for name in table.columns[2:]}
            table.add(data=sample.name, matrices=len(results), **means)
    return table


def counted(rows: list[dict], searched: list[dict]) -> Iterator[str]:
    """Count the lines of the tables in which one column is cheaper than another."""
    within = sum(row["behind"] <= 1.0 for row in rows)
    yield (
        f"'decided' is within one standard error of the best of {', '.join(COMPARED)} in {within} of {len(rows)} "
        "lines ('behind': standard errors of the difference)"
    )
    pairs = (("decided", "training"), ("decided", "by error"), ("by error", "training"), ("training", "ignored"))
    for one, other in pairs:
        yield f"'{one}' is cheaper than '{other}' in {sum(row[one] < row[other] for row in rows)}"
    for one, other in (("searched", "training"), ("decided", "searched")):
        cheaper = sum(row[one] < row[other] for row in searched)
        yield f"under {SEARCHED} matrices '{one}' is cheaper than '{other}' in {cheaper} of {len(searched)}"


if __name__ == "__main__":
    main()
