"""Writing files so that a name never holds half of one."""

import os
import tempfile
from pathlib import Path


def check_writable(path: str | os.PathLike, name: str) -> Path:
    """Return `path`, or raise if a file could not be written there; to be asked before long work.

    >>> check_writable("/no/such/folder/model.skops", "--save")
    Traceback (most recent call last):
    ValueError: --save: the folder /no/such/folder does not exist.
    """
    path = _followed(Path(path))
    if path.is_dir():
        raise ValueError(f"{name}: {path} is a folder, give the name of a file.")
    if path.exists() and not path.is_file():
        raise ValueError(f"{name}: {path} is no regular file but {_kind(path)}; give the name of a file.")
    if not path.parent.exists():
        raise ValueError(f"{name}: the folder {path.parent} does not exist.")
    if not path.parent.is_dir():
        raise ValueError(f"{name}: {path.parent} is not a folder.")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            return path
    except OSError as error:
        raise ValueError(
            f"{name}: no file can be written in the folder {path.parent}: {error.strerror}."
        ) from error


def write_atomically(path: str | os.PathLike, content: bytes | str) -> Path:
    """Write `content` to a temporary name beside `path`, then rename it.

    Whatever stops the process, `path` holds what it held before or all of `content`. A killed process may leave
    the temporary file, whose name is hidden and its own: it is in nobody's way. Symbolic links are followed: what
    they lead to is replaced, not they. Pipes, devices and the like are refused.
    """
    path = _followed(Path(path))
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no regular file but {_kind(path)}: nothing is written there.")
    data = content.encode() if isinstance(content, str) else content
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".tmp")
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return path


def _followed(path: Path) -> Path:
    """Return what a symbolic link leads to, or the path itself."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _kind(path: Path) -> str:
    kinds = {
        "is_fifo": "a named pipe",
        "is_char_device": "a device",
        "is_block_device": "a device",
        "is_socket": "a socket",
    }
    return next((words for test, words in kinds.items() if getattr(path, test)()), "something else")


def _mode(path: Path) -> int:
    """Return the permissions of `path`, or what the process would give a new file."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
