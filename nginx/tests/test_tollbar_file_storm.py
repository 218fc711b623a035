"""Three workers of nginx, a C, a Go and a Python process use one file at the same time. The test
kills them at random, and all of them are started again. Together they admit exactly the limit.

The key's state says how many permits the table has charged: a token bucket that is never full again
after its first charge, at T0, is full at T0 + charged / rate (ffi-tests/together/driver.py, whose
programs these are). The first charge is the whole burst, which takes 25 seconds to refill, and the
programs spend all there is long before."""

import os
import random
import threading
import time

import pytest

from harness import faces
from harness.client import Kept
from harness.config import CONTENT
from harness.server import wait_until
from harness.tollbar import Tollbar, launcher

launch = launcher(Tollbar)

SEED = int(os.environ.get("TOLLBAR_SEED", "1"))
KILLS = 40 if "TOLLBAR_SOAK" in os.environ else 12
CLIENTS = 6
WORKERS = "nginx"


class Client(threading.Thread):
    """Sends nginx one request at a time for each key in turn, and counts as the boards of the
    programs do. The request in which a worker is killed has no answer."""

    def __init__(self, nginx, keys):
        super().__init__(daemon=True)
        self.nginx, self.keys, self.ends = nginx, keys, False
        self.begun, self.admitted, self.refused = ([0] * keys for _ in range(3))
        self.failed = None

    def run(self):
        key = 0
        try:
            while not self.ends:
                with Kept(self.nginx.port) as kept:
                    try:
                        while not self.ends:
                            key = (key + 1) % self.keys
                            self.ask(kept, key)
                    except (AssertionError, ConnectionError):
                        # The worker of this connection is gone.
                        pass
        except Exception as error:  # noqa: BLE001: the test raises it again.
            self.failed = error

    def ask(self, kept, key):
        self.begun[key] += 1
        kept.send(f"/?k=key-{key}")
        status = kept.read().status
        if status not in (200, 429):
            raise ValueError(f"nginx answers {status}")
        (self.admitted if status == 200 else self.refused)[key] += 1

    def unanswered(self, key):
        return self.begun[key] - self.admitted[key] - self.refused[key]


@pytest.fixture
def path(tmp_path):
    (tmp_path / "run").mkdir(mode=0o700)
    return tmp_path / "run" / "table"


class Storm:
    """The programs, their lives, and nginx with its clients."""

    def __init__(self, nginx, path, home):
        self.driver, self.path, self.home, self.nginx = faces.driver(), str(path), str(home), nginx
        self.commands = {name: " ".join(words) for name, words in faces.hammers().items()}
        self.running, self.lives, self.number = {}, [], 0
        self.clients = [Client(nginx, self.driver.KEYS) for _ in range(CLIENTS)]

    def begin(self, name, go):
        self.number += 1
        life = self.driver.Process(name, self.commands[name], self.home, self.path, self.number, go)
        self.running[name] = life
        self.lives.append(life)
        return life

    def kill(self, name, chance):
        if name == WORKERS:
            self.nginx.kill_worker(chance.choice(self.nginx.workers()))
            return
        assert self.running[name].kill() == -9, f"{name} had ended by itself"
        self.begin(name, 1)

    def end(self):
        """Ends all programs. Returns the exit codes of those that were not killed."""
        for client in self.clients:
            client.ends = True
        codes = [life.end() for life in self.running.values()]
        for client in self.clients:
            client.join(60)
            assert not client.is_alive()
            if client.failed:
                raise client.failed
        return codes

    def abandon(self):
        for client in self.clients:
            client.ends = True
        for life in self.lives:
            if life.process.poll() is None:
                life.process.kill()
                life.process.wait()

    def sum(self, of_life, of_client):
        return sum(of_life(life) for life in self.lives) + sum(
            of_client(client) for client in self.clients
        )


