"""Commands on a pseudo-terminal of a given width."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def on_terminal(folder, *words, columns=80, **environment):
    """What a command prints on a terminal, and its exit code."""
    pty = pytest.importorskip("pty", reason="no terminals here")
    import fcntl
    import struct
    import termios

    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    variables = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"TERM": "dumb"}
    variables |= environment
    command = [sys.executable, "-m", "paramagnet", *words]
    process = subprocess.Popen(
        command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=inside, stderr=inside
    )
    os.close(inside)
    parts = []
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the end, on Linux
            break
        if not part:
            break
        parts.append(part)
    os.close(terminal)
    return b"".join(parts).decode().replace("\r\n", "\n"), process.wait()
