"""How many of the requests that come at once are let through."""

import time

import pytest

from harness.client import Kept, count, statuses, volley
from harness.config import CONTENT

# Slow enough that nothing is earned back while a test runs, on however slow a machine: one a
# minute.
SLOW = "limit_req_zone $arg_k zone=z:1m rate=1r/m;"


def one(limit, zone=SLOW):
    return {"http": zone, "server": f"location / {{ {limit} {CONTENT} }}"}


@pytest.mark.parametrize("limit, admitted", [
    ("limit_req zone=z;", 1),
    ("limit_req zone=z nodelay;", 1),
    ("limit_req zone=z burst=1 nodelay;", 2),
    ("limit_req zone=z burst=7 nodelay;", 8),
    ("limit_req nodelay burst=7 zone=z;", 8),
    ("limit_req zone=z burst=7 delay=7;", 8),
    ("limit_req zone=z burst=4 delay=100;", 5),
    ("limit_req zone=z burst=30 nodelay;", 20),
])
def test_of_a_volley_as_many_pass_as_the_burst_and_one(launch, limit, admitted):
    nginx = launch(**one(limit))
    answers = nginx.volley("/?k=a", 20)
    assert (count(answers), count(answers, 503)) == (admitted, 20 - admitted)


def test_the_refused_are_the_last(launch):
    nginx = launch(**one("limit_req zone=z burst=2 nodelay;"))
    assert statuses(nginx.each(*["/?k=a"] * 5)) == [200, 200, 200, 503, 503]


def test_budget_comes_back_with_time(launch):
    # Two requests a second and a burst of 3: all four are there again after 2 s.
    nginx = launch(**one("limit_req zone=z burst=3 nodelay;", "limit_req_zone $arg_k zone=z:1m rate=2r/s;"))
    first = nginx.volley("/?k=a", 10)
    # Not more than were earned between the first that was sent and the last that was answered.
    assert 4 <= count(first) <= 5 + 2 * spread(first)
    time.sleep(2.2)
    again = nginx.volley("/?k=a", 10)
    assert 4 <= count(again) <= 5 + 2 * spread(again)


def test_more_is_not_saved_up_than_the_burst(launch):
    nginx = launch(**one("limit_req zone=z burst=2 nodelay;", "limit_req_zone $arg_k zone=z:1m rate=20r/s;"))
    assert nginx.get("/?k=a").status == 200
    time.sleep(1.5)
    # In that time the rate gives thirty permits, and the key keeps three.
    answers = nginx.volley("/?k=a", 25)
    assert 3 <= count(answers) <= 4 + 20 * spread(answers)
    assert spread(answers) > 0.9 or count(answers, 503) > 0


@pytest.mark.parametrize("rate, seconds", [("1r/s", 1.0), ("60r/m", 1.0), ("30r/m", 2.0), ("2r/s", 0.5)])
def test_the_rate_is_what_it_says(launch, rate, seconds):
    """Asked all the time, requests pass one period after another: what is refused costs nothing."""
    nginx = launch(**one("limit_req zone=z;", f"limit_req_zone $arg_k zone=z:1m rate={rate};"))
    # A busy machine may delay the client's requests, and then it tries again. Half of the rate
    # would take 4 periods.
    for n in range(5):
        passed = []
        while len(passed) < 3:
            answer = nginx.get(f"/?k={n}")
            if answer.status == 200:
                passed.append(answer)
            time.sleep(0.005)
        # A millisecond's rounding on either side, and the rest for what passes between nginx's
        # clock and ours.
        assert passed[-1].done - passed[0].sent > 2 * seconds - 0.05
        if passed[-1].sent - passed[0].done < 3 * seconds:
            break
    else:
        raise AssertionError(f"three requests passed in {passed[-1].sent - passed[0].done} s")


def test_a_rate_without_a_unit_is_a_second(launch):
    nginx = launch(**one("limit_req zone=z burst=1 nodelay;", "limit_req_zone $arg_k zone=z:1m rate=1;"))
    answers = nginx.volley("/?k=a", 6)
    assert 2 <= count(answers) <= 3 + spread(answers)
    time.sleep(1.1)
    assert nginx.get("/?k=a").status == 200


def test_requests_over_one_kept_connection(launch):
    nginx = launch(**one("limit_req zone=z burst=3 nodelay;"))
    with Kept(nginx.port) as kept:
        found = []
        for _ in range(6):
            kept.send("/?k=a")
            found.append(kept.read().status)
    assert found == [200] * 4 + [503] * 2


def test_requests_sent_in_one_piece(launch):
    nginx = launch(**one("limit_req zone=z burst=3 nodelay;"))
    with Kept(nginx.port) as kept:
        kept.send(*["/?k=a"] * 6, "/?k=b")
        assert [kept.read().status for _ in range(7)] == [200] * 4 + [503] * 2 + [200]


def test_two_workers_share_one_budget(launch):
    # With `reuseport` the kernel deals the connections out, so that both workers have some.
    parts = one("limit_req zone=z burst=9 nodelay; add_header X-Pid $pid always;")
    nginx = launch(**parts, workers=2, listen="reuseport")
    answers = nginx.volley("/?k=a", 60)
    assert len({a.headers["x-pid"] for a in answers}) == 2
    assert (count(answers), count(answers, 503)) == (10, 50)


def test_two_locations_on_one_zone_share_its_keys_with_bursts_of_their_own(launch):
    nginx = launch(http=SLOW, server=f"""
        location /tight {{ limit_req zone=z burst=1 nodelay; {CONTENT} }}
        location /wide {{ limit_req zone=z burst=4 nodelay; {CONTENT} }}""")
    assert statuses(nginx.each(*["/wide?k=a"] * 3)) == [200] * 3
    assert nginx.get("/tight?k=a").status == 503
    assert statuses(nginx.each(*["/wide?k=a"] * 3)) == [200, 200, 503]


@pytest.mark.parametrize("rate", ["1r/m", "3r/m", "7r/m", "9r/m", "11r/m", "13r/m"])
def test_bursts_of_one_zone_are_exact_at_any_rate(launch, rate):
    """Also where the time of one request is no whole number of anything."""
    bursts = [0, 1, 2, 6]
    limits = [f"limit_req zone=z {f'burst={n} nodelay' if n else ''};" for n in bursts]
    nginx = launch(http=f"limit_req_zone $arg_k zone=z:1m rate={rate};",
                   server="".join(f"location /{n} {{ {limit} {CONTENT} }}" for n, limit in zip(bursts, limits)))
    found = {}
    for n in bursts:
        # At the fastest of these another is earned in 4.6 s.
        tries = (nginx.volley(f"/{n}?k=key{n}.{again}", 10) for again in range(10))
        found[n] = next((count(answers) for answers in tries if spread(answers) < 4), "the machine is too slow")
    assert found == {n: n + 1 for n in bursts}


def test_two_servers_share_a_zone(launch):
    server = f"location / {{ limit_req zone=z burst=2 nodelay; {CONTENT} }}"
    nginx = launch(port_count=2, http=SLOW + f"server {{ listen 127.0.0.1:@PORT1@; {server} }}", server=server)
    assert nginx.get("/?k=a").status == 200
    assert count(volley(nginx.ports[1], ["/?k=a"] * 6)) == 2


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
def test_every_method_is_limited(launch, method):
    nginx = launch(**one("limit_req zone=z; error_page 405 =200 /;"))
    nginx.get("/?k=a")
    assert nginx.get("/?k=a", method=method).status == 503


def spread(answers):
    return max(a.done for a in answers) - min(a.sent for a in answers)
