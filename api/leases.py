"""Who may work on a thread right now, and which request a client's own id already stands for.

One lease per thread, held in Redis under a sibling key of the thread's hash (same slot), so it holds
across processes and hosts. A holder is known by a random token made for this very acquire; the saver
commits nothing whose token is no longer the stored one. What a client sent twice is recognised in the
same script that takes the lease, so two equal sends can never both start.

A signed-in caller also takes a seat, of which there is a bounded number in all processes together. Seats
are one sorted set a caller, by the time at which each lapses. That key cannot be in the slot of every
thread, so it costs a round trip of its own, after the lease: what is sent twice is recognised first.

Every promise about time is in milliseconds of the Redis server's clock, but for the keeper's own ticks.
"""

import hashlib
import math
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from secrets import token_hex
from typing import Any, Literal

import structlog
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from checkpoint.config import DEFAULT_PREFIX
from checkpoint.errors import CheckpointUnavailable, EmbeddedServerError
from checkpoint.layout import context_key, sibling_key

LEASE_MS = 15_000
# A stop must reach a run in another process within a second; two ticks leave room for a slow one.
TICK_SECONDS = 0.4
ONCE_MS = 24 * 3600 * 1000
CLAIMS_KEPT = 256  # client ids remembered per thread
OUTCOMES_KEPT = 16  # stored results per thread; older claims are known but their text is gone
STOP_MS = 60_000

log = structlog.get_logger("api")

# KEYS lease, once.  ARGV token, lease ms, may take ("1"/"0"), client id, fingerprint, request id, once ms.
# A claim is "<fingerprint> <request id> <token>". Its number in the order of claims bounds the key.
_TAKE = """
-- A token that is already there is our own: the first reply was lost and the script came again.
local function take()
  return redis.call('GET', KEYS[1]) == ARGV[1] or redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
end
local function busy() return {'busy', tostring(redis.call('PTTL', KEYS[1]))} end
if ARGV[4] == '' then
  if ARGV[3] == '0' then return {'unknown'} end
  if take() then return {'taken', ARGV[6]} end
  return busy()
end
local claim = redis.call('HGET', KEYS[2], 'c' .. ARGV[4])
local request = ARGV[6]
if claim then
  local print, known, token = string.match(claim, '^(%S+) (%S+) (%S+)$')
  if token == ARGV[1] then return {'taken', known} end
  if print ~= ARGV[5] then return {'other', known} end
  local outcome = redis.call('HGET', KEYS[2], 'o' .. known)
  if outcome then return {'ended', known, outcome} end
  if redis.call('HEXISTS', KEYS[2], 'e' .. known) == 1 then return {'ended', known} end
  if redis.call('GET', KEYS[1]) == token then return {'running', known} end
  request = known
end
if ARGV[3] == '0' then return {'unknown'} end
if not take() then return busy() end
redis.call('HSET', KEYS[2], 'c' .. ARGV[4], ARGV[5] .. ' ' .. request .. ' ' .. ARGV[1])
if not claim then
  local n = redis.call('HINCRBY', KEYS[2], 'n', 1)
  redis.call('HSET', KEYS[2], 'k' .. n, ARGV[4], 'i' .. n, request)
  local faded = n - tonumber(ARGV[8])
  local faded_request = redis.call('HGET', KEYS[2], 'i' .. faded)
  if faded_request then redis.call('HDEL', KEYS[2], 'o' .. faded_request) end
  local old = n - tonumber(ARGV[9])
  local old_client = redis.call('HGET', KEYS[2], 'k' .. old)
  if old_client then
    redis.call('HDEL', KEYS[2], 'c' .. old_client, 'k' .. old, 'i' .. old,
      'e' .. redis.call('HGET', KEYS[2], 'i' .. old))
  end
end
redis.call('PEXPIRE', KEYS[2], ARGV[7])
if claim then return {'again', request} end
return {'taken', request}
"""

