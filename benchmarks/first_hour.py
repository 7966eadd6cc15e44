"""`polymargin fit` with nothing but a file and a target, beside tuned SVC: errors on the same held-out rows.

    python -m benchmarks.first_hour iris wine ...     data sets of the benchmarks (NAME.npz)
    python -m benchmarks.first_hour shuttle           58,000 simulated rows, seven classes, two of them rare

SVC is tuned by five folds on at most 4,000 training rows and fitted to all of them. Differences are in standard
errors of SVC's error on the held-out rows. With `--out` results are kept, and a run that was stopped goes on.
With `--processor` the budget is in seconds of one processor, for machines that others use as well.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from functools import partial
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


def shuttle(path: Path, seed: int = 0) -> None:
    """Write simulated rows in the shape of the shuttle data: nine columns, seven classes from 80 % to 0.02 %."""
    rng = np.random.default_rng(seed)
    sizes = np.array([45_586, 50, 171, 8_903, 3_267, 12, 11])
    y = np.repeat(np.arange(1, 8), sizes)
    centres = 2.5 * np.random.default_rng(0).normal(size=(7, 2, 9))
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


class Memory:
    """What was measured so far, in a file: a benchmark that was stopped goes on where it was."""

    def __init__(self, path: Path | None):
        self.path = path
        lines = path.read_text("utf-8").splitlines() if path is not None and path.exists() else []
        self.known = {tuple(key): value for key, value in map(json.loads, lines)}

    def of(self, *key: Any, measure: Callable[[], Any]) -> Any:
        """Return what is known under the key, or measure and remember it."""
        if key not in self.known:
            self.known[key] = measure()
            if self.path is not None:
                with self.path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([key, self.known[key]]) + "\n")
        return self.known[key]


def tuned_svc(job: Job, remembered: Callable[..., Any]) -> float:
    prepare = job.columns.preprocessing(scale=True)
    X, y = prepare.fit_transform(job.train[0]), job.train[1]
    some = np.random.default_rng(0).permutation(len(y))[:SEARCHED]
    gammas = [width * kernel_scale(X) for width in WIDTHS]

    def tried(C: float) -> list[float]:
        found = GridSearchCV(SVC(C=C), {"gamma": gammas}, cv=5).fit(X.iloc[some], y[some])
        return [found.best_score_, found.best_params_["gamma"]]

    def judged() -> float:
        predicted = SVC(C=best, gamma=gamma).fit(X, y).predict(prepare.transform(job.held_out[0]))
        return float(np.mean(predicted != job.held_out[1]))

    found = {C: remembered("SVC", C, measure=lambda C=C: tried(C)) for C in CS}
    best = max(CS, key=lambda C: (found[C][0], -C))
    gamma = found[best][1]
    return remembered("SVC", "error", measure=judged)


def fitted(job: Job, budget: str | None, seed: int) -> dict[str, Any]:
    started, used = time.perf_counter(), time.process_time()
    trained = train(job, Choice(Method.auto, budget=budget, seed=seed))
    seconds, processor = time.perf_counter() - started, time.process_time() - used
    X, y = job.held_out
    return {
        "rows": len(job.train[1]),
        "used": trained.n_rows,
        "fit": float(np.mean(trained.model.predict(X) != y)),
        "seconds": seconds,
        "processor": processor,
        "settings": describe_settings(trained.search),
    }


def judge(name: str, seed: int, given: argparse.Namespace, memory: Memory) -> dict[str, Any]:
    """Return the errors of both on one division of the rows."""
    job = load(name, given.folder, given.files, seed)
    remembered = partial(memory.of, name, seed)
    ours = remembered("fit", measure=lambda: fitted(job, given.budget, seed))
    theirs, n = tuned_svc(job, remembered), len(job.held_out[1])
    error = float(np.sqrt(max(theirs * (1 - theirs), 1.0 / n) / n))
    return {**ours, "name": name, "seed": seed, "SVC": theirs, "error": error}


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
    memory, results = Memory(given.out), {}
    for name in given.names:
        for seed in range(given.seeds):
            results[name, seed] = judge(name, seed, given, memory)
            show(results[name, seed])
    chosen = [[results[name, seed] for seed in range(given.seeds)] for name in given.names]
    means = [np.mean([(r["fit"] - r["SVC"]) / r["error"] for r in several]) for several in chosen]
    print(f"within one standard error, on average over divisions: {sum(m <= 1.0 for m in means)} of {len(means)}")


if __name__ == "__main__":
    main()
