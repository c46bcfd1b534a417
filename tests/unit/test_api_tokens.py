"""Which tokens are believed: every fault that one can put into a token, by secret and by public keys."""

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from api.keys import KeysUnavailableError, PublishedKeys, SecretKey, keys_in
from api.tokens import (
    CLOCK_SKEW_SECONDS,
    MAX_GROUPS,
    MAX_TOKEN_BYTES,
    BadTokenError,
    MissingScopeError,
    Rules,
    SignIn,
)
from nodes.contracts import Caller

SECRET = "a secret of at least 32 characters"
CLAIMS = {"tenant": "acme", "sub": "alice", "groups": ["hr"]}
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()


def claims(**changes: Any) -> dict[str, Any]:
    made = {"exp": int(time.time()) + 10**6, **CLAIMS, **changes}
    return {name: value for name, value in made.items() if value is not ...}


def signed(key: Any = SECRET, algorithm: str = "HS256", kid: str | None = None, **changes: Any) -> str:
    return jwt.encode(claims(**changes), key, algorithm, headers={"kid": kid} if kid else None)


def raw(header: Any, payload: Any, signature: bytes = b"") -> str:
    parts = [header if isinstance(header, bytes) else json.dumps(header).encode()]
    parts.append(payload if isinstance(payload, bytes) else json.dumps(payload).encode())
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in [*parts, signature])


def by_hand(header: Any) -> str:
    """A rightly signed token with exactly this header."""
    unsigned = raw(header, claims()).rpartition(".")[0]
    mark = hmac.digest(SECRET.encode(), unsigned.encode(), hashlib.sha256)
    return f"{unsigned}.{base64.urlsafe_b64encode(mark).rstrip(b'=').decode()}"


def jwk(key: Any, kid: str, **changes: Any) -> dict[str, Any]:
    kind = {rsa.RSAPrivateKey: "RS256", ec.EllipticCurvePrivateKey: "ES256"}
    name = next((name for family, name in kind.items() if isinstance(key, family)), "EdDSA")
    made = jwt.get_algorithm_by_name(name).to_jwk(key.public_key(), as_dict=True)
    return {**made, "kid": kid, **changes}


def published(*keys: dict[str, Any]) -> bytes:
    return json.dumps({"keys": keys}).encode()


def by_secret(**rules: Any) -> SignIn:
    return SignIn(SecretKey(SECRET), Rules(**rules))


def by_keys(*keys: dict[str, Any], **rules: Any) -> SignIn:
    return SignIn(PublishedKeys(lambda: published(*keys)), Rules(**rules))


async def test_a_token_signed_by_hand_is_believed() -> None:
    assert (await by_secret().caller_of(by_hand({"alg": "HS256"}))).user == "alice"


async def test_a_token_names_its_caller() -> None:
    caller = await by_secret().caller_of(signed())
    assert caller == Caller(tenant="acme", user="alice", groups=frozenset({"hr"}))
    assert (await by_secret().caller_of(signed(sub=..., user="bob", groups=...))) == Caller("acme", "bob")


