"""tollbar for stream: how fast new connections may come."""

import os
import re
import signal

import pytest

from harness.edges import again_if_late
from harness.server import check, title_of, wait_until
from harness.streams import MODULE, echo, launch, text  # noqa: F401

SLOW = "tollbar_zone $remote_addr zone=z:1m rate=1r/m;"


def stream(echo, limit, zone=SLOW, more=""):
    return f"{zone} server {{ listen 127.0.0.1:@PORT1@; {limit} proxy_pass 127.0.0.1:{echo.port}; }} {more}"


def passed(nginx, count):
    """Which of so many connections, one after the other, nginx lets through."""
    found = []
    for _ in range(count):
        one = nginx.open()
        found.append(one.passed())
        one.close()
    return found


def test_a_burst_and_no_more(launch, echo):
    nginx = launch(stream(echo, "tollbar zone=z burst=3 nodelay;"), workers=2)
    assert passed(nginx, 7) == [True] * 4 + [False] * 3
    # A refused connection never reaches the server.
    assert echo.taken == 4
    assert sorted(nginx.logged(7)) == ["200 [PASSED] [-]"] * 4 + ["503 [REJECTED] [-]"] * 3


def test_without_a_burst(launch, echo):
    nginx = launch(stream(echo, "tollbar zone=z;"))
    assert passed(nginx, 3) == [True, False, False]


def test_what_has_been_paid_for_comes_back(launch, echo):
    nginx = launch(stream(echo, "tollbar zone=z;", SLOW.replace("1r/m", "5r/s")))
    assert passed(nginx, 1) == [True]
    wait_until(lambda: passed(nginx, 1) == [True], "a fifth of a second is over", 10)


@again_if_late(0.3)
def test_delays(launch, echo):
    # One in 300 ms.
    nginx = launch(stream(echo, "tollbar zone=z burst=3;", SLOW.replace("1r/m", "10r/3s")))
    several = [nginx.open() for _ in range(4)]
    assert all(one.passed() for one in several)
    took = sorted(one.begun + one.took - several[0].begun for one in several)
    for n in range(4):
        assert 0.3 * n - 0.05 < took[n], took
    assert took[3] < 5
    for one in several:
        one.close()
    assert sorted(nginx.logged(4)) == ["200 [DELAYED] [-]"] * 3 + ["200 [PASSED] [-]"]
    assert [level for level, _ in nginx.said("delaying connection, excess: ")] == ["warn"] * 3


@again_if_late(1)
def test_a_part_is_delayed(launch, echo):
    nginx = launch(stream(echo, "tollbar zone=z burst=4 delay=2;", SLOW.replace("1r/m", "1r/s")))
    several = [nginx.open() for _ in range(5)]
    assert all(one.passed() for one in several)
    assert sorted(nginx_lines(several, nginx)) == ["200 [DELAYED] [-]"] * 2 + ["200 [PASSED] [-]"] * 3


def nginx_lines(several, nginx):
    for one in several:
        one.close()
    return nginx.logged(len(several))


def test_data_that_comes_during_a_delay_is_passed_on(launch, echo):
    nginx = launch(stream(echo, "tollbar zone=z burst=3;", SLOW.replace("1r/m", "1r/s")))
    assert passed(nginx, 1) == [True]
    one = nginx.open()
    one.socket.sendall(b"a" * 10)
    wait_until(lambda: nginx.said("delaying connection"), "it is delayed")
    one.socket.sendall(b"b" * 10)
    found = b""
    while len(found) < 20:
        piece = one.socket.recv(100)
        assert piece
        found += piece
    assert found == b"a" * 10 + b"b" * 10
    one.close()


def test_a_client_that_goes_away_during_its_delay(launch, echo):
    nginx = launch(stream(echo, "tollbar zone=z burst=9;", SLOW.replace("1r/m", "2r/s")))
    several = [nginx.open() for _ in range(4)]
    wait_until(lambda: len(nginx.said("delaying connection")) == 3, "they are delayed")
    for one in several:
        one.close()
    assert len(nginx.logged(4)) == 4
    wait_until(lambda: passed(nginx, 1) == [True], "nginx serves on")


def test_a_worker_that_may_not_wait_for_a_delay(launch, echo):
    nginx = launch(stream(echo, "tollbar zone=z burst=9;"), main="worker_shutdown_timeout 1s;")
    assert passed(nginx, 1) == [True]
    one = nginx.open()
    wait_until(lambda: nginx.said("delaying connection"), "it is delayed")
    assert nginx.reload()
    assert one.passed() is False
    wait_until(lambda: not [p for p in nginx.children("nginx: worker process") if "shutting" in title_of(p)], "the old worker is gone")


