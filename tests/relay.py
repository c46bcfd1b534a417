"""A relay before a Redis server, for tests that count round trips or lose the connection."""

import re
import select
import selectors
import socket
import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

INTRODUCTION = re.compile(rb"\*\d+\r\n\$\d+\r\n(?:HELLO|AUTH|CLIENT|SELECT)\r\n")


class Proxy:
    """A relay before the server that counts what passes, and can hold or cut it.

    A round trip is counted whenever the client speaks after the server has, on any connection. A client that
    is still sending a transaction when its first replies come does not wait for them: they are kept back.
    What a connection says to introduce itself is relayed and not counted: how many the pool opens is chance.
    """

    def __init__(self, folder: Path, target: str) -> None:
        self.path = folder / "proxy.sock"
        self.url = f"unix://{self.path}"
        self.round_trips = self.sent = self.received = 0
        self.hold = threading.Event()  # set: what the server says does not arrive
        self.cut_replies = 0  # so many connections are cut when the server speaks next
        self._target = unquote(urlsplit(target).path)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen(256)
        self._done = threading.Event()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def reset(self) -> None:
        self.round_trips = self.sent = self.received = 0

    def close(self) -> None:
        self._done.set()
        with suppress(OSError), socket.socket(socket.AF_UNIX) as wake:
            wake.connect(str(self.path))
        for thread in self._threads:
            thread.join()
        self._listener.close()
        self.path.unlink()

    def _accept(self) -> None:
        while not self._done.is_set():
            client, _ = self._listener.accept()
            if self._done.is_set():
                client.close()
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            self._threads.append(threading.Thread(target=self._relay, args=(client, server)))
            self._threads[-1].start()

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        was_server = True
        is_sending, tail = False, b""
        is_counted = True
        with client, server, selectors.DefaultSelector() as waiting:
            waiting.register(client, selectors.EVENT_READ)
            waiting.register(server, selectors.EVENT_READ)
            while not self._done.is_set():
                for key, _ in waiting.select(timeout=0.05):
                    if key.fileobj is server and self.hold.is_set():
                        self._done.wait(0.01)
                        continue
                    if key.fileobj is server and is_sending:
                        self._done.wait(0.001)
                        continue
                    try:
                        data = key.fileobj.recv(1 << 20)  # type: ignore[union-attr]
                    except OSError:
                        return
                    if not data:
                        return
                    if key.fileobj is client:
                        is_counted = INTRODUCTION.match(data) is None
                        self.round_trips += was_server and is_counted
                        self.sent += len(data) * is_counted
                        seen = tail + data
                        tail = seen[-8:]  # a word may be cut in two
                        if b"\r\nMULTI\r\n" in seen or b"\r\nEXEC\r\n" in seen:
                            is_sending = seen.rfind(b"\r\nMULTI\r\n") > seen.rfind(b"\r\nEXEC\r\n")
                        with suppress(OSError):  # it has gone: the next look tells
                            server.sendall(data)
                    else:
                        if self.cut_replies > 0:
                            self.cut_replies -= 1
                            # Closing sooner could keep the server from reading the rest of the request.
                            while select.select([server], [], [], 0.2)[0] and server.recv(1 << 20):
                                pass
                            return
                        self.received += len(data) * is_counted
                        with suppress(OSError):
                            client.sendall(data)
                    was_server = key.fileobj is server