def token_of(size: int) -> str:
    """One of exactly so many bytes; a key id, which a secret does not have, takes what Base64 rounds up."""
    return next(
        token
        for kid in ("k", "kk", "kkk")
        for filling in range(size * 3 // 4, 0, -1)
        if len(token := signed(kid=kid, more="x" * filling)) == size
    )


LARGEST = {
    "a token": {"token": token_of(MAX_TOKEN_BYTES)},
    "a name": {"tenant": "t" * 255, "sub": "u" * 255},
    "groups": {"groups": [f"g{number}" for number in range(MAX_GROUPS)]},
    "half of the local caller": {"tenant": "local"},
    "the other half": {"sub": "local"},
}


@pytest.mark.parametrize("what", LARGEST)
async def test_what_just_fits_is_believed(what: str) -> None:
    changes: dict[str, Any] = {**LARGEST[what]}
    assert await by_secret().caller_of(changes.pop("token", None) or signed(**changes))


async def test_clocks_may_differ_a_little() -> None:
    assert await by_secret().caller_of(signed(exp=time.time() - 0.5))
    with pytest.raises(BadTokenError):
        await by_secret().caller_of(signed(exp=time.time() - CLOCK_SKEW_SECONDS - 1))


FAULTS = {
    "nothing": "",
    "no token": "abc",
    "three dots": "...",
    "not base64": "ä.ö.ü",
    "too large": token_of(MAX_TOKEN_BYTES + 1),
    "none": raw({"alg": "none"}, claims()),
    "none with a signature": raw({"alg": "none"}, claims(), b"x"),
    "None in other letters": raw({"alg": "nOnE"}, claims()),
    "no algorithm": raw({"typ": "JWT"}, claims()),
    "algorithm of an odd type": raw({"alg": ["HS256"]}, claims()),
    "another secret": signed("another secret of 32 characters!!"),
    "another size of hash": signed(SECRET * 2, "HS512"),
    "signature cut": signed()[:-4],
    "payload changed": ".".join([signed().split(".")[0], raw({}, claims(sub="bob")).split(".")[1], "x" * 43]),
    "header deeply nested": raw(b"[" * 5000, claims()),
    "payload deeply nested": raw({"alg": "HS256"}, b"[" * 5000),
    "header no object": raw([1], claims()),
    "payload no object": jwt.api_jws.encode(b"[1]", SECRET, "HS256"),
    "payload no JSON": jwt.api_jws.encode(b"\xff", SECRET, "HS256"),
    "critical extension": jwt.encode(claims(), SECRET, "HS256", headers={"crit": ["x"], "x": 1}),
    "an extension that is not called critical": by_hand({"alg": "HS256", "b64": True}),
    "no critical extension where some are announced": by_hand({"alg": "HS256", "crit": []}),
    "detached payload": raw({"alg": "HS256", "b64": False}, claims()),
    "key id of an odd type": raw({"alg": "HS256", "kid": 1}, claims()),
    "expired": signed(exp=time.time() - 60),
    "no expiry": signed(exp=...),
    "expiry of an odd type": signed(exp="never"),
    "endless expiry": signed(exp=float("inf")),
    "not yet": signed(nbf=time.time() + 10**6),
    "issued in the future": signed(iat=time.time() + 10**6),
    "an audience where none is set": signed(aud="other"),
    "no tenant": signed(tenant=...),
    "no user": signed(sub=...),
    "empty tenant": signed(tenant=""),
    "tenant of an odd type": signed(tenant=7),
    "user of an odd type": signed(sub=..., user=["alice"]),
    "tenant with a line end": signed(tenant="a\r\nX: 1"),
    "user with NUL": signed(sub="a\x00"),
    "user with half a character": signed(sub="a\ud800"),
    "user too long": signed(sub="a" * 256),
    "groups of an odd type": signed(groups="hr"),
    "a group of an odd type": signed(groups=[1]),
    "too many groups": signed(groups=["g"] * 501),
    "the local caller": signed(tenant="local", sub="local"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_token_with_a_fault_is_not_believed(fault: str) -> None:
    with pytest.raises(BadTokenError):
        await by_secret().caller_of(FAULTS[fault])


@pytest.mark.parametrize(
    ("rules", "wrong"),
    [
        ({"audience": "us"}, [{}, {"aud": "other"}, {"aud": ["other"]}, {"aud": 7}]),
        ({"issuer": "https://id"}, [{}, {"iss": "https://other"}, {"iss": ["https://id"]}, {"iss": 7}]),
    ],
)
async def test_issuer_and_audience_must_be_ours(rules: Any, wrong: list[Any]) -> None:
    right = {"aud": ["us", "other"]} if "audience" in rules else {"iss": "https://id"}
    assert (await by_secret(**rules).caller_of(signed(**right))).user == "alice"
    for changes in wrong:
        token = jwt.api_jws.encode(json.dumps(claims(**changes)).encode(), SECRET, "HS256")
        with pytest.raises(BadTokenError):
            await by_secret(**rules).caller_of(token)


@pytest.mark.parametrize("given", [{"scope": "a ask b"}, {"scp": ["ask"]}, {"scp": "ask"}])
async def test_the_scope_is_there(given: Any) -> None:
    assert (await by_secret(scope="ask").caller_of(signed(**given))).user == "alice"


@pytest.mark.parametrize("given", [{}, {"scope": "asking"}, {"scp": [1]}, {"scope": 7}])
async def test_the_scope_is_missing(given: Any) -> None:
    with pytest.raises(MissingScopeError):
        await by_secret(scope="ask").caller_of(signed(**given))


async def test_an_unbelieved_token_does_not_learn_which_scope_is_asked_for() -> None:
    with pytest.raises(BadTokenError):
        await by_secret(scope="ask").caller_of(signed("another secret of 32 characters!!"))


class TestPublicKeys:
    @pytest.mark.parametrize(
        ("key", "algorithm"), [(RSA_KEY, "RS256"), (RSA_KEY, "PS512"), (EC_KEY, "ES256"), (ED_KEY, "EdDSA")]
    )
    async def test_each_kind(self, key: Any, algorithm: str) -> None:
        assert (await by_keys(jwk(key, "k")).caller_of(signed(key, algorithm, "k"))).user == "alice"

    async def test_the_public_key_is_no_secret(self) -> None:
        """Algorithm confusion: HS256 with what everybody knows."""
        public = RSA_KEY.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"k"}').rstrip(b"=")
        body = base64.urlsafe_b64encode(json.dumps(claims()).encode()).rstrip(b"=")
        for secret in (public, json.dumps(jwk(RSA_KEY, "k")).encode()):
            mark = hmac.digest(secret, head + b"." + body, hashlib.sha256)
            forged = b".".join([head, body, base64.urlsafe_b64encode(mark).rstrip(b"=")]).decode()
            with pytest.raises(BadTokenError):
                await by_keys(jwk(RSA_KEY, "k")).caller_of(forged)

    async def test_a_key_in_the_token_itself_is_nothing(self) -> None:
        header = {"kid": "x", "jwk": jwk(OTHER_KEY, "x"), "jku": "http://127.0.0.1:1/keys"}
        token = jwt.encode(claims(), OTHER_KEY, "RS256", headers=header)
        with pytest.raises(BadTokenError):
            await by_keys(jwk(RSA_KEY, "k")).caller_of(token)

    async def test_the_keys_own_algorithm_binds(self) -> None:
        with pytest.raises(BadTokenError):
            await by_keys(jwk(RSA_KEY, "k", alg="RS512")).caller_of(signed(RSA_KEY, "RS256", "k"))

    async def test_another_key_under_the_same_id(self) -> None:
        with pytest.raises(BadTokenError):
            await by_keys(jwk(RSA_KEY, "k")).caller_of(signed(OTHER_KEY, "RS256", "k"))

    async def test_without_an_id_only_where_there_is_one_key(self) -> None:
        token = signed(RSA_KEY, "RS256")
        assert (await by_keys(jwk(RSA_KEY, "k")).caller_of(token)).user == "alice"
        with pytest.raises(BadTokenError):
            await by_keys(jwk(RSA_KEY, "k"), jwk(OTHER_KEY, "l")).caller_of(token)

    def test_what_is_no_key_for_signatures_is_left_out(self) -> None:
        small = {"kty": "RSA", "n": base64.urlsafe_b64encode(b"\xff" * 128).decode(), "e": "AQAB", "kid": "s"}
        odd: list[Any] = [
            {"kty": "oct", "k": base64.urlsafe_b64encode(SECRET.encode()).decode(), "kid": "o"},
            jwk(RSA_KEY, "e", use="enc"),
            jwk(RSA_KEY, "p", key_ops=["sign"]),
            jwk(RSA_KEY, "h", alg="HS256"),
            jwk(RSA_KEY, "n", alg="none"),
            jwk(EC_KEY, "c", crv="P-999"),
            jwk(EC_KEY, "t", crv=["P-256"]),
            {"kty": "RSA"},
            {"kty": ["RSA"]},
            small,
            7,
        ]
        assert [key.kid for key in keys_in(published(*odd, jwk(RSA_KEY, "good")))] == ["good"]

    def test_an_algorithm_of_an_odd_type_narrows_nothing(self) -> None:
        (key,) = keys_in(published(jwk(RSA_KEY, "k", alg=["RS256"])))
        assert "RS512" in key.algorithms

    @pytest.mark.parametrize("document", [b"", b"[]", b'{"keys": 1}', b"\xff", b"[" * 100_000])
    def test_what_is_no_key_set(self, document: bytes) -> None:
        with pytest.raises(ValueError):  # noqa: PT011 - of any wording
            keys_in(document)


class Issuer:
    """An issuer whose keys and clock the test moves."""

    def __init__(self, *keys: dict[str, Any]) -> None:
        self.keys = keys
        self.fetches = 0
        self.fault: Exception | None = None
        self.time = 0.0
        self.sign_in = SignIn(PublishedKeys(self.fetch, now=lambda: self.time), Rules())

    def fetch(self) -> bytes:
        self.fetches += 1
        if self.fault:
            raise self.fault
        return published(*self.keys)

    async def believes(self, token: str) -> bool:
        try:
            await self.sign_in.caller_of(token)
        except BadTokenError:
            return False
        return True


OLD, NEW = signed(RSA_KEY, "RS256", "old"), signed(OTHER_KEY, "RS256", "new")


class TestRotation:
    async def test_keys_are_fetched_once(self) -> None:
        issuer = Issuer(jwk(RSA_KEY, "old"))
        assert [await issuer.believes(OLD) for _ in range(5)] == [True] * 5
        assert issuer.fetches == 1

    async def test_a_new_key_works_at_once(self) -> None:
        issuer = Issuer(jwk(RSA_KEY, "old"))
        assert await issuer.believes(OLD)
        issuer.keys = (jwk(RSA_KEY, "old"), jwk(OTHER_KEY, "new"))
        issuer.time = 11
        assert await issuer.believes(NEW)
        assert issuer.fetches == 2

    async def test_a_withdrawn_key_ends_once_the_document_is_no_longer_fresh(self) -> None:
        issuer = Issuer(jwk(RSA_KEY, "old"))
        assert await issuer.believes(OLD)
        issuer.keys = (jwk(OTHER_KEY, "new"),)
        issuer.time = 301
        assert not await issuer.believes(OLD)

    async def test_invented_ids_do_not_make_it_fetch_again_and_again(self) -> None:
        issuer = Issuer(jwk(RSA_KEY, "old"))
        assert await issuer.believes(OLD)
        issuer.time = 11
        for number in range(20):
            assert not await issuer.believes(signed(OTHER_KEY, "RS256", f"invented-{number}"))
        assert issuer.fetches == 2

    async def test_many_at_once_are_one_fetch(self) -> None:
        import asyncio

        issuer = Issuer(jwk(RSA_KEY, "old"))
        assert all(await asyncio.gather(*(issuer.believes(OLD) for _ in range(20))))
        assert issuer.fetches == 1

    @pytest.mark.parametrize("fault", [OSError("down"), ValueError("rubbish")])
    async def test_known_keys_outlive_an_issuer_that_is_down_for_a_day(self, fault: Exception) -> None:
        issuer = Issuer(jwk(RSA_KEY, "old"))
        assert await issuer.believes(OLD)
        issuer.fault = fault
        issuer.time = 3600
        assert await issuer.believes(OLD)
        issuer.time = 25 * 3600
        with pytest.raises(KeysUnavailableError):
            await issuer.believes(OLD)

    async def test_no_key_was_ever_there(self) -> None:
        issuer = Issuer()
        issuer.fault = OSError("down")
        with pytest.raises(KeysUnavailableError):
            await issuer.believes(OLD)
        issuer.fault, issuer.keys, issuer.time = None, (jwk(RSA_KEY, "old"),), 11
        assert await issuer.believes(OLD)
