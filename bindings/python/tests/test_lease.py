"""Leases, without a store and with a real redis-server. Times are for a machine that is busy with
other things."""

import asyncio
import ctypes
import gc
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from datetime import timedelta
from pathlib import Path

import pytest
import tollbar
from edges import Late, again_if_late
from test_web import asgi_app, call_asgi, call_wsgi, wsgi_app
from tollbar import Lease, LeaseError, PolicyError, asgi, wsgi

NOWHERE = "unix:/no-such-directory/redis.sock"
SLOW = "60/min burst 600"
ADMITTED, DENIED, DOWN = "admitted", "denied by the store", "store down"


def until(holds, seconds=30):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.002)


def dies_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Redis:
    """A redis-server on a unix socket in a directory of its own."""

    def __init__(self, directory):
        self.path = directory / "redis.sock"
        self.url = f"unix:{self.path}"
        self.directory = directory
        self.start()

    def start(self):
        self.path.unlink(missing_ok=True)
        command = ["redis-server", "--port", "0", "--unixsocket", str(self.path), "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen(
            [*command, "--dir", str(self.directory), "--logfile", "log"], preexec_fn=dies_with_parent
        )
        until(self.answers)

    def answers(self):
        try:
            return self.ask("PING") == b"+PONG\r\n"
        except OSError:
            assert self.process.poll() is None, (self.directory / "log").read_text()
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ask(self, words):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(str(self.path))
            connection.sendall(words.encode() + b"\r\n")
            return connection.recv(65536)

    def charged(self, name, key):
        return self.ask(f"EXISTS tollbar:{{{name}}}:k:{key}") == b":1\r\n"

    def askers(self):
        """Connections that lease. One that is being taken over from is silent; one that asks is
        heard of every 0.4 s."""
        clients = self.ask("CLIENT LIST").split(b"\n")
        return sum(b" cmd=eval" in one and int(one.split(b" idle=")[1].split()[0]) < 2 for one in clients)


@pytest.fixture
def redis(tmp_path_factory):
    if shutil.which("redis-server") is None:
        pytest.fail("no redis-server; as root: apt-get install redis-server")
    # A socket's path may have 107 bytes.
    directory = tmp_path_factory.mktemp("r")
    server = Redis(directory)
    yield server
    server.kill()


def lease(url=NOWHERE, policy=SLOW, nodes=4, name="test", **options):
    return Lease(policy, name=name, nodes=nodes, url=url, **options)


def taken(lease, key, tries):
    return sum(lease.allow(key) for _ in range(tries))


# A permit of a machine's share comes back in four seconds.
@again_if_late(3)
def test_without_a_store_it_lives_on_its_share():
    with lease() as limit:
        # Its overdraft.
        assert taken(limit, "ann", 40) == 8
        assert taken(limit, b"bob", 40) == 8 and taken(limit, 7, 40) == 8 and taken(limit, b"", 40) == 8
        assert not limit.allow() and not limit.allow(None), "those without a key are the one limit for all"
        decision = limit.check("ann")
        assert not decision and 0 < decision.retry_after <= 4.1 and not decision.never
        assert limit.check("ann", cost=601).never and limit.check("new", 8).allowed
        assert limit.peek("other", cost=8) and limit.peek("other").remaining == 8
        at = limit.now() + 4_100_000_000
        assert limit.allow("ann", at=at) and not limit.allow("ann", at=at) and not limit.check("ann", at=at)
        stats = limit.stats()
        # Its thread may not have tried yet.
        assert {stats.circuit, limit.circuit} <= {"unknown", "open"}
        assert stats.fallback_permits == 8 * 5 + 1 and stats.granted == 0 and stats.denied > 80
        assert limit.policy == tollbar.Policy(SLOW) and ("unknown" in repr(limit) or "open" in repr(limit))


def test_fallbacks_and_overdrafts():
    for options, admitted in (
        ({"fallback": "deny"}, 0),
        ({"fallback": "allow"}, 50),
        ({"overdraft": 5}, 5),
        ({"overdraft": 0}, 0),
        ({"nodes": 1}, 8),
        ({"exact": False, "life": timedelta(milliseconds=5), "capacity": 10}, 8),
    ):
        with lease(**options) as limit:
            assert taken(limit, "k", 50) == admitted, options


