"""Ports for servers that have to be told one before they start."""

import os
import socket
from itertools import count

# Below what the system gives to whoever asks for any (from 32768), so that nobody is given one of them
# between its choice and its use; and each test process has a thousand of its own.
_FIRST, _EACH, _MOST_PROCESSES = 10_000, 1_000, 10
BUS = 10_000  # so far above its port listens the bus of a cluster's node
_numbers = count()


def free_port() -> int:
    """One that nobody listens on, nor on the one that a cluster's node would use with it."""
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _MOST_PROCESSES
    for _ in range(_EACH):
        port = _FIRST + process * _EACH + next(_numbers) % _EACH
        if _is_free(port) and _is_free(port + BUS):
            return port
    raise AssertionError("no port is free")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
