"""The saver's settings: read once, every wrong value refused with its name and its remedy."""

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from checkpoint.errors import ConfigError

SCHEMES = (
    "redis",
    "rediss",
    "unix",
    "redis+sentinel",
    "rediss+sentinel",
    "redis+cluster",
    "rediss+cluster",
)
DEFAULT_PREFIX = "business-assistant:context:v1:"
DEFAULT_TTL_SECONDS = 15 * 24 * 3600
LONGEST_TTL_SECONDS = 10 * 365 * 24 * 3600


@dataclass(frozen=True)
class ContextConfig:
    """Where threads are kept and for how long. Checked when made, so a wrong one never exists.

    url None means the embedded server in `home`. keep_turns None keeps every turn until the TTL ends.
    Values from `compress_from_bytes` on are stored compressed when nothing encrypts them. The latest
    checkpoints of `remember_threads` threads, up to 256 KiB each, are kept in memory too (memory.py).
    """

    url: str | None = field(default=None, repr=False)
    home: Path = field(default_factory=lambda: default_home({}))
    ttl_seconds: int = DEFAULT_TTL_SECONDS
    key_prefix: str = DEFAULT_PREFIX
    aes_key: bytes | None = field(default=None, repr=False)
    keep_turns: int | None = None
    timeout_seconds: float = 5.0
    connect_timeout_seconds: float = 2.0
    max_connections: int = 256
    compress_from_bytes: int = 1024
    remember_threads: int = 64

    def __post_init__(self) -> None:
        if self.url is not None:
            check_url(self.url)
        if not 1 <= self.ttl_seconds <= LONGEST_TTL_SECONDS:
            raise ConfigError(
                "REDIS_CONTEXT_TTL_SECONDS",
                f"{self.ttl_seconds} is not between 1 and {LONGEST_TTL_SECONDS}",
                "Give a number of seconds, for example 1296000 for 15 days",
            )
        check_prefix(self.key_prefix)
        if self.aes_key is not None and len(self.aes_key) not in (16, 24, 32):
            raise ConfigError("CONTEXT_AES_KEY", f"has {len(self.aes_key)} bytes", AES_REMEDY)
        if self.keep_turns is not None and self.keep_turns < 1:
            raise ConfigError("KEEP_TURNS", f"{self.keep_turns} is below 1", "Give 1 or more, or unset it")


# Name, default and meaning, for the documentation's table.
CONTEXT_SETTINGS = (
    (
        "BUSINESS_ASSISTANT_HOME",
        "`~/.local/state/business-assistant`",
        "The data folder: knowledge, and the embedded server where no `REDIS_URL` is set.",
    ),
    (
        "REDIS_URL",
        "unset",
        "A server of your own: `redis://`, `rediss://`, `unix://`, `redis+sentinel://HOSTS/MASTER`, "
        "`redis+cluster://HOSTS`. Unset: the embedded one.",
    ),
    (
        "REDIS_CONTEXT_TTL_SECONDS",
        f"`{DEFAULT_TTL_SECONDS}`",
        f"How long a conversation lives after its last write. 1 to {LONGEST_TTL_SECONDS}.",
    ),
    ("CONTEXT_KEY_PREFIX", f"`{DEFAULT_PREFIX}`", "What the keys of the thread hashes begin with."),
    ("CONTEXT_AES_KEY", "unset", "16, 24 or 32 bytes (text, `hex:…` or `base64:…`): encrypts checkpoints."),
    (
        "KEEP_TURNS",
        "unset",
        "Turns whose checkpoints are kept, 1 or more; unset keeps all until the conversation expires.",
    ),
)

AES_REMEDY = "Give 16, 24 or 32 bytes: as text, or as hex:<digits>, or as base64:<text>"


def load_context_config(env: Mapping[str, str] | None = None) -> ContextConfig:
    """The settings in `env` (None: the process's environment). An empty value counts as unset."""
    found = {name: value for name, value in (os.environ if env is None else env).items() if value.strip()}
    ttl = read_int(found, "REDIS_CONTEXT_TTL_SECONDS")
    return ContextConfig(
        url=found.get("REDIS_URL"),
        home=default_home(found),
        ttl_seconds=DEFAULT_TTL_SECONDS if ttl is None else ttl,
        key_prefix=found.get("CONTEXT_KEY_PREFIX", DEFAULT_PREFIX),
        aes_key=read_aes_key(found.get("CONTEXT_AES_KEY")),
        keep_turns=read_int(found, "KEEP_TURNS"),
    )


def default_home(env: Mapping[str, str]) -> Path:
    """The data folder: BUSINESS_ASSISTANT_HOME, else a folder of ours in the user's state folder."""
    if home := env.get("BUSINESS_ASSISTANT_HOME"):
        return Path(home).expanduser().absolute()
    state = Path(env.get("XDG_STATE_HOME", "") or Path.home() / ".local" / "state")
    return state / "business-assistant"


def read_int(env: Mapping[str, str], setting: str) -> int | None:
    if setting not in env:
        return None
    try:
        return int(env[setting])
    except ValueError:
        raise ConfigError(setting, f"{env[setting]!r} is not a whole number", "Give digits only") from None


def read_aes_key(text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        if text.startswith("hex:"):
            return bytes.fromhex(text[4:])
        if text.startswith("base64:"):
            return base64.b64decode(text[7:], validate=True)
    except (ValueError, binascii.Error):
        # The message of the decoder could carry a piece of the key.
        raise ConfigError("CONTEXT_AES_KEY", "cannot be decoded", AES_REMEDY) from None
    return text.encode()


def split_url(url: str) -> tuple[str, str, str]:
    """Who and where, the path with its slash, and the query.

    urllib refuses, from some releases of Python on, several hosts of which a later one is an IPv6 address.
    """
    rest, _, query = url.partition("://")[2].partition("#")[0].partition("?")
    authority, slash, path = rest.partition("/")
    return authority, slash + path, query


def check_url(url: str) -> None:
    scheme = url.split(":", 1)[0]
    if "://" not in url or scheme not in SCHEMES:
        raise ConfigError(
            "REDIS_URL",
            f"unknown scheme {scheme if '://' in url else ''!r}",
            "Use one of " + ", ".join(f"{known}://" for known in SCHEMES),
        )
    authority, path, _ = split_url(url)
    if scheme == "unix" and not path:
        raise ConfigError("REDIS_URL", "a unix:// address needs a path", "Example: unix:///run/valkey.sock")
    if scheme.endswith("+sentinel") and not path.strip("/").split("/")[0]:
        raise ConfigError(
            "REDIS_URL",
            "the name of the monitored master is missing",
            "Example: redis+sentinel://host1:26379,host2:26379/mymaster/0",
        )
    if scheme.endswith("+cluster") and not authority.rpartition("@")[2]:
        raise ConfigError("REDIS_URL", "no node is named", "Example: redis+cluster://host1:6379,host2:6379")


def check_prefix(prefix: str) -> None:
    if not prefix or "{" in prefix or "}" in prefix:
        raise ConfigError(
            "CONTEXT_KEY_PREFIX",
            f"{prefix!r} is empty or has braces, which would put a thread's helpers in another cluster slot",
            "Use letters, digits, colons and dashes, for example business-assistant:context:v1:",
        )
