"""Rates, bursts and policies: how many requests nginx admits."""

import time

import pytest

from harness.client import Kept, count, statuses
from harness.config import CONTENT
from harness.edges import away_from_edges
from harness.tollbar import Tollbar, launcher

launch = launcher(Tollbar)


def parts(zone="rate=1r/h", limit="burst=5 nodelay", more=""):
    return {"http": f"tollbar_zone $arg_k zone=z:1m {zone};",
            "server": f"location / {{ tollbar zone=z {limit}; {CONTENT} }} {more}"}


@pytest.mark.parametrize("rate", ["1r/h", "0.001r/s", "1r/60m", "1r/d", "0.5r/min", "2r/7200s", "1", "1r/5000ms"])
def test_a_burst_and_one(launch, rate):
    nginx = launch(**parts(f"rate={rate}"))
    answers = nginx.volley("/?k=a", 12)
    # By the rate of one a second there may be a few more on a slow machine.
    assert 6 <= count(answers) <= (6 if rate != "1" else 8)
    assert count(answers, 429) == 12 - count(answers)


@pytest.mark.parametrize("rate, seconds", [("2r/s", 0.5), ("0.5r/s", 2), ("5r/10s", 2), ("1r/1500ms", 1.5), ("120r/m", 0.5)])
def test_a_rate_is_what_it_says(launch, rate, seconds):
    nginx = launch(**parts(f"rate={rate}", ""))
    began = time.monotonic()
    assert nginx.get("/?k=a").status == 200
    # nginx admits a request as soon as the debt of one request is paid, and not before.
    while nginx.get("/?k=a").status == 429:
        assert time.monotonic() - began < seconds + 5
        time.sleep(0.005)
    assert time.monotonic() - began > seconds - 0.001


def test_the_highest_rate(launch):
    nginx = launch(**parts("rate=1000000000r/s", ""))
    assert count(nginx.volley("/?k=a", 100)) == 100


def test_a_limit_without_a_burst_has_that_of_its_zone(launch):
    nginx = launch(**parts("rate=1r/h burst=3", "nodelay", f"location /own {{ tollbar zone=z burst=1 nodelay; {CONTENT} }}"))
    assert count(nginx.volley("/?k=a", 9)) == 4
    assert count(nginx.volley("/own?k=b", 9)) == 2


def test_limits_of_one_zone_share_what_was_spent(launch):
    nginx = launch(**parts("rate=1r/h", "burst=2 nodelay", f"location /more {{ tollbar zone=z burst=5 nodelay; {CONTENT} }}"))
    assert count(nginx.volley("/?k=a", 9)) == 3
    assert count(nginx.volley("/more?k=a", 9)) == 3
    assert count(nginx.volley("/?k=a", 9)) == 0


def test_the_smaller_burst_says_when_it_lets_in_again(launch):
    nginx = launch(**parts("rate=1r/h", "burst=2 nodelay", f"location /more {{ tollbar zone=z burst=5 nodelay; {CONTENT} }}"))
    assert count(nginx.volley("/more?k=a", 9)) == 6
    # The debt is six hours. One limit admits the next request when two hours of it are left, and
    # the other when five are.
    assert 3 * 3600 < int(nginx.get("/?k=a").headers["retry-after"]) <= 4 * 3600
    assert 0 < int(nginx.get("/more?k=a").headers["retry-after"]) <= 3600


@pytest.mark.parametrize("policy, most", [
    ("4/h burst 3", 3), ("4/h", 4), ("4/h algo interval anchor first", 4), ("4/day algo fixed-window anchor first", 4),
    ("4/day algo sliding-log", 4), ("4/day algo weighted-window", 4), ("4/day algo sliding-window", 4), ("0/h", 0),
    ("1/h algo pacer", 1), ("4/h init 1", 1), ("4/h borrow", 1), ("4/h ban 1h after 9", 4),
    ("4/day curve 0:100%", 4), ("4/h burst 3 refill 0:50% 50%:100%", 3), ("1/h algo warm-up warm 1h", 1),
    ("4/forever", 4), ("4/day algo calendar", 4), ("4/day algo sliding-window mode strict", 4),
])
@pytest.mark.parametrize("several", [False, True])
def test_policies(launch, policy, most, several):
    # A weighted window gives some permits back when a day begins.
    away_from_edges(86_400)
    nginx = launch(http=f'tollbar_zone $arg_k zone=z:4m policy="{policy}"; tollbar_zone $arg_k zone=y:1m rate=1r/h;',
                   server=f"location / {{ tollbar zone=z; {'tollbar zone=y burst=99 nodelay;' * several} {CONTENT} }}")
    assert count(nginx.each(*["/?k=a"] * 8)) == most
    assert count(nginx.each(*["/?k=b"] * 8)) == most
    if most == 0:
        assert "retry-after" not in nginx.get("/?k=c").headers


