"""Which method for which problem: every family and what scikit-learn offers, side by side where each should shine.

python -m benchmarks.methods [--quick] [--markdown FILE]

Simulated and bundled data alone, so that anyone can run it. Every C is chosen by five folds of the training
rows, by what counts in the situation. Times are CPU seconds, choice of C included, as multiples of the quickest.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import balanced_accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from benchmarks.common import mixture
from polymargin import (
    MulticategorySVC,
    ProximalSVC,
    RobustSVC,
    SharedStructureSVC,
    SparseSVC,
    TraceNormSVC,
    expected_cost,
)
from polymargin.datasets import flip_labels, make_class_specific, make_unbalanced_rings, make_waveform

MISSED_CLASS = {(0, 1): 5.0, (0, 2): 5.0}
FULL_REPEATS = 5
CS = tuple(10.0**power for power in range(-3, 3))

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
Loss = Callable[[np.ndarray, np.ndarray], float]


def error(y: np.ndarray, predicted: np.ndarray) -> float:
    """Share of wrong predictions."""
    return float(np.mean(y != predicted))


@dataclass(frozen=True)
class Situation:
    """Data drawn anew for every seed (train and test), what counts there, and who competes."""

    title: str
    draw: Callable[[int], Split]
    measure: str
    loss: Loss
    models: dict[str, Any]
    repeats: int = FULL_REPEATS
    tunes: bool = True


def halves(X: np.ndarray, y: np.ndarray, seed: int, train_size: float | int = 0.5) -> Split:
    """Split into rows to train on and rows to test on."""
    X, X_test, y, y_test = train_test_split(X, y, train_size=train_size, stratify=y, random_state=seed)
    return X, y, X_test, y_test


def simulated(maker: Callable[..., Any], n: int, seed: int, **options: Any) -> Split:
    """Draw a training and a large test sample."""
    train, test = maker(n, random_state=2 * seed, **options), maker(4000, random_state=2 * seed + 1, **options)
    return train.data, train.target, test.data, test.target


def wrong_labels(seed: int) -> Split:
    """Digits, 15 % of whose training labels are wrong."""
    X, y, X_test, y_test = halves(*load_digits(return_X_y=True), seed, 600)
    return X, flip_labels(y, 0.15, n_classes=10, random_state=seed), X_test, y_test


def rare_classes(seed: int) -> Split:
    """Rings of which one holds four fifths of the rows; the test sample alike."""
    train, test = (make_unbalanced_rings(random_state=2 * seed + at) for at in (0, 1))
    return train.data, train.target, test.data, test.target


def many_rows(n: int) -> Callable[[int], Split]:
    """Gaussian classes with as many rows for training as asked for."""

    def draw(seed: int) -> Split:
        X, y = mixture(n + 20_000, 50, 10, separation=1.0, seed=seed)
        return X[:n], y[:n], X[n:], y[n:]

    return draw


def situations(quick: bool) -> list[Situation]:
    """Return the situations; quick ones are smaller."""
    repeats = 1 if quick else FULL_REPEATS
    n_large = 20_000 if quick else 200_000
    usual = {"SVC": SVC(), "LinearSVC": LinearSVC(), "LogisticRegression": LogisticRegression(max_iter=1000)}
    return [
        Situation(
            "Few rows, clean labels: wine, 89 rows",
            lambda seed: halves(*load_wine(return_X_y=True), seed),
            "test error",
            error,
            {
                "MulticategorySVC": MulticategorySVC(),
                "ProximalSVC": ProximalSVC(),
                "SharedStructureSVC": SharedStructureSVC(class_weight="balanced", max_iter=5),
                "RobustSVC": RobustSVC(),
                **usual,
            },
            repeats,
        ),
        Situation(
            "Errors differ in price: waveform, 300 rows, missing class 0 costs 5",
            lambda seed: simulated(make_waveform, 300, seed),
            "expected cost",
            lambda y, predicted: expected_cost(y, predicted, MISSED_CLASS),
            {
                "MulticategorySVC, costs": MulticategorySVC(cost_matrix=MISSED_CLASS),
                "RobustSVC, costs": RobustSVC(cost_matrix=MISSED_CLASS),
                "MulticategorySVC": MulticategorySVC(),
                "SVC, class weights": SVC(class_weight={0: 5.0, 1: 1.0, 2: 1.0}),
                "LogisticRegression": LogisticRegression(max_iter=1000),
            },
            repeats,
        ),
        Situation(
            "Few of many variables matter: 2 of 102, 100 rows",
            lambda seed: simulated(partial(make_class_specific, 1), 100, seed),
            "test error",
            error,
            {
                "SparseSVC, adaptive": SparseSVC(adaptive=True),
                "SparseSVC": SparseSVC(),
                "l1 LinearSVC": LinearSVC(penalty="l1"),
                "MulticategorySVC, linear": MulticategorySVC(kernel="linear"),
                "SVC": SVC(),
            },
            repeats,
        ),
        Situation(
            "15 % wrong labels: digits, 600 rows",
            wrong_labels,
            "test error on true labels",
            error,
            {
                "RobustSVC": RobustSVC(),
                "RobustSVC, rbf": RobustSVC(kernel="rbf"),
                "MulticategorySVC": MulticategorySVC(),
                "SVC": SVC(),
                "LogisticRegression": LogisticRegression(max_iter=1000),
            },
            1,
        ),
        Situation(
            "Rare classes: three rings of 400, 50 and 50 rows",
            rare_classes,
            "1 - balanced accuracy",
            lambda y, predicted: 1.0 - float(balanced_accuracy_score(y, predicted)),
            {
                "ProximalSVC, rbf": ProximalSVC(kernel="rbf"),
                "ProximalSVC, rbf, unbalanced": ProximalSVC(kernel="rbf", balance=False, refine=False),
                "SVC, balanced weights": SVC(class_weight="balanced"),
                "SVC": SVC(),
            },
            repeats,
        ),
        Situation(
            "Few rows per class: digits, 6 of each",
            lambda seed: halves(*load_digits(return_X_y=True), seed, 60),
            "test error",
            error,
            {
                "SharedStructureSVC": SharedStructureSVC(class_weight="balanced", max_iter=5),
                "TraceNormSVC": TraceNormSVC(),
                "ProximalSVC": ProximalSVC(),
                "MulticategorySVC": MulticategorySVC(),
                "SVC": SVC(),
            },
            repeats,
        ),
        Situation(
            f"Many rows: {n_large:,} x 50, ten classes",
            many_rows(n_large),
            "test error",
            error,
            {
                "ProximalSVC": ProximalSVC(),
                "MulticategorySVC, crammer, linear": MulticategorySVC(
                    C=1e-3, loss="crammer", kernel="linear", tol=1e-2
                ),
                "SGDClassifier": SGDClassifier(random_state=0),
                "LogisticRegression": LogisticRegression(),
            },
            1,
            tunes=False,
        ),
    ]


@dataclass(frozen=True)
class Outcome:
    """What one model reached in one situation."""

    model: str
    losses: np.ndarray
    seconds: float
    variables: float | None


def run(situation: Situation) -> list[Outcome]:
    """Fit every model to every draw."""
    losses: dict[str, list[float]] = {name: [] for name in situation.models}
    seconds = dict.fromkeys(situation.models, 0.0)
    variables: dict[str, list[int]] = {name: [] for name in situation.models}
    for seed in range(situation.repeats):
        X, y, X_test, y_test = situation.draw(seed)
        for name, machine in situation.models.items():
            model = make_pipeline(StandardScaler(), machine)
            if situation.tunes:
                scorer = make_scorer(situation.loss, greater_is_better=False)
                model = GridSearchCV(model, {f"{model.steps[-1][0]}__C": CS}, scoring=scorer)
            started = time.process_time()
            model.fit(X, y)
            seconds[name] += time.process_time() - started
            losses[name].append(situation.loss(y_test, model.predict(X_test)))
            fitted = model.best_estimator_ if situation.tunes else model
            coefficients = getattr(fitted[-1], "coef_", None) if _is_linear(fitted[-1]) else None
            if coefficients is not None:
                variables[name].append(int(np.count_nonzero(np.any(coefficients != 0.0, axis=0))))
        print(f"  draw {seed + 1} of {situation.repeats}", file=sys.stderr)
    return [
        Outcome(
            name,
            np.array(losses[name]),
            seconds[name],
            float(np.mean(used)) if (used := variables[name]) else None,
        )
        for name in situation.models
    ]


def _is_linear(machine: Any) -> bool:
    """Tell whether there is one coefficient a variable."""
    return getattr(machine, "kernel", "linear") == "linear"


def markdown(situation: Situation, outcomes: list[Outcome]) -> str:
    """Return the outcomes as a table, the best first."""
    quickest = min(outcome.seconds for outcome in outcomes)
    draws = "one draw" if situation.repeats == 1 else f"mean of {situation.repeats} draws"
    lines = [
        f"**{situation.title}** ({draws})",
        "",
        f"| model | {situation.measure} | variables used | CPU time |",
        "|---|---|---|---|",
    ]
    for outcome in sorted(outcomes, key=lambda outcome: outcome.losses.mean()):
        spread = outcome.losses.std(ddof=1) / np.sqrt(len(outcome.losses)) if len(outcome.losses) > 1 else None
        loss = f"{outcome.losses.mean():.4f}" + (f" ± {spread:.4f}" if spread is not None else "")
        variables = "all" if outcome.variables is None else f"{outcome.variables:.1f}"
        lines.append(f"| {outcome.model} | {loss} | {variables} | {outcome.seconds / quickest:.1f}x |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run all situations; print the tables, or write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one draw each, fewer rows")
    parser.add_argument("--markdown", type=Path, help="file to write the tables to")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    command = "python -m benchmarks.methods" + (" --quick" if options.quick else "")
    tables = [f"Printed by `{command}`; ± one standard error, times as multiples of the quickest.\n"]
    for situation in situations(options.quick):
        print(situation.title, file=sys.stderr)
        tables.append(markdown(situation, run(situation)))
        print(tables[-1], flush=True)
    if options.markdown is not None:
        options.markdown.write_text("\n".join(tables))


if __name__ == "__main__":
    main()
