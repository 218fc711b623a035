"""tollbar_tree: a zone whose rate is divided among classes with guaranteed rates and ceilings.

The bursts are 10 s, so that a fresh class of 30/min admits six requests at once: the one of its
rate, and five of the burst. Every bound adds what the rate gives while the test runs."""

import json
import time

import pytest

from harness.config import CONTENT
from harness.tollbar import Tollbar, launcher

launch = launcher(Tollbar)

TREE = """
    tollbar_tree $arg_k zone=shop:1m rate=2/s burst=10s{more};
    tollbar_tree_class ann zone=shop guaranteed=1/s;
    tollbar_tree_class bob zone=shop;
    tollbar_tree_class eve zone=shop ceiling=30/min;
    tollbar_tree_class team zone=shop guaranteed=10/min;
    tollbar_tree_class users zone=shop parent=team guaranteed=1/min ceiling=30/min keys=10;
"""
SERVER = f"""
    location / {{ tollbar zone=shop class=$arg_c; {CONTENT} }}
    location /json {{ tollbar_status_page json; }}
"""


def shop(launch, more="", tree=TREE, server=SERVER, **parts):
    return launch(http=tree.replace("{more}", more), server=server, **parts)


def admitted(nginx, path, count):
    """How many of so many requests in a row nginx admits, and for how many seconds they came."""
    began = time.monotonic()
    answers = [nginx.get(path) for _ in range(count)]
    assert {answer.status for answer in answers} <= {200, 429}
    return sum(answer.status == 200 for answer in answers), time.monotonic() - began


def at_once(got, per_second, wanted):
    """As many as a fresh class admits at once, and at most what its rate has given since."""
    number, seconds = got
    return wanted <= number <= wanted + int(per_second * seconds) + 1


def test_a_class_has_its_ceiling(launch):
    nginx = shop(launch)
    assert at_once(admitted(nginx, "/?k=x&c=eve", 40), 0.5, 6)


def test_a_guarantee_holds_whatever_others_ask_for(launch):
    nginx = shop(launch)
    # Alone, bob borrows from the whole rate, 2/s and ten seconds of it.
    number, seconds = admitted(nginx, "/?k=x&c=bob", 60)
    assert 6 <= number <= 21 + 2 * seconds + 1
    # The others have taken the whole rate. ann still gets her guarantee: 1/s, and a burst of 10.
    assert at_once(admitted(nginx, "/?k=x&c=ann", 60), 1, 11)


def test_each_key_of_a_class_with_keys_has_a_node(launch):
    nginx = shop(launch)
    assert at_once(admitted(nginx, "/?k=one&c=users", 30), 0.5, 6)
    # The other key has a node of its own, with a smaller share: the first has spent the idle rate.
    assert nginx.get("/?k=two&c=users").status == 200


def test_all_keys_of_a_class_without_keys_have_one_node(launch):
    nginx = shop(launch)
    assert at_once(admitted(nginx, "/?k=one&c=eve", 30), 0.5, 6)
    assert admitted(nginx, "/?k=two&c=eve", 5)[0] <= 1


def test_classes_by_variable(launch):
    nginx = shop(launch)
    # No class, and no key for a class with keys: not limited.
    assert admitted(nginx, "/?k=x", 40)[0] == 40
    assert admitted(nginx, "/?c=users", 40)[0] == 40
    # A class without keys needs none.
    assert at_once(admitted(nginx, "/?c=eve", 40), 0.5, 6)
    assert admitted(nginx, "/?k=x&c=eve", 10)[0] <= 3
    for path in ("/?k=x&c=nobody", "/?k=x&c=team"):
        answer = nginx.get(path)
        assert answer.status == 429
    assert nginx.said('unknown class "nobody", it must be a class of tree "shop" without children, in ')


