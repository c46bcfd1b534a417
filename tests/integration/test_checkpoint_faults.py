"""Servers that fail, refuse, forget or hold something else: what is told, and what comes through unharmed."""

import asyncio
import os
import random
import threading
from contextlib import suppress
from typing import Any

import ormsgpack
import pytest
import redis
from langgraph.checkpoint.conformance.test_utils import (
    generate_checkpoint,
    generate_config,
    generate_metadata,
)
from noise import noise
from redis.backoff import NoBackoff
from redis.retry import Retry

from checkpoint import (
    AsyncRedisContextSaver,
    CannotRestoreError,
    CheckpointUnavailable,
    ConfigError,
    ContextConfig,
    NewerFormatError,
    RedisContextSaver,
    WrongTypeError,
    connect,
)
from checkpoint.connect import check_version
from checkpoint.layout import (
    context_key,
    record_field,
    slot_of,
    value_field,
    writes_field,
    writes_index_field,
)
from checkpoint.pruning import Rule, prune_threads

KEY = context_key(ContextConfig(url="redis://x").key_prefix, "t")
DAMAGES = [b"", b"\x01", b"\x01\x07msgpack\xc1", b"\xff" * 40]
SIZES = pytest.mark.parametrize("size", [10, 40_000], ids=["script", "transaction"])


async def put(saver: Any, id_: str = "1", size: int = 10, thread: str = "t") -> Any:
    checkpoint = generate_checkpoint(
        checkpoint_id=id_, channel_values={"a": noise(id_, size)}, channel_versions={"a": id_}
    )
    return await saver.aput(generate_config(thread), checkpoint, generate_metadata(), {"a": id_})


def put_sync(saver: RedisContextSaver, id_: str = "1", size: int = 10, thread: str = "t") -> Any:
    checkpoint = generate_checkpoint(
        checkpoint_id=id_, channel_values={"a": noise(id_, size)}, channel_versions={"a": id_}
    )
    return saver.put(generate_config(thread), checkpoint, generate_metadata(), {"a": id_})


# --- settings that cannot work ---


@pytest.mark.parametrize("is_async", [False, True])
def test_decoding_clients_are_refused_when_made(redis_url: str, is_async: bool) -> None:
    config = ContextConfig(url=redis_url)
    made: Any = AsyncRedisContextSaver if is_async else RedisContextSaver
    client = (redis.asyncio.Redis if is_async else redis.Redis)(decode_responses=True)
    with pytest.raises(ConfigError, match="decode_responses"):
        made(config, client=client)
    with pytest.raises(ConfigError, match="decode_responses"):
        RedisContextSaver(ContextConfig(url=redis_url + "?decode_responses=true"))


@pytest.mark.parametrize("is_async", [False, True])
def test_clients_of_the_other_world_are_refused_when_made(redis_url: str, is_async: bool) -> None:
    made: Any = AsyncRedisContextSaver if is_async else RedisContextSaver
    client = (redis.Redis if is_async else redis.asyncio.Redis).from_url(redis_url)
    with pytest.raises(ConfigError, match="client: it is a"):
        made(ContextConfig(url=redis_url), client=client)
    with pytest.raises(ConfigError, match="config: it is a Redis"):
        made(client)


