"""A relay before a server that counts what passes: waits, and bytes each way."""

import selectors
import socket
import threading
from contextlib import suppress
from pathlib import Path


class Relay:
    """A wait is counted whenever the client speaks after the server has, on any connection."""

    def __init__(self, path: Path, target: Path) -> None:
        self.waits = self.sent = self.received = 0
        self._target = target
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        path.chmod(0o777)
        self._listener.listen(64)
        self._ended = False
        threading.Thread(target=self._accept, daemon=True).start()

    def reset(self) -> None:
        self.waits = self.sent = self.received = 0

    def close(self) -> None:
        self._ended = True
        self._listener.close()

    def _accept(self) -> None:
        while not self._ended:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self._target))
            threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        was_server = True
        with suppress(OSError), client, server, selectors.DefaultSelector() as ready:
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in ready.select():
                    data = key.fileobj.recv(1 << 20)  # type: ignore[union-attr]
                    if not data:
                        return
                    if key.fileobj is client:
                        self.waits += was_server
                        self.sent += len(data)
                    else:
                        self.received += len(data)
                    was_server = key.fileobj is server
                    key.data.sendall(data)
