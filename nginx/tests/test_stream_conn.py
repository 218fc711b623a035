"""tollbar_conn for stream: how many connections a key may have at one time."""

import os
import random
import signal
import time

import pytest

from harness.server import check, wait_until
from harness.streams import MODULE, echo, launch, text  # noqa: F401

ZONE = "tollbar_conn_zone $remote_addr zone=z:1m;"


def stream(echo, limit, zone=ZONE):
    return f"{zone} server {{ listen 127.0.0.1:@PORT1@ reuseport; {limit} proxy_pass 127.0.0.1:{echo.port}; }}"


def open_all(nginx, count):
    """(those that are let through, how many are not)."""
    several = [nginx.open() for _ in range(count)]
    there = [one for one in several if one.passed()]
    return there, count - len(there)


def close_all(several):
    for one in several:
        one.close()


def room(nginx, limit):
    there, _ = open_all(nginx, limit + 3)
    close_all(there)
    return len(there)


def wait_for_room(nginx, limit):
    wait_until(lambda: room(nginx, limit) == limit, f"there is room for {limit}")


@pytest.mark.parametrize("workers", [1, 2])
def test_as_many_as_the_limit(launch, echo, workers):
    nginx = launch(stream(echo, "tollbar_conn z 4;"), workers=workers)
    there, refused = open_all(nginx, 9)
    assert len(there) == 4 and refused == 5
    # Admitted connections stay usable.
    assert all(one.passed(b"still here") for one in there)
    close_all(there[:2])
    wait_for_room(nginx, 2)
    close_all(there[2:])
    wait_for_room(nginx, 4)
    assert echo.taken >= 4


def test_the_variable_and_the_line_in_the_log(launch, echo):
    nginx = launch(stream(echo, "tollbar_conn z 1; tollbar_conn_log_level warn;"))
    there, _ = open_all(nginx, 2)
    close_all(there)
    assert sorted(nginx.logged(2)) == ["200 [-] [PASSED]", "503 [-] [REJECTED]"]
    [(level, line)] = nginx.said("limiting connections")
    assert level == "warn" and line.startswith('limiting connections by zone "z" while initializing session, client: 127.0.0.1')


def test_a_dry_run(launch, echo):
    nginx = launch(stream(echo, "tollbar_conn z 1; tollbar_conn_dry_run on;"))
    there, refused = open_all(nginx, 3)
    assert refused == 0
    close_all(there)
    assert sorted(nginx.logged(3)) == ["200 [-] [PASSED]"] + ["200 [-] [REJECTED_DRY_RUN]"] * 2
    assert len(nginx.said('limiting connections, dry run, by zone "z"')) == 2


def test_several_limits_are_all_or_none(launch, echo):
    zones = ZONE + 'tollbar_conn_zone "all" zone=all:1m;'
    nginx = launch(stream(echo, "tollbar_conn z 5; tollbar_conn all 2;", zones))
    there, refused = open_all(nginx, 6)
    assert len(there) == 2 and refused == 4
    # The four are not counted by `z`.
    assert nginx.reload(stream=stream(echo, "tollbar_conn z 5;", zones))
    wait_for_room(nginx, 3)
    close_all(there)


def test_a_connection_that_a_rate_delays_is_not_among_them_yet(launch, echo):
    zones = ZONE + "tollbar_zone $remote_addr zone=r:1m rate=12r/m;"
    nginx = launch(stream(echo, "tollbar zone=r burst=5; tollbar_conn z 1;", zones))
    there, _ = open_all(nginx, 1)
    close_all(there)
    waiting = nginx.open()
    wait_until(lambda: nginx.said("delaying"), "it waits")
    assert nginx.reload(stream=stream(echo, "tollbar_conn z 1;", zones))
    assert room(nginx, 1) == 1
    # The old worker admits the delayed connection, and from then on it counts.
    assert waiting.passed() and room(nginx, 1) == 0
    waiting.close()
    wait_for_room(nginx, 1)


def test_reloads_go_on_counting(launch, echo):
    nginx = launch(stream(echo, "tollbar_conn z 4;"), workers=2)
    there = []
    for n in range(4):
        there += open_all(nginx, 1)[0]
        assert len(there) == n + 1
        assert nginx.reload()
    assert room(nginx, 4) == 0
    close_all(there)
    wait_for_room(nginx, 4)


def test_killed_workers_take_their_connections_with_them(launch, echo):
    nginx = launch(stream(echo, "tollbar_conn z 4;"), workers=2)
    chance = random.Random(1)
    for _ in range(20):
        there, _ = open_all(nginx, chance.randint(1, 6))
        os.kill(chance.choice(nginx.workers()), signal.SIGKILL)
        time.sleep(chance.uniform(0, 0.03))
        wait_until(lambda: len(nginx.workers()) == 2, "both workers are back")
        close_all(there)
    nginx.expected.append("worker process")
    wait_for_room(nginx, 4)
    assert nginx.reload()
    assert room(nginx, 4) == 4