def blow(storm, table, chance):
    """Runs and kills the programs. Returns the time of the first charge, and how often each was
    killed."""
    names = [*storm.commands, WORKERS]
    for name in storm.commands:
        storm.begin(name, 0)
    for life in storm.lives:
        wait_until(life.ready, f"{life.name} has opened the table")
    t0 = table.now()
    for k in range(storm.driver.KEYS):
        assert table.check(f"key-{k}", cost=storm.driver.BURST, at=t0)
    for client in storm.clients:
        client.start()
    # nginx is slower than the others, so it begins.
    wait_until(lambda: all(sum(client.admitted) for client in storm.clients), "nginx admits")
    for life in storm.lives:
        life.begin()
    for life in list(storm.lives):
        wait_until(lambda life=life: life.admitted() + life.refused() > 0, f"{life.name} asks")
    kills = dict.fromkeys(names, 0)
    # Each worker of nginx and each program at least once, and then any.
    for name in chance.sample([*names, WORKERS, WORKERS], len(names) + 2) + chance.choices(
        names, k=KILLS - len(names) - 2
    ):
        time.sleep(chance.uniform(0, 0.2))
        storm.kill(name, chance)
        kills[name] += 1
    for life in storm.running.values():
        wait_until(lambda life=life: life.ready() and life.refused() > 0, f"{life.name} is refused")
    refused = [sum(client.refused) for client in storm.clients]
    wait_until(
        lambda: all(sum(client.refused) > before for client, before in zip(storm.clients, refused)),
        "each client is refused",
    )
    return t0, kills


def test_killed_programs_and_workers_admit_exactly_the_limit(launch, path, tmp_path):
    driver = faces.driver()
    nginx = launch(
        workers=3,
        listen="reuseport",
        log_level="crit",
        http=f'tollbar_zone $arg_k zone=z file={path} policy="{driver.POLICY}" capacity=1000;',
        server=f"access_log off; location / {{ tollbar zone=z; {CONTENT} }}",
    )
    nginx.expected.append("open socket")
    storm = Storm(nginx, path, tmp_path)
    with faces.tollbar().Table.open(path) as table:
        try:
            t0, kills = blow(storm, table, random.Random(SEED))
            codes = storm.end()
        finally:
            storm.abandon()
        assert set(codes) == {0} and all(kills.values()), (codes, kills)
        for name in storm.commands:
            own = [life for life in storm.lives if life.name == name]
            assert all(
                sum(which(life) for life in own) > 0
                for which in (driver.Process.admitted, driver.Process.refused)
            ), name
            assert all(life.unanswered() in ((0, 1) if life.killed else (0,)) for life in own), name
        # A killed worker had at most one request of each client in its hands.
        assert (
            sum(client.unanswered(k) for client in storm.clients for k in range(driver.KEYS))
            <= CLIENTS * kills[WORKERS] + CLIENTS
        )
        for k in range(driver.KEYS):
            judge(storm, table, t0, k)
        health, stats = table.validate(), table.stats()
        assert not health.slots_invalid and (health.duplicate, health.unknown, health.claimed) == (
            0,
            0,
            0,
        ), health
        assert stats.keys == driver.KEYS == health.live and stats.inserted == driver.KEYS, stats
        # The file goes on for nginx, too.
        wait_until(lambda: nginx.get("/?k=key-0").status == 200, "a permit has come back")
    assert nginx.get("/?k=another").status == 200


def judge(storm, table, t0, k):
    driver, key = storm.driver, f"key-{k}"
    now = table.now()
    state = table.peek(key, at=now)
    granted = driver.BURST + storm.sum(
        lambda life: life.admitted(k), lambda client: client.admitted[k]
    )
    lost = storm.sum(lambda life: life.unanswered(k), lambda client: client.unanswered(k))
    charged, odd = divmod((now + state.reset_after_ns - t0) * driver.RATE, 10**9)
    bound = driver.BURST + driver.RATE * (now - t0) // 10**9
    assert granted <= bound, f"{key}: more than the limit"
    # The table has charged each permit that was granted, and for a killed program at most those of
    # its requests that had no answer.
    assert granted <= charged <= granted + lost and odd == 0, (key, granted, charged, lost)
    # The key has all permits that no program was charged: none is lost.
    assert bound - charged == state.remaining, (key, bound, charged, state.remaining)
    taken = table.take_up_to(key, driver.BURST, at=now)
    assert taken == state.remaining and not table.check(key, at=now), (key, taken)