def test_what_cannot_be_is_said():
    for options, name in (
        ({"name": "two words"}, "TOLLBAR_E_LEASE_NAME"),
        ({"name": ""}, "TOLLBAR_E_LEASE_NAME"),
        ({"nodes": 0}, "TOLLBAR_E_LEASE_NODES"),
        ({"nodes": 2**40}, "TOLLBAR_E_LEASE_NODES"),
        ({"life": 0.0001}, "TOLLBAR_E_LEASE_LIFE"),
        ({"policy": "10/s burst 4", "overdraft": 1}, "TOLLBAR_E_LEASE_BURST"),
        ({"policy": "10/s algo pacer"}, "TOLLBAR_E_LEASE_ALGORITHM"),
        ({"policy": "7/day burst 1000000"}, "TOLLBAR_E_LEASE_TOO_LARGE"),
        ({"url": "http://127.0.0.1"}, "TOLLBAR_E_URL"),
    ):
        with pytest.raises(LeaseError) as error:
            lease(**options)
        assert error.value.name == name and isinstance(error.value, ValueError)
    with pytest.raises(LeaseError, match="column") as error:
        lease(url="redis://:secret@127.0.0.1:x")
    assert "secret" not in str(error.value)
    with pytest.raises(PolicyError):
        lease(policy="many")
    with pytest.raises(tollbar.TableError):
        lease(capacity=0)
    bad = {"fallback": "pray"}, {"life": -1}, {"flush": -1}, {"overdraft": -1}, {"on_loss": "pray"}, {"on_loss": True}
    for wrong in bad:
        with pytest.raises(ValueError):
            lease(**wrong)
    with pytest.raises(TypeError):
        lease(nodes="4")
    with lease() as limit, pytest.raises(TypeError):
        limit.check(1.5)
    with lease() as limit, pytest.raises(TypeError):
        limit.peek("k", at=1)


def test_a_closed_one():
    limit = lease(flush=0)
    assert limit.close() is True and limit.closed and limit.close() is True
    assert repr(limit) == "<tollbar.Lease, closed>"
    for call in (limit.check, limit.allow, limit.peek, limit.wait, limit.now, limit.stats, limit.tick, limit.fileno):
        with pytest.raises(ValueError):
            call()


def test_the_store_comes_and_goes(redis):
    seen = []
    limit = lease(redis.url, on_change=lambda circuit: seen.append((circuit, threading.current_thread())))
    until(lambda: seen and seen[-1][0] == "closed")
    for call in (limit.tick, limit.fileno):
        with pytest.raises(RuntimeError, match="has a thread"):
            call()
    redis.kill()
    until(lambda: seen[-1][0] == "open")
    assert limit.allow("ann") and limit.stats().opened >= 1
    redis.start()
    until(lambda: seen[-1][0] == "closed")
    assert limit.close(timeout=timedelta(seconds=30)) is True
    # It begins with "open" where the first answer is late; from then on they take turns.
    circuits = [circuit for circuit, _ in seen]
    assert all(a != b for a, b in zip(circuits, circuits[1:]))
    assert "closed open closed" in " ".join(circuits)
    assert all(thread.name == "tollbar" for _, thread in seen) and not seen[0][1].is_alive()


def test_two_machines_share_one_limit(redis):
    start = time.monotonic()
    admitted = 0
    with lease(redis.url, "2000/s burst 400", 2) as a, lease(redis.url, "2000/s burst 400", 2) as b:
        # Longer where a busy machine has lost time.
        while time.monotonic() - start < 1.5 or admitted < 500 and time.monotonic() - start < 30:
            admitted += taken(a, b"", 50) + taken(b, b"", 50)
            time.sleep(0.001)
        assert admitted <= 400 + 2000 * (time.monotonic() - start) + 1
        assert admitted >= 500
        until(lambda: a.circuit == b.circuit == "closed")


def pair(redis, policy, **options):
    """Two machines whose store answers."""
    both = [lease(redis.url, policy, 2, **options) for _ in range(2)]
    until(lambda: all(one.circuit == "closed" for one in both))
    return both


