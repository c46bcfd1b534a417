"""The line between a browser and a server, which a test can cut and mend."""

import socket
import threading
from contextlib import suppress


class Line:
    """Relays connections to a port of this machine. While it is cut, every connection is lost at once."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        self._is_cut = self._is_closed = False
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/"

    def cut(self) -> None:
        with self._guard:
            self._is_cut = True
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self._is_cut = False

    def close(self) -> None:
        self._is_closed = True
        with suppress(OSError):
            socket.create_connection(self._listener.getsockname()).close()
        self.cut()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while not self._is_closed:
            client, _ = self._listener.accept()
            if self._is_cut or self._is_closed:
                client.close()
                continue
            server = socket.create_connection(self._target)
            with self._guard:
                self._open |= {client, server}
            for one, other in ((client, server), (server, client)):
                thread = threading.Thread(target=self._relay, args=(one, other))
                self._threads.append(thread)
                thread.start()

    def _relay(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        with self._guard:
            self._open -= {source, target}
        if source is not target:
            source.close()
