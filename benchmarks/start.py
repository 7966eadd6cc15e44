"""Seconds of a processor until help or an error is on the screen, beside those of Python and of typer alone.

python -m benchmarks.start
"""

import resource
import subprocess
import sys

REPEATS = 5
MAIN = "from polymargin.cli import main; main({words!r})"


def used() -> float:
    """Return the seconds that processes started here have had of processors."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def seconds(script: str) -> float:
    """Return the least of several runs."""
    times = []
    for _ in range(REPEATS):
        before = used()
        subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
        times.append(used() - before)
    return min(times)


def main() -> None:
    scripts = {"python": "pass", "import typer": "import typer"}
    for words in ("--version", "fit --help", "dance", "fit none.csv --target y", "predict none.skops none.csv"):
        scripts[f"polymargin {words}"] = MAIN.format(words=words.split())
    for name, script in scripts.items():
        print(f"{name:40s} {seconds(script):.2f} s", flush=True)


if __name__ == "__main__":
    main()
