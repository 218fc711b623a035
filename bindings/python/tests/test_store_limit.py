"""Limits that a store decides, by clients of redis-py and valkey-py on real servers."""

import asyncio
import threading
import time

import pytest
import redis
import redis.asyncio
import valkey
from redis.backoff import NoBackoff
from redis.retry import Retry
from test_lease_client import Server, port
from tollbar import AsyncStoreLimit, LeaseError, Limiter, StoreLimit

# Windows of 300 days hardly end in a test.
LONG = "100/300day"
ALGORITHMS = [f"{LONG} burst 100", *(f"{LONG} algo {name}" for name in ("interval", "fixed-window", "weighted-window", "sliding-window", "sliding-log"))]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("redis"), "--save", "")
    yield server
    server.kill()


@pytest.mark.parametrize("policy", ALGORITHMS)
def test_s31_two_machines_at_once_get_exactly_the_limit(server, policy):
    passed = []

    def machine():
        with redis.Redis(port=server.port) as client:
            limit = StoreLimit(policy, name="both", client=client)
            passed.append(sum(limit.allow(policy) for _ in range(80)))

    threads = [threading.Thread(target=machine) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # No permit too much, and none lost.
    assert sum(passed) == 100


def test_clients_of_all_sorts_share_one_limit(server):
    clients = [redis.Redis(port=server.port), redis.Redis(port=server.port, decode_responses=True),
               redis.Redis(port=server.port, protocol=2), valkey.Valkey(port=server.port)]
    limits = [StoreLimit(LONG, name="sorts", client=client) for client in clients]
    decisions = [limit.check("ann", 30) for limit in limits]
    assert [(one.allowed, one.remaining) for one in decisions] == [(True, 70), (True, 40), (True, 10), (False, 10)]
    assert decisions[3].reason == "over the rate" and 60 < decisions[3].retry_after
    assert limits[0].peek("ann", 10).allowed and limits[1].take_up_to("ann", 99) == 10 and not limits[2].allow(b"ann")
    limits[3].reset("ann")
    assert limits[0].peek("ann", 100).allowed and limits[0].allow("bob")
    assert limits[0].peek("ann", 101).never
    for client in clients:
        client.close()


def test_a_decision_is_that_of_a_limiter(server):
    with redis.Redis(port=server.port) as client:
        for policy in ("60/s burst 3", "3/50ms algo interval", "5/100ms algo weighted-window",
                       "4/80ms algo sliding-window segments 4 mode interpolated", "3/40ms algo sliding-log"):
            limit, local, seen = StoreLimit(policy, name="trace", client=client), Limiter(policy), [0, 0]
            real, now = client.execute_command, 0

            def keep(*args, real=real):
                nonlocal now
                reply = real(*args)
                now = reply[2] * 1000
                return reply

            client.execute_command = keep
            for n in range(400):
                cost = 2 if n % 7 == 0 else 1
                got = limit.check(policy, cost)
                want = local.check(cost, at=now)
                assert (got.allowed, got.remaining, got.retry_after_ns) == (
                    want.allowed, want.remaining, -(-want.retry_after_ns // 1000) * 1000), (policy, n)
                seen[got.allowed] += 1
                if n % 50 == 0:
                    time.sleep(0.1)
            client.execute_command = real
            assert min(seen) > 10, (policy, seen)


def test_asyncio(server):
    async def run():
        client = redis.asyncio.Redis(port=server.port)
        limit = AsyncStoreLimit(LONG, name="asyncio", client=client)
        # The client has some connections.
        passed = [sum(await asyncio.gather(*(limit.allow("ann") for _ in range(45)))) for _ in range(3)]
        assert passed == [45, 45, 10]
        decision = await limit.check("bob", 7)
        assert decision.allowed and decision.remaining == 93 and (await limit.peek("bob", 93)).allowed
        assert await limit.take_up_to("bob", 200) == 93
        await limit.reset("bob")
        assert (await limit.peek("bob")).remaining == 100
        with pytest.raises(TypeError, match="a client of an event loop: use AsyncStoreLimit"):
            StoreLimit(LONG, name="asyncio", client=client)
        await client.aclose()

    asyncio.run(run())


def test_a_cluster(tmp_path):
    server = Server(tmp_path, "--save", "", "--cluster-enabled", "yes", "--cluster-port", str(port()))
    server.client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    ends = time.monotonic() + 30
    while b"cluster_state:ok" not in server.client.execute_command("CLUSTER", "INFO", NEVER_DECODE=True):
        assert time.monotonic() < ends
        time.sleep(0.01)
    with redis.RedisCluster("127.0.0.1", server.port) as client:
        limit = StoreLimit("5/365day", name="cluster", client=client)
        assert [sum(limit.allow(key) for _ in range(9)) for key in ("ann", "bob", b"\xff\0{}")] == [5, 5, 5]
    server.kill()


def test_what_is_wrong_is_said(server):
    with redis.Redis(port=server.port) as client:
        for policy, words in (("5/s algo pacer", "a store decides gcra, interval"), ("5/s ban 1s after 2", "without borrow"),
                              ("5/7ns algo fixed-window", "parts of a microsecond")):
            with pytest.raises(LeaseError, match=words):
                StoreLimit(policy, name="wrong", client=client)
        with pytest.raises(LeaseError, match="visible ASCII"):
            StoreLimit("5/s", name="a b", client=client)
        with pytest.raises(TypeError, match="Redis is no client of an event loop: use StoreLimit"):
            AsyncStoreLimit("5/s", name="wrong", client=client)
        with pytest.raises(TypeError, match="redis-py or valkey-py, not str"):
            StoreLimit("5/s", name="wrong", client="redis://127.0.0.1")
        limit = StoreLimit("5/s", name="wrong", client=client)
        assert repr(limit) == "<tollbar.StoreLimit '5/s', name='wrong'>"
        for key in ("", "k" * 513):
            with pytest.raises(ValueError, match=f"1 to 512 bytes, not {len(key)}"):
                limit.allow(key)
        with pytest.raises(ValueError, match="cost"):
            limit.allow("k", -1)
        client.set("tollbar:{wrong}:poem", "roses")
        with pytest.raises(LeaseError, match="another algorithm's or another program's value"):
            limit.allow("poem")
        assert client.get("tollbar:{wrong}:poem") == b"roses"
        for reply in (None, [], [0, 1], ["0"] * 6, [2**70, 0, 0, 0], [-1, 0, 0, 0], [0, 2, 9, 0], [0, 1, 9], b"OK"):
            client.execute_command = lambda *args, reply=reply: reply
            with pytest.raises(LeaseError, match="not one of the script's"):
                limit.allow("k")
        # A limit of none needs no store.
        assert StoreLimit("0/s", name="wrong", client=client).check("k").never


def test_an_error_of_the_client_is_its_error(tmp_path):
    server = Server(tmp_path, "--save", "")
    with redis.Redis(port=server.port, retry=Retry(NoBackoff(), 0)) as client:
        limit = StoreLimit("5/365day", name="gone", client=client)
        assert limit.allow("ann")
        # A store that has forgotten its scripts.
        client.script_flush()
        assert limit.peek("ann").remaining == 4
        server.kill()
        with pytest.raises(redis.ConnectionError):
            limit.allow("ann")
