"""What a bearer token must be to be believed, and the caller that it names.

Believed is a signed, unexpired token of the configured issuer, audience and scope, whose claims `tenant`,
`sub` (or `user`) and `groups` are what they should be. Whatever else a token is, its refusal does not say
which rule it broke beyond what its sender could know.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt
from jwt.exceptions import PyJWTError

from api.keys import Keys, PublishedKeys, SecretKey, VerifyKey, fetch_document
from graph.settings import Settings
from nodes.contracts import Caller

MAX_TOKEN_BYTES = 8192
MAX_GROUPS = 500
CLOCK_SKEW_SECONDS = 5.0

# As the database keeps them; no control characters, no lone surrogates.
_NAME = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,255}")
_LOCAL = Caller()


class BadTokenError(Exception):
    """The token is not believed. Carries nothing of it."""


class MissingScopeError(Exception):
    """The token is believed and may not do this."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"the token lacks the scope {scope}")
        self.scope = scope


@dataclass(frozen=True)
class Rules:
    """What the operator asks of tokens, beside a signature and an expiry."""

    issuer: str | None = None
    audience: str | None = None
    scope: str | None = None


class SignIn:
    """Turns tokens into callers."""

    def __init__(self, keys: Keys, rules: Rules) -> None:
        self._keys = keys
        self._rules = rules

    async def caller_of(self, token: str) -> Caller:
        """Raises BadTokenError, MissingScopeError or KeysUnavailableError."""
        claims = await self._believed(token)
        caller = caller_in(claims)
        scope = self._rules.scope
        if scope is not None and scope not in _scopes_of(claims):
            raise MissingScopeError(scope)
        return caller

    async def _believed(self, token: str) -> Mapping[str, Any]:
        header = _header_of(token)
        algorithm = header["alg"]
        for key in await self._keys.find(header.get("kid")):
            if algorithm in key.algorithms:
                return self._verified(token, key, algorithm)
        raise BadTokenError

    def _verified(self, token: str, key: VerifyKey, algorithm: str) -> Mapping[str, Any]:
        rules = self._rules
        try:
            return jwt.decode(
                token,
                key.material,
                algorithms=[algorithm],
                audience=rules.audience,
                issuer=rules.issuer,
                leeway=CLOCK_SKEW_SECONDS,
                options={"require": ["exp"]},
            )
        except (PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
            raise BadTokenError from None


def sign_in_of(settings: Settings) -> SignIn | None:
    """None where the settings know no sign-in: then there is one local caller."""
    rules = Rules(settings.jwt_issuer, settings.jwt_audience, settings.jwt_scope)
    if settings.jwt_secret is not None:
        return SignIn(SecretKey(settings.jwt_secret.get_secret_value()), rules)
    url = settings.jwt_jwks_url
    return SignIn(PublishedKeys(lambda: fetch_document(url)), rules) if url else None


def caller_in(claims: Mapping[str, Any]) -> Caller:
    """The caller that believed claims name. Raises BadTokenError where one is missing or odd."""
    tenant, user = claims.get("tenant"), claims.get("sub", claims.get("user"))
    groups = claims.get("groups", [])
    if not (_is_name(tenant) and _is_name(user) and isinstance(groups, list) and len(groups) <= MAX_GROUPS):
        raise BadTokenError
    if not all(_is_name(group) for group in groups):
        raise BadTokenError
    caller = Caller(tenant=str(tenant), user=str(user), groups=frozenset(groups), scopes=_scopes_of(claims))
    if (caller.tenant, caller.user) == (_LOCAL.tenant, _LOCAL.user):
        raise BadTokenError  # these names are the local caller's, whose threads are named as they are
    return caller


def _header_of(token: str) -> Mapping[str, Any]:
    if len(token) > MAX_TOKEN_BYTES:
        raise BadTokenError
    try:
        header = jwt.get_unverified_header(token)
    except (PyJWTError, ValueError, TypeError, RecursionError):
        raise BadTokenError from None
    # PyJWT refuses every `crit`, which names extensions that must be understood; `b64` is one by itself.
    if "b64" in header or not isinstance(header.get("kid", ""), str):
        raise BadTokenError
    if not isinstance(header.get("alg"), str):
        raise BadTokenError
    return header


def _is_name(value: object) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _scopes_of(claims: Mapping[str, Any]) -> frozenset[str]:
    """Of `scope` (RFC 8693: words) or `scp` (a list or words)."""
    found: set[str] = set()
    for name in ("scope", "scp"):
        value = claims.get(name)
        if isinstance(value, str):
            found.update(value.split())
        elif isinstance(value, list):
            found.update(item for item in value if isinstance(item, str))
    return frozenset(found)