def test_a_refusal_by_a_policy_is_logged(launch):
    nginx = launch(**parts("policy=1/h", ""))
    nginx.each("/?k=a", "/?k=a")
    [(level, message)] = nginx.said("limiting requests")
    assert level == "error" and message.startswith('limiting requests, over the rate, by zone "z", client: ')


def ask_keys(nginx, keys):
    with Kept(nginx.port) as kept:
        kept.send(*[f"/?k={k}" for k in keys])
        return [kept.read() for _ in keys]


@pytest.mark.parametrize("on_full, passes", [("deny", False), ("allow", True), ("evict-nearest", True), ("inherit", False)])
def test_a_full_zone(launch, on_full, passes):
    nginx = launch(http=f"tollbar_zone $arg_k zone=z:344k rate=1r/d on_full={on_full};",
                   server=f"location / {{ tollbar zone=z; {CONTENT} }} location /s {{ tollbar_status_page json; }}")
    found = []
    for start in range(0, 8000, 50):
        found += statuses(ask_keys(nginx, range(start, start + 50)))
    # The table has about 5,000 slots.
    assert set(found[:1000]) == {200}
    assert (429 in found[-1000:]) is not passes
    if passes:
        assert set(found) == {200}


@pytest.mark.parametrize("http, server, location, status", [
    ("", "", "", 429), ("tollbar_status 503;", "", "", 503), ("tollbar_status 503;", "tollbar_status 420;", "", 420),
    ("tollbar_status 503;", "", "status=444", 444), ("", "", "status=503", 503),
])
def test_the_status_of_a_refusal(launch, http, server, location, status):
    nginx = launch(http=f"tollbar_zone $arg_k zone=z:1m rate=1r/h; {http}",
                   server=f"{server} location / {{ tollbar zone=z {location}; {CONTENT} }}")
    # 444 closes the connection without an answer.
    assert statuses(nginx.each("/?k=a", "/?k=a")) == [200, status if status != 444 else 0]


def test_the_status_is_that_of_the_limit_that_refuses(launch):
    nginx = launch(http="tollbar_zone $arg_a zone=a:1m rate=1r/h; tollbar_zone $arg_b zone=b:1m rate=1r/h;",
                   server=f"location / {{ tollbar zone=a status=430; tollbar zone=b status=431; {CONTENT} }}")
    assert statuses(nginx.each("/?a=1&b=1", "/?a=1&b=2", "/?a=2&b=1", "/?a=3&b=3")) == [200, 430, 431, 200]


def test_a_fixed_cost(launch):
    nginx = launch(**parts("rate=1r/h", "burst=9 nodelay cost=4"))
    assert statuses(nginx.each(*["/?k=a"] * 4)) == [200, 200, 429, 429]


def test_both_modules_count_side_by_side(launch):
    nginx = launch(http="tollbar_zone $arg_k zone=z:1m rate=1r/h; limit_req_zone $arg_k zone=y:1m rate=1r/m;",
                   server=f"location / {{ tollbar zone=z burst=5 nodelay; limit_req zone=y burst=3 nodelay; {CONTENT} }}")
    found = nginx.volley("/?k=a", 9)
    assert (count(found), count(found, 503), count(found, 429)) == (4, 2, 3)


def test_a_list_is_charged_together_or_not_at_all(launch):
    nginx = launch(http='tollbar_zone $arg_k zone=z:1m "policy=1/s burst 3; 6/day";',
                   server=f"location / {{ tollbar zone=z cost=$arg_cost nodelay; {CONTENT} }}")
    # The second policy has no room for 3 more, and its refusal charges nothing of the first.
    assert statuses(nginx.each("/?k=a&cost=3")) == [200]
    nginx.each(*["/?k=a&cost=4"] * 3)
    assert statuses(nginx.each("/?k=b&cost=3", "/?k=b")) == [200, 429]
