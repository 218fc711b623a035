"""The variables, and dry runs, which is what they are there for."""

import json
import re

import pytest

from harness.client import Kept, count, statuses
from harness.config import CONTENT
from harness.edges import again_if_late
from harness.tollbar import Tollbar, launcher

launch = launcher(Tollbar)

SHOW = ('add_header X-All "$tollbar_status|$tollbar_remaining|$tollbar_reset|$tollbar_retry_after|$tollbar_zone" always;')
HOUR = "tollbar_zone $arg_k zone=z:1m rate=1r/h;"


def shown(nginx, *paths):
    return [a.headers.get("x-all") for a in nginx.each(*paths)]


def test_each_of_them(launch):
    nginx = launch(http=HOUR, server=f"location / {{ tollbar zone=z burst=1 nodelay; {SHOW} {CONTENT} }}")
    first, second, third = shown(nginx, *["/?k=a"] * 3)
    assert first == "PASSED|1|3600||z"
    assert second in [f"PASSED|0|{n}||z" for n in range(7150, 7201)]
    assert third.startswith("REJECTED|0|") and third.endswith("|z")
    assert 3500 < int(third.split("|")[3]) <= 3600


def test_without_a_limit_they_are_empty(launch):
    nginx = launch(http=HOUR, server=f"""
        location / {{ {SHOW} {CONTENT} }}
        location /limited {{ tollbar zone=z; {SHOW} {CONTENT} }}""")
    assert shown(nginx, "/", "/limited", "/limited?k=") == ["||||"] * 3


def test_by_the_access_log(launch):
    nginx = launch(http=HOUR, server=f"location / {{ tollbar zone=z burst=1 nodelay; {CONTENT} }} location /x {{ {CONTENT} }}")
    nginx.each(*["/?k=a"] * 3, "/x")
    assert [line.partition("[")[2] for line in nginx.access_log(4)] == ["PASSED]", "PASSED]", "REJECTED]", "-]"]


@again_if_late(1)
def test_delayed(launch):
    nginx = launch(http="tollbar_zone $arg_k zone=z:1m rate=1r/s;",
                   server=f"location / {{ tollbar zone=z burst=1; {SHOW} {CONTENT} }}")
    assert shown(nginx, "/?k=a", "/?k=a") == ["PASSED|1|1||z", "DELAYED|0|2||z"]


def test_the_status_alone(launch):
    nginx = launch(http=HOUR, server=f"location / {{ tollbar zone=z; add_header X-S $tollbar_status always; {CONTENT} }}")
    assert [a.headers["x-s"] for a in nginx.each("/?k=a", "/?k=a")] == ["PASSED", "REJECTED"]


def test_they_can_be_asked_for_before_and_after(launch):
    nginx = launch(http=HOUR, server=f"""location / {{
        set $before "$tollbar_status$tollbar_remaining$tollbar_zone";
        tollbar zone=z burst=3 nodelay; add_header X-Before "<$before>"; {SHOW} {CONTENT} }}""")
    answer = nginx.get("/?k=a")
    assert (answer.headers["x-before"], answer.headers["x-all"]) == ("<>", "PASSED|3|3600||z")


def test_they_survive_redirects_and_error_pages(launch):
    nginx = launch(http=HOUR, server=f"""
        location / {{ tollbar zone=z; try_files /none /end; error_page 429 /end; }}
        location /end {{ {SHOW} {CONTENT} }}""")
    first, second = shown(nginx, "/?k=a", "/?k=a")
    assert first == "PASSED|0|3600||z" and second.startswith("REJECTED|0|")


def test_of_several_limits_the_one_with_the_fewest_left(launch):
    nginx = launch(http="".join(f"tollbar_zone $arg_k zone={z}:1m rate={n}r/h;" for z, n in [("a", 1), ("b", 2), ("c", 1)]),
                   server="location / { tollbar zone=a burst=5 nodelay; tollbar zone=b burst=2 nodelay;"
                          f"tollbar zone=c burst=4 nodelay; {SHOW} {CONTENT} }}")
    assert shown(nginx, "/?k=a") == ["PASSED|2|1800||b"]


