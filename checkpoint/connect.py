"""From settings to a client: bytes replies, bounded waits, and an early, plain word when it cannot work."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, cast
from urllib.parse import parse_qsl, unquote, urlencode, urlunsplit

import redis
import redis.asyncio
from redis import exceptions as faults
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from checkpoint.config import ContextConfig, split_url
from checkpoint.embedded import EmbeddedServer, open_embedded
from checkpoint.errors import ConfigError
from checkpoint.wire import FAULTS, translate

SyncClient = redis.Redis | redis.RedisCluster
AsyncClient = redis.asyncio.Redis | redis.asyncio.RedisCluster
OLDEST_SERVER = (6, 2)


class EmbeddedClient(redis.Redis):
    """A client of the embedded server; closing it lets go of the server too."""

    server: EmbeddedServer | None = None

    @classmethod
    def join(cls, server: EmbeddedServer, **options: Any) -> "EmbeddedClient":
        client = cast(EmbeddedClient, cls.from_url(server.url, **options))
        client.server = server
        return client

    def close(self) -> None:
        super().close()
        if self.server is not None:
            self.server.close()

    def __del__(self) -> None:
        # The base class closes here. A forgotten client must not end the server from a finalizer.
        redis.Redis.close(self)


def connect(config: ContextConfig) -> SyncClient:
    """A checked client for these settings. Starts the embedded server when no address is set."""
    if config.url is not None:
        client = make_client(config.url, config)
        check_server(client)
        return client
    server = open_embedded(config.home)
    return EmbeddedClient.join(server, **options(config, SYNC))


async def connect_async(config: ContextConfig) -> AsyncClient:
    """As connect(), for the running event loop. Close it in that loop with `await close_async(client)`.

    With the embedded server the caller must keep that server alive (`open_embedded`); this only joins it.
    """
    url = config.url
    if url is None:
        server = await asyncio.to_thread(open_embedded, config.home)
        url = server.url
        # The client's own connections keep the server in use from here on.
        server.let_go()
    client = make_async_client(url, config)
    await check_async_server(client)
    return client


class Kit(NamedTuple):
    """The classes of one of the client's two worlds. Much of them is untyped."""

    client: Any
    cluster: Any
    node: Any
    sentinel: Any
    retry: Any


SYNC = Kit(redis.Redis, redis.RedisCluster, redis.cluster.ClusterNode, Sentinel, Retry)
ASYNC = Kit(
    redis.asyncio.Redis,
    redis.asyncio.RedisCluster,
    redis.asyncio.cluster.ClusterNode,
    AsyncSentinel,
    redis.asyncio.retry.Retry,
)


def make_client(url: str, config: ContextConfig) -> SyncClient:
    """A client without any check. A cluster's client asks its nodes for the slots at once."""
    return cast(SyncClient, build(url, config, SYNC))


def make_async_client(url: str, config: ContextConfig) -> AsyncClient:
    """A client for one event loop, which it joins at its first command."""
    return cast(AsyncClient, build(url, config, ASYNC))


def build(url: str, config: ContextConfig, kit: Kit) -> Any:
    try:
        if is_kind(url, "cluster"):
            nodes, extra = read_nodes(url)
            start = [kit.node(host, port) for host, port in nodes]
            return kit.cluster(startup_nodes=start, **cluster_options(config, kit), **extra)
        if is_kind(url, "sentinel"):
            nodes, extra = read_nodes(url)
            service, extra = read_service(url, extra)
            watchers = kit.sentinel(nodes, sentinel_kwargs=sentinel_options(config, extra))
            return watchers.master_for(service, redis_class=kit.client, **options(config, kit), **extra)
        return kit.client.from_url(url, **options(config, kit))
    except FAULTS as fault:
        raise translate(fault, "connect", "") from fault
    except (TypeError, ValueError) as fault:
        raise bad_url(fault) from fault


async def close_async(client: AsyncClient) -> None:
    """Close a client and, where Sentinels led to it, the connections to them, which it leaves open."""
    pool = getattr(client, "connection_pool", None)
    await client.aclose()
    for watcher in getattr(getattr(pool, "sentinel_manager", None), "sentinels", ()):
        await watcher.aclose()


def options(config: ContextConfig, kit: Kit) -> dict[str, Any]:
    return {
        "decode_responses": False,
        "protocol": 2,
        "socket_timeout": config.timeout_seconds,
        "socket_connect_timeout": config.connect_timeout_seconds,
        "max_connections": config.max_connections,
        # wire.py repeats what may be repeated; the client's own ten tries would hide a dead server for long.
        "retry": kit.retry(NoBackoff(), 0),
    }