def test_a_location_with_another_limit_charges_both_or_none(launch):
    http = TREE.replace("{more}", "") + "tollbar_zone $arg_k zone=hour:1m rate=1r/h;"
    nginx = launch(http=http, server=f"""
        location / {{ tollbar zone=hour burst=9 nodelay; tollbar zone=shop class=eve; {CONTENT} }}
        location /only {{ tollbar zone=hour burst=9 nodelay; {CONTENT} }}""")
    number, seconds = admitted(nginx, "/?k=x", 40)
    assert 6 <= number <= 7 + seconds / 2
    # The refused requests have left the hour's zone alone: of its ten the rest is there.
    assert admitted(nginx, "/only?k=x", 20)[0] == 10 - number


def test_a_request_that_another_limit_refuses_is_no_charge_for_the_tree(launch):
    http = TREE.replace("{more}", "") + "tollbar_zone $arg_k zone=hour:1m rate=1r/h;"
    nginx = launch(http=http, server=f"""
        location / {{ tollbar zone=hour nodelay; tollbar zone=shop class=eve; {CONTENT} }}
        location /hour {{ tollbar zone=hour nodelay; {CONTENT} }}
        location /eve {{ tollbar zone=shop class=eve; {CONTENT} }}""")
    assert nginx.get("/hour?k=x").status == 200
    assert admitted(nginx, "/?k=x", 30)[0] == 0
    assert at_once(admitted(nginx, "/eve?k=x", 40), 0.5, 6)


def test_costs_dry_runs_and_headers(launch):
    nginx = launch(http=TREE.replace("{more}", "") + "tollbar_headers draft;", server=f"""
        location / {{ tollbar zone=shop class=eve cost=$arg_n; {CONTENT} }}
        location /dry {{ tollbar zone=shop class=bob dry_run; {CONTENT} }}""")
    first = nginx.get("/?k=x&n=5")
    assert first.status == 200 and first.headers["ratelimit-policy"] == '"shop";q=30;w=60' and first.headers["ratelimit"].startswith('"shop";r=')
    # Six costs a class of five, so no wait would help.
    refused = [nginx.get("/?k=x&n=3") for _ in range(4)][-1]
    assert refused.status == 429 and 1 <= int(refused.headers["retry-after"]) <= 8
    assert admitted(nginx, "/dry?k=x", 40)[0] == 40


def test_workers_share_a_tree_and_a_reload_keeps_its_debts(launch):
    nginx = shop(launch, workers=2)
    answers = nginx.volley("/?k=x&c=eve", 40)
    assert 6 <= sum(answer.status == 200 for answer in answers) <= 7
    # Other classes and rates, and the class of the same name keeps its debt.
    nginx.reload(http="tollbar_tree $arg_k zone=shop:1m rate=3/s burst=10s; tollbar_tree_class eve zone=shop ceiling=30/min;", server=SERVER)
    assert nginx.get("/?k=x&c=eve").status == 429


def test_the_status_page(launch):
    nginx = shop(launch, " top_refused=3")
    for _ in range(30):
        nginx.get("/?k=carol&c=users")
    zone = json.loads(nginx.get("/json").body)["zones"][0]
    assert (zone["name"], zone["key"], zone["tree"]) == ("shop", "$arg_k", "2/s") and "policy" not in zone
    assert zone["allowed"] + zone["denied"] == 30 and zone["denied"] >= 20
    assert [one["key"] for one in zone["top_refused"]] == ["carol"]


LIMIT = "tollbar zone=shop class=eve"


@pytest.mark.parametrize("limits, statuses", [
    (f"{LIMIT} nodelay;", {200}),
    (f"{LIMIT} status=503; tollbar zone=second class=a dry_run;", {200}),
])
def test_configurations(launch, limits, statuses):
    nginx = launch(http=TREE.replace("{more}", "") + "tollbar_tree $arg_k zone=second:1m rate=100/s; tollbar_tree_class a zone=second;",
                   server=f"location / {{ {limits} {CONTENT} }}")
    assert {nginx.get("/?k=x").status} == statuses
