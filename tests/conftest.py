"""Fixtures that every test may use."""

import os
import signal
from pathlib import Path

# The tests already run side by side; more threads inside each would only fight for the cores.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("MPLBACKEND", "agg")
# A shell lets what runs in its background ignore Ctrl-C, and some tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)

import numpy as np  # noqa: E402
import pytest  # noqa: E402

from polymargin.threads import ThreadSettings, thread_settings  # noqa: E402

SHARED = Path(os.environ.get("POLYMARGIN_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture
def real_data():
    """Load NAME.npz of the developers' data folder, or skip the test where it is absent."""

    def load(name):
        path = SHARED / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"{name}.npz is not in {SHARED}; set POLYMARGIN_DATA to a folder that holds it")
        return np.load(path, allow_pickle=False)

    return load


@pytest.fixture(params=[1, 3])
def threads(request):
    """Let so many threads pass over rows, twenty rows or more each."""
    with thread_settings(ThreadSettings(rows_of_a_thread=20, most=request.param, running=Path("nobody tells"))):
        yield request.param
