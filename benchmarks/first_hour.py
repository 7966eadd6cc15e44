"""`polymargin fit` with nothing but a file and a target, beside tuned SVC: errors on the same held-out rows.

    python -m benchmarks.first_hour iris wine ...     data sets of the benchmarks (NAME.npz)
    python -m benchmarks.first_hour shuttle           58,000 simulated rows, seven classes, two of them rare

SVC is tuned by five folds on at most 4,000 training rows and fitted to all of them. Differences are in standard
errors of SVC's error on the held-out rows. With `--out` results are kept, and runs that are there not repeated.
With `--processor` the budget is in seconds of one processor, for machines that others use as well.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from benchmarks.common import DATA
from polymargin.cli import methods
from polymargin.cli.methods import CS, WIDTHS, Choice, kernel_scale
from polymargin.cli.names import Method
from polymargin.cli.training import Job, describe_settings, read_job, train

SEARCHED = 4_000


def shuttle(path: Path) -> None:
    """Write simulated rows in the shape of the shuttle data: nine columns, seven classes from 80 % to 0.02 %."""
    rng = np.random.default_rng(0)
    sizes = np.array([45_586, 50, 171, 8_903, 3_267, 12, 11])
    y = np.repeat(np.arange(1, 8), sizes)
    centres = 2.5 * rng.normal(size=(7, 2, 9))
    X = centres[y - 1, rng.integers(0, 2, len(y))] + rng.standard_t(5, size=(len(y), 9))
    pd.DataFrame(X.round(3), columns=[f"sensor {j}" for j in range(1, 10)]).assign(state=y).to_csv(
        path, index=False
    )


def load(name: str, folder: Path, files: Path, seed: int = 0) -> Job:
    path = files / f"{name}.csv"
    if name == "shuttle":
        shuttle(path)
        return read_job(path, target="state", seed=seed)
    stored = np.load(folder / f"{name}.npz")
    frame = pd.DataFrame(stored["X"]).rename(columns=lambda at: f"x{at}").assign(y=stored["y"])
    frame.to_csv(path, index=False)
    return read_job(path, target="y", seed=seed)


def tuned_svc(job: Job) -> float:
    prepare = job.columns.preprocessing(scale=True)
    X, y = prepare.fit_transform(job.train[0]), job.train[1]
    some = np.random.default_rng(0).permutation(len(y))[:SEARCHED]
    grid = {"C": CS, "gamma": [width * kernel_scale(X) for width in WIDTHS]}
    best = GridSearchCV(SVC(), grid, cv=5).fit(X.iloc[some], y[some]).best_params_
    predicted = SVC(**best).fit(X, y).predict(prepare.transform(job.held_out[0]))
    return float(np.mean(predicted != job.held_out[1]))


def judge(name: str, seed: int, folder: Path, files: Path, budget: str | None) -> dict[str, Any]:
    """Return the errors of both on one division of the rows."""
    job = load(name, folder, files, seed)
    started, used = time.perf_counter(), time.process_time()
    trained = train(job, Choice(Method.auto, budget=budget, seed=seed))
    seconds, processor = time.perf_counter() - started, time.process_time() - used
    X, y = job.held_out
    theirs = tuned_svc(job)
    return {
        "name": name,
        "seed": seed,
        "rows": len(job.train[1]),
        "used": trained.n_rows,
        "fit": float(np.mean(trained.model.predict(X) != y)),
        "SVC": theirs,
        "error": float(np.sqrt(max(theirs * (1 - theirs), 1.0 / len(y)) / len(y))),
        "seconds": seconds,
        "processor": processor,
        "settings": describe_settings(trained.search),
    }


def show(result: dict[str, Any]) -> None:
    print(
        f"{result['name']:12s} {result['seed']} {result['rows']:6d} rows  fit {result['fit']:.4f}  "
        f"SVC {result['SVC']:.4f}  difference {(result['fit'] - result['SVC']) / result['error']:+.2f} SE  "
        f"{result['seconds']:.0f} s ({result['processor']:.0f} of a processor)  rows used {result['used']}  "
        f"{result['settings']}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--folder", type=Path, default=DATA, help="folder of NAME.npz files with X and y")
    parser.add_argument("--files", type=Path, default=Path("."), help="where the CSV files are written")
    parser.add_argument("--budget", default=None)
    parser.add_argument("--seeds", type=int, default=1, help="divisions of the rows")
    parser.add_argument("--out", type=Path, default=None, help="where results are kept (.jsonl)")
    parser.add_argument("--processor", action="store_true", help="count seconds of one processor")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.processor:
        methods.AT_ONCE = 1
        time.perf_counter = time.process_time
    kept = given.out.read_text("utf-8").splitlines() if given.out and given.out.exists() else []
    results = {(result["name"], result["seed"]): result for result in map(json.loads, kept)}
    for name in given.names:
        for seed in range(given.seeds):
            if (name, seed) not in results:
                results[name, seed] = judge(name, seed, given.folder, given.files, given.budget)
                if given.out is not None:
                    with given.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(results[name, seed]) + "\n")
            show(results[name, seed])
    chosen = [[results[name, seed] for seed in range(given.seeds)] for name in given.names]
    means = [np.mean([(r["fit"] - r["SVC"]) / r["error"] for r in several]) for several in chosen]
    print(f"within one standard error, on average over divisions: {sum(m <= 1.0 for m in means)} of {len(means)}")


if __name__ == "__main__":
    main()
