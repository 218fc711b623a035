"""Requests are counted across reloads, and not any more when the worker that had them is gone."""

import os
import signal
import time

from harness.held import END, HOLD, Counting, Held, end, hold, room, wait_for_room
from harness.server import PATIENCE, alive, title_of, wait_until
from harness.tollbar import launcher
from storm_conn import storm

launch = launcher(Counting)

ZONE = "tollbar_conn_zone $arg_k zone=z:1m;"


def parts(limit="tollbar_conn z 5;", zone=ZONE):
    return {"http": zone, "server": f"location / {{ {limit} {HOLD} }} {END}"}


def leaving(nginx):
    return [pid for pid in nginx.children("nginx: worker process") if "shutting down" in title_of(pid)]


def test_a_reload_goes_on_counting(launch):
    nginx = launch(**parts(), workers=2)
    old, _ = hold(nginx, "/?k=a", 3)
    assert nginx.reload()
    new, refused = hold(nginx, "/?k=a", 4)
    assert len(new) == 2 and refused == [429] * 2
    # The requests of the old workers end and free their permits.
    end(old)
    wait_for_room(nginx, "/?k=a", 3)
    end(new)
    wait_for_room(nginx, "/?k=a", 5)
    wait_until(lambda: not leaving(nginx), "the old workers are gone")
    wait_for_room(nginx, "/?k=a", 5)


def test_many_reloads_while_a_request_goes_on(launch):
    nginx = launch(**parts(), workers=2)
    held = []
    for n in range(5):
        held += hold(nginx, "/?k=a", 1)[0]
        assert len(held) == n + 1
        assert nginx.reload()
    assert room(nginx, "/?k=a", 5) == 0
    end(held)
    wait_for_room(nginx, "/?k=a", 5)


def test_a_reload_with_another_limit(launch):
    nginx = launch(**parts())
    held, _ = hold(nginx, "/?k=a", 5)
    assert nginx.reload(**parts("tollbar_conn z 7;"))
    assert room(nginx, "/?k=a", 7) == 2
    assert nginx.reload(**parts("tollbar_conn z 2;"))
    assert room(nginx, "/?k=a", 2) == 0
    end(held[:4])
    wait_for_room(nginx, "/?k=a", 1)
    end(held[4:])


def test_a_reload_with_another_size_begins_anew(launch):
    nginx = launch(**parts())
    held, _ = hold(nginx, "/?k=a", 5)
    assert nginx.reload(**parts(zone=ZONE.replace("1m", "2m")))
    assert room(nginx, "/?k=a", 5) == 5
    end(held)
    assert room(nginx, "/?k=a", 5) == 5


def test_a_reload_with_another_key_counts_apart(launch):
    nginx = launch(**parts())
    held, _ = hold(nginx, "/?k=a&j=a", 5)
    assert nginx.reload(**parts(zone=ZONE.replace("arg_k", "arg_j")))
    assert room(nginx, "/?k=a&j=a", 5) == 5
    # Under the first key again, the five requests still count.
    assert nginx.reload(**parts())
    assert room(nginx, "/?k=a&j=a", 5) == 0
    end(held)
    wait_for_room(nginx, "/?k=a&j=a", 5)


def test_a_reload_with_more_workers(launch):
    nginx = launch(**parts(), workers=1)
    held, _ = hold(nginx, "/?k=a", 3)
    assert nginx.reload(workers=4)
    assert room(nginx, "/?k=a", 5) == 2
    end(held)


def test_a_killed_worker_takes_its_requests_with_it(launch):
    nginx = launch(**parts())
    for _ in range(3):
        held, _ = hold(nginx, "/?k=a", 6)
        assert len(held) == 5
        nginx.kill_worker()
        # At once: a client that comes in the same instant has room.
        assert room(nginx, "/?k=a", 5) == 5


def test_an_old_worker_that_is_killed_while_it_waits_for_its_requests(launch):
    nginx = launch(**parts())
    held, _ = hold(nginx, "/?k=a", 4)
    assert nginx.reload()
    assert room(nginx, "/?k=a", 5) == 1
    # The master starts no worker in place of an old one.
    [old] = leaving(nginx)
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f"/proc/{old}"), "the old worker is gone, and its parent knows")
    assert room(nginx, "/?k=a", 5) == 5
    for one in held:
        one.drop()


def test_a_worker_that_is_stopped_keeps_nobody_waiting(launch):
    nginx = launch(**parts(), workers=2, listen="reuseport")
    held, _ = hold(nginx, "/?k=a", 5)
    stopped = nginx.workers()[0]
    os.kill(stopped, signal.SIGSTOP)
    try:
        # The other worker answers. The stopped worker's requests still count.
        answered, asked, end_of_patience = [], 0, time.monotonic() + PATIENCE
        while asked < 20 or not answered and time.monotonic() < end_of_patience:
            asked += 1
            from_here = hold_some(nginx, "/?k=a")
            if from_here is not None:
                answered.append(from_here)
        assert answered and set(answered) == {429}
    finally:
        os.kill(stopped, signal.SIGCONT)
    end(held)
    wait_for_room(nginx, "/?k=a", 5)


def hold_some(nginx, path):
    """What one request is answered, or None if it has come to the worker that is stopped."""
    one = Held(nginx.port, path)
    one.socket.settimeout(0.3)
    try:
        return one.answer()
    except TimeoutError:
        one.drop()
        return None


def test_it_ends_when_its_requests_have_ended(launch):
    nginx = launch(**parts(), workers=2)
    held, _ = hold(nginx, "/?k=a", 5)
    os.kill(nginx.master(), signal.SIGQUIT)
    wait_until(lambda: leaving(nginx), "the workers wait")
    wait_until(lambda: not nginx.accepts(), "none of them takes a connection any more")
    end_without_upstream(held)
    assert nginx.process.wait(60) == 0


def end_without_upstream(held):
    # The old nginx no longer listens, so its request to itself fails with 502.
    for one in held:
        assert one.end() == 502


def test_a_worker_that_may_not_wait_any_longer(launch):
    nginx = launch(**parts(), main="worker_shutdown_timeout 15s;")
    held, _ = hold(nginx, "/?k=a", 4)
    assert nginx.reload()
    assert room(nginx, "/?k=a", 5) == 1
    wait_until(lambda: not leaving(nginx), "the old worker is gone")
    assert room(nginx, "/?k=a", 5) == 5
    for one in held:
        one.drop()


def test_a_new_binary_counts_for_itself(launch):
    nginx = launch(**parts(), daemon=True)
    held, _ = hold(nginx, "/?k=a", 5)
    old, _ = nginx.exchange_binary()
    os.kill(old, signal.SIGWINCH)
    wait_until(lambda: not nginx.workers(old), "the old workers serve nobody new")
    assert room(nginx, "/?k=a", 5) == 5
    end(held)
    os.kill(old, signal.SIGQUIT)
    wait_until(lambda: not alive(old), "the old master is gone")
    assert room(nginx, "/?k=a", 5) == 5


def test_one_process_without_a_master(launch):
    nginx = launch(**parts(), main="master_process off;")
    held, refused = hold(nginx, "/?k=a", 7)
    assert len(held) == 5 and len(refused) == 2
    end(held)
    wait_for_room(nginx, "/?k=a", 5)


def test_a_storm(tmp_path):
    damage = storm(tmp_path / "nginx", "tollbar", 20)
    assert damage.let_in > 100
    assert not damage.any(), damage