# KEYS lease, stop.  ARGV token, lease ms.  -> {held, asked to stop}
_RENEW = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {0, 0} end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if redis.call('GET', KEYS[2]) == ARGV[1] then return {1, 1} end
return {1, 0}
"""

# KEYS lease, once, stop.
# ARGV token, client id, request id, ending ("forget"/"leave"/"ended"), outcome, once ms.
_RELEASE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] ~= '' then
  if ARGV[4] == 'forget' then
    redis.call('HDEL', KEYS[2], 'c' .. ARGV[2])
    local n = redis.call('HGET', KEYS[2], 'n')
    if n and redis.call('HGET', KEYS[2], 'k' .. n) == ARGV[2] then
      redis.call('HDEL', KEYS[2], 'k' .. n, 'i' .. n)
      if redis.call('HINCRBY', KEYS[2], 'n', -1) == 0 then redis.call('DEL', KEYS[2]) end
    end
  elseif ARGV[4] == 'ended' then
    redis.call('HSET', KEYS[2], 'e' .. ARGV[3], '1', 'o' .. ARGV[3], ARGV[5])
    redis.call('PEXPIRE', KEYS[2], ARGV[6])
  end
end
if redis.call('GET', KEYS[3]) == ARGV[1] then redis.call('DEL', KEYS[3]) end
redis.call('DEL', KEYS[1])
return 1
"""

# KEYS lease, stop.  ARGV stop ms.  The stop names the holder's token, so it can never hit a later run.
_STOP = """
local token = redis.call('GET', KEYS[1])
if not token then return 0 end
redis.call('SET', KEYS[2], token, 'PX', ARGV[1])
return 1
"""

# KEYS seats.  ARGV token, seats there are ("0": the token has one, renew it), ms.  -> 1, or 0 when all are
# taken. Seats of processes that died lapse by the time they are kept under.
_SIT = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if ARGV[2] ~= '0' and not redis.call('ZSCORE', KEYS[1], ARGV[1])
    and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
  return 0
end
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
"""


class LeaseError(Exception):
    """Root of what taking a lease can answer instead of a lease."""


class ThreadBusyError(LeaseError):
    """Another request of this thread is running, here or elsewhere. Nothing was stored."""

    def __init__(self, retry_after_ms: int) -> None:
        super().__init__("this thread is answering another request; wait for it or stop it")
        self.retry_after_ms = retry_after_ms

    @property
    def retry_after_seconds(self) -> int:
        """Whole seconds, at least 1 and at most 5: most turns end long before the lease would lapse."""
        return min(5, max(1, math.ceil(self.retry_after_ms / 1000)))


class CallerLimitError(LeaseError):
    """The caller has as many requests running as allowed, here and elsewhere. Nothing was stored."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"this caller has {limit} requests running, as many as allowed; wait for one to end")
        self.limit = limit


class ClaimedError(LeaseError):
    """The client's own message id is known already.

    `state` is "running", "ended" or "other" (the id was used with another payload). `outcome` is the
    stored result of an ended request, or None when it has faded.
    """

    def __init__(self, state: str, request_id: str, outcome: bytes | None = None) -> None:
        super().__init__(f"the client message id already stands for request {request_id} ({state})")
        self.state = state
        self.request_id = request_id
        self.outcome = outcome


@dataclass(frozen=True)
class Claim:
    """A client's own id for a message, and what it was sent with."""

    client_message_id: str
    fingerprint: str

    @property
    def field(self) -> str:
        """Injective and short whatever the client chose."""
        return hashlib.sha256(self.client_message_id.encode()).hexdigest()


@dataclass(frozen=True)
class Seats:
    """Of whom running requests are counted, under a name that is no person's, and how many may run."""

    name: str
    limit: int


@dataclass(frozen=True)
class ThreadKeys:
    """The three sibling keys of one thread."""

    lease: str
    once: str
    stop: str


def keys_of(thread_id: str, prefix: str = DEFAULT_PREFIX) -> ThreadKeys:
    key = context_key(prefix, thread_id)
    return ThreadKeys(sibling_key("lease", key), sibling_key("once", key), sibling_key("stop", key))


