"""Whatever stops a process that writes, the name holds the old file or the new one, or all that was appended."""

import errno
import os
import resource
import signal
import time
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from polymargin.cli.comparing import Ledger, Outcome, Score
from polymargin.files import write_atomically
from reproductions.run import header_of, open_results, read_results, run, seed_of, write_results

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
        killed_at_a_random_moment(lambda: save_for_ever(path), rng, 0.02)
        whole += path.read_bytes() in (OLD, NEW)
    assert whole == KILLS


def killed_at_a_random_moment(work, rng, within, path=None):
    """Run `work` in a forked process and kill it within so many seconds, often after it wrote a file."""
    before = content(path) if path is not None and rng.random() < 0.5 else None
    child = in_child(work)
    while before is not None and content(path) == before:
        time.sleep(0.001)
    time.sleep(within * rng.random())
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def content(path):
    """Return what tells one state of a file from another."""
    return (path.stat().st_ino, path.stat().st_mtime_ns, path.stat().st_size) if path.exists() else ()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked and killed by POSIX signals")
def test_a_killed_comparison_goes_on_with_all_outcomes_that_it_had(tmp_path):
    path, rng = tmp_path / "compare.jsonl", np.random.default_rng(1)
    score = Score(0.1, 0.2, 0.3, 1.0, 100, 1e-9)

    def compare():
        ledger = Ledger(path)
        for number in count(len(ledger.methods)):
            ledger.add(Outcome(f"method {number}", (score,) * 40))

    whole, most, kept = 0, 0, {}
    for _ in range(KILLS):
        killed_at_a_random_moment(compare, rng, 0.05, path)
        ledger = Ledger(path)
        sound = all(outcome.scores == (score,) * 40 for outcome in ledger.outcomes.values())
        whole += sound and kept.items() <= ledger.outcomes.items()
        kept = dict(ledger.outcomes)
        most = max(most, len(kept))
        if len(kept) > 200:
            path.unlink()
            kept = {}
    assert whole == KILLS
    assert most > 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked and killed by POSIX signals")
def test_a_killed_reproduction_goes_on_with_all_repetitions_that_it_had(tmp_path, monkeypatch):
    monkeypatch.setattr("reproductions.run.commit", lambda: "")  # asking git takes longer than a process lives
    monkeypatch.setattr("reproductions.run.digest", lambda repetition: "")
    path, rng, header = tmp_path / "table.jsonl", np.random.default_rng(2), header_of("paper/table", quick=True)
    item = SimpleNamespace(repetition=lambda context: {("error", str(at)): context.seed for at in range(300)})

    def reproduce():
        run("paper/table", item, path, repetitions=1000, quick=True)

    def rewrite():
        while True:
            write_results(path, *read_results(path))

    whole, most, kept = 0, 0, []
    for kill in range(KILLS):
        killed_at_a_random_moment(rewrite if kept and kill % 2 else reproduce, rng, 0.1, path)
        records = open_results(path, header)
        expected = all(
            record.seed == seed_of("paper/table", record.repetition) == record.values["error", "299"]
            for record in records
        )
        whole += expected and records[: len(kept)] == kept and path.read_bytes().endswith(b"\n")
        kept, most = records, max(most, len(records))
        if len(kept) > 200:
            path.unlink()
            kept = []
    assert whole == KILLS
    assert most > 10


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
