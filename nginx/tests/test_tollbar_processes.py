"""Reloads, new binaries and several workers, for what limit_req has no words."""

import os
import signal

import pytest

from harness import preload
from harness.client import Kept, count, statuses
from harness.config import CONTENT
from harness.server import alive, wait_until
from harness.tollbar import Tollbar, launcher

launch = launcher(Tollbar)


def parts(limit='policy="6/day"', key="$arg_k", size="1m", more=""):
    return {"http": f"tollbar_zone {key} zone=z:{size} {limit};", "server": f"location / {{ tollbar zone=z {more}; {CONTENT} }}"}


RATE = "rate=1r/h burst=5"


@pytest.mark.parametrize("limit, more", [
    (RATE, "nodelay"), ('policy="6/day"', ""), ('policy="6/day algo fixed-window anchor first"', ""),
    ('policy="6/day algo sliding-log"', ""),
])
def test_a_reload_keeps_what_was_spent(launch, limit, more):
    nginx = launch(**parts(limit, more=more), workers=2)
    assert count(nginx.volley("/?k=a", 4)) == 4
    assert nginx.reload()
    assert count(nginx.volley("/?k=a", 9)) == 2
    assert count(nginx.volley("/?k=b", 9)) == 6


@pytest.mark.parametrize("limit, more", [(RATE, "nodelay"), ('policy="6/day"', "")])
@pytest.mark.parametrize("size", ["2m", "512k"])
def test_a_reload_with_another_size_moves_what_was_spent(launch, limit, more, size):
    nginx = launch(**parts(limit, more=more), workers=2)
    assert count(nginx.volley("/?k=a", 4)) == 4
    assert nginx.reload(**parts(limit, size=size, more=more))
    assert count(nginx.volley("/?k=a", 9)) == 2
    assert count(nginx.volley("/?k=b", 9)) == 6


def test_a_reload_with_another_size_starts_anew_where_nothing_can_be_moved(launch):
    limit = 'policy="6/day algo sliding-log"'
    nginx = launch(**parts(limit))
    assert count(nginx.volley("/?k=a", 4)) == 4
    assert nginx.reload(**parts(limit, size="2m"))
    assert count(nginx.volley("/?k=a", 9)) == 6
    assert [level for level, _ in nginx.said('zone "z" starts empty')] == ["warn"]


def test_a_reload_with_another_key_starts_anew(launch):
    nginx = launch(**parts())
    assert count(nginx.volley("/?k=a", 9)) == 6
    assert nginx.reload(**parts(key="$arg_other"))
    assert count(nginx.volley("/?other=a&k=a", 9)) == 6


def test_a_reload_with_another_policy(launch):
    nginx = launch(**parts())
    assert count(nginx.volley("/?k=a", 4)) == 4
    # Four of eight are spent.
    assert nginx.reload(**parts('policy="8/day"'))
    assert count(nginx.volley("/?k=a", 9)) == 4
    assert nginx.reload(**parts(RATE, more="nodelay"))
    assert count(nginx.volley("/?k=b", 9)) == 6


@pytest.mark.parametrize("limit", ['policy="100/day"', "rate=1r/h burst=99"])
def test_a_worker_takes_permits_of_hot_keys_in_advance(launch, limit):
    """What a worker has in advance ends with it: of two that have some, after a reload with the
    option and one without."""
    nginx = launch(**parts(f"{limit} hot_keys=64", more="" if "policy" in limit else "nodelay"))
    passed = count(nginx.volley("/?k=a", 3))
    assert passed == 3 and nginx.reload()
    passed += count(nginx.volley("/?k=a", 3))
    assert passed == 6 and nginx.reload(**parts(limit, more="" if "policy" in limit else "nodelay"))
    passed += count(nginx.volley("/?k=a", 120))
    assert 88 <= passed <= 98, passed
    # Without the option every permit is used.
    assert count(nginx.volley("/?k=b", 3)) == 3 and nginx.reload()
    assert count(nginx.volley("/?k=b", 120)) == 97


