"""What RejectOptionClassifier rejects: arrays of foreign tissues, and what errors and costs it promises.

python -m benchmarks.rejection [--quick] [--only costs] [--markdown FILE]

Costs: log-normal matrices with a mean of one off the diagonal, another one for each random split of four data
sets; the mean cost of accepted test rows beside `target_cost`, and Chow's rule (`rejection_cost`, by
probabilities) beside never rejecting and beside a threshold for equal costs.
"""

import argparse
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression

from benchmarks.common import DATA, Goals, Table, markdown_option, real_data, write_tables
from benchmarks.decisions import random_costs
from polymargin import MarginSearch, MulticategorySVC, RejectOptionClassifier
from polymargin.datasets import make_triangle, standardize_arrays

COST_DATA = ("waveform", "vehicle", "satimage", "segment")
TRAINING_ROWS = 400
PRICES = (0.2,)


def tumours(genes: tuple[int, ...]) -> list[Table]:
    """Count the rejected SRBCT test arrays at the default, C and gamma chosen by leave-one-out on the training."""
    paths = [DATA / f"{name}.npz" for name in ("khan_srbct", "khan_srbct_test25")]
    if not all(path.exists() for path in paths):
        print("khan_srbct.npz or khan_srbct_test25.npz is absent")
        return []
    train, test = (np.load(path, allow_pickle=False) for path in paths)
    X, y = standardize_arrays(train["X"])[train["train_idx"]], train["y"][train["train_idx"]]
    foreign = test["y"] == "non-SRBCT"
    print(f"SRBCT, the default quantile: rejected of {foreign.sum()} foreign and {(~foreign).sum()} other arrays")
    table = Table(("genes", "C", "gamma", "threshold", "foreign", "others", "wrong", "wrong, accepted"), width=16)
    for count in genes:
        chosen = SelectKBest(f_classif, k=count).fit(X, y)
        search = MarginSearch(criterion="loo", exhaustive=True).fit(chosen.transform(X), y)
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
    return [table]


def promised_errors(samples: int, goals: Goals) -> list[Table]:
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
    return [table]


def promised_costs(names: Sequence[str], splits: int, goals: Goals) -> Table:
    """Compare the mean cost of accepted test rows with the target, over random splits and costs."""
    print(f"mean cost of accepted rows, {splits} splits of {TRAINING_ROWS} training rows, a cost matrix for each")
    columns = ("data", "by", "target", "realised", "error of it", "splits above", "accepted", "if all")
    table = Table(columns, width=13)
    machines = {
        "scores": MulticategorySVC(loss="weston", tol=1e-3),
        "probabilities": LogisticRegression(tol=1e-2, max_iter=500),
    }
    for name in names:
        data = real_data(name)
        if data is None:
            print(f"{name}.npz is absent")
            continue
        for by, machine in machines.items():
            for target in (0.05, 0.1):
                runs = np.array([_realised(data, machine, by, target, seed) for seed in range(splits)])
                cost, accepted, everything = runs.T
                realised = cost.mean() / accepted.mean()
                error = np.std(cost - realised * accepted, ddof=1) / (accepted.mean() * np.sqrt(splits))
                above = np.mean(cost > target * accepted)
                table.add(
                    data=name,
                    by=by,
                    target=target,
                    realised=float(realised),
                    **{"error of it": float(error), "splits above": float(above)},
                    accepted=float(accepted.mean()),
                    **{"if all": float(everything.mean())},
                )
                excess = float((realised - target) / error) if error else 0.0
                goals.at_most(f"{name}, {by}, target {target}: standard errors above it", excess, 2.0)
    return table


def _split(data: tuple, seed: int) -> tuple:
    X, y = data
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(y))[: TRAINING_ROWS + 1000]
    train, test = chosen[:TRAINING_ROWS], chosen[TRAINING_ROWS:]
    return (X[train], y[train]), (X[test], y[test]), random_costs(rng, len(np.unique(y)))


def _realised(data: tuple, machine: Any, by: str, target: float, seed: int) -> tuple[float, float, float]:
    """Return the summed cost of the accepted rows and their number, per test row, and the cost of all rows."""
    train, (T, t), costs = _split(data, seed)
    model = RejectOptionClassifier(machine, by=by, cost_matrix=costs, target_cost=target).fit(*train)
    charged = charges(model, T, t)
    accepted = model.predict(T) != model.reject_label_
    return float(np.mean(charged * accepted)), float(accepted.mean()), float(charged.mean())


def charges(model: RejectOptionClassifier, T: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return what the predictions of rows cost if none is rejected."""
    winners = model._scores(T).argmax(axis=1)
    return model.costs_[np.searchsorted(model.classes_, t), winners]


def chow(names: Sequence[str], splits: int, goals: Goals) -> Table:
    """Compare the total cost of Chow's rule with that of never rejecting, and of a threshold for equal costs."""
    table = Table(("data", "price", "never", "equal costs", "Chow", "rejected"), width=13)
    for name in names:
        data = real_data(name)
        if data is None:
            continue
        for price in PRICES:
            runs = np.array([_totals(data, price, seed) for seed in range(splits)]).mean(axis=0)
            values = dict(zip(("never", "equal costs", "Chow", "rejected"), map(float, runs), strict=True))
            table.add(data=name, price=price, **values)
            least = min(values["never"], values["equal costs"])
            goals.at_most(
                f"{name}, price {price}: Chow's cost over the better of the two", values["Chow"] / least, 1.0
            )
    return table


def _totals(data: tuple, price: float, seed: int) -> tuple[float, float, float, float]:
    train, (T, t), costs = _split(data, seed)
    machine = LogisticRegression(tol=1e-2, max_iter=500)
    ours = RejectOptionClassifier(machine, by="probabilities", cost_matrix=costs, rejection_cost=price).fit(*train)
    equal = RejectOptionClassifier(machine, rejection_cost=price).fit(*train)
    equal.costs_ = costs
    totals = []
    for model in (equal, ours):
        rejected = model.predict(T) == model.reject_label_
        totals.append(float(np.where(rejected, price, charges(model, T, t)).mean()))
    return float(charges(ours, T, t).mean()), *totals, float(rejected.mean())


def main() -> None:
    """Count rejections and print which goals hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one number of genes, ten samples, ten splits")
    parser.add_argument("--only", choices=("tumours", "errors", "costs"), help="one of the parts")
    parser.add_argument("--data", nargs="+", default=COST_DATA, help="data sets of the part on costs")
    markdown_option(parser)
    arguments = parser.parse_args()
    quick, only = arguments.quick, arguments.only
    goals, tables = Goals(), []
    warnings.simplefilter("ignore", UserWarning)
    if only in (None, "tumours"):
        tables += tumours((100,) if quick else (20, 60, 100, 2308))
    if only in (None, "errors"):
        tables += promised_errors(10 if quick else 40, goals)
    if only in (None, "costs"):
        splits = 10 if quick else 200
        tables += [promised_costs(arguments.data, splits, goals), chow(arguments.data, splits, goals)]
    goals.report()
    command = " ".join(("python -m benchmarks.rejection", *(("--only", only) if only else ())))
    write_tables(arguments.markdown, command, tables, goals)


if __name__ == "__main__":
    main()