def seats_key(name: str, prefix: str = DEFAULT_PREFIX) -> str:
    return f"business-assistant:caller:v1:{{{context_key(prefix, name)}}}"


@dataclass(eq=False)
class Lease:
    """A held lease. `token` goes to the saver with every write; `request_id` is the claim's own when
    the request was started before and died.
    """

    token: str
    keys: ThreadKeys
    request_id: str
    claim: Claim | None = None
    taken_over: bool = False
    on_stop: Callable[[], None] | None = None
    on_lost: Callable[[], None] | None = None
    lost: bool = False
    on_tick: Callable[[], None] | None = None
    outcome: bytes | None = field(default=None, repr=False)
    ending: Literal["forget", "leave", "ended"] = "forget"
    seats: str | None = None  # the key in which this lease's token has a seat
    seat_due: float = 0.0  # when it is renewed next, on the monotonic clock
    _told_to_stop: bool = field(default=False, repr=False)

    def begin(self) -> None:
        """From now on the claim outlives a crash: whoever sends the same again takes this request over."""
        self.ending = "leave"

    def conclude(self, outcome: bytes) -> None:
        """Let the claim stand for this result from the release on."""
        self.outcome = outcome
        self.ending = "ended"

    def hear(self, *, held: bool, stop: bool) -> None:
        """Take what a renewal learned; each of the two callbacks is called once at most."""
        if not held and not self.lost:
            self.lost = True
            if self.on_lost:
                self.on_lost()
        if stop and not self._told_to_stop:
            self._told_to_stop = True
            if self.on_stop:
                self.on_stop()