def test_a_reload_with_another_way_to_be_full(launch):
    nginx = launch(**parts())
    assert count(nginx.volley("/?k=a", 4)) == 4
    assert nginx.reload(**parts('policy="6/day" on_full=deny'))
    assert count(nginx.volley("/?k=a", 9)) == 2


@pytest.mark.parametrize("size", ["1m", "2m"])
def test_reloads_after_one_that_gave_the_zone_new_memory(launch, size):
    nginx = launch(**parts())
    assert count(nginx.volley("/?k=a", 4)) == 4
    assert nginx.reload(**parts('policy="8/day"', size=size))
    for _ in range(3):
        # The master looks at all zones when a worker has ended.
        assert nginx.reload()
        nginx.kill_worker()
    assert count(nginx.volley("/?k=a", 9)) == 4


def zones_mapped(nginx):
    with open(f"/proc/{nginx.master()}/maps") as maps:
        return sum("/dev/zero" in line for line in maps)


def test_memory_that_is_not_used_again_is_given_back(launch):
    nginx = launch(**parts())
    before = zones_mapped(nginx)
    assert before > 0
    for n in range(7, 12):
        assert nginx.reload(**parts(f'policy="{n}/day"'))
    assert zones_mapped(nginx) == before


def test_a_reload_that_is_refused_leaves_everything_as_it_was(launch):
    nginx = launch(**parts())
    assert count(nginx.volley("/?k=a", 4)) == 4
    nginx.expected.append("invalid policy")
    assert not nginx.reload(**parts('policy="6/dya"'))
    assert count(nginx.volley("/?k=a", 9)) == 2


def test_requests_that_wait_outlive_a_reload(launch):
    nginx = launch(**parts("rate=1r/s burst=9"))
    nginx.get("/?k=a")
    with Kept(nginx.port) as kept:
        kept.send("/?k=a")
        wait_until(lambda: nginx.said("delaying request"), "the request is delayed")
        assert nginx.reload()
        assert kept.read().status == 200


def test_workers_share_what_is_left(launch):
    # With `reuseport` the kernel deals the connections out.
    nginx = launch(**parts(), workers=2, listen="reuseport")
    for k in range(40):
        assert count(nginx.volley(f"/?k={k}", 12)) == 6
    served = {line.split("#")[0].rpartition(" ")[2] for line in nginx.log_text().splitlines() if "limiting requests" in line}
    assert len(served) == 2, "one worker has served all"


def test_a_killed_worker_takes_nothing_with_it(launch):
    nginx = launch(**parts(), workers=2)
    assert count(nginx.volley("/?k=a", 4)) == 4
    for pid in nginx.workers():
        nginx.kill_worker(pid)
    assert count(nginx.volley("/?k=a", 9)) == 2


def test_a_new_binary_takes_over(launch):
    nginx = launch(**parts("rate=$arg_rate burst=5", more="nodelay"), workers=2, daemon=True)
    assert count(nginx.volley("/?k=a&rate=1r/h", 4)) == 4
    old, new = nginx.exchange_binary()
    os.kill(old, signal.SIGQUIT)
    wait_until(lambda: not alive(old), "the old master is gone")
    assert nginx.master() == new
    assert count(nginx.volley("/?k=b&rate=1r/h", 9)) == 6
    assert nginx.reload()
    assert statuses(nginx.each("/?k=b&rate=1r/h", "/?k=c&rate=1r/h")) == [429, 200]


def test_a_new_binary_takes_over_from_a_daemon_whose_parent_ends_late(launch, tmp_path):
    """nginx ignores SIGUSR2 for so long, and says so as [crit]. A test that exchanges the binary
    must not meet that."""
    nginx = launch(**parts(), daemon=True, wrapper=preload.wrapper(preload.library(tmp_path, "slow_end")))
    old, new = nginx.exchange_binary()
    assert old != new and nginx.get("/?k=a").status == 200
