"""Our fits beside those of another revision: python -m benchmarks.against REVISION [--only multicategory ...].

The fits of `benchmarks.multicategory --quick`, `.robust --quick`, `.sparse --quick` and `.proximal`, without their
rivals, in the words of the public interface, which both revisions understand. Every set of data is given to the
two in turn, each time to a new process of one thread, and each time with its rows and variables in another order:
how ties fall and sums are rounded decides between seven rounds of a decomposition and ten, so that one order says
little of the code. The CPU time of a process is the median of its fits, that of a revision the median of its
processes; the ratio of the least times stands beside that of the medians, and the largest certified gaps say
whether both went equally far. The revision is installed into an environment of its own under build/against, or is
what --python finds.
"""

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
from scipy.sparse import issparse
from sklearn.datasets import load_digits

from benchmarks.common import Goals, Table, markdown_option, mixture

ROOT = Path(__file__).parents[1]
GOAL = 1.1
ROUNDS = 9
SECONDS = 0.5
"""CPU time that a process spends at least on repeating a fit; processes differ by more than the fits of one."""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
LOSSES = ("lee", "weston", "crammer")


@dataclass(frozen=True)
class Sample:
    """Data, and the fits to them as expressions; `named` are the names that these may use."""

    name: str
    fits: list[str]
    named: dict

    def in_order(self, seed: int) -> "Sample":
        """Return the same problems with rows and variables in another order, the one at hand for seed 0."""
        if seed == 0:
            return self
        rng, X, y = np.random.default_rng(seed), self.named["X"], self.named["y"]
        rows, columns = rng.permutation(X.shape[0]), rng.permutation(X.shape[1])
        X = X[rows][:, columns]
        if issparse(X):
            X.sort_indices()  # as those of the sample are
        return replace(self, named=self.named | {"X": X, "y": y[rows]})


def multicategory() -> Iterator[Sample]:
    """Yield the kernel machines that goals speak of, and the linear ones at all tolerances that are tried."""
    from benchmarks.multicategory import kernel_data, linear_data

    for name, X, y in kernel_data(quick=True):
        fits = [f"MulticategorySVC(loss='{loss}', tol=1e-3, time_limit=60).fit(X, y)" for loss in LOSSES]
        yield Sample(name, fits, {"X": X, "y": y})
    for name, X, y in linear_data(quick=True):
        machine = "MulticategorySVC(loss='{}', kernel='linear', tol={}, time_limit=60).fit(X, y)"
        fits = [machine.format(loss, tol) for loss in LOSSES for tol in ("4e-3", "1e-3", "2e-5")]
        yield Sample(name, fits, {"X": X, "y": y})


def robust() -> Iterator[Sample]:
    """Yield one convex step to 1e-8, with utilities one step and the whole fit from the same starts."""
    from benchmarks.robust import QUICK

    for kernel, n, k, p in QUICK:
        X, y = mixture(n, p, k, separation=2.0)
        U = np.eye(k)
        U[0, 1:3] = 0.4
        machine = f"RobustSVC(kernel='{kernel}', "
        fits = [
            machine + "truncation=-inf, tol=1e-8).fit(X, y)",
            machine + "utility=U, truncation=-inf).fit(X, y)",
            machine + "utility=U, starts=('utility', 'identity')).fit(X, y)",
        ]
        yield Sample(f"{kernel} {n}/{k}/{p}", fits, {"X": X, "y": y, "U": U, "inf": np.inf})
    X, y = load_digits(return_X_y=True)
    yield Sample("600 digits", ["RobustSVC(kernel='rbf').fit(X, y)"], {"X": X[:600] / 16.0, "y": y[:600]})


def sparse() -> Iterator[Sample]:
    """Yield single fits, fits with many variables, paths, and what users pick."""
    from benchmarks.sparse import real_data, sample
    from polymargin import sparse_path

    path = "sparse_path(X, y, n_Cs=31, eps=0.05, penalty='fusion')"
    for p, k, fractions in ((100, 4, (0.5,)), (1000, 4, (0.5, 0.35)), (2000, 5, (0.5, 0.3, 0.2, 0.15, 0.1, 0.05))):
        X, y = sample(200, p, k)
        largest = sparse_path(X, y, n_Cs=1).largest_penalty_weight
        fits = [f"SparseSVC(C=1 / ({part} * largest), tol=1e-8).fit(X, y)" for part in fractions]
        if k == 4:
            fits.append("SparseSVC(C=1 / (0.2 * largest), adaptive=True, tol=1e-8).fit(X, y)")
        yield Sample(f"simulated 200/{k}/{p}", [*fits, *[path] * (p == 100)], {"X": X, "y": y, "largest": largest})
    arrays = real_data("khan_srbct")
    if arrays is not None:
        yield Sample("khan_srbct", [path], {"X": arrays[0], "y": arrays[1]})


