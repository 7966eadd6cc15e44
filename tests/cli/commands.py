"""How the tests run the command: as users do, or in this process where only the answer matters."""

import os
import subprocess
import sys
from pathlib import Path

from polymargin.cli import main

COMMAND = Path(sys.executable).with_name("polymargin")


def run(*arguments, cwd=None, code=0, timeout=600):
    """Run the installed command; return what it printed."""
    done = subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, cwd=cwd, encoding="utf-8"
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def refuse(capsys, *arguments, code=1):
    """Run in this process, expect failure in one line, and return the line."""
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == code
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    assert shown.err.count("\n") == 1, shown.err
    return shown.err


def accept(capsys, *arguments):
    """Run in this process, expect success, and return what was printed."""
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    assert code == 0, shown.err
    return shown.out


def on_a_terminal(*arguments, columns=200, stream="stderr", **where):
    """Run the command with a stream on a terminal; return what a person saw there."""
    import fcntl
    import pty
    import struct
    import termios

    seen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: terminal}
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns)}
    process = subprocess.Popen([COMMAND, *map(str, arguments)], env=environment, **streams, **where)
    os.close(terminal)
    written = b""
    while True:
        try:
            more = os.read(seen, 65_536)
        except OSError:  # the other side is closed
            break
        if not more:
            break
        written += more
    os.close(seen)
    assert process.wait() == 0
    return written.decode("utf-8", "replace")