# A permit comes back in twelve seconds. A check is PENDING while the circuit is open.
@again_if_late(10)
def test_an_idle_key_passes_at_once(redis):
    """Each of two machines of 5/min has an overdraft of one."""
    a, b = pair(redis, "5/min")
    with a, b:
        for key in range(20):
            first, second = a.check(key), b.check(key)
            if "open" in (a.circuit, b.circuit):
                raise Late
            assert first.reason == second.reason == ADMITTED


@again_if_late(10)
def test_requests_that_wait_are_decided_as_by_the_store(redis):
    a, b = pair(redis, "5/min", overdraft=0)
    with a, b:
        assert a.check("new").reason in ("pending", DOWN)
        for key in range(20):
            begun = time.monotonic()
            reasons = [(a, b)[i % 2].wait(key, 30).reason for i in range(6)]
            # A thread that gets no processor for the patience, 250 ms, loses what it was served.
            if DOWN in reasons or time.monotonic() - begun > 0.25:
                raise Late
            assert reasons == [ADMITTED] * 5 + [DENIED]
        assert a.wait("other", timedelta(seconds=30), cost=5)
        assert not b.wait("other") and b.wait("other", cost=6).never


@again_if_late(10)
def test_tasks_that_wait(redis):
    async def run():
        a, b = pair(redis, "5/min", overdraft=0)
        with a, b:
            answers = await asyncio.gather(*((a, b)[i % 2].wait_async(key, 30) for i in range(2) for key in range(20)))
            assert all(answers)
            for key in range(20):
                reasons = [(await (a, b)[i % 2].wait_async(key, 30)).reason for i in range(4)]
                if DOWN in reasons:
                    raise Late
                assert reasons == [ADMITTED] * 3 + [DENIED]

    asyncio.run(run())


def ready(limit):
    """Ticks until the store answers."""
    until(lambda: limit.tick() >= 0 and limit.circuit == "closed")


def test_a_thread_or_a_task_that_waits_lets_others_tick(redis):
    with lease(redis.url, "5/min", 2, overdraft=0, start=False) as limit:
        done = threading.Event()

        def tick():
            while not done.wait(min(limit.tick(), 0.001)):
                pass

        async def tick_meanwhile():
            while True:
                await asyncio.sleep(min(limit.tick(), 0.001))

        async def run(key):
            ticks = asyncio.create_task(tick_meanwhile())
            decision = await limit.wait_async(key, 30)
            ticks.cancel()
            return decision.reason

        # A busy machine may not tick for 250 ms, and then decides by itself. The next try is another
        # key, because the store has answered about the first one meanwhile.
        def passes(i):
            ready(limit)
            return asyncio.run(run(f"task {i}")) == ADMITTED

        assert any(passes(i) for i in range(10))
        ready(limit)
        ticks = threading.Thread(target=tick)
        ticks.start()
        try:
            assert any(limit.wait(f"thread {i}", 30).reason == ADMITTED for i in range(10))
        finally:
            done.set()
            ticks.join()


@again_if_late(0.2)
def test_a_wait_without_an_answer(redis):
    """Nobody ticks. The circuit opens after 250 ms."""

    def interrupt(number, frame):
        raise KeyboardInterrupt

    with lease(redis.url, "5/min", 2, overdraft=0, start=False, capacity=1) as limit:
        ready(limit)
        began = time.monotonic()
        assert limit.wait("k", 0).reason == "pending"
        before = signal.signal(signal.SIGALRM, interrupt)
        # A wait that returns has outlived the circuit, or is deaf.
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            limit.wait("k", 30)
            raise Late
        except KeyboardInterrupt:
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        try:
            asyncio.run(asyncio.wait_for(limit.wait_async("k", 30), 0.01))
            raise Late
        except asyncio.TimeoutError:
            pass
        # Each has its place while it is asked about.
        reasons = [limit.wait(key, 0).reason for key in range(1000)]
        if time.monotonic() - began > 0.2:
            raise Late
        assert set(reasons) == {"pending", "table full"}
        stats = limit.stats()
        assert stats.full == reasons.count("table full") > 0
        assert stats.denied_pending >= reasons.count("pending") and stats.denied_by_fallback == 0


