"""Reloads, new binaries and workers that die: what is kept, and that service goes on."""

import os
import signal
import threading

from harness.client import connect, count, request, statuses
from harness.config import CONTENT
from harness.server import alive, wait_until

SLOW = "limit_req_zone $arg_k zone=z:1m rate=1r/m;"


def parts(limit="limit_req zone=z burst=5 nodelay;", zone=SLOW):
    return {"http": zone, "server": f"location / {{ {limit} {CONTENT} }}"}


def test_a_reload_keeps_what_was_spent(launch):
    nginx = launch(**parts())
    assert count(nginx.volley("/?k=a", 4)) == 4
    assert nginx.reload()
    assert count(nginx.volley("/?k=a", 9)) == 2
    assert count(nginx.volley("/?k=b", 9)) == 6


def test_many_reloads_keep_what_was_spent(launch):
    nginx = launch(**parts(), workers=2)
    for _ in range(6):
        assert nginx.get("/?k=a").status == 200
        assert nginx.reload()
    assert nginx.get("/?k=a").status == 503


def test_a_reload_with_another_burst(launch):
    nginx = launch(**parts())
    assert count(nginx.volley("/?k=a", 9)) == 6
    assert nginx.reload(**parts("limit_req zone=z burst=8 nodelay;"))
    assert count(nginx.volley("/?k=a", 9)) == 3
    assert nginx.reload(**parts("limit_req zone=z burst=2 nodelay;"))
    assert count(nginx.volley("/?k=a", 9)) == 0
    assert count(nginx.volley("/?k=b", 9)) == 3


def test_a_reload_with_another_rate(launch):
    nginx = launch(**parts())
    assert count(nginx.volley("/?k=a", 9)) == 6
    assert nginx.reload(**parts(zone="limit_req_zone $arg_k zone=z:1m rate=100r/s;"))
    # The debt is repaid at the new rate: six permits in 60 ms instead of six minutes.
    wait_until(lambda: nginx.get("/?k=a").status == 200, "the new rate is in force", 10)
    assert nginx.reload(**parts())
    wait_until(lambda: nginx.get("/?k=a").status == 503, "the old rate is in force", 10)


def test_a_reload_with_another_size_begins_anew(launch, flavour):
    nginx = launch(**parts())
    assert count(nginx.volley("/?k=a", 4)) == 4
    assert nginx.reload(**parts(zone=SLOW.replace("1m", "2m", 1)))
    admitted = count(nginx.volley("/?k=a", 9))
    # The drop-in may carry over the debt of four permits; then two are left.
    assert admitted in ({"stock": [6], "dropin": [6, 2]}[flavour])
    assert count(nginx.volley("/?k=b", 9)) == 6


def test_a_reload_with_another_key(launch, flavour):
    nginx = launch(**parts())
    nginx.get("/?k=a")
    workers = nginx.workers()
    nginx.expected.append('limit_req "z" uses')
    taken = nginx.reload(**parts(zone=SLOW.replace("$arg_k", "$arg_other")))
    if flavour == "dropin" and taken:
        # The stock module refuses another key for a zone. The drop-in may accept it and begin with
        # an empty zone.
        assert count(nginx.volley("/?other=a", 9)) == 6
        return
    assert not taken
    [(level, message)] = nginx.said('limit_req "z" uses')
    assert (level, message) == (
        "emerg", 'limit_req "z" uses the "$arg_other" key while previously it used the "$arg_k" key')
    assert nginx.workers() == workers
    assert count(nginx.volley("/?k=a", 9)) == 5


def test_a_reload_that_is_refused_leaves_everything_as_it_was(launch):
    nginx = launch(**parts())
    assert count(nginx.volley("/?k=a", 4)) == 4
    nginx.expected.append("invalid burst value")
    assert not nginx.reload(**parts("limit_req zone=z burst=0;"))
    assert count(nginx.volley("/?k=a", 9)) == 2
    assert nginx.reload(**parts())
    assert nginx.get("/?k=a").status == 503


def test_zones_come_and_go(launch):
    nginx = launch(**parts())
    assert count(nginx.volley("/?k=a", 9)) == 6
    assert nginx.reload(http="", server=f"location / {{ {CONTENT} }}")
    assert count(nginx.volley("/?k=a", 9)) == 9
    assert nginx.reload(**parts())
    assert count(nginx.volley("/?k=a", 9)) == 6


def test_requests_during_reloads_are_all_answered(launch):
    nginx = launch(**parts("limit_req zone=z burst=9 nodelay;"), workers=2)
    found, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            found.append(nginx.get(f"/?k=key{len(found)}").status)

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        for _ in range(5):
            assert nginx.reload()
    finally:
        stop.set()
        asker.join()
    assert len(found) > 10 and set(found) == {200}


def test_a_killed_worker_takes_nothing_with_it(launch):
    nginx = launch(**parts(), workers=2)
    assert count(nginx.volley("/?k=a", 4)) == 4
    for pid in nginx.workers():
        nginx.kill_worker(pid)
    assert count(nginx.volley("/?k=a", 9)) == 2
    assert count(nginx.volley("/?k=b", 9)) == 6


def test_a_worker_killed_while_a_request_waits(launch):
    nginx = launch(**parts("limit_req zone=z burst=5;"))
    nginx.get("/?k=a")
    waiting = connect(nginx.port)
    waiting.sendall(request("/?k=a"))
    wait_until(lambda: nginx.said("delaying"), "the request is delayed")
    nginx.kill_worker()
    assert waiting.recv(1) == b""
    waiting.close()
    assert nginx.get("/?k=b").status == 200


def test_a_new_binary_takes_over(launch):
    nginx = launch(**parts(), workers=2, daemon=True)
    assert count(nginx.volley("/?k=a", 4)) == 4
    old, new = nginx.exchange_binary()
    # Both serve; each has its memory to itself.
    assert statuses(nginx.each(*[f"/?k=x{i}" for i in range(20)])) == [200] * 20
    os.kill(old, signal.SIGWINCH)
    wait_until(lambda: not nginx.workers(old), "the old workers are gone")
    assert count(nginx.volley("/?k=b", 9)) == 6
    os.kill(old, signal.SIGQUIT)
    wait_until(lambda: not alive(old), "the old master is gone")
    assert nginx.master() == new
    assert count(nginx.volley("/?k=c", 9)) == 6
    assert nginx.reload()
    assert nginx.get("/?k=c").status == 503


def test_back_to_the_old_binary(launch):
    nginx = launch(**parts(), daemon=True)
    assert count(nginx.volley("/?k=a", 4)) == 4
    old, new = nginx.exchange_binary()
    os.kill(old, signal.SIGWINCH)
    wait_until(lambda: not nginx.workers(old), "the old workers are gone")
    os.kill(old, signal.SIGHUP)
    wait_until(lambda: nginx.workers(old), "the old master serves again")
    os.kill(new, signal.SIGQUIT)
    wait_until(lambda: nginx.master() == old, "the new master is gone")
    # The old master's zone has kept the debt.
    wait_until(lambda: not nginx.workers(new), "the new workers are gone")
    assert count(nginx.volley("/?k=a", 9)) == 2


def test_it_ends_when_it_is_told_to(launch):
    nginx = launch(**parts("limit_req zone=z burst=5;"), workers=2)
    nginx.each("/?k=a", "/?k=b")
    os.kill(nginx.master(), signal.SIGQUIT)
    assert nginx.process.wait(60) == 0


def test_one_process_without_a_master(launch):
    nginx = launch(**parts(), main="master_process off;")
    assert count(nginx.volley("/?k=a", 9)) == 6
