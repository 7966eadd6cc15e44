"""Whatever stops a process that saves, the name holds the old file or the new one."""

import errno
import os
import resource
import signal
import time

import numpy as np
import pytest

from polymargin.files import write_atomically

KILLS = 100
OLD, NEW = b"old" * 50_000, b"new" * 80_000


def in_child(work):
    """Run `work` in a forked process; return its id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
    finally:
        os._exit(0)


def save_for_ever(path):
    """Write the new and the old content in turn until killed."""
    while True:
        write_atomically(path, NEW)
        write_atomically(path, OLD)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked and killed by POSIX signals")
def test_a_killed_process_leaves_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(OLD)
    rng, whole = np.random.default_rng(0), 0
    for _ in range(KILLS):
        child = in_child(lambda: save_for_ever(path))
        time.sleep(0.02 * rng.random())
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        whole += path.read_bytes() in (OLD, NEW)
    assert whole == KILLS


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the limit is set in a forked process")
def test_a_full_disk_leaves_the_old_file(tmp_path):
    path, said = tmp_path / "model.skops", tmp_path / "said"
    path.write_bytes(OLD)

    def save_on_a_full_disk():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        try:
            write_atomically(path, NEW)
        except OSError as error:
            said.write_text(errno.errorcode[error.errno])

    os.waitpid(in_child(save_on_a_full_disk), 0)
    assert said.read_text() in ("EFBIG", "ENOSPC")
    assert path.read_bytes() == OLD
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model.skops", "said"]


def test_an_error_while_writing_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(tmp_path / "model.skops", NEW)
    assert not list(tmp_path.iterdir())
