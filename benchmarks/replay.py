"""The first hour on 58,000 rows with nine columns and seven classes, two of them rare: budgets and errors.

    python -m benchmarks.replay --files FOLDER

Commands run as a person would run them, each in a process of its own. A command is within its budget if it took no
longer than that from the start of Python to its end; `--overhead` allows some seconds more. Beside each error is
that of scikit-learn's SVC as it comes on the same standardised rows; in `compare` it is tuned.
"""

import argparse
import re
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.first_hour import shuttle
from polymargin.cli.names import DEFAULT_BUDGET
from polymargin.selection.seconds import parse_seconds

COMMAND = (sys.executable, "-c", "import sys; from polymargin.cli import main; sys.exit(main())")


@dataclass(frozen=True)
class Ran:
    """A command that has run: its words, the budget, the seconds it took, those of processors, what it printed."""

    words: str
    budget: str
    seconds: float
    processor: float
    printed: str

    def show(self, overhead: float, error: float, theirs: float) -> None:
        verdict = "within" if self.seconds <= parse_seconds(self.budget) + overhead else "OVER"
        print(
            f"{self.words:52s} {self.seconds:5.0f} s ({self.processor:.0f} of processors), "
            f"{verdict} {self.budget:>4s}   "
            f"error {error:.4f}   SVC {theirs:.4f}",
            flush=True,
        )


def run(budget: str, *words: object) -> Ran:
    started, used = time.perf_counter(), _used()
    done = subprocess.run([*COMMAND, *map(str, words)], capture_output=True, text=True)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr}")
    named = " ".join(Path(str(word)).name for word in words)
    return Ran(named, budget, seconds, _used() - used, done.stdout)


def _used() -> float:
    """Return the seconds that processes started here have had of processors."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def errors_of_svc(frame: pd.DataFrame, new: pd.DataFrame) -> tuple[float, float]:
    """Return the error on the rows that `fit` holds out, and that on new rows of a machine of all rows."""
    X, y = frame.drop(columns="state"), frame["state"]
    model = make_pipeline(StandardScaler(), SVC())
    train, test, labels, held = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    on_held = float(np.mean(model.fit(train, labels).predict(test) != held))
    return on_held, float(np.mean(model.fit(X, y).predict(new.drop(columns="state")) != new["state"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path, default=Path("."), help="where files are written")
    parser.add_argument("--compare", default="5m", help="budget of compare")
    parser.add_argument("--overhead", type=float, default=0.0)
    given = parser.parse_args()
    data, new, model = (given.files / name for name in ("shuttle.csv", "new.csv", "shuttle.skops"))
    shuttle(data)
    shuttle(new, seed=1)
    frame, fresh = pd.read_csv(data), pd.read_csv(new)
    on_held, on_new = errors_of_svc(frame, fresh)
    fit = ("fit", data, "--target", "state")
    for budget, words in (
        (DEFAULT_BUDGET, (*fit, "--save", model)),
        ("60s", (*fit, "--tune", "--budget", "60s")),
        ("60s", (*fit, "--method", "multicategory", "--tune", "--budget", "60s")),
        ("60s", (*fit, "--method", "multicategory", "--landmarks", "100", "--tune", "--budget", "60s")),
        ("60s", (*fit, "--method", "proximal", "--kernel", "rbf", "--tune", "--budget", "60s")),
    ):
        ran = run(budget, *words)
        error = float(re.search(r"^\s*error\s+([\d.]+)", ran.printed, re.M)[1])
        ran.show(given.overhead, error, on_held)
    ran = run("30s", "predict", model, new, "--out", given.files / "predicted.csv")
    predicted = pd.read_csv(given.files / "predicted.csv")["prediction"]
    ran.show(given.overhead, float(np.mean(predicted.to_numpy() != fresh["state"].to_numpy())), on_new)
    ran = run(given.compare, "compare", data, "--target", "state", "--budget", given.compare, "--no-resume")
    lines = {words[0]: words for words in map(str.split, ran.printed.replace("*", " ").splitlines()) if words}
    ran.show(given.overhead, float(lines["auto"][1]), float(lines["SVC"][1]))
    print(ran.printed)


if __name__ == "__main__":
    main()