def test_a_listener_cannot_wait(redis, monkeypatch):
    failures = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, *_: failures.append(kind))
    made = threading.Event()

    def wait(circuit):
        made.wait(30)
        if circuit == "closed":
            limit.wait("k", 30)

    limit = lease(redis.url, "5/min", 2, overdraft=0, on_change=wait)
    made.set()
    with limit:
        until(lambda: failures)
    assert failures[0] is RuntimeError


def of_an_idle_key(limit, name, cost):
    """Why the store decides so. Each try is another key, because the store may be away for a while."""
    reasons = [DOWN]

    def decides():
        reasons.append(limit.wait(f"{name}{len(reasons)}", 30, cost).reason)
        return reasons[-1] in (ADMITTED, DENIED)

    until(decides)
    return reasons[-1]


@pytest.mark.parametrize(
    ("options", "passes"), [({}, True), ({"on_loss": "full"}, True), ({"on_loss": "refill"}, False)]
)
def test_a_store_that_comes_back_empty(redis, options, passes):
    """An idle key has its whole burst then, or nothing that has not refilled."""
    with lease(redis.url, "1000/day", 2, overdraft=0, **options) as limit:
        # A new limit that refills has nothing in its first second.
        names = iter(range(10**9))
        until(lambda: of_an_idle_key(limit, f"{next(names)} before", 1000) == ADMITTED)
        redis.kill()
        until(lambda: limit.circuit == "open")
        redis.start()
        assert of_an_idle_key(limit, "idle", 1000) == (ADMITTED if passes else DENIED)


def listens(redis):
    """Lets the server listen at a free port, too, and returns it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert redis.ask('CONFIG SET bind "127.0.0.1 -::1"') == redis.ask(f"CONFIG SET port {port}") == b"+OK\r\n"
    return port


def has_ipv6():
    addresses = Path("/proc/net/if_inet6")
    return addresses.exists() and f"{1:032x}" in addresses.read_text()


WAYS = {
    "an address": "redis://127.0.0.1:PORT",
    "a name and a database": "redis://localhost:PORT/3",
    "a user": "valkey://me:first@127.0.0.1:PORT",
    "the second host": "redis://127.0.0.1:1,localhost:PORT",
    **({"IPv6": "redis://[::1]:PORT"} if has_ipv6() else {}),
}


@pytest.mark.parametrize("way", WAYS)
def test_ways_to_the_store(redis, way):
    port = listens(redis)
    assert redis.ask("ACL SETUSER me on >first ~tollbar:* &* +@all") == b"+OK\r\n"
    with lease(WAYS[way].replace("PORT", str(port))) as limit:
        until(lambda: limit.allow("ann") and limit.stats().granted > 0)


def test_a_password_that_rotates(redis, tmp_path):
    """The server takes another password and ends the connection; the lease reads the file again."""
    file = tmp_path / "password"
    file.write_text("first\n")
    assert redis.ask("ACL SETUSER me on >first ~tollbar:* &* +@all") == b"+OK\r\n"
    with lease(f"{redis.url}?user=me&password_file={file}") as limit:
        until(lambda: limit.allow("ann") and limit.stats().granted > 0)
        file.write_text("second\n")
        before = limit.stats().granted
        assert redis.ask("ACL SETUSER me resetpass >second") == b"+OK\r\n"
        assert int(redis.ask("CLIENT KILL USER me")[1:]) >= 1
        until(lambda: limit.wait("ann", 30).allowed and limit.stats().granted > before)


def test_closing_tells_the_store(redis):
    limit = lease(redis.url, overdraft=15)
    until(lambda: limit.circuit == "closed")
    # The store forgets a key when its permits are back, after as many seconds.
    assert limit.allow("ann", 15) and limit.close(30) and redis.charged("test", "ann")
    limit = lease(redis.url)
    until(lambda: limit.circuit == "closed")
    redis.kill()
    assert limit.allow("bob", 3) and limit.close(0.05) is False


def test_one_that_is_forgotten(redis):
    limit = lease(redis.url, flush=30, overdraft=15)
    until(lambda: limit.circuit == "closed")
    thread, gone = limit._driver.thread, weakref.ref(limit)
    assert limit.allow("ann", 15)
    del limit
    gc.collect()
    assert gone() is None and not thread.is_alive() and redis.charged("test", "ann")


def test_one_that_is_open_at_the_end(redis):
    code = f"""
