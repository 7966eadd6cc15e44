"""Finding wrong labels beside cleanlab: five data sets, four shares of flips, uniform and between neighbours.

python -m benchmarks.labels [--quick] [--data NAME ...]

Labels of up to 1000 rows are flipped, to any other class ("uniform") or to the class whose centre is nearest
("neighbour"). Columns: precision among as many rows as there are flips, ranked by each method; recall, the share
of the flips that each method itself calls wrong (c: cleanlab, o: ours); and the CPU time of ours over cleanlab's,
that of the probabilities included.

    cleanlab      find_label_issues with its default: logistic regression, out of five folds
    on ours       find_label_issues with our left-out probabilities
    ours          suspect_labels, one fit of MulticategorySVC
"""

import argparse
import time
import warnings

import numpy as np
from cleanlab.classification import CleanLearning
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from sklearn.linear_model import LogisticRegression

from benchmarks.common import Goals, Table, real_data
from polymargin import suspect_labels

DATA = ("wine", "vehicle", "waveform", "satimage", "segment")
SHARES = (0.05, 0.1, 0.2, 0.3)
ROWS = 1000


def flipped(rng: np.random.Generator, X: np.ndarray, y: np.ndarray, share: float, kind: str) -> np.ndarray:
    """Return the labels with a share of them wrong."""
    k = y.max() + 1
    centres = np.array([X[y == j].mean(axis=0) for j in range(k)])
    distances = ((centres[:, None] - centres) ** 2).sum(axis=2) + np.diag(np.full(k, np.inf))
    wrong = rng.choice(len(y), round(share * len(y)), replace=False)
    noisy = y.copy()
    if kind == "uniform":
        noisy[wrong] = (y[wrong] + rng.integers(1, k, len(wrong))) % k
    else:
        noisy[wrong] = distances.argmin(axis=1)[y[wrong]]
    return noisy


def judged(order: np.ndarray, called: np.ndarray, wrong: np.ndarray) -> tuple[float, float, float]:
    """Return precision at the true number, recall and precision of what is called wrong."""
    top = order[: wrong.sum()]
    return (
        float(wrong[top].mean()),
        float(called[wrong].mean()),
        float(wrong[called].mean()) if called.any() else 1.0,
    )


def by_cleanlab(X: np.ndarray, noisy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranking and the issues of cleanlab with its default classifier."""
    found = CleanLearning(LogisticRegression()).find_label_issues(X, noisy)
    return np.argsort(found["label_quality"].to_numpy(), kind="stable"), found["is_label_issue"].to_numpy()


def measure(name: str, X: np.ndarray, y: np.ndarray, kind: str, share: float) -> dict[str, tuple]:
    """Return figures and CPU seconds of every method."""
    noisy = flipped(np.random.default_rng([len(y), int(100 * share)]), X, y, share, kind)
    wrong = noisy != y
    figures = {}
    started = time.process_time()
    figures["cleanlab"] = (*judged(*by_cleanlab(X, noisy), wrong), time.process_time() - started)
    started = time.process_time()
    ours = suspect_labels(X, noisy)
    seconds = time.process_time() - started
    called = np.isin(np.arange(len(y)), ours.suspects)
    figures["ours"] = (*judged(ours.rows[ours.order], called, wrong), seconds)
    P = np.empty_like(ours.probabilities)
    P[ours.rows] = ours.probabilities
    ranking = np.argsort(get_label_quality_scores(noisy, P), kind="stable")
    figures["on ours"] = (*judged(ranking, find_label_issues(noisy, P), wrong), seconds)
    return figures


def main() -> None:
    """Flip labels, look for them, and print which goals hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10 % of flips alone")
    parser.add_argument("--data", nargs="+", default=DATA)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    methods = ("cleanlab", "on ours", "ours")
    table = Table(
        ("data", "flips", "share", *(f"{m}" for m in methods), "recall c", "recall o", "time ratio"), width=10
    )
    goals, all_figures = Goals(), []
    for name in arguments.data:
        data = real_data(name)
        if data is None:
            print(f"{name}.npz is absent")
            continue
        chosen = np.random.default_rng(0).permutation(len(data[1]))[:ROWS]
        X, y = data[0][chosen], np.unique(data[1], return_inverse=True)[1][chosen]
        for kind in ("uniform", "neighbour"):
            for share in (0.1,) if arguments.quick else SHARES:
                figures = measure(name, X, y, kind, share)
                all_figures.append([figures[method] for method in methods])
                table.add(
                    data=name,
                    flips=kind,
                    share=share,
                    **{method: figures[method][0] for method in methods},
                    **{"recall c": figures["cleanlab"][1], "recall o": figures["ours"][1]},
                    **{"time ratio": figures["ours"][3] / figures["cleanlab"][3]},
                )
    means = np.array(all_figures).mean(axis=0)
    for method, row in zip(methods, means, strict=True):
        print(
            f"{method:>10}: precision at the number of flips {row[0]:.3f}; of what it calls wrong: recall "
            f"{row[1]:.3f}, precision {row[2]:.3f}"
        )
    goals.at_most("mean precision lost against cleanlab", float(means[0, 0] - means[2, 0]), 0.0)
    goals.at_most("mean precision lost against cleanlab on our scores", float(means[1, 0] - means[2, 0]), 0.0)
    goals.at_most("CPU time over cleanlab's, in all", float(means[2, 3] / means[0, 3]), 1.0)
    goals.report()


if __name__ == "__main__":
    main()
