"""A name holds what it held before or the whole new content, whatever happens."""

import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from polymargin import files
from polymargin.files import check_writable, write_atomically


def test_content_and_permissions(tmp_path):
    path = tmp_path / "note.txt"
    write_atomically(path, "grün")
    assert path.read_bytes() == "grün".encode()
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    path.chmod(0o640)
    write_atomically(path, b"second")
    assert path.read_bytes() == b"second"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["note.txt"]


def test_a_failure_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "note.txt"
    path.write_text("first")

    def fail(*arguments):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="full"):
        write_atomically(path, "second")
    assert path.read_text() == "first"
    assert os.listdir(tmp_path) == ["note.txt"]


def test_a_kill_leaves_what_was_there(tmp_path):
    """The writer is killed over and over, anywhere between opening and renaming."""
    path = tmp_path / "large.bin"
    script = f"""
import importlib.util
spec = importlib.util.spec_from_file_location("files", {files.__file__!r})
files = importlib.util.module_from_spec(spec)
spec.loader.exec_module(files)
print("ready", flush=True)
while True:
    for letter in b"ab":
        files.write_atomically({str(path)!r}, bytes([letter]) * 4_000_000)
"""
    for wait in (0.02, 0.05, 0.08):
        writer = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
        assert writer.stdout.readline() == b"ready\n"
        while not path.exists():
            time.sleep(0.001)
        time.sleep(wait)
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        content = path.read_bytes()
        assert len(content) == 4_000_000
        assert content in (b"a" * 4_000_000, b"b" * 4_000_000)
    write_atomically(path, b"after")
    assert path.read_bytes() == b"after"


def test_check_writable_names_the_problem(tmp_path):
    (tmp_path / "file").write_text("")
    assert check_writable(tmp_path / "new", "--save") == tmp_path / "new"
    for target, problem in [
        (tmp_path, "is a folder"),
        (tmp_path / "none" / "new", "does not exist"),
        (tmp_path / "file" / "new", "is not a folder"),
    ]:
        with pytest.raises(ValueError, match=f"--save: .*{problem}"):
            check_writable(target, "--save")


def test_a_folder_without_permission(monkeypatch):
    def refuse(*, dir):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(ValueError, match=r"--save: no file can be written in the folder \.: Permission denied"):
        check_writable("model.skops", "--save")


def test_a_folder_that_takes_no_files():
    """Not even root may write to /proc."""
    with pytest.raises(ValueError, match="--save: no file can be written in the folder /proc"):
        check_writable("/proc/model.skops", "--save")