import time, tollbar
limit = tollbar.Lease({SLOW!r}, name="test", nodes=2, url={redis.url!r}, flush=30, overdraft=15)
while limit.circuit != "closed": time.sleep(0.01)
assert limit.allow("ann", 15)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)
    assert redis.charged("test", "ann")


def test_from_an_event_loop(redis):
    seen = []
    with lease(redis.url, start=False, on_change=seen.append) as limit:
        assert limit.fileno() == -1 and limit.events == (False, False)
        end = time.monotonic() + 30
        while limit.circuit != "closed":
            assert time.monotonic() < end
            wait = limit.tick()
            fd, (reads, writes) = limit.fileno(), limit.events
            select.select([fd] if fd >= 0 and reads else [], [fd] if fd >= 0 and writes else [], [], wait)
        # A late answer opens it for a while.
        assert seen[-1] == "closed" and set(seen) <= {"open", "closed"}
        until(lambda: limit.tick() >= 0 and limit.error == "")
        assert limit.allow("ann")
    with lease(redis.url + "?user=nobody&password=wrong", start=False) as limit:
        until(lambda: limit.tick() >= 0 and "WRONGPASS" in limit.error)


def test_a_listener_that_fails(redis, monkeypatch):
    failures = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, *_: failures.append(kind))
    with lease(redis.url, on_change=lambda circuit: 1 / 0) as limit:
        until(lambda: limit.circuit == "closed" and failures)
    assert failures[0] is ZeroDivisionError


def test_a_listener_that_closes(redis, monkeypatch):
    failures = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, *_: failures.append(kind))
    made = threading.Event()

    def close(circuit):
        # It may be called before the name is there.
        made.wait(30)
        limit.close()

    limit = lease(redis.url, on_change=close)
    made.set()
    until(lambda: failures)
    assert failures[0] is RuntimeError and limit.close(30)


def test_forks_are_one_machine(redis):
    """Each has a client; one of them asks, and when that ends another goes on."""
    limit = lease(redis.url)
    until(lambda: limit.circuit == "closed")
    thread = limit._driver.thread
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            dies_with_parent()
            own = limit._driver.thread
            good = own is not thread and own.is_alive() and taken(limit, "both", 5) == 5
            os.write(write, b"1" if good else b"0")
            signal.pause()
        finally:
            os._exit(1)
    try:
        assert os.read(read, 1) == b"1"
        # The parent's statistics count the child's permits.
        assert limit.stats().overdrawn + limit.stats().fallback_permits >= 5 and limit.allow("both")
        assert limit._driver.thread.is_alive()
        until(lambda: redis.askers() == 1)
        assert limit.close(30) and limit.closed
        # The child's takes over.
        until(lambda: redis.askers() == 1)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(read)
        os.close(write)


