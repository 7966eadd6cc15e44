"""Run the tests with the oldest versions of all dependencies that pyproject.toml allows, and with the newest.

python -m tools.versions [--python PYTHON] [--only oldest|newest] [--quick] [--dry-run] [--keep FOLDER] [-- ...]

Every run has an environment of its own, with the package built from the sdist, in a folder that is temporary
unless it is to be kept. The interpreters are commands such as python3.11; by default the one that runs this
script. What follows -- is for pytest. To be run once per release.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRA = "test"
QUICK = (
    "tests/contract/test_estimators.py",
    "tests/test_persistence.py",
    "tests/export",
    "tests/cli",
    "tests/distributed",
    "tests/report/test_build.py",
    "tests/reference",
    "tests/solvers/sparse",
)
"""Tests that meet every dependency: scikit-learn, skops, ONNX, pandas and the terminal, Dask, solvers, HiGHS."""

REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(\[(?P<extras>[^\]]*)\])?(>=(?P<oldest>[0-9.]+))?$")


def requirements(project: dict, extra: str) -> dict[str, str]:
    """Return the oldest version of every package that the project needs with one of its extras.

    >>> extras = {"t": ["me[u]", "b[c]>=3"], "u": ["a>=1.4"]}
    >>> requirements({"name": "me", "dependencies": ["a>=1.2"], "optional-dependencies": extras}, "t")
    {'a': '1.4', 'b': '3'}
    """
    oldest: dict[str, str] = {}
    waiting, seen = [*project["dependencies"], f"{project['name']}[{extra}]"], set()
    while waiting:
        text = waiting.pop(0)
        match = REQUIREMENT.match(text.replace(" ", ""))
        if match is None:
            raise ValueError(f"pyproject.toml: {text!r} is no requirement of the form NAME[EXTRAS]>=VERSION.")
        if match["name"] == project["name"]:
            for part in sorted(set(match["extras"].split(",")) - seen):
                seen.add(part)
                waiting += project["optional-dependencies"][part]
        elif match["oldest"] is not None:
            versions = [oldest.get(match["name"], "0"), match["oldest"]]
            oldest[match["name"]] = max(versions, key=lambda version: [int(part) for part in version.split(".")])
    return oldest


def run(*command: object) -> int:
    """Show a command and run it."""
    print("+", *command, flush=True)
    return subprocess.run([str(word) for word in command], cwd=ROOT).returncode


def try_versions(
    python: str, which: str, pins: dict[str, str], pytest: list[str], folder: Path, *, dry_run: bool
) -> bool:
    """Install in a new environment in a folder and run the tests; tell whether all went well."""
    constraints = folder / "constraints.txt"
    lines = [f"{package}=={version}.*" for package, version in pins.items()] if which == "oldest" else []
    constraints.write_text("\n".join(lines) + "\n")
    inner = folder / "env/bin/python"
    if run(python, "-m", "venv", folder / "env") or run(inner, "-m", "pip", "install", "--quiet", "build"):
        return False
    if run(inner, "-m", "build", "--sdist", "--outdir", folder):
        return False
    (sdist,) = folder.glob("*.tar.gz")
    install = [inner, "-m", "pip", "install", "--upgrade", "--quiet", "-c", constraints]
    if run(*install, *(["--dry-run"] if dry_run else []), f"{sdist}[{EXTRA}]"):
        return False
    if dry_run:
        return True
    run(inner, "-m", "pip", "list")
    return run(inner, "-m", "pytest", "-q", *pytest) == 0


def main() -> int:
    """Try all that was asked for and print the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", nargs="+", default=[sys.executable], help="interpreters")
    parser.add_argument("--only", choices=["oldest", "newest"], help="one of the two")
    parser.add_argument("--dry-run", action="store_true", help="see whether versions can be had together, no more")
    parser.add_argument("--quick", action="store_true", help="only tests that meet the dependencies most")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="a new folder to keep the environments in")
    parser.add_argument("pytest", nargs="*", help="what pytest is told")
    given = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    pins = requirements(project, EXTRA)
    pytest = [*(QUICK if given.quick else ()), *given.pytest]
    verdicts = {}
    with tempfile.TemporaryDirectory(prefix="polymargin-versions-") as temporary:
        for at, python in enumerate(given.python):
            for which in [given.only] if given.only else ["oldest", "newest"]:
                folder = (given.keep or Path(temporary)) / f"{at}-{which}"
                folder.mkdir(parents=True)
                verdicts[python, which] = try_versions(
                    python, which, pins, pytest, folder.resolve(), dry_run=given.dry_run
                )
    for (python, which), passed in verdicts.items():
        print(f"{'passed' if passed else 'FAILED':>7}  {python}, {which} versions")
    return 0 if all(verdicts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