class LeaseKeeper:
    """Takes, renews and releases leases for one process, with one background thread for all of them.

    Every Redis failure leaves as CheckpointUnavailable. A failed renewal is tried again at the next
    tick; the fence at the saver decides what a holder that fell behind may still write.
    """

    def __init__(
        self,
        client: Any,
        *,
        prefix: str = DEFAULT_PREFIX,
        lease_ms: int = LEASE_MS,
        tick_seconds: float = TICK_SECONDS,
        new_token: Callable[[], str] = lambda: token_hex(16),
    ) -> None:
        self._client = client
        self._prefix = prefix
        self._lease_ms = lease_ms
        self._tick = min(tick_seconds, lease_ms / 3000)
        self._new_token = new_token
        scripts = (_TAKE, _RENEW, _RELEASE, _STOP, _SIT)
        self._scripts = {text: client.register_script(text) for text in scripts}
        self._held: dict[str, Lease] = {}
        self._unreleased: dict[Lease, float] = {}  # and when each has lapsed, on the monotonic clock
        self._guard = threading.Lock()
        self._closed = threading.Event()
        self._renewer: threading.Thread | None = None

    @contextmanager
    def hold(
        self,
        thread_id: str,
        request_id: str,
        *,
        claim: Claim | None = None,
        seats: Seats | None = None,
        on_stop: Callable[[], None] | None = None,
        on_lost: Callable[[], None] | None = None,
        on_tick: Callable[[], None] | None = None,
    ) -> Iterator[Lease]:
        """Hold the thread's lease for the block, and one of the seats; the callbacks come from the keeper's
        thread.

        Raises ThreadBusyError, ClaimedError, CallerLimitError or CheckpointUnavailable before the block
        starts. The release at the end never raises: what could not be released is tried again at every tick,
        until it has lapsed by itself.
        """
        lease = self._take(thread_id, request_id, claim)
        lease.on_stop, lease.on_lost, lease.on_tick = on_stop, on_lost, on_tick
        try:
            if seats:
                self._sit(lease, seats)
            self._watch(lease)
            yield lease
        finally:
            self._unwatch(lease)
            self._let_go(lease)

    def look_up(self, thread_id: str, request_id: str, claim: Claim) -> None:
        """Raise ClaimedError when the claim is known; take nothing."""
        keys = keys_of(thread_id, self._prefix)
        self._read(self._take_script(keys, "none", request_id, claim, may_take=False))

    def is_held(self, thread_id: str) -> bool:
        return bool(self._call(self._client.exists, keys_of(thread_id, self._prefix).lease))

    def request_stop(self, thread_id: str) -> bool:
        """Ask whoever holds the thread, in whatever process, to stop. False when nobody does."""
        keys = keys_of(thread_id, self._prefix)
        return bool(self._script(_STOP, [keys.lease, keys.stop], [STOP_MS]))

    def knows_thread(self, thread_id: str) -> bool:
        return bool(self._call(self._client.exists, context_key(self._prefix, thread_id)))

    def forget_thread(self, thread_id: str) -> None:
        """Drop claims, stored results and stop requests of a thread that is being erased."""
        keys = keys_of(thread_id, self._prefix)
        self._call(self._client.delete, keys.once, keys.stop)

    def ping(self) -> None:
        self._call(self._client.ping)

    def held_count(self) -> int:
        with self._guard:
            return len(self._held)

    def close(self) -> None:
        """Stop renewing. Leases still held lapse by themselves."""
        self._closed.set()
        if self._renewer is not None:
            self._renewer.join(timeout=5)

    def _take(self, thread_id: str, request_id: str, claim: Claim | None) -> Lease:
        keys = keys_of(thread_id, self._prefix)
        token = self._new_token()
        state, owner = self._read(self._take_script(keys, token, request_id, claim, may_take=True))
        is_again = state == "again"
        # The claim of a request that began before outlives whatever keeps it from going on now.
        return Lease(token, keys, owner, claim, taken_over=is_again, ending="leave" if is_again else "forget")

    def _sit(self, lease: Lease, seats: Seats) -> None:
        """Raises CallerLimitError; or CheckpointUnavailable, and then the seat may be taken all the same."""
        lease.seats = seats_key(seats.name, self._prefix)
        if not self._script(_SIT, [lease.seats], [lease.token, seats.limit, self._lease_ms]):
            lease.seats = None
            raise CallerLimitError(seats.limit)
        lease.seat_due = time.monotonic() + self._lease_ms / 3000

    def _stand_up(self, lease: Lease) -> None:
        if lease.seats:
            self._call(self._client.zrem, lease.seats, lease.token)

    def _take_script(
        self, keys: ThreadKeys, token: str, request_id: str, claim: Claim | None, *, may_take: bool
    ) -> list[bytes]:
        arguments = [
            token,
            self._lease_ms,
            "1" if may_take else "0",
            claim.field if claim else "",
            claim.fingerprint if claim else "",
            request_id,
            ONCE_MS,
            OUTCOMES_KEPT,
            CLAIMS_KEPT,
        ]
        reply: list[bytes] = self._script(_TAKE, [keys.lease, keys.once], arguments)
        return reply

    @staticmethod
    def _read(reply: list[bytes]) -> tuple[str, str]:
        """-> (state, request id) of a reply that refuses nothing."""
        state = reply[0].decode()
        if state == "busy":
            raise ThreadBusyError(max(0, int(reply[1])))
        if state in ("running", "ended", "other"):
            raise ClaimedError(state, reply[1].decode(), reply[2] if len(reply) > 2 else None)
        return state, reply[1].decode() if len(reply) > 1 else ""

    def _let_go(self, lease: Lease) -> None:
        try:
            self._release(lease)
            self._stand_up(lease)
        except CheckpointUnavailable:
            with self._guard:
                self._unreleased[lease] = time.monotonic() + self._lease_ms / 1000

    def _let_go_again(self) -> None:
        """Free what a store that was away could not, so that its threads are not busy once it is back."""
        with self._guard:
            waiting, self._unreleased = self._unreleased, {}
        for lease, lapses in waiting.items():
            if time.monotonic() < lapses:
                self._let_go(lease)
                with self._guard:
                    if lease in self._unreleased:  # still away
                        self._unreleased |= {**waiting, lease: lapses}
                        return

    def _release(self, lease: Lease) -> None:
        claim = lease.claim.field if lease.claim else ""
        keys = [lease.keys.lease, lease.keys.once, lease.keys.stop]
        arguments = [lease.token, claim, lease.request_id, lease.ending, lease.outcome or b"", ONCE_MS]
        self._script(_RELEASE, keys, arguments)

    def _watch(self, lease: Lease) -> None:
        """Raises RuntimeError when the system has no thread to give; the next lease tries again."""
        with self._guard:
            if self._renewer is None:
                renewer = threading.Thread(target=self._renew_all, name="lease-renewer", daemon=True)
                renewer.start()
                self._renewer = renewer
            self._held[lease.token] = lease

    def _unwatch(self, lease: Lease) -> None:
        with self._guard:
            self._held.pop(lease.token, None)

    def _renew_all(self) -> None:
        while not self._closed.wait(self._tick):
            with self._guard:
                held = list(self._held.values())
            for lease in held:  # before any waiting for Redis, so that a time-out comes in time without it
                self._guarded(lease.on_tick)
            for lease in held:
                self._guarded(partial(self._renew, lease))
            self._guarded(self._let_go_again)

    def _guarded(self, work: Callable[[], None] | None) -> None:
        """One lease's fault must not end the renewing of all others."""
        try:
            if work:
                work()
        except Exception as error:  # noqa: BLE001 - the thread's boundary; logged by type and place
            frames = traceback.extract_tb(error.__traceback__)[-3:]
            at = [f"{frame.name}:{frame.lineno}" for frame in frames]
            log.error("lease_fault", error=type(error).__name__, at=at)  # noqa: TRY400 - its message stays out

    def _renew(self, lease: Lease) -> None:
        # Renewing at every tick costs one small round trip and leaves no second timetable to get wrong.
        with suppress(CheckpointUnavailable):
            keys = [lease.keys.lease, lease.keys.stop]
            held, stop = self._script(_RENEW, keys, [lease.token, self._lease_ms])
            if not self._is_held_here(lease):
                return
            lease.hear(held=bool(held), stop=bool(stop))
            if lease.seats and time.monotonic() >= lease.seat_due:
                self._sit_on(lease)

    def _sit_on(self, lease: Lease) -> None:
        """Keep the seat. It may be given up in this very moment, and must then not come back."""
        self._script(_SIT, [lease.seats or ""], [lease.token, 0, self._lease_ms])
        lease.seat_due = time.monotonic() + self._lease_ms / 3000
        if not self._is_held_here(lease):
            self._stand_up(lease)

    def _is_held_here(self, lease: Lease) -> bool:
        with self._guard:
            return lease.token in self._held

    def _script(self, text: str, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        return self._call(self._scripts[text], keys=keys, args=arguments)

    def _call(self, command: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Every command here may be sent twice, so one that met a dead connection is."""
        try:
            try:
                return command(*args, **kwargs)
            except RedisConnectionError:
                self._revive()
                return command(*args, **kwargs)
        except (RedisError, EmbeddedServerError) as error:
            raise CheckpointUnavailable(
                "the thread's lease",
                f"Redis did not do it ({type(error).__name__})",
                "Check that Redis runs and that REDIS_URL names it",
            ) from error

    def _revive(self) -> None:
        """An embedded server that died is started again; any other one is somebody else's."""
        server = getattr(self._client, "server", None)
        if server is not None:
            server.revive()


@contextmanager
def hold(
    client: Any,
    thread_id: str,
    *,
    prefix: str = DEFAULT_PREFIX,
    lease_ms: int = LEASE_MS,
    on_stop: Callable[[], None] | None = None,
    on_lost: Callable[[], None] | None = None,
) -> Iterator[Lease]:
    """Hold one thread's lease with a keeper of its own: for a process that runs one turn at a time."""
    keeper = LeaseKeeper(client, prefix=prefix, lease_ms=lease_ms)
    try:
        with keeper.hold(thread_id, "", on_stop=on_stop, on_lost=on_lost) as lease:
            yield lease
    finally:
        keeper.close()