def test_a_fork_warns_of_no_threads(redis):
    code = f"""
import os, time, tollbar
limit = tollbar.Lease({SLOW!r}, name="test", nodes=2, url={redis.url!r})
while limit.circuit != "closed": time.sleep(0.01)
child = os.fork()
assert limit.allow("ann")
limit.close()
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


@again_if_late(3)
def test_middleware():
    with lease(policy="60/min burst 64", fallback="share") as limit:
        app = wsgi.RateLimit(wsgi_app, limit, name="all", exempt={"free"}, key=lambda environ: environ.get("KEY", "k"))
        status, headers, body = call_wsgi(app)
        assert (status, body) == ("200 OK", b"hello")
        assert headers["ratelimit-policy"] == '"all";q=60;w=60' and headers["ratelimit"] == '"all";r=1'
        assert call_wsgi(app)[0] == "200 OK"
        status, headers, _ = call_wsgi(app)
        assert status == "429 Too Many Requests" and 1 <= int(headers["retry-after"]) <= 5
        assert call_wsgi(app, KEY="free")[0] == "200 OK" and call_wsgi(app, KEY=None)[0] == "200 OK"
        answers = [call_asgi(asgi.RateLimit(asgi_app, limit), client=("192.0.2.9", 1))[0] for _ in range(3)]
        assert answers == [200, 200, 429]


def connections(redis):
    return redis.ask("CLIENT LIST").count(b"name=tollbar")


def test_leases_of_a_store_have_one_connection(redis):
    threads = threading.active_count()
    leases = [lease(redis.url, name=f"limit{n}", nodes=2) for n in range(100)]
    for limit in leases:
        # A late answer opens it for a while.
        until(lambda: limit.circuit == "closed" and limit.error == "")  # noqa: B023
        assert limit.allow("ann")
    assert connections(redis) == 1 and threading.active_count() == threads + 1
    # A limit's second lease is another machine, and a lease that the program ticks has a client of its own.
    second = lease(redis.url, name="limit7", nodes=2)
    ticked = lease(redis.url, name="ticked", start=False)
    until(lambda: second.circuit == "closed" and ticked.tick() >= 0 and ticked.circuit == "closed")
    assert connections(redis) == 3
    for n, limit in enumerate(leases):
        if n % 2:
            assert limit.close(30) and redis.charged(f"limit{n}", "ann")
    for n, limit in enumerate(leases):
        assert n % 2 or limit.wait("bob", 30)
    # A new lease has the first place that is free.
    again = lease(redis.url, name="limit1", nodes=2)
    assert again.wait("bob", 30) and connections(redis) == 3
    assert all(limit.close(30) for limit in [*leases, again, second, ticked])
    assert threading.active_count() == threads
    until(lambda: connections(redis) == 0)


def test_more_leases_than_a_client_has(redis):
    leases = [lease(redis.url, name=f"limit{n}") for n in range(130)]
    until(lambda: all(limit.circuit == "closed" for limit in leases))
    assert connections(redis) == 2
    del leases
    gc.collect()
    until(lambda: connections(redis) == 0)


def test_each_lease_hears_of_its_circuit(redis):
    redis.ask("ACL SETUSER default resetkeys ~tollbar:{good}:* ~tollbar:{late}:*")
    seen, late = [], []

    def good(circuit):
        seen.append(("good", circuit))
        if not late:
            late.append(lease(redis.url, name="late"))

    first = lease(redis.url, name="good", on_change=good)
    second = lease(redis.url, name="bad", on_change=lambda circuit: seen.append(("bad", circuit)))
    until(lambda: ("good", "closed") in seen and ("bad", "open") in seen and late)
    until(lambda: first.circuit == late[0].circuit == "closed" and "NOPERM" in second.error)
    until(lambda: first.error == "")
    assert ("bad", "closed") not in seen
    for limit in (first, second, late[0]):
        limit.close()


def test_a_lost_store_holds_many_closes_once(redis):
    code = f"""
