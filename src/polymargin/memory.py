"""Memory: how much is free, asked before work that needs much of it; what is freed is kept for what follows."""

import math
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

SMALL = 2**26
"""Bytes that are not worth the question."""

KEPT = 2**25 - 2**16
"""Bytes of the largest table that glibc takes as a sign of more to come."""


def check_memory(needed: float, what: str, remedy: str) -> None:
    """Raise if `what` takes more bytes than are free.

    Raises
    ------
    MemoryError
        In a sentence that ends with the `remedy`.

    Examples
    --------
    >>> check_memory(8e18, "The kernel matrix of a billion rows", "give landmarks")
    Traceback (most recent call last):
    MemoryError: The kernel matrix of a billion rows would take 8e+09 GB of memory, more than the ...
    """
    if needed <= SMALL:
        return
    free = free_bytes()
    if needed > free:
        raise MemoryError(
            f"{what} would take {needed / 1e9:.3g} GB of memory, more than the {free / 1e9:.3g} GB that are free: "
            f"{remedy}."
        )


def free_bytes() -> float:
    """Return the memory that the process may still take, as far as the system says; infinite where it does not."""
    return min(_free_on_machine(), _free_in_group(), _free_to_process())


def _free_on_machine() -> float:
    """Return what /proc/meminfo of Linux says can be had without hurting others, swap included."""
    try:
        fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        return 1024.0 * sum(int(fields[name].split()[0]) for name in ("MemAvailable", "SwapFree"))
    except (OSError, KeyError, ValueError):
        return math.inf


def _free_in_group() -> float:
    """Return what the control group of a container leaves, where it sets a limit."""
    group = Path("/sys/fs/cgroup")
    try:
        most, used = ((group / f"memory.{name}").read_text().strip() for name in ("max", "current"))
        return math.inf if most == "max" else float(most) - float(used)
    except (OSError, ValueError):
        return math.inf


def _free_to_process() -> float:
    """Return what a limit on the address space (``ulimit -v``) leaves."""
    try:
        import resource  # POSIX only

        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return math.inf if most == resource.RLIM_INFINITY else float(most - pages * resource.getpagesize())
    except (ImportError, OSError):
        return math.inf


@cache
def keep_freed_tables() -> None:
    """Let the C library keep the memory of freed tables: methods take some of a few megabytes at every step.

    glibc gives such memory back at once and has it again a page at a time, which was a quarter of the time of
    linear machines on 16,000 rows. A large table that is taken and freed raises its thresholds, once in a process
    (mallopt(3), M_MMAP_THRESHOLD); this one is never written to, and so takes nothing. Other libraries ignore it.
    """
    with suppress(MemoryError):
        np.empty(KEPT, dtype=np.uint8)