def test_a_given_client_is_asked_for_its_server_when_the_saver_is_made(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = ContextConfig(url=redis_url)
    with redis.Redis(port=1, retry=Retry(NoBackoff(), 0)) as dead, pytest.raises(CheckpointUnavailable):
        RedisContextSaver(config, client=dead)
    monkeypatch.setattr(connect, "OLDEST_SERVER", (999, 0))
    with redis.Redis.from_url(redis_url) as old, pytest.raises(ConfigError, match=r"6\.2"):
        RedisContextSaver(config, client=old)


def test_a_given_client_is_used_and_left_open(redis_url: str, redis_client: redis.Redis) -> None:
    with RedisContextSaver(ContextConfig(url="redis://nowhere"), client=redis_client) as saver:
        put_sync(saver)
    assert redis_client.exists(KEY) == 1


async def test_a_given_async_client_is_used_and_left_open(redis_url: str) -> None:
    async with redis.asyncio.Redis.from_url(redis_url) as client:
        async with AsyncRedisContextSaver(ContextConfig(url="redis://nowhere"), client=client) as saver:
            await put(saver)
        assert await client.exists(KEY) == 1


async def test_an_unreachable_server_is_told_at_once(make_any_saver: Any) -> None:
    with pytest.raises(CheckpointUnavailable, match="Check that the server runs"):
        await put(make_any_saver(url="redis://127.0.0.1:1"))


def test_a_wrong_password_is_told_at_once(redis_url: str, redis_client: redis.Redis) -> None:
    redis_client.acl_setuser("known", enabled=True, passwords=["+right"], keys=["*"], commands=["+@all"])
    try:
        with pytest.raises(CheckpointUnavailable, match="Check user and password in REDIS_URL") as caught:
            RedisContextSaver(ContextConfig(url=redis_url.replace("//", "//known@") + "?password=SECRET"))
        assert "SECRET" not in str(caught.value)
    finally:
        redis_client.acl_deluser("known")


@pytest.mark.parametrize("version", ["6.0.16", "5.0.7", "6.1.9"])
def test_old_servers_are_refused(version: str) -> None:
    with pytest.raises(ConfigError, match=r"Use Redis 6\.2 or later"):
        check_version({"redis_version": version})


@pytest.mark.parametrize("version", ["6.2.0", "7.0.15", "9.1.2", "10.0.0", ""])
def test_other_servers_are_not(version: str) -> None:
    check_version({"redis_version": version})


# --- what else may sit under our keys ---


@SIZES
async def test_another_type_under_our_key(any_saver: Any, redis_client: redis.Redis, size: int) -> None:
    redis_client.set(KEY, "someone's")
    for write in (
        put(any_saver, "1", size),
        any_saver.aput_writes(generate_config("t", checkpoint_id="1"), [("a", noise("w", size))], "task"),
        any_saver.aget_tuple(generate_config("t")),
    ):
        with pytest.raises(WrongTypeError, match=KEY):
            await write
    assert redis_client.get(KEY) == b"someone's"
    assert redis_client.ttl(KEY) == -1
    assert [f async for f in any_saver.alist(None)] == []


RECORD: dict[str, Any] = {
    "schema_version": 1, "request_id": "r", "thread_id": "t", "question": "", "original_question": None,
    "input_kind": "unknown", "received_at": "", "started_at": "", "finished_at": None, "duration_ms": None,
    "status": "running", "degraded": False, "error_code": None,
}  # fmt: skip


@SIZES
async def test_a_newer_form_is_left_alone(any_saver: Any, redis_client: redis.Redis, size: int) -> None:
    redis_client.hset(KEY, mapping={"c": '2:"t"', "something": "new"})
    calls = [
        put(any_saver, "1", size),
        any_saver.aput_writes(generate_config("t", checkpoint_id="1"), [("a", noise("w", size))], "task"),
        any_saver.aget_tuple(generate_config("t")),
        any_saver.arestore_window("t"),
        any_saver.aget_delta_channel_history(config=generate_config("t"), channels=["a"]),
        any_saver.aprune(["t"]),
        any_saver.aprune(["t"], strategy="delete"),
        any_saver.adelete_for_runs(["r"]),
        any_saver.acopy_thread("t", "u"),
        any_saver.aput_request(RECORD),
    ]
    for call in calls:
        with pytest.raises(NewerFormatError, match="Upgrade"):
            await call
    with pytest.raises(NewerFormatError):
        assert [f async for f in any_saver.alist(generate_config("t"))]
    assert redis_client.hgetall(KEY) == {b"c": b'2:"t"', b"something": b"new"}
    assert redis_client.keys() == [KEY.encode()]


# --- values that cannot be restored ---


async def test_a_missing_value_is_named(make_any_saver: Any, redis_client: redis.Redis) -> None:
    any_saver = make_any_saver(remember_threads=0)
    config = await put(any_saver)
    redis_client.hdel(KEY, value_field("", slot_of("a", "1")))
    with pytest.raises(
        CannotRestoreError,
        match=r"thread 't', namespace '', checkpoint '1', channel 'a': its value is missing",
    ):
        await any_saver.aget_tuple(config)
    with pytest.raises(CannotRestoreError, match="channel 'a'"):
        assert [f async for f in any_saver.alist(generate_config("t"))]
    with pytest.raises(CannotRestoreError):
        await any_saver.acopy_thread("t", "u")


@pytest.mark.parametrize(
    ("field", "named"),
    [
        (value_field("", slot_of("a", "1")), "channel 'a'"),
        (writes_field("", "1", "task"), "checkpoint '1'"),
        (record_field("", "1"), "checkpoint '1'"),
    ],
)
@pytest.mark.parametrize("damage", DAMAGES)
async def test_damaged_fields_are_named(
    make_any_saver: Any, redis_client: redis.Redis, field: bytes, named: str, damage: bytes
) -> None:
    any_saver = make_any_saver(remember_threads=0)
    config = await put(any_saver)
    await any_saver.aput_writes(config, [("b", 1)], "task")
    if field.startswith(b"cc"):
        # The server itself reads a record's first part; its content is what may be damaged unseen.
        record = redis_client.hget(KEY, field)
        assert record is not None
        damage = record[: record.index(b"msgpack")] + damage
    elif field.startswith(b"ww") and not damage:
        damage = b"\0"
    redis_client.hset(KEY, field, damage)
    with pytest.raises(CannotRestoreError, match=named):
        await any_saver.aget_tuple(config)


@pytest.mark.parametrize("field", [record_field("", "1"), writes_index_field("", "1")])
@pytest.mark.parametrize("damage", [*DAMAGES, b"9:a"])
async def test_damage_that_the_server_meets_is_named(
    make_any_saver: Any, redis_client: redis.Redis, field: bytes, damage: bytes
) -> None:
    if (field[:2], damage) == (b"wi", b""):
        return  # an empty list of writes is a list
    any_saver = make_any_saver(remember_threads=0)
    config = await put(any_saver)
    await any_saver.aput_writes(config, [("b", 1)], "task")
    redis_client.hset(KEY, field, damage)
    with pytest.raises(CannotRestoreError, match=r"thread 't', namespace '', checkpoint '1'"):
        await any_saver.aget_tuple(config)
    with pytest.raises(CannotRestoreError, match=f"'t'|{KEY}"):
        assert [found async for found in any_saver.alist(generate_config("t"))]
    with pytest.raises(CannotRestoreError, match=f"'t'|{KEY}"):
        await any_saver.acopy_thread("t", "u")
    if field.startswith(b"cc"):
        for erasing in (any_saver.aprune(["t"]), any_saver.adelete_for_runs(["r"])):
            with pytest.raises(CannotRestoreError, match=KEY):
                await erasing
        with pytest.raises(CannotRestoreError, match=r"thread 't', namespace ''"):
            await any_saver.arestore_window("t")


@pytest.mark.parametrize(
    ("header", "place"),
    [
        (7, "namespace ''"),
        (("", "", ""), "namespace ''"),
        (("", "", "", "", [], 1, [], []), "namespace ''"),
        # What no script trips over is met when the record is read here.
        (("", "", "", 5, [], [], [], []), "namespace '', checkpoint '1'"),
        (("", "", "", "", [], ["no slot"], [], []), "namespace '', checkpoint '1'"),
        (("", "", "", "", [], ["1:a1:x"], [], []), "namespace '', checkpoint '1'"),
        (("", "", "", "", [], [7], [], []), "namespace '', checkpoint '1'"),
    ],
)
async def test_a_header_of_another_shape_is_named(
    make_any_saver: Any, redis_client: redis.Redis, header: Any, place: str
) -> None:
    any_saver = make_any_saver(remember_threads=0)
    await put(any_saver)
    record = redis_client.hget(KEY, record_field("", "1"))
    assert record is not None
    end = 8 + int.from_bytes(record[4:8], "big")
    packed = ormsgpack.packb(header)
    damaged = record[:4] + len(packed).to_bytes(4, "big") + packed + record[end:]
    redis_client.hset(KEY, record_field("", "1"), damaged)
    with pytest.raises(CannotRestoreError, match=f"thread 't', {place}"):
        await any_saver.aget_tuple(generate_config("t"))
    for reading in (any_saver.aprune(["t"]), any_saver.acopy_thread("t", "u")):
        with suppress(CannotRestoreError):  # or the header is passed on unread
            await reading


async def test_a_mark_that_is_no_text_is_of_another_form(any_saver: Any, redis_client: redis.Redis) -> None:
    config = await put(any_saver)
    redis_client.hset(KEY, "c", b"\xff\xfe:")
    with pytest.raises(NewerFormatError):
        await any_saver.aget_tuple(config)


@pytest.mark.parametrize("below", ["1", "2", "3"])
async def test_records_that_run_in_a_ring_stop_neither_server_nor_saver(
    make_any_saver: Any, redis_client: redis.Redis, below: str
) -> None:
    """Each record names the next lower id. Whoever can write to the server may have it name a higher one."""
    any_saver = make_any_saver(remember_threads=0)
    for number in "123":
        await put(any_saver, number)
    field = record_field("", "1")
    record = redis_client.hget(KEY, field)
    assert record is not None
    assert record[:4] == b"\0\0\0\0"
    redis_client.hset(KEY, field, b"\0\0\0\1" + below.encode() + record[4:])
    with pytest.raises(CannotRestoreError, match=KEY):
        assert [found async for found in any_saver.alist(generate_config("t"))]
    earlier = any_saver.alist(generate_config("t"), before=generate_config("t", checkpoint_id="2"))
    with pytest.raises(CannotRestoreError, match=KEY):
        assert [found async for found in earlier]
    for doing in (any_saver.aprune(["t"]), any_saver.acopy_thread("t", "u"), put(any_saver, "0")):
        with pytest.raises(CannotRestoreError):
            await doing
    assert redis_client.ping()


@pytest.mark.parametrize("mark", [b'1:"t0"', b'2:"t0"'], ids=["damaged", "newer"])
async def test_one_thread_that_cannot_be_read_keeps_no_other_from_being_done(
    make_any_saver: Any, redis_client: redis.Redis, mark: bytes
) -> None:
    any_saver = make_any_saver(remember_threads=0)
    threads = [f"t{number}" for number in range(8)]
    for thread in threads:
        parent = None
        for id_ in "12":
            config = generate_config(thread, checkpoint_id=parent)
            metadata = generate_metadata(source="input", run_id=id_)
            await any_saver.aput(config, generate_checkpoint(checkpoint_id=id_), metadata, {})
            parent = id_
    key = context_key(any_saver.config.key_prefix, "t0")
    redis_client.hset(key, mapping={b"c": mark, record_field("", "1"): b"", record_field("", "2"): b""})

    async def left() -> set[str]:
        found = [each for thread in threads[1:] async for each in any_saver.alist(generate_config(thread))]
        return {each.checkpoint["id"] for each in found}

    faults = (CannotRestoreError, NewerFormatError)
    with RedisContextSaver(any_saver.config) as saver, pytest.raises(faults, match=key):
        prune_threads(saver, Rule(keep_turns=1))
    assert await left() == {"2"}
    with pytest.raises(faults, match=key):
        await any_saver.adelete_for_runs(["2"])
    assert await left() == set()


async def test_another_key_restores_nothing(make_any_saver: Any) -> None:
    config = await put(make_any_saver(aes_key=b"a" * 32))
    for other in (make_any_saver(aes_key=b"b" * 32), make_any_saver()):
        with pytest.raises(CannotRestoreError, match="checkpoint '1'"):
            await other.aget_tuple(config)
    await put(make_any_saver(), "2")
    with pytest.raises(CannotRestoreError, match="not encrypted"):
        await make_any_saver(aes_key=b"a" * 32).aget_tuple(generate_config("t"))


# --- servers that forget or refuse ---


@SIZES
async def test_forgotten_scripts(any_saver: Any, redis_client: redis.Redis, size: int) -> None:
    config = await put(any_saver, "1", size)
    for _ in range(2):
        redis_client.script_flush()
        assert (await any_saver.aget_tuple(config)).checkpoint["id"] == "1"
        redis_client.script_flush()
        await put(any_saver, "2", size)
        redis_client.script_flush()
        await any_saver.aput_writes(config, [("a", noise("w", size))], "task")
    assert len((await any_saver.aget_tuple(config)).pending_writes) == 1


@SIZES
async def test_out_of_memory(any_saver: Any, redis_client: redis.Redis, size: int) -> None:
    await put(any_saver, "1", size)
    before = redis_client.hgetall(KEY)
    redis_client.config_set("maxmemory", 1)
    try:
        with pytest.raises(CheckpointUnavailable, match="raise maxmemory"):
            await put(any_saver, "2", size)
        with pytest.raises(CheckpointUnavailable, match="raise maxmemory"):
            await any_saver.aput_writes(
                generate_config("t", checkpoint_id="1"), [("a", noise("w", size))], "task"
            )
        assert (await any_saver.aget_tuple(generate_config("t"))).checkpoint["id"] == "1"
    finally:
        redis_client.config_set("maxmemory", 0)
    assert redis_client.hgetall(KEY) == before
    await put(any_saver, "2", size)


@SIZES
async def test_a_replica_is_named(any_saver: Any, redis_client: redis.Redis, size: int) -> None:
    await put(any_saver, "1", size)
    redis_client.execute_command("REPLICAOF", "127.0.0.1", "1")
    try:
        with pytest.raises(CheckpointUnavailable, match=r"redis\+sentinel://"):
            await put(any_saver, "2", size)
    finally:
        redis_client.execute_command("REPLICAOF", "NO", "ONE")
    await put(any_saver, "2", size)


@SIZES
async def test_a_lost_reply_is_asked_for_again(
    make_any_saver: Any, proxy: Any, redis_client: redis.Redis, size: int
) -> None:
    """The write is committed and its reply is lost: the second try stores it once, not twice."""
    saver = make_any_saver(url=proxy.url)
    config = await put(saver, "1", size)
    for write in (
        lambda: put(saver, "2", size),
        lambda: saver.aput_writes(config, [("a", noise("w", size)), ("__error__", "w")], "task"),
    ):
        proxy.cut_replies = 1
        await write()
        fields = redis_client.hlen(KEY)
        await write()
        assert redis_client.hlen(KEY) == fields
    assert [f.checkpoint["id"] async for f in saver.alist(generate_config("t"))] == ["2", "1"]
    assert len((await saver.aget_tuple(config)).pending_writes) == 2
    proxy.cut_replies = 2
    with pytest.raises(CheckpointUnavailable, match="put: ConnectionError"):
        await put(saver, "3", size)
    assert (await saver.aget_tuple(generate_config("t"))).checkpoint["id"] == "3"


async def test_a_server_that_falls_silent(make_any_saver: Any, proxy: Any) -> None:
    saver = make_any_saver(url=proxy.url, timeout_seconds=3, connect_timeout_seconds=3)
    await put(saver)
    proxy.hold.set()
    with pytest.raises(CheckpointUnavailable, match="did not answer in time"):
        await saver.aget_tuple(generate_config("t"))
    proxy.hold.clear()
    assert (await saver.aget_tuple(generate_config("t"))).checkpoint["id"] == "1"


def test_a_silent_server_under_many_threads(proxy: Any) -> None:
    """Every thread gets its error, and all of them recover without a restart."""
    config = ContextConfig(url=proxy.url, timeout_seconds=3, connect_timeout_seconds=3)
    with RedisContextSaver(config) as saver:
        for number in range(32):
            put_sync(saver, "1", 10 + number, f"t{number}")
        outcomes: list[Any] = []

        def work(number: int) -> None:
            try:
                found = saver.get_tuple(generate_config(f"t{number}"))
                outcomes.append((number, found and len(found.checkpoint["channel_values"]["a"])))
            except CheckpointUnavailable:
                outcomes.append((number, "unavailable"))

        def all_at_once() -> list[Any]:
            outcomes.clear()
            threads = [threading.Thread(target=work, args=(number,)) for number in range(32)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return sorted(outcomes)

        proxy.hold.set()
        assert all_at_once() == [(number, "unavailable") for number in range(32)]
        proxy.hold.clear()
        assert all_at_once() == [(number, 10 + number) for number in range(32)]


async def test_a_cancelled_command_never_gives_its_reply_to_another(
    redis_url: str, proxy: Any, is_long: bool
) -> None:
    """Two tenants read in a loop while reads are cancelled at random moments."""
    async with AsyncRedisContextSaver(ContextConfig(url=proxy.url)) as saver:
        for thread in ("a", "b"):
            await put(saver, "1", 20_000, thread)
            await saver.aput_writes(generate_config(thread, checkpoint_id="1"), [("who", thread)], "task")
        rounds = 300 if is_long else 80
        order = random.Random(7)
        wrong: list[Any] = []
        done = asyncio.Event()

        async def read(thread: str) -> None:
            found = await saver.aget_tuple(generate_config(thread))
            if found is None or found.pending_writes != [("task", "who", thread)]:
                wrong.append((thread, found))

        async def loop(thread: str) -> None:
            while not done.is_set():
                await read(thread)

        tenants = [asyncio.create_task(loop(thread)) for thread in ("a", "b")]
        for _ in range(rounds):
            victim = asyncio.create_task(read(order.choice("ab")))
            await asyncio.sleep(order.random() * 0.003)
            victim.cancel()
            await asyncio.gather(victim, return_exceptions=True)
        done.set()
        await asyncio.gather(*tenants)
        assert wrong == []


def test_a_forked_process_has_connections_of_its_own(saver: RedisContextSaver) -> None:
    put_sync(saver, "1")
    child = os.fork()
    if child == 0:
        ok = all(saver.get_tuple(generate_config("t")) is not None for _ in range(200))
        os._exit(0 if ok else 1)
    results = [saver.get_tuple(generate_config("t", checkpoint_id="1")) for _ in range(200)]
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert all(found is not None and found.checkpoint["id"] == "1" for found in results)


def test_one_async_saver_in_several_loops(redis_url: str) -> None:
    """Made without a loop, as in a module; used in one loop after another, and in threads at once."""
    saver = AsyncRedisContextSaver(ContextConfig(url=redis_url))

    async def work(number: int) -> str:
        try:
            await put(saver, "1", 10, f"t{number}")
            found = await saver.aget_tuple(generate_config(f"t{number}"))
            assert found is not None
            return str(found.config["configurable"]["thread_id"])
        finally:
            await saver.aclose()

    assert [asyncio.run(work(number)) for number in range(2)] == ["t0", "t1"]
    results: dict[int, str] = {}
    threads = [
        threading.Thread(target=lambda n=number: results.update({n: asyncio.run(work(n))}))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: f"t{number}" for number in range(8)}


async def test_sync_calls_inside_a_loop_come_back(redis_url: str) -> None:
    saver = AsyncRedisContextSaver(ContextConfig(url=redis_url))
    await put(saver)
    assert saver.get_tuple(generate_config("t")) == await saver.aget_tuple(generate_config("t"))
    await saver.aclose()


def test_parallel_writers_of_one_thread(saver: RedisContextSaver) -> None:
    """Sixty threads save checkpoints and writes of one thread; the list is whole and in order."""

    def work(number: int) -> None:
        config = put_sync(saver, f"{number:02}")
        saver.put_writes(config, [("w", number)], "task")

    threads = [
        threading.Thread(target=work, args=(number,)) for number in random.Random(1).sample(range(60), 60)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = list(saver.list(generate_config("t")))
    assert [f.checkpoint["id"] for f in found] == [f"{number:02}" for number in range(59, -1, -1)]
    assert [f.pending_writes for f in found] == [[("task", "w", number)] for number in range(59, -1, -1)]
