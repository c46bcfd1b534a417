"""Which keys may verify a token: one shared secret, or the public keys that an issuer publishes.

The kind of a key decides its algorithms, never the token: a public key can verify no HS256 token, and `none`
is nobody's algorithm. Published keys are fetched from the configured address only, never from one that a
token names.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

import jwt
import structlog
from jwt.exceptions import PyJWTError
from starlette.concurrency import run_in_threadpool

FRESH_SECONDS = 300.0  # a key that is no longer published is refused after so long
RETRY_SECONDS = 10.0  # between two fetches, whatever tokens ask for
STALE_SECONDS = 24 * 3600.0  # how long known keys are used while the issuer does not answer
FETCH_TIMEOUT_SECONDS = 5.0
MAX_DOCUMENT_BYTES = 256 * 1024
MIN_RSA_BITS = 2048

_RSA = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_CURVES = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512", "Ed25519": "EdDSA"}

log = structlog.get_logger("api")


class KeysUnavailableError(Exception):
    """The issuer's keys could not be fetched, and none are known."""


@dataclass(frozen=True)
class VerifyKey:
    """One key, and the algorithms that it may verify."""

    kid: str | None
    material: Any
    algorithms: frozenset[str]


class Keys(Protocol):
    """Where keys come from. Raises KeysUnavailableError."""

    async def find(self, kid: str | None) -> tuple[VerifyKey, ...]: ...


class SecretKey:
    """One shared secret, for HS256 only."""

    def __init__(self, secret: str) -> None:
        self._key = VerifyKey(None, secret.encode(), frozenset({"HS256"}))

    async def find(self, kid: str | None) -> tuple[VerifyKey, ...]:  # noqa: ARG002 - there is only this one
        return (self._key,)


class PublishedKeys:
    """The keys of a JWKS document, fetched when needed, kept while fresh, one fetch at a time.

    An unknown key id asks for the document again, at most every `retry_seconds`, so that a new key works at
    once and invented ids cost the issuer nothing.
    """

    def __init__(
        self,
        fetch: Callable[[], bytes],
        *,
        now: Callable[[], float] = time.monotonic,
        fresh_seconds: float = FRESH_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._fetch = fetch
        self._now = now
        self._fresh_seconds = fresh_seconds
        self._retry_seconds = retry_seconds
        self._keys: tuple[VerifyKey, ...] = ()
        self._fetched: float | None = None
        self._tried: float | None = None
        self._fetching = asyncio.Lock()

    async def find(self, kid: str | None) -> tuple[VerifyKey, ...]:
        """The keys with this id; without an id, the one key there is."""
        if not self._answers(kid):
            async with self._fetching:
                if self._may_try():  # who waited for another's fetch finds it just tried
                    await self._refresh()
        if self._age() > STALE_SECONDS:
            raise KeysUnavailableError
        return self._held(kid)

    def _answers(self, kid: str | None) -> bool:
        return self._age() < self._fresh_seconds and bool(self._held(kid))

    def _age(self) -> float:
        return float("inf") if self._fetched is None else self._now() - self._fetched

    def _may_try(self) -> bool:
        return self._tried is None or self._now() - self._tried >= self._retry_seconds

    def _held(self, kid: str | None) -> tuple[VerifyKey, ...]:
        if kid is None:
            return self._keys if len(self._keys) == 1 else ()
        return tuple(key for key in self._keys if key.kid == kid)

    async def _refresh(self) -> None:
        self._tried = self._now()
        try:
            self._keys = keys_in(await run_in_threadpool(self._fetch))
        except (OSError, ValueError) as error:
            log.warning("keys_not_fetched", error=type(error).__name__)
        else:
            self._fetched = self._now()


def keys_in(document: bytes) -> tuple[VerifyKey, ...]:
    """The usable public keys of a JWKS document. Others are left out; raises ValueError when it is none."""
    try:
        parsed = json.loads(document)
    except RecursionError:
        raise ValueError("not a key set") from None
    listed = parsed.get("keys") if isinstance(parsed, dict) else None
    if not isinstance(listed, list):
        raise ValueError("not a key set")  # noqa: TRY004 - the document's fault, like any other of its
    found = (_key_of(jwk) for jwk in listed if isinstance(jwk, dict))
    return tuple(key for key in found if key)


def _key_of(jwk: Mapping[str, Any]) -> VerifyKey | None:
    algorithms = _algorithms_of(jwk)
    if not algorithms or jwk.get("use", "sig") != "sig" or "verify" not in jwk.get("key_ops", ("verify",)):
        return None
    try:
        material = jwt.PyJWK({**jwk, "alg": min(algorithms)}).key
    except (PyJWTError, ValueError, TypeError):
        return None
    if getattr(material, "key_size", MIN_RSA_BITS) < MIN_RSA_BITS and jwk["kty"] == "RSA":
        return None
    return VerifyKey(jwk.get("kid"), material, algorithms)


def _algorithms_of(jwk: Mapping[str, Any]) -> frozenset[str]:
    """By the key's kind, narrowed by its own `alg`. A symmetric key in a public document has none."""
    if jwk.get("kty") == "RSA":
        fitting = _RSA
    elif jwk.get("kty") in ("EC", "OKP") and isinstance(jwk.get("crv"), str):
        fitting = frozenset({_CURVES[jwk["crv"]]} if jwk["crv"] in _CURVES else ())
    else:
        fitting = frozenset()
    return fitting & {jwk["alg"]} if isinstance(jwk.get("alg"), str) else fitting


class _NoRedirect(HTTPRedirectHandler):
    """The configured address answers itself or not at all."""

    def redirect_request(self, *_arguments: Any, **_named: Any) -> None:
        return None


def fetch_document(url: str) -> bytes:
    """The document at a configured address, bounded in size and time. Raises OSError or ValueError."""
    is_here = urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")
    opener = build_opener(_NoRedirect(), ProxyHandler({} if is_here else None))
    request = Request(url, headers={"Accept": "application/json"})  # noqa: S310 - an operator's http(s) address
    try:
        with opener.open(request, timeout=FETCH_TIMEOUT_SECONDS) as answer:
            document: bytes = answer.read(MAX_DOCUMENT_BYTES + 1)
    except HTTPError as refused:
        refused.close()  # it holds the connection
        raise
    if len(document) > MAX_DOCUMENT_BYTES:
        raise ValueError("the key set is too large")
    return document
