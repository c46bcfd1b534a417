"""The connections that the sync saver keeps for itself: when, how many, and what becomes of bad ones."""

import os
import socket
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from langgraph.checkpoint.conformance.test_utils import (
    generate_checkpoint,
    generate_config,
    generate_metadata,
)
from noise import noise
from redis.exceptions import InvalidResponse, NoScriptError, OutOfMemoryError, ResponseError

from checkpoint import CheckpointUnavailable, ContextConfig, RedisContextSaver
from checkpoint.embedded import open_embedded
from checkpoint.line import HEADS, MOST_LEADS, Ear, Line, has_plain_pool, pack, pack_lead, read_error
from checkpoint.wire import Wire

SIZES = pytest.mark.parametrize("size", [10, 40_000], ids=["script", "transaction"])


def put(saver: RedisContextSaver, id_: str, size: int = 10, thread: str = "t") -> Any:
    checkpoint = generate_checkpoint(
        checkpoint_id=id_, channel_values={"a": noise(id_, size)}, channel_versions={"a": id_}
    )
    return saver.put(generate_config(thread), checkpoint, generate_metadata(), {"a": id_})


def latest(saver: RedisContextSaver, thread: str = "t") -> Any:
    found = saver.get_tuple(generate_config(thread))
    return found and found.checkpoint["id"]


def line_of(saver: RedisContextSaver) -> Line:
    """Fails when redis-py no longer gives what the line stands on, and the saver fell back to its client."""
    assert saver.wire.line is not None
    return saver.wire.line


def idle_of(saver: RedisContextSaver) -> list[Any]:
    return [ear.connection for ear in line_of(saver)._idle]


def connected(client: redis.Redis, name: str) -> int:
    return len([each for each in client.client_list() if each["name"] == name])


def test_a_saver_of_its_own_keeps_one_connection(redis_url: str, redis_client: redis.Redis) -> None:
    config = ContextConfig(url=f"{redis_url}?client_name=lonely", max_connections=1)
    with RedisContextSaver(config) as saver:
        put(saver, "1")
        put(saver, "2", 40_000)
        saver.put_writes(generate_config("t", checkpoint_id="2"), [("a", 1)], "task")
        assert latest(saver) == "2"
        assert len(list(saver.list(None))) == 2
        saver.copy_thread("t", "u")
        saver.prune(["u"])
        saver.delete_thread("t")
        assert connected(redis_client, "lonely") == 1
        kept = idle_of(saver)
        assert len(kept) == 1
    assert not kept[0].is_connected


def test_a_client_that_others_use_keeps_its_connections(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url, protocol=2, max_connections=1) as client:
        saver = RedisContextSaver(ContextConfig(url=redis_url), client=client)
        put(saver, "1")
        assert saver.wire.line is None
        assert client.ping()  # the only connection is free again


def test_connections_that_are_not_alike_are_left_to_the_client(redis_url: str) -> None:
    watchers = redis.Sentinel([("localhost", 1)]).master_for("m", protocol=2)
    pushed = redis.Redis.from_url(redis_url, protocol=3)
    waiting = redis.Redis(connection_pool=redis.BlockingConnectionPool.from_url(redis_url, protocol=2))
    single = redis.Redis.from_url(redis_url, protocol=2, single_connection_client=True)
    for client in (watchers, pushed, waiting, single, object()):
        assert not has_plain_pool(client)
        assert Wire(client, own=True).line is None
    for client in (watchers, pushed, waiting, single):
        client.close()


@SIZES
def test_a_restarted_server_is_met_again_by_every_thread(
    short_folder: Path, end_server: Any, size: int
) -> None:
    """All idle connections died with the server: the one retry must not draw a second dead one."""
    home = short_folder / f"restart-{size}"
    first = open_embedded(home)
    url = first.url
    with RedisContextSaver(ContextConfig(url=url)) as saver:
        together = threading.Barrier(6)

        def put_together(number: int) -> None:
            together.wait()
            put(saver, "1", size, f"t{number}")

        with ThreadPoolExecutor(6) as workers:
            list(workers.map(put_together, range(6)))
            assert len(idle_of(saver)) >= 2
            end_server(url)
            second = open_embedded(home)
            for number in range(6):
                put(saver, "2", size, f"t{number}")
                assert latest(saver, f"t{number}") == "2"
    end_server(url)
    first.close()
    second.close()