def test_a_worker_that_is_told_to_stop_during_a_delay(launch, echo):
    nginx = launch(stream(echo, "tollbar zone=z burst=9;"))
    assert passed(nginx, 1) == [True]
    one = nginx.open()
    wait_until(lambda: nginx.said("delaying connection"), "it is delayed")
    os.kill(nginx.master(), signal.SIGTERM)
    assert nginx.process.wait(60) == 0
    assert one.passed() is False


@again_if_late(1)
def test_delay_after_a_proxy_protocol_header(launch, echo):
    zone = "tollbar_zone $proxy_protocol_addr zone=z:1m rate=1r/s;"
    nginx = launch(stream(echo, "tollbar zone=z burst=2;", zone).replace("@PORT1@;", "@PORT1@ proxy_protocol;"))
    several = [nginx.open() for _ in range(4)]
    for one in several:
        one.socket.sendall(b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n")
    # Data from the client wakes a delayed connection, but does not end its delay.
    found = [one.passed() for one in several]
    assert found.count(True) == 3
    assert sorted(nginx_lines(several, nginx)) == ["200 [DELAYED] [-]"] * 2 + ["200 [PASSED] [-]", "503 [REJECTED] [-]"]


def test_several_limits(launch, echo):
    zones = SLOW + 'tollbar_zone "all" zone=all:1m rate=1r/m;'
    nginx = launch(stream(echo, "tollbar zone=z burst=5 nodelay; tollbar zone=all burst=2 nodelay;", zones))
    assert passed(nginx, 5) == [True] * 3 + [False] * 2
    # A connection that `all` refused was not charged to `z`.
    assert nginx.reload(stream=stream(echo, "tollbar zone=z burst=5 nodelay;", zones))
    assert passed(nginx, 5) == [True] * 3 + [False] * 2


def test_a_smaller_burst_of_the_same_zone(launch, echo):
    # No client uses the second server. It gives the zone a larger burst elsewhere.
    more = f"server {{ listen unix:larger.sock; tollbar zone=z burst=5 nodelay; proxy_pass 127.0.0.1:{echo.port}; }}"
    nginx = launch(stream(echo, "tollbar zone=z burst=2 nodelay;", more=more))
    assert passed(nginx, 5) == [True] * 3 + [False] * 2


def test_an_empty_key_is_not_limited(launch, echo):
    nginx = launch(stream(echo, "tollbar zone=z;", "map $remote_port $none { default ''; } tollbar_zone $none zone=z:1m rate=1r/m;"))
    assert passed(nginx, 3) == [True] * 3
    assert nginx.logged(3) == ["200 [-] [-]"] * 3


def test_a_reload_keeps_what_was_spent(launch, echo):
    nginx = launch(stream(echo, "tollbar zone=z burst=3 nodelay;"))
    assert passed(nginx, 2) == [True] * 2
    assert nginx.reload()
    assert passed(nginx, 3) == [True, True, False]


def test_killed_workers_leave_the_keys_as_they_were(launch, echo):
    nginx = launch(stream(echo, "tollbar zone=z burst=3 nodelay;"), workers=2)
    assert passed(nginx, 2) == [True] * 2
    for pid in nginx.workers():
        nginx.kill_worker(pid)
    assert passed(nginx, 3) == [True, True, False]


@pytest.mark.parametrize("directive, refused, delayed", [
    ("", "error", "warn"), ("tollbar_log_level notice;", "notice", "info"), ("tollbar_log_level info;", "info", "info"),
])
def test_the_lines_in_the_log(launch, echo, directive, refused, delayed):
    nginx = launch(stream(echo, f"tollbar zone=z burst=1; {directive} tollbar_dry_run on;"))
    assert passed(nginx, 3) == [True] * 3
    [(level, line)] = nginx.said("limiting new connections")
    assert level == refused
    assert re.match(r'limiting new connections, dry run, excess: \d\.\d{3} by zone "z"', line)
    [(level, line)] = nginx.said("delaying connection")
    assert level == delayed
    assert re.match(r'delaying connection, dry run, excess: \d\.\d{3}, by zone "z"', line)
    assert sorted(nginx.logged(3)) == ["200 [DELAYED_DRY_RUN] [-]", "200 [PASSED] [-]", "200 [REJECTED_DRY_RUN] [-]"]
