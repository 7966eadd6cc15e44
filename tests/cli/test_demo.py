"""The demo prints a row for every family."""

import subprocess
import sys
from pathlib import Path


def test_demo_prints_its_table():
    command = Path(sys.executable).with_name("polymargin")
    done = subprocess.run([command, "demo"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for name in ("MulticategorySVC", "ProximalSVC", "SparseSVC", "SharedStructureSVC", "RobustSVC"):
        assert name in done.stdout


def test_unknown_commands_are_usage_errors():
    command = Path(sys.executable).with_name("polymargin")
    done = subprocess.run([command, "dance"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "dance" in done.stderr
