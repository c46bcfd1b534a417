"""The fetch of an issuer's keys: from the configured address itself, and of a bounded size."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from api.keys import MAX_DOCUMENT_BYTES, fetch_document

DOCUMENT = b'{"keys": []}'


@pytest.fixture
def address() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/moved":
                self.send_response(302)
                self.send_header("Location", "/keys")
                self.end_headers()
                return
            full = DOCUMENT + b" " * (MAX_DOCUMENT_BYTES - len(DOCUMENT))
            body = {"/keys": DOCUMENT, "/full": full, "/large": full + b" "}[self.path]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_document_at_the_address(address: str) -> None:
    assert fetch_document(f"{address}/keys") == DOCUMENT


def test_the_largest_document(address: str) -> None:
    assert len(fetch_document(f"{address}/full")) == MAX_DOCUMENT_BYTES


def test_no_proxy_is_asked_for_what_is_on_this_machine(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert fetch_document(f"{address}/keys") == DOCUMENT
    with pytest.raises(OSError, match="refused"):
        fetch_document(f"{address.replace('127.0.0.1', '127.0.0.2')}/keys")


def test_a_redirect_is_not_followed_even_to_what_would_do(address: str) -> None:
    with pytest.raises(OSError, match="302"):
        fetch_document(f"{address}/moved")


def test_a_document_that_is_too_large_is_not_taken(address: str) -> None:
    with pytest.raises(ValueError, match="too large"):
        fetch_document(f"{address}/large")