# C11: the reason of a refusal, in a variable and in the error log.

WHY = 'add_header X-Why "$tollbar_reason" always;'

# How a zone refuses, the requests before the refused one, the variable, and the words of the log
# between "limiting requests" and the zone.
REASONS = {
    "the rate": ("rate=1r/h", "zone=z", ["/?k=a"], "/?k=a", "over the rate", ", excess: 1.000 by"),
    "a limit's own burst": ("rate=1r/h burst=5", "zone=z burst=$arg_b nodelay", ["/?k=a&b=0"], "/?k=a&b=0", "over the rate", ", excess: 1.000 by"),
    "a policy": ("policy=1/h", "zone=z", ["/?k=a"], "/?k=a", "over the rate", ", over the rate, by"),
    "the burst": ("rate=1r/h", "zone=z cost=$arg_c", [], "/?k=a&c=7", "above the burst", ", cost 7 is more than the burst ever allows, by"),
    "a ban": ('"policy=1/h ban 1d"', "zone=z", ["/?k=a"] * 3, "/?k=a", "banned", ", banned, by"),
    "a class": ('"policy=3/h reserve low 2"', "zone=z class=low", ["/?k=a"], "/?k=a", "reserved for other classes",
                ", reserved for other classes, by"),
}


@pytest.mark.parametrize("how", REASONS)
@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("beside", ["", "tollbar zone=y burst=99 nodelay;"])
def test_c11_the_reason_of_a_refusal(launch, how, dry_run, beside):
    zone, limit, before, path, words, said = REASONS[how]
    nginx = launch(http=f"tollbar_zone $arg_k zone=z:1m {zone}; tollbar_zone $arg_k zone=y:1m rate=1r/m;",
                   server=f"""location / {{ tollbar {limit}; {beside} tollbar_dry_run {"on" if dry_run else "off"}; {WHY} {CONTENT} }}
                              location /metrics {{ tollbar_status_page prometheus; }}""")
    if before:
        assert nginx.each(*before)[0].headers.get("x-why") is None
    answer = nginx.get(path)
    assert (answer.status, answer.headers["x-why"]) == (200 if dry_run else 429, words)
    run = ", dry run" if dry_run else ""
    assert nginx.said(f'limiting requests{run}{said} zone "z"', "client: 127.0.0.1")
    # The first request for the banned key passed. The ban has refused each other one, and counts
    # each once.
    counted = {"a ban": {"banned": len(before)}, "a class": {"reserve": 1}}.get(how, {})
    text = nginx.get("/metrics").body.decode()
    found = re.findall(r'^tollbar_reasons_total{limit="z",reason="(\w+)"} (\d+)$', text, re.MULTILINE)
    assert len(found) == 5 and {reason: int(n) for reason, n in found if n != "0"} == counted


def test_c11_a_full_table_and_an_inherited_debt(launch):
    zones = {"deny": "table full", "inherit": "inherited debt"}
    nginx = launch(http="".join(f"tollbar_zone $arg_k zone={z}:344k policy=1/h on_full={z};" for z in zones),
                   server="location /json { tollbar_status_page json; }" + "".join(
                       f"location /{z} {{ tollbar zone={z}; {WHY} {CONTENT} }}" for z in zones))
    slots = max(z["slots"] for z in json.loads(nginx.get("/json").body)["zones"])
    for zone, words in zones.items():
        with Kept(nginx.port) as kept:
            kept.send(*[f"/{zone}?k={n}" for n in range(slots + 40)])
            answers = [kept.read() for _ in range(slots + 40)]
        assert {a.headers.get("x-why") for a in answers} == {None, words}
        assert nginx.said(f'limiting requests, {words}, by zone "{zone}"')


# Dry runs