@SIZES
def test_a_refusal_leaves_the_connection_in_use(
    saver: RedisContextSaver, redis_client: redis.Redis, size: int
) -> None:
    put(saver, "1", size)
    kept = idle_of(saver)[0]
    redis_client.config_set("maxmemory", 1)
    try:
        with pytest.raises(CheckpointUnavailable, match="out of memory"):
            put(saver, "2", size)
    finally:
        redis_client.config_set("maxmemory", 0)
    assert idle_of(saver) == [kept]
    put(saver, "3", size)
    assert (latest(saver), idle_of(saver)) == ("3", [kept])


@SIZES
def test_a_demoted_primary_is_left(saver: RedisContextSaver, redis_client: redis.Redis, size: int) -> None:
    put(saver, "1", size)
    kept = idle_of(saver)[0]
    sockets = [kept._sock]
    redis_client.execute_command("REPLICAOF", "127.0.0.1", "1")
    try:
        with pytest.raises(CheckpointUnavailable, match="replica"):
            put(saver, "2", size)
    finally:
        redis_client.execute_command("REPLICAOF", "NO", "ONE")
    put(saver, "3", size)
    assert idle_of(saver)[0]._sock not in sockets


@SIZES
def test_a_connection_with_an_unread_reply_is_never_used_again(proxy: Any, size: int) -> None:
    with RedisContextSaver(ContextConfig(url=proxy.url, timeout_seconds=2)) as saver:
        put(saver, "1", size, "other")
        proxy.hold.set()
        with pytest.raises(CheckpointUnavailable, match="in time"):
            put(saver, "2", size)
        assert idle_of(saver) == []
        proxy.hold.clear()
        assert latest(saver, "other") == "1"


def test_a_fork_leaves_the_parents_connections_alone(saver: RedisContextSaver) -> None:
    put(saver, "1")
    kept = idle_of(saver)[0]
    if (child := os.fork()) == 0:
        latest(saver)
        os._exit(0 if idle_of(saver) and kept not in idle_of(saver) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (latest(saver), idle_of(saver)) == ("1", [kept])


def test_a_reply_in_many_pieces_is_put_together(proxy: Any) -> None:
    with RedisContextSaver(
        ContextConfig(url=proxy.url, compress_from_bytes=10**9, remember_threads=0)
    ) as saver:
        put(saver, "1", 3_000_000)
        found = saver.get_tuple(generate_config("t"))
        assert found is not None
        assert found.checkpoint["channel_values"] == {"a": noise("1", 3_000_000)}
        assert len(idle_of(saver)) == 1


def test_the_kernel_keeps_the_time(saver: RedisContextSaver) -> None:
    put(saver, "1")
    sock = idle_of(saver)[0]._sock
    assert sock.gettimeout() is None
    for limit in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        seconds, _ = struct.unpack("ll", sock.getsockopt(socket.SOL_SOCKET, limit, 16))
        assert seconds == saver.config.timeout_seconds


def test_errors_are_those_of_the_client() -> None:
    kinds = {b"OOM x": OutOfMemoryError, b"NOSCRIPT x": NoScriptError, b"ERR x": ResponseError}
    assert {words: type(read_error(words)) for words in kinds} == kinds


@pytest.mark.parametrize("reply", [b"?huh\r\n", b"$x\r\n"])
def test_a_reply_that_is_none_is_no_value(reply: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(reply)
        ear = Ear(SimpleNamespace(_sock=ours, socket_timeout=1))
        with pytest.raises((InvalidResponse, ValueError)):
            ear.hear()


@pytest.mark.parametrize("size", [0, 1, len(HEADS) - 1, len(HEADS), 70_000])
def test_commands_are_packed_as_the_client_packs_them(size: int) -> None:
    words = ("EVALSHA", b"digest", 1, "key 问", b"", b"v" * size, 1296000)
    expected = b"".join(redis.Connection().pack_command(*words))
    assert pack(words) == expected
    assert pack(words[4:], pack_lead(words[:4]), 4) == expected


def test_of_many_threads_the_first_words_of_the_newest_are_kept(saver: RedisContextSaver) -> None:
    line = line_of(saver)
    line._leads.update(dict.fromkeys(range(MOST_LEADS - len(line._leads)), b""))
    put(saver, "1")
    assert latest(saver) == "1"
    assert len(line._leads) == MOST_LEADS
    words = b"".join(list(line._leads.values())[-2:])
    assert words.count(b"EVALSHA") == 2
