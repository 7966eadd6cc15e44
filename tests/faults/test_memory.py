"""Too little memory: said in a sentence that names what helps, before any work where it can be foreseen."""

import multiprocessing
import os
import platform
import resource
import subprocess
import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import polymargin.memory
from polymargin import MulticategorySVC, ProximalSVC, RobustSVC, SharedStructureSVC, SparseSVC, TraceNormSVC
from tests.simulate import blobs

ROWS = 6000
MACHINES = [
    (MulticategorySVC(), "cache_size, which is 1000 megabytes"),
    (MulticategorySVC(kernel="laplacian", loss="weston"), "cache_size, which is 1000 megabytes"),
    (RobustSVC(kernel="rbf"), "cache_size, which is 1000 megabytes"),
    (ProximalSVC(kernel="rbf"), "give landmarks"),
    (SharedStructureSVC(kernel="rbf"), "give landmarks"),
    (TraceNormSVC(kernel="rbf"), "give landmarks"),
]


def never(A, B):
    """Tell that work has begun."""
    raise AssertionError("the kernel was asked before memory was")


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr("polymargin.memory.free_bytes", lambda: 2e8)


@pytest.mark.parametrize(("machine", "remedy"), MACHINES, ids=str)
def test_a_kernel_matrix_that_does_not_fit_is_refused_before_it_is_computed(machine, remedy, little_memory):
    X, y = blobs(np.random.default_rng(0), ROWS, 2, 3)
    machine = type(machine)(**machine.get_params()).set_params(kernel=never)
    with pytest.raises(
        MemoryError, match=f"The kernel matrix of {ROWS} rows would take .* GB .* free: .*{remedy}"
    ):
        machine.fit(X, y)
    with pytest.raises(NotFittedError):
        machine.predict(X)


def test_what_is_advised_helps(little_memory):
    X, y = blobs(np.random.default_rng(0), ROWS, 2, 3)
    assert MulticategorySVC(cache_size=50, C=0.01, tol=0.1).fit(X, y).converged_
    for machine in (MulticategorySVC, ProximalSVC, SharedStructureSVC):
        assert machine(kernel="rbf", landmarks=20, random_state=0).fit(X, y).converged_


def test_moments_that_do_not_fit_are_refused(little_memory):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3100, 3000)), np.arange(3100) % 3
    with pytest.raises(
        MemoryError, match=r"Moments of 3 classes in 3000 variables would take .* use fewer of them"
    ):
        SharedStructureSVC().fit(X, y)


@pytest.mark.parametrize(
    ("machine", "remedy"),
    [(MulticategorySVC(), "set cache_size or landmarks, or fit"), (SparseSVC(), "fit fewer rows")],
    ids=str,
)
def test_a_lack_of_memory_that_nobody_foresaw_names_what_helps(machine, remedy, monkeypatch):
    def scarce(*arguments, **named):
        raise MemoryError("Unable to allocate 1.00 TiB")

    monkeypatch.setattr("polymargin.estimators._base.MarginClassifier._settings", scarce)
    X, y = blobs(np.random.default_rng(0), 30, 2, 3)
    with pytest.raises(MemoryError, match=rf"ran out of memory \(Unable to allocate 1.00 TiB\): {remedy}"):
        machine.fit(X, y)


def within_limit(machine, extra, answer):
    """Fit in a process whose address space may grow by `extra` bytes only."""
    X, y = blobs(np.random.default_rng(0), ROWS, 2, 3)
    machine.fit(X[:60], y[:60])  # what is imported on the way is there
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + extra, size + extra))
    try:
        machine.fit(X, y)
        answer.put("fitted")
    except MemoryError as error:
        answer.put(str(error))


@pytest.mark.skipif(
    polymargin.memory._free_on_machine() == np.inf, reason="the size of a process is read from /proc, as on Linux"
)
@pytest.mark.parametrize("machine", [MulticategorySVC(), ProximalSVC(kernel="rbf")], ids=str)
def test_under_a_limit_of_the_system(machine):
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=within_limit, args=(machine, 2**27, answer))
    process.start()
    said = answer.get(timeout=120)
    process.join(30)
    assert process.exitcode == 0
    assert f"The kernel matrix of {ROWS} rows would take" in said
    assert "landmarks" in said


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have their own ways")
def test_freed_tables_are_kept_for_those_that_follow():
    """Without it every one of them is asked for anew, a page at a time."""
    lines = """
import resource
import numpy as np
from polymargin.memory import keep_freed_tables
keep_freed_tables()
def tables():
    return [np.ones(300_000) for _ in range(5)]
tables()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    tables()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    # who sets a threshold, as Dask does for its workers, has settled all of them
    unset = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    found = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True, env=unset)
    assert int(found.stdout) < 20 * 300_000 * 8 / resource.getpagesize()  # a fifth of them all