def proximal() -> Iterator[Sample]:
    """Yield one pass over many rows, covtype with and without a kernel, a path, a stream, and a paper's rival."""
    from benchmarks.proximal import covertype

    X, y = mixture(1_000_000, 50, 10, separation=1.0)
    yield Sample(
        "1000000 x 50", ["ProximalSVC(refine=False).fit(X, y)", "ProximalSVC().fit(X, y)"], {"X": X, "y": y}
    )
    X, y = X[:100_000], y[:100_000]
    stream = "[m.partial_fit(X, y, classes=range(10)) for m in [ProximalSVC()] for _ in range(100)][-1]"
    yield Sample("100 x 100000 x 50", [stream], {"X": X, "y": y})
    X, y = covertype(quick=False)
    kernel = "kernel='rbf', gamma=1/54, landmarks=1000, landmark_method='kmeans', random_state=0"
    fits = [
        f"ProximalSVC({options}{strength}).fit(X, y)"
        for options in ("", f"{kernel}, ")
        for strength in ("balance=True, C=2.0**28", "balance=False, C=2.0**12")
    ]
    yield Sample("covtype", fits, {"X": X[: 4 * len(X) // 5], "y": y[: 4 * len(X) // 5]})
    X, y = mixture(100_000, 200, 10, separation=0.5)
    fits = ["ProximalSVC(refine=False).fit(X, y)", "proximal_path(ProximalSVC(refine=False), X, y, Cs)"]
    yield Sample("100000 x 200", fits, {"X": X, "y": y, "Cs": 2.0 ** np.arange(36)})
    X, y = mixture(8000, 16, 10, separation=1.2)
    fits = [
        "ProximalSVC().fit(X, y)",
        "ProximalSVC(C=1000.0, kernel='rbf', landmarks=0.15, random_state=0).fit(X, y)",
    ]
    yield Sample("4000 x 16", fits, {"X": X[:4000], "y": y[:4000]})


BENCHMARKS: dict[str, Callable[[], Iterator[Sample]]] = {
    "multicategory": multicategory,
    "robust": robust,
    "sparse": sparse,
    "proximal": proximal,
}


def interpreter_of(revision: str) -> Path:
    """Return the interpreter of an environment with the revision, which is made if need be."""
    asked = ["git", "-C", str(ROOT), "rev-parse", "--short", revision]
    commit = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    home = ROOT / "build" / "against" / commit
    python = home / "bin" / "python"
    if not (home / "installed").exists():
        venv.create(home, with_pip=True)
        wanted = f"git+file://{ROOT}@{commit}"
        subprocess.run([python, "-m", "pip", "install", "--quiet", wanted], check=True)
        (home / "installed").touch()
    return python


def measured(python: Path, path: Path) -> list[dict]:
    """Return CPU seconds and gap of every fit to the sample in a file, from a new process."""
    command = [str(python), "-W", "ignore", "-m", "benchmarks.against", "--measure", str(path)]
    environment = os.environ | ONE_THREAD
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def measure(path: Path) -> None:
    """Print CPU seconds and gap of every fit to a sample."""
    import polymargin

    sample: Sample = pickle.loads(path.read_bytes())
    names = {name: getattr(polymargin, name) for name in polymargin.__all__} | sample.named
    for fit in sample.fits:
        began, seconds = time.process_time(), []
        while time.process_time() - began < SECONDS:
            started = time.process_time()
            fitted = eval(fit, names)
            seconds.append(time.process_time() - started)
        found = {"seconds": median(seconds), "least": min(seconds), "gap": gap_of(fitted)}
        print(json.dumps(found), flush=True)


def gap_of(fitted: object) -> float | None:
    """Return the certified gap, of a path the largest; None where there is none."""
    certificates = getattr(fitted, "certificates", [getattr(fitted, "certificate_", None)])
    return max((float(certificate.gap) for certificate in certificates if certificate is not None), default=None)


def compare(sample: Sample, before: Path, rounds: int, table: Table, goals: Goals) -> None:
    """Measure a sample in both environments in turn, and note the ratios."""
    pythons, runs = (before, Path(sys.executable)), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample"
        for seed in range(rounds):
            path.write_bytes(pickle.dumps(sample.in_order(seed), protocol=pickle.HIGHEST_PROTOCOL))
            runs.append([measured(python, path) for python in pythons])
    for at, fit in enumerate(sample.fits):
        old, new = (_summary([run[side][at] for run in runs]) for side in (0, 1))
        ratio = new["seconds"] / old["seconds"]
        seconds = {"before, s": old["seconds"], "now, s": new["seconds"], "ratio": ratio}
        least = {"of the least": new["least"] / old["least"]}
        gaps = {"gap before": old["gap"] or "", "gap now": new["gap"] or ""}
        table.add(data=sample.name, fit=fit, **seconds, **least, **gaps)
        goals.at_most(f"{sample.name}: {fit}", ratio, GOAL)


def _summary(found: list[dict]) -> dict:
    """Return median and least seconds of several processes, and the largest of their gaps."""
    gaps = [one["gap"] for one in found if one["gap"] is not None]
    return {
        "seconds": median(one["seconds"] for one in found),
        "least": min(one["least"] for one in found),
        "gap": max(gaps, default=None),
    }


def main() -> None:
    """Compare, and write the table where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revision", nargs="?", help="commit, tag or branch to compare with")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS), help="these benchmarks")
    parser.add_argument("--data", nargs="+", metavar="NAME", help="samples whose name has one of these in it")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="processes of either side for every sample")
    parser.add_argument("--python", type=Path, help="interpreter that has the revision installed already")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    markdown_option(parser)
    arguments = parser.parse_args()
    if arguments.measure is not None:
        return measure(arguments.measure)
    if arguments.revision is None:
        parser.error("name the revision to compare with")
    before = arguments.python or interpreter_of(arguments.revision)
    columns = ("data", "fit", "before, s", "now, s", "ratio", "of the least", "gap before", "gap now")
    goals, table = Goals(), Table(columns, first=22)
    for name in arguments.only:
        for sample in BENCHMARKS[name]():
            if arguments.data is None or any(part in sample.name for part in arguments.data):
                compare(sample, before, arguments.rounds, table, goals)
    print()
    goals.report()
    table.write(arguments.markdown, f"python -m benchmarks.against {arguments.revision}", goals)
    return None


if __name__ == "__main__":
    main()
