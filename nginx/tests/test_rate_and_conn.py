"""M14: a rate, what is open and a learned limit in one decision. A refusal by `tollbar` or by
`tollbar_conn` takes nothing of the other."""

import json
import threading

import pytest

from harness.client import statuses
from harness.config import CONTENT
from harness.held import END, HOLD, Counting, Held, end, hold
from harness.tollbar import launcher

launch = launcher(Counting)

LEARNED = "tollbar_conn_zone all zone=open:1m adaptive initial=1 least=1 most=1;"
FIXED = "tollbar_conn_zone all zone=open:1m;"
SLOW = f"location /slow {{ tollbar_conn open; {HOLD} }}"
PAGE = "location /json { tollbar_status_page json; }"


def parts(conn=LEARNED, limit="tollbar_conn open;", rate='policy="4/h"', tollbar="tollbar zone=rate;", where=HOLD, more=""):
    return {
        "http": f"tollbar_zone $arg_k zone=rate:1m {rate}; tollbar_zone $arg_k zone=more:1m policy=\"9/h\"; {conn}",
        "server": f"location / {{ {tollbar} {limit} {where} }} {END} {PAGE} {more}",
    }


def ask(nginx, path):
    """The first status of a request, which ends at once if none refuses it."""
    one = Held(nginx.port, path)
    if one.answer() == 100:
        assert one.end() == 200
    return one.status


def learned(nginx):
    (zone,) = json.loads(nginx.get("/json").body)["adaptive"]
    return zone


def ended(nginx):
    nginx.wait_until(lambda: learned(nginx)["in_flight"] == 0, "nothing is open")


@pytest.mark.parametrize("tollbar", ["tollbar zone=rate;", "tollbar zone=rate; tollbar zone=more;", "tollbar zone=rate; tollbar_headers draft;"])
def test_a_refusal_by_the_learned_limit_charges_no_rate(launch, tollbar):
    nginx = launch(**parts(tollbar=tollbar), workers=2)
    # Each of four permits is there after many requests that found the server busy. The rate comes
    # first when both refuse.
    for left in (3, 2, 1, 0):
        held, refused = hold(nginx, "/?k=a", 1)
        assert refused == []
        assert [ask(nginx, "/?k=a") for _ in range(5)] == [503 if left else 429] * 5
        end(held)
        ended(nginx)
    assert ask(nginx, "/?k=a") == 429


def test_a_refusal_by_what_is_open_charges_no_rate(launch):
    nginx = launch(**parts(FIXED, "tollbar_conn open 2;"), workers=2)
    held, refused = hold(nginx, "/?k=a", 3)
    assert len(held) == 2 and refused == [429]
    assert [ask(nginx, "/?k=a") for _ in range(5)] == [429] * 5
    end(held)
    nginx.wait_until(lambda: ask(nginx, "/?k=b") == 100, "nothing is open")
    # Two of four are left.
    got = []
    nginx.wait_until(lambda: got.append(ask(nginx, "/?k=a")) or got.count(100) == 2, "two more of four")
    assert ask(nginx, "/?k=a") == 429
    assert [ask(nginx, "/?k=a") for _ in range(3)] == [429] * 3


def test_a_refusal_by_the_rate_opens_nothing(launch):
    nginx = launch(**parts(), workers=2)
    for _ in range(4):
        assert ask(nginx, "/?k=a") == 100
        ended(nginx)
    before = learned(nginx)
    for n in range(20):
        assert ask(nginx, "/?k=a") == 429
        # Nothing of the refusal is open for the next one, and the limit has learned nothing of it.
        assert learned(nginx)["in_flight"] == 0, n
    assert {**learned(nginx), "in_flight": 0} == {**before, "in_flight": 0}
    assert ask(nginx, "/?k=b") == 100


def test_the_page_of_an_error_is_not_charged(launch):
    more = f"error_page 503 = /busy; location = /busy {{ tollbar zone=rate; return 418; }} {SLOW}"
    nginx = launch(**parts(more=more))
    held, _ = hold(nginx, "/slow", 1)
    assert [ask(nginx, "/?k=a") for _ in range(9)] == [418] * 9
    end(held)
    ended(nginx)
    for _ in range(4):
        assert ask(nginx, "/?k=a") == 100
        ended(nginx)
    assert ask(nginx, "/?k=a") == 429


def test_dry_runs_change_nothing(launch):
    """What would be refused passes, and only what is enforced is charged or counted."""
    nginx = launch(**parts(tollbar="tollbar zone=rate; tollbar_dry_run on;"))
    for _ in range(6):
        held, refused = hold(nginx, "/?k=a", 1)
        assert refused == [] and learned(nginx)["in_flight"] == 1
        assert ask(nginx, "/?k=a") == 503
        end(held)
        ended(nginx)
    assert nginx.reload(**parts(limit="tollbar_conn open; tollbar_conn_dry_run on;"))
    held, refused = hold(nginx, "/?k=b", 5)
    assert len(held) == 4 and refused == [429]
    end(held)


def test_a_delayed_request_is_open_after_its_delay(launch):
    nginx = launch(**parts(rate="rate=2r/s", tollbar="tollbar zone=rate burst=5;", more=SLOW))
    first = Held(nginx.port, "/?k=a")
    assert first.answer() == 100
    assert first.end() == 200
    ended(nginx)
    second = Held(nginx.port, "/?k=a")
    assert learned(nginx)["in_flight"] == 0
    assert second.answer() == 100 and learned(nginx)["in_flight"] == 1
    # It finds the server busy before it is delayed.
    assert ask(nginx, "/?k=c") == 503
    assert second.end() == 200


def test_under_load_exactly_the_limit_passes(launch):
    """Eight clients, three workers: no permit of the rate is lost to a request that found four
    open, and none is admitted twice."""
    rate = {"rate": 'policy="300/h"', "conn": FIXED, "limit": "tollbar_conn open 4;", "where": CONTENT}
    nginx = launch(**parts(**rate), workers=3)
    got, lock, over = [], threading.Lock(), threading.Event()

    def client():
        while not over.is_set():
            found = statuses(nginx.volley("/?k=a", 5))
            with lock:
                got.extend(found)

    threads = [threading.Thread(target=client) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        nginx.wait_until(lambda: got.count(200) >= 300, "the rate is used up")
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert got.count(200) == 300 and set(got) == {200, 429}