@pytest.mark.parametrize("limit", [
    "tollbar zone=z burst=1 nodelay dry_run;", "tollbar zone=z burst=1 nodelay; tollbar_dry_run on;",
])
def test_a_dry_run_refuses_nobody(launch, limit):
    nginx = launch(http=HOUR + "tollbar_headers both;", server=f"location / {{ {limit} {SHOW} {CONTENT} }}")
    answers = nginx.each(*["/?k=a"] * 4)
    assert count(answers) == 4
    found = [a.headers["x-all"].split("|") for a in answers]
    assert [f[0] for f in found] == ["PASSED", "PASSED", "REJECTED_DRY_RUN", "REJECTED_DRY_RUN"]
    assert [f[1] for f in found] == ["1", "0", "0", "0"] and found[2][4] == "z" and found[2][3] != ""
    # A dry run sends no headers to the client.
    assert not [name for a in answers for name in a.headers if "ratelimit" in name or name == "retry-after"]
    assert len(nginx.said("limiting requests, dry run, excess: ", 'by zone "z"')) == 2


@pytest.mark.parametrize("limit", ["tollbar zone=z burst=5 dry_run;", "tollbar zone=z burst=5; tollbar_dry_run on;"])
def test_a_dry_run_delays_nobody(launch, limit):
    nginx = launch(http=HOUR, server=f"location / {{ {limit} {SHOW} {CONTENT} }}")
    first, second = nginx.each("/?k=a", "/?k=a")
    assert first.headers["x-all"].startswith("PASSED") and second.headers["x-all"].startswith("DELAYED_DRY_RUN|4|")
    assert second.took < 60
    assert len(nginx.said("delaying request, dry run, excess: 1.000, by zone")) == 1


def test_a_limit_in_a_dry_run_beside_one_that_is_in_force(launch):
    nginx = launch(http="tollbar_zone $arg_a zone=a:1m rate=1r/h; tollbar_zone $arg_b zone=b:1m rate=1r/h; tollbar_headers draft;",
                   server=f"location / {{ tollbar zone=a dry_run; tollbar zone=b burst=2 nodelay; {SHOW} {CONTENT} }}")
    answers = nginx.each(*["/?a=1&b=1"] * 4)
    assert statuses(answers) == [200, 200, 200, 429]
    found = [a.headers["x-all"].split("|") for a in answers]
    assert [(f[0], f[4]) for f in found] == [
        ("PASSED", "b"), ("REJECTED_DRY_RUN", "a"), ("REJECTED_DRY_RUN", "a"), ("REJECTED", "b")]
    assert {a.headers["ratelimit-policy"] for a in answers} == {'"b";q=1;w=3600'}


def test_what_is_refused_is_not_charged_to_a_limit_in_a_dry_run(launch):
    nginx = launch(http="tollbar_zone $arg_a zone=a:1m rate=1r/h; tollbar_zone $arg_b zone=b:1m rate=1r/h;",
                   server=f"location / {{ tollbar zone=a dry_run burst=1; tollbar zone=b; {SHOW} {CONTENT} }}")
    assert statuses(nginx.each("/?a=1&b=1", "/?a=1&b=1", "/?a=1&b=1")) == [200, 429, 429]
    assert nginx.get("/?a=1&b=2").headers["x-all"].startswith("DELAYED_DRY_RUN|0|")


@pytest.mark.parametrize("level, refusal, delay", [
    ("", "error", "warn"), ("info", "info", "info"), ("notice", "notice", "info"), ("warn", "warn", "notice"),
    ("error", "error", "warn")])
@again_if_late(0.2)
def test_log_levels(launch, level, refusal, delay):
    nginx = launch(http="tollbar_zone $arg_k zone=z:1m rate=5r/s;", server=f"""
        {level and f"tollbar_log_level {level};"} location / {{ tollbar zone=z burst=1; {CONTENT} }}""")
    nginx.volley("/?k=a", 8)
    assert {found[0] for found in nginx.said("limiting requests, excess: ")} == {refusal}
    assert {found[0] for found in nginx.said("delaying request, excess: ")} == {delay}
