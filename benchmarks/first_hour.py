"""`polymargin fit` with nothing but a file and a target, beside tuned SVC: errors on the same held-out rows.

    python -m benchmarks.first_hour iris wine ...     data sets of the benchmarks (NAME.npz)
    python -m benchmarks.first_hour shuttle           58,000 simulated rows, seven classes, two of them rare

SVC is tuned by five folds on at most 4,000 training rows and fitted to all of them. Differences are in standard
errors of SVC's error on the held-out rows.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from benchmarks.common import DATA
from polymargin.cli.methods import CS, WIDTHS, Choice, kernel_scale
from polymargin.cli.names import Method
from polymargin.cli.training import Job, read_job, train

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


def load(name: str, folder: Path, files: Path) -> Job:
    path = files / f"{name}.csv"
    if name == "shuttle":
        shuttle(path)
        return read_job(path, target="state")
    stored = np.load(folder / f"{name}.npz")
    frame = pd.DataFrame(stored["X"]).rename(columns=lambda at: f"x{at}").assign(y=stored["y"])
    frame.to_csv(path, index=False)
    return read_job(path, target="y")


def tuned_svc(job: Job) -> float:
    prepare = job.columns.preprocessing(scale=True)
    X, y = prepare.fit_transform(job.train[0]), job.train[1]
    some = np.random.default_rng(0).permutation(len(y))[:SEARCHED]
    grid = {"C": CS, "gamma": [width * kernel_scale(X) for width in WIDTHS]}
    best = GridSearchCV(SVC(), grid, cv=5).fit(X.iloc[some], y[some]).best_params_
    predicted = SVC(**best).fit(X, y).predict(prepare.transform(job.held_out[0]))
    return float(np.mean(predicted != job.held_out[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--folder", type=Path, default=DATA, help="folder of NAME.npz files with X and y")
    parser.add_argument("--files", type=Path, default=Path("."), help="where the CSV files are written")
    parser.add_argument("--budget", default=None)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.names:
        job = load(name, given.folder, given.files)
        started, used = time.perf_counter(), time.process_time()
        trained = train(job, Choice(Method.auto, budget=given.budget))
        seconds, cpu = time.perf_counter() - started, time.process_time() - used
        X, y = job.held_out
        ours = float(np.mean(trained.model.predict(X) != y))
        theirs = tuned_svc(job)
        error = np.sqrt(max(theirs * (1 - theirs), 1.0 / len(y)) / len(y))
        print(
            f"{name:12s} {len(job.train[1]):6d} rows  fit {ours:.4f}  SVC {theirs:.4f}  difference "
            f"{(ours - theirs) / error:+.2f} SE  {seconds:.0f} s ({cpu:.0f} CPU)  rows used {trained.n_rows}",
            flush=True,
        )


if __name__ == "__main__":
    main()
