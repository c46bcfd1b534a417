"""Ends an embedded server that nobody uses any more, also where all who used it were killed.

A program of its own, started by its path so that nothing of the package is loaded: `python -I -S guardian.py
FOLDER SOCKET SECONDS DESCRIPTOR`. Whoever uses the server holds a shared lock on a file of its folder for as
long as it lives; the system gives that lock back however a process ends. The guardian sleeps until the lock
is nobody's, waits `SECONDS` more for somebody who comes back, and ends the server. The descriptor is that of
a lock of its own, by which the next user knows that a guardian is there.
"""

import fcntl
import os
import re
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

LOCK, USERS, GUARD = "valkey.lock", "valkey.users", "valkey.guard"
ANSWER_SECONDS = 5.0
END_SECONDS = 30.0
LOOKS = 4


def main(folder: str, path: str, seconds: str, descriptor: str) -> None:
    """Come back to whoever started us at once, and go on alone."""
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")
    with suppress(OSError):  # a folder that is gone needs no guardian
        watch(Path(folder), Path(path), float(seconds), int(descriptor))


def watch(home: Path, path: Path, patience: float, guard: int) -> None:
    """Until the server is gone. `guard` is closed while nobody else can start one that it would not guard."""
    with (home / USERS).open("a") as users:
        while True:
            fcntl.flock(users, fcntl.LOCK_EX)
            fcntl.flock(users, fcntl.LOCK_UN)
            time.sleep(patience)
            with (home / LOCK).open("a") as turn:
                fcntl.flock(turn, fcntl.LOCK_EX)
                if takes(users) and ends(path):
                    os.close(guard)
                    return
                fcntl.flock(users, fcntl.LOCK_UN)


def takes(file: IO[str]) -> bool:
    """Lock the file if nobody else holds it, without waiting."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def ends(path: Path) -> bool:
    """End what listens there unless it has clients that hold no lock. -> whether nothing listens any more."""
    try:
        with connect_to(path) as link:
            return end_if_alone(link)
    except (FileNotFoundError, ConnectionRefusedError):
        return True
    except OSError:
        return False


def connect_to(path: Path) -> socket.socket:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.settimeout(ANSWER_SECONDS)
    try:
        link.connect(str(path))
    except OSError:
        link.close()
        raise
    return link


def ask(link: socket.socket, *words: str) -> bytes:
    """One command and the first piece of its reply, enough for the short replies that are read here."""
    link.sendall(
        f"*{len(words)}\r\n".encode() + b"".join(b"$%d\r\n%b\r\n" % (len(w), w.encode()) for w in words)
    )
    return link.recv(65536)


def end_if_alone(link: socket.socket) -> bool:
    """Ask the server to end, files written, unless another client is connected. The lock is held.

    Returns when the server is gone: it answers nothing and closes the connection at its very end.
    """
    try:
        for _ in range(LOOKS):
            found = re.search(rb"connected_clients:(\d+)", ask(link, "INFO", "clients"))
            if found is not None and int(found[1]) == 1:
                link.settimeout(END_SECONDS)
                ask(link, "SHUTDOWN")
                return True
            # Our own client closed just now, and the server may not have seen it yet.
            time.sleep(0.02)
    except OSError:
        # It had ended, or was ended, before: that was the wish.
        return True
    return False


if __name__ == "__main__":
    main(*sys.argv[1:])