def cluster_options(config: ContextConfig, kit: Kit) -> dict[str, Any]:
    # A cluster's client needs its own retries: that is how it follows a slot that moved.
    return {name: value for name, value in options(config, kit).items() if name != "retry"}


def sentinel_options(config: ContextConfig, extra: dict[str, Any]) -> dict[str, Any]:
    own = {name[9:]: extra.pop(name) for name in ("sentinel_username", "sentinel_password") if name in extra}
    return own | {
        "socket_timeout": config.connect_timeout_seconds,
        "socket_connect_timeout": config.connect_timeout_seconds,
        "protocol": 2,
    }


def is_kind(url: str, kind: str) -> bool:
    return url.split(":", 1)[0].endswith("+" + kind)


def read_nodes(url: str) -> tuple[list[tuple[str, int]], dict[str, Any]]:
    """Hosts and ports of `scheme://user:password@host:port,host:port/…?name=value`; the rest as options."""
    authority, _, query = split_url(url)
    credentials, _, hosts = authority.rpartition("@")
    user, _, password = credentials.partition(":")
    default = 26379 if is_kind(url, "sentinel") else 6379
    nodes = []
    for entry in hosts.split(","):
        host, colon, port = entry.rpartition(":")
        has_port = bool(colon) and not entry.endswith("]")
        nodes.append(((host if has_port else entry).strip("[]"), int(port) if has_port else default))
    extra: dict[str, Any] = {"username": unquote(user) or None, "password": unquote(password) or None}
    plain = urlunsplit(
        ("rediss" if url.startswith("rediss") else "redis", "host", "", urlencode(parse_qsl(query)), "")
    )
    parsed: dict[str, Any] = cast(Any, redis.connection).parse_url(plain)
    parsed.pop("host", None)
    if parsed.pop("connection_class", None) is redis.SSLConnection:
        extra["ssl"] = True
    return nodes, {name: value for name, value in (extra | parsed).items() if value is not None}


def read_service(url: str, extra: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The monitored master's name and, as an option, its database: `…/name/2`."""
    name, _, database = split_url(url)[1].strip("/").partition("/")
    return unquote(name), extra | ({"db": int(database)} if database else {})


def bad_url(fault: Exception) -> ConfigError:
    # The fault's own text can quote the address, password included.
    return ConfigError(
        "REDIS_URL", f"cannot be understood ({type(fault).__name__})", "See docs/redis.md for examples"
    )


def refuse_decoding(client: Any) -> None:
    """Raise ConfigError for a client that turns replies into str: stored bytes would not survive it."""
    encoder = client.get_encoder() if hasattr(client, "get_encoder") else getattr(client, "encoder", None)
    if encoder is not None and encoder.decode_responses:
        raise ConfigError(
            "client",
            "it was made with decode_responses=True, and checkpoints are bytes",
            "Make it with decode_responses=False, or give the saver a config instead of a client",
        )


def check_given(client: Any, *, awaits: bool) -> None:
    """Raise ConfigError for a client of the other world, or one that decodes."""
    other: tuple[type, ...] = (redis.Redis, redis.RedisCluster)
    if not awaits:
        other = (redis.asyncio.Redis, redis.asyncio.RedisCluster)
    if isinstance(client, other):
        raise ConfigError(
            "client",
            f"it is {'a sync' if awaits else 'an async'} one",
            f"Give a client of {'redis.asyncio' if awaits else 'redis'}, or use the other saver",
        )
    refuse_decoding(client)


def check_server(client: SyncClient) -> None:
    """Reach the server once: a wrong address, password or version is told here and not in the first turn."""
    refuse_decoding(client)
    with version_wanted():
        check_version(cast(Any, client).execute_command("INFO", "server", **any_node(client)))


async def check_async_server(client: AsyncClient) -> None:
    refuse_decoding(client)
    with version_wanted():
        check_version(await cast(Any, client).execute_command("INFO", "server", **any_node(client)))


@contextmanager
def version_wanted() -> Iterator[None]:
    """A user without the right to ask for INFO may still use the server."""
    try:
        yield
    except faults.NoPermissionError:
        pass
    except FAULTS as fault:
        raise translate(fault, "connect", "") from fault


def any_node(client: Any) -> dict[str, str]:
    clusters = (redis.RedisCluster, redis.asyncio.RedisCluster)
    return {"target_nodes": "random"} if isinstance(client, clusters) else {}


def check_version(info: Any) -> None:
    version = str(info.get("redis_version", "")) if isinstance(info, dict) else ""
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers and numbers < OLDEST_SERVER:
        raise ConfigError("REDIS_URL", f"the server is Redis {version}", "Use Redis 6.2 or later, or Valkey")