import tollbar, time
leases = [tollbar.Lease({SLOW!r}, name=f"limit{{n}}", nodes=2, url={redis.url!r}, flush=1) for n in range(20)]
while not all(limit.circuit == "closed" for limit in leases): time.sleep(0.01)
print(flush=True)
input()
for limit in leases: assert limit.allow("ann")
start = time.monotonic()
import atexit
atexit.unregister(tollbar.lease._end)
tollbar.lease._end()
assert time.monotonic() - start < 8, time.monotonic() - start
"""
    command, pipe = [sys.executable, "-W", "error", "-c", code], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as program:
        program.stdout.readline()
        redis.kill()
        program.communicate(b"\n", timeout=60)
    assert program.returncode == 0


def test_many_leases_through_a_fork(redis):
    """The child has one client for all of them, and the parent goes on."""
    leases = [lease(redis.url, name=f"limit{n}", nodes=2) for n in range(20)]
    until(lambda: all(limit.circuit == "closed" for limit in leases))
    leases.pop(3).close()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            dies_with_parent()
            assert all(limit.wait("child", 30) for limit in leases) and threading.active_count() == 2
            assert leases.pop().close(30) and lease(redis.url, name="limit3").wait("child", 30)
            code = 0
        finally:
            os._exit(code)
    assert all(limit.wait("parent", 30) for limit in leases)
    assert os.waitpid(child, 0)[1] == 0
    assert all(limit.wait("after", 30) and limit.close(30) for limit in leases)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_leases_come_and_go(redis):
    """From many threads, some by the garbage collector, beside forks. Each is admitted, and what it took is
    charged."""
    failures = []

    def work(worker):
        try:
            for turn in range(12):
                limit = lease(redis.url, name=f"limit{(worker + turn) % 5}", nodes=60, flush=30)
                key = f"{worker}-{turn}"
                assert limit.wait(key, 30)
                if turn % 3:
                    assert limit.close(30) and redis.charged(f"limit{(worker + turn) % 5}", key)
                elif turn % 2:
                    circle = [limit]
                    circle.append(circle)
        except BaseException as failure:
            failures.append(failure)

    workers = [threading.Thread(target=work, args=(worker,)) for worker in range(6)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        gc.collect()
        time.sleep(0.05)
    assert failures == []
    gc.collect()
    until(lambda: connections(redis) == 0)


def test_two_close_one_lease(redis):
    """Both return, and the other leases of the store stay."""
    other = lease(redis.url, name="other", nodes=2)
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(30):
            limit = lease(redis.url, name="closed", nodes=2)
            closers = [threading.Thread(target=limit.close, args=(30,)) for _ in range(3)]
            for closer in closers:
                closer.start()
            for closer in closers:
                closer.join()
    finally:
        sys.setswitchinterval(switch)
    assert other.wait("ann", 30) and other.close(30)


def test_what_is_taken_beside_a_close_is_charged(redis):
    other = lease(redis.url, name="other", nodes=2)
    until(lambda: other.circuit == "closed")
    for turn in range(10):
        limit = lease(redis.url, name="beside", nodes=2)
        until(lambda: limit.circuit == "closed")  # noqa: B023
        admitted = []

        def take():
            try:
                for n in range(100000):
                    if limit.allow(f"{turn}-{n}"):  # noqa: B023
                        admitted.append(f"{turn}-{n}")  # noqa: B023
            except ValueError:
                pass

        taker = threading.Thread(target=take)
        taker.start()
        time.sleep(0.01)
        assert limit.close(30)
        taker.join()
        assert all(redis.charged("beside", key) for key in admitted[-20:])


def test_a_thread_that_cannot_begin(redis, monkeypatch):
    def fails(self):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fails)
        with pytest.raises(RuntimeError, match="new thread"):
            lease(redis.url)
    limit = lease(redis.url)
    assert limit.wait("ann", 30) and limit.close(30)


def test_a_refused_lease_holds_no_other(redis, monkeypatch):
    """A lease that cannot tell its store keeps no other one from joining or leaving, and no fork waits."""
    bad, good = lease(redis.url, name="bad"), lease(redis.url, name="good")
    until(lambda: bad.circuit == good.circuit == "closed")
    redis.ask("ACL SETUSER default resetkeys ~tollbar:{good}:* ~tollbar:{late}:*")
    assert bad.allow("ann") and good.allow("ann")
    told = []
    closer = threading.Thread(target=lambda: told.append(bad.close(30)))
    closer.start()
    time.sleep(0.05)
    late = lease(redis.url, name="late")
    assert late.wait("ann", 30) and good.close(30)
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert told == [] and late.wait("bob", 30)
    redis.ask("ACL SETUSER default ~*")
    closer.join()
    assert told == [True] and late.close(30)


def test_nothing_in_a_listener_ends_the_thread(redis, monkeypatch):
    failures = []

    def hook(kind, *_):
        failures.append(kind)
        raise ValueError

    monkeypatch.setattr(sys, "excepthook", hook)
    limit = lease(redis.url, name="first", on_change=lambda circuit: 1 / 0)
    until(lambda: failures)
    other = lease(redis.url, name="other")
    assert other.wait("ann", 30) and other.close(30) and limit.close(30)
