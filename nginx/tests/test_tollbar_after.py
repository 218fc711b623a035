"""Bans, and limits with `count` or `when`, which nginx charges after the response."""

import base64
import json
import time

import pytest

from harness.client import Kept, count, statuses
from harness.config import CONTENT
from harness.server import wait_until
from harness.tollbar import Tollbar, launcher

launch = launcher(Tollbar)

PAGE = "location /zones { tollbar_status_page json; }"
# A file behind a password. Only a failed request is charged.
LOGIN = 'location /login { tollbar zone=z nodelay count=failed status=429; auth_basic "in"; auth_basic_user_file passwords; empty_gif; }'
RIGHT, WRONG = "secret", "guess"


def login(password, user="ann"):
    return {"headers": ["Authorization: Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()]}


def parts(zone, location=LOGIN, key="$arg_k", size="1m", more=""):
    return {"http": f"tollbar_zone {key} zone=z:{size} {zone}; tollbar_headers legacy;", "server": location + PAGE, "workers": 1} | (more or {})


def with_passwords(launch, tmp_path, **given):
    home = tmp_path / "nginx0"
    home.mkdir(parents=True, exist_ok=True)
    (home / "passwords").write_text(f"ann:{{PLAIN}}{RIGHT}\n")
    return launch(**given)


def zone_of(nginx):
    return json.loads(nginx.get("/zones").body)["zones"][0]


@pytest.mark.parametrize("zone", ['policy="5/min ban 1h"', "rate=5r/m burst=4 ban=1h"])
def test_a_storm_of_wrong_passwords(launch, tmp_path, zone):
    nginx = with_passwords(launch, tmp_path, **parts(zone))
    # Right passwords cost nothing, however many.
    assert statuses(nginx.get("/login?k=a", **login(RIGHT)) for _ in range(50)) == [200] * 50
    # Five failures ban: afterwards the right password is refused, too.
    tries = [nginx.get("/login?k=a", **login(WRONG)) for _ in range(60)]
    assert statuses(tries) == [401] * 5 + [429] * 55
    refused = nginx.get("/login?k=a", **login(RIGHT))
    assert refused.status == 429
    # An hour, and not the 12 s in which a permit comes back. The test itself takes far less than 10
    # minutes.
    assert 3000 < int(refused.headers["retry-after"]) <= 3600
    assert refused.headers["x-ratelimit-remaining"] == "0"
    assert nginx.said("limiting requests, banned, by zone \"z\"")
    # The ban is the key's: others come in.
    assert nginx.get("/login?k=b", **login(RIGHT)).status == 200
    # It survives a reload.
    assert nginx.reload()
    assert nginx.get("/login?k=a", **login(RIGHT)).status == 429
    numbers = zone_of(nginx)
    # The page counts admissions and refusals as decisions, and charges not.
    assert (numbers["allowed"], numbers["denied"], numbers["keys"]) == (55 + 1, 55 + 1 + 1, 1)


def test_a_storm_at_once(launch, tmp_path):
    nginx = with_passwords(launch, tmp_path, **parts('policy="5/min ban 1h"'))
    # Some of the 40 may pass before nginx has charged the first failure.
    answers = nginx.volley("/login?k=a", 40, **login(WRONG))
    assert count(answers, 401) >= 5
    assert nginx.get("/login?k=a", **login(RIGHT)).status == 429
    assert int(nginx.get("/login?k=a", **login(RIGHT)).headers["retry-after"]) > 3000


def test_a_ban_ends_on_time(launch, tmp_path):
    nginx = with_passwords(launch, tmp_path, **parts("rate=100r/s burst=2 ban=2s"))
    began = time.monotonic()
    with Kept(nginx.port) as kept:
        # In much less than the 30 ms in which three permits come back, unless the machine is slow:
        # then it takes more failures.
        while True:
            kept.send(*["/login?k=a"] * 20, **login(WRONG))
            last = [kept.read().status for _ in range(20)]
            if 429 in last:
                break
            assert time.monotonic() - began < 60
    banned = time.monotonic()
    wait_until(lambda: nginx.get("/login?k=a", **login(RIGHT)).status == 200, "the ban ends")
    # The ban began between `began` and `banned`. A loaded machine may notice its end late, but
    # never early.
    assert time.monotonic() - began >= 2
    assert time.monotonic() - banned < 30


def test_the_nth_refusal_bans(launch, tmp_path):
    nginx = with_passwords(launch, tmp_path, **parts("rate=3r/h burst=2 ban=1d after=4"))
    answers = [nginx.get("/login?k=a", **login(WRONG)) for _ in range(8)]
    assert statuses(answers) == [401] * 3 + [429] * 5
    # The failure that takes the last permit is the first refusal; the first three refused requests
    # are the next ones.
    waits = [int(a.headers["retry-after"]) for a in answers[3:]]
    assert waits[0] <= 1200 and waits[1] <= 1200 and all(w > 80000 for w in waits[2:]), waits


def test_a_limit_of_requests_bans_too(launch):
    location = f"location / {{ tollbar zone=z nodelay; {CONTENT} }}"
    nginx = launch(**parts("rate=1r/m burst=1 ban=1h after=2", location))
    answers = nginx.each(*["/?k=a"] * 6)
    assert statuses(answers) == [200, 200] + [429] * 4
    assert [int(a.headers["retry-after"]) > 60 for a in answers[2:]] == [False, True, True, True]


def test_beside_another_limit(launch):
    # The first of two limits refuses at a look, which counts for its ban as well.
    location = f"location / {{ tollbar zone=z nodelay; tollbar zone=y burst=99 nodelay; {CONTENT} }}"
    given = parts("rate=1r/m burst=1 ban=1h after=2", location)
    given["http"] += "tollbar_zone $arg_k zone=y:1m rate=1r/m;"
    nginx = launch(**given)
    answers = nginx.each(*["/?k=a"] * 6)
    assert statuses(answers) == [200, 200] + [429] * 4
    assert [int(a.headers["retry-after"]) > 60 for a in answers[2:]] == [False, True, True, True]
    # The second is charged for what passed only.
    assert json.loads(nginx.get("/zones").body)["zones"][1]["allowed"] == 2


@pytest.mark.parametrize("which, counted", [
    ("failed", {401, 403}), ("404", {404}), ("403,404", {403, 404}), ("4xx", {401, 403, 404}), ("all", {200, 401, 403, 404}),
    ("5xx", set()),
])
def test_which_answers_count(launch, tmp_path, which, counted):
    limit = f"tollbar zone=z nodelay count={which};"
    locations = f"""
        location /200 {{ {limit} {CONTENT} }}
        location /401 {{ {limit} auth_basic "in"; auth_basic_user_file passwords; {CONTENT} }}
        location /403 {{ {limit} deny all; {CONTENT} }}
        location /404 {{ {limit} }}
    """
    nginx = with_passwords(launch, tmp_path, **parts("rate=1r/h burst=1", locations))
    for status in (200, 401, 403, 404):
        answers = nginx.each(*[f"/{status}?k={status}"] * 4)
        wanted = [status] * 2 + [429] * 2 if status in counted else [status] * 4
        assert statuses(answers) == wanted, status


@pytest.mark.parametrize("when, charged", [("$arg_w", ("1", "yes", "00", "-1")), ("$arg_a$arg_w", ("1", "x"))])
def test_when(launch, when, charged):
    location = f"location / {{ tollbar zone=z nodelay when={when}; {CONTENT} }}"
    nginx = launch(**parts("rate=1r/h burst=1", location))
    for value in charged:
        assert statuses(nginx.each(*[f"/?k={value}&w={value}"] * 4)) == [200, 200, 429, 429], value
    for value in ("", "0"):
        assert statuses(nginx.each(*[f"/?k=v{value}&w={value}"] * 4)) == [200] * 4, value


def test_both_must_hold(launch):
    location = "location / { tollbar zone=z nodelay count=404 when=$arg_w; }"
    nginx = launch(**parts("rate=1r/h burst=1", location))
    assert statuses(nginx.each(*["/none?k=a"] * 4)) == [404] * 4
    assert statuses(nginx.each(*["/none?k=a&w=1"] * 4)) == [404, 404, 429, 429]


def test_a_cost_that_is_known_afterwards(launch):
    # 100 bytes an hour, and an answer has 43: the third answer makes a debt, at most one burst, and
    # nginx refuses the next request.
    location = f"location / {{ tollbar zone=z count=all cost=$body_bytes_sent; {CONTENT} }}"
    nginx = launch(**parts('policy="100/h"', location))
    assert statuses(nginx.each(*["/?k=a"] * 5)) == [200] * 3 + [429] * 2
    # 129 of 100 bytes were sent: the next permit comes back after 30 are paid, at 36 s each.
    assert 1000 < int(nginx.get("/?k=a").headers["retry-after"]) <= 1080
    # An invalid cost charges nothing, and nginx logs it.
    location = f"location / {{ tollbar zone=z count=all cost=$arg_c; {CONTENT} }}"
    nginx = launch(**parts('policy="2/h"', location))
    assert statuses(nginx.each(*["/?k=a&c=x"] * 3)) == [200] * 3
    assert nginx.said('invalid cost "x" for zone "z"')
    nginx.expected.append('invalid cost "x"')
    assert statuses(nginx.each("/?k=a&c=2", "/?k=a")) == [200, 429]


def test_a_refused_request_has_not_failed(launch):
    # The refusal has a status that counts.
    location = "location / { tollbar zone=z nodelay count=404,429; }"
    nginx = launch(**parts("rate=1r/h burst=1", location))
    assert statuses(nginx.each(*["/none?k=a"] * 6)) == [404, 404] + [429] * 4
    # Two permits were charged: one is back after an hour.
    assert int(nginx.get("/none?k=a").headers["retry-after"]) <= 3600


def test_a_redirect_inside_nginx_is_charged_once(launch):
    location = f"""
        location / {{ tollbar zone=z nodelay count=403; error_page 403 /sorry; deny all; }}
        location /sorry {{ tollbar zone=z nodelay count=403; {CONTENT} }}
    """
    nginx = launch(**parts("rate=1r/h burst=2", location))
    assert statuses(nginx.each(*["/?k=a"] * 5)) == [403] * 3 + [429] * 2


@pytest.mark.parametrize("limit, whole", [("dry_run", ""), ("", "tollbar_dry_run on;")])
def test_a_dry_run_charges_and_refuses_nobody(launch, limit, whole):
    location = f"location / {{ {whole} tollbar zone=z nodelay count=404 {limit}; }}"
    nginx = launch(**parts("rate=1r/h burst=1", location))
    assert statuses(nginx.each(*["/none?k=a"] * 4)) == [404] * 4
    assert [line.rsplit("[", 1)[1] for line in nginx.access_log(4)] == ["PASSED]"] * 2 + ["REJECTED_DRY_RUN]"] * 2


def test_rates_with_variables(launch):
    location = "location / { tollbar zone=z burst=$arg_b nodelay count=404; }"
    nginx = launch(**parts("rate=$arg_r", location))
    assert statuses(nginx.each(*["/none?k=a&r=1r/h&b=2"] * 5)) == [404] * 3 + [429] * 2
    assert statuses(nginx.each(*["/none?k=a&r=2r/h&b=1"] * 4)) == [404] * 2 + [429] * 2
