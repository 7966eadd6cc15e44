"""What RejectOptionClassifier rejects: arrays of foreign tissues, and as many errors as it promises.

python -m benchmarks.rejection [--quick]
"""

import argparse
import warnings

import numpy as np
from sklearn.feature_selection import SelectKBest, f_classif

from benchmarks.common import DATA, Goals, Table
from polymargin import MarginSearch, MulticategorySVC, RejectOptionClassifier
from polymargin.datasets import make_triangle, standardize_arrays


def tumours(genes: tuple[int, ...]) -> None:
    """Count the rejected SRBCT test arrays at the default, C and gamma chosen by leave-one-out on the training."""
    paths = [DATA / f"{name}.npz" for name in ("khan_srbct", "khan_srbct_test25")]
    if not all(path.exists() for path in paths):
        print("khan_srbct.npz or khan_srbct_test25.npz is absent")
        return
    train, test = (np.load(path, allow_pickle=False) for path in paths)
    X, y = standardize_arrays(train["X"])[train["train_idx"]], train["y"][train["train_idx"]]
    foreign = test["y"] == "non-SRBCT"
    print(f"SRBCT, the default quantile: rejected of {foreign.sum()} foreign and {(~foreign).sum()} other arrays")
    table = Table(("genes", "C", "gamma", "threshold", "foreign", "others", "wrong", "wrong, accepted"), width=16)
    for count in genes:
        chosen = SelectKBest(f_classif, k=count).fit(X, y)
        search = MarginSearch().fit(chosen.transform(X), y)
        model = RejectOptionClassifier(MulticategorySVC(**search.best_params_)).fit(chosen.transform(X), y)
        rows = chosen.transform(standardize_arrays(test["X"]))
        rejected = model.predict(rows) == model.reject_label_
        wrong = (model.estimator_.predict(rows) != test["y"]) & ~foreign
        table.add(
            genes=count,
            **{name: float(value) for name, value in search.best_params_.items()},
            threshold=model.threshold_,
            foreign=int(rejected[foreign].sum()),
            others=int(rejected[~foreign].sum()),
            wrong=int(wrong.sum()),
            **{"wrong, accepted": int((wrong & ~rejected).sum())},
        )


def promised_errors(samples: int, goals: Goals) -> None:
    """Compare the error among accepted fresh rows with the target, over many samples."""
    fresh = make_triangle(8000, random_state=1000)
    table = Table(("target", "realised", "standard error", "accepted"), width=16)
    for target in (0.05, 0.1):
        errors, accepted = np.empty(samples), np.empty(samples)
        for seed in range(samples):
            sample = make_triangle(400, random_state=seed)
            model = RejectOptionClassifier(MulticategorySVC(kernel="linear"), target_error=target)
            predicted = model.fit(sample.data, sample.target).predict(fresh.data)
            kept = predicted != model.reject_label_
            errors[seed], accepted[seed] = np.mean(kept & (predicted != fresh.target)), kept.mean()
        # a ratio of means: some samples accept nothing
        realised = errors.mean() / accepted.mean()
        deviation = np.std(errors - realised * accepted, ddof=1) / (accepted.mean() * np.sqrt(samples))
        row = {"standard error": float(deviation), "accepted": float(accepted.mean())}
        table.add(target=target, realised=float(realised), **row)
        goals.at_most(f"target {target}: standard errors off it", float(abs(realised - target) / deviation), 2.0)


def main() -> None:
    """Count rejections and print which goals hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one number of genes, ten samples")
    quick = parser.parse_args().quick
    goals = Goals()
    warnings.simplefilter("ignore", UserWarning)
    tumours((100,) if quick else (20, 60, 100, 2308))
    promised_errors(10 if quick else 40, goals)
    goals.report()


if __name__ == "__main__":
    main()
