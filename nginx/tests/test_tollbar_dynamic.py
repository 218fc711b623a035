"""Rates and bursts that come with the request."""

import os
import signal
from contextlib import ExitStack

import pytest

from harness.client import Kept, count, statuses
from harness.config import CONTENT
from harness.tollbar import Tollbar, launcher

launch = launcher(Tollbar)


def parts(zone="rate=$arg_rate", limit="burst=$arg_burst nodelay", more="", headers="draft"):
    return {"http": f"tollbar_zone $arg_k zone=z:1m {zone}; tollbar_headers {headers}; {more}", "server": f"""
        location / {{ tollbar zone=z {limit}; {CONTENT} }}
        location /status {{ tollbar_status_page json; }}"""}


def policies(nginx):
    return int(nginx.get("/status").body.partition(b'"policies":')[2].partition(b",")[0])


def test_a_rate_by_a_variable(launch):
    nginx = launch(**parts())
    assert count(nginx.each(*["/?k=a&rate=1r/h&burst=2"] * 5)) == 3
    # Under another rate a key begins anew.
    assert count(nginx.each(*["/?k=a&rate=2r/h"] * 5)) == 1
    assert count(nginx.each(*["/?k=a&rate=1r/h&burst=2"] * 5)) == 0
    assert nginx.get("/?k=b&rate=30r/10s").headers["ratelimit-policy"] == '"z";q=30;w=10'


def test_plans_by_a_map(launch):
    nginx = launch(**parts("rate=$plan", "burst=$burst nodelay", """
        map $arg_k $plan { default 1r/h; ~^gold 10r/h; ~^free ""; }
        map $arg_k $burst { default ""; ~^gold 4; }"""))
    assert count(nginx.each(*["/?k=any"] * 9)) == 1
    assert count(nginx.each(*["/?k=gold1"] * 9)) == 5
    assert count(nginx.each(*["/?k=gold2"] * 9)) == 5
    # An empty rate is no limit.
    assert count(nginx.each(*["/?k=free"] * 9)) == 9
    assert "ratelimit" not in nginx.get("/?k=free").headers


def test_the_same_rate_in_other_words_is_the_same_limit(launch):
    nginx = launch(**parts())
    same = ["60r/m", "1r/s", "1", "1.0r/s", "2r/2s", "60r/min", "1r/1000ms"]
    nginx.each(*[f"/?k={n}&rate={rate}" for n, rate in enumerate(same)])
    # `60r/m`, `2r/2s` and `1r/s` are one rate with three windows, so they are three policies.
    assert policies(nginx) == 3


@pytest.mark.parametrize("rate", ["x", "0r/s", "r/s", "1r/", "-1r/s", "1r/s;", "1" * 60, "9000000000000r/s"])
def test_a_rate_that_is_none_is_refused(launch, rate):
    nginx = launch(**parts())
    answer = nginx.get(f"/?k=a&rate={rate}")
    assert answer.status == 429
    assert not [name for name in answer.headers if "ratelimit" in name or name == "retry-after"]
    assert [level for level, _ in nginx.said(f'invalid rate "{rate}" for zone "z"')] == ["error"]
    assert policies(nginx) == 0


@pytest.mark.parametrize("burst", ["x", "-1", "1.5", "99999999999999999999"])
def test_a_burst_that_is_none_is_refused(launch, burst):
    nginx = launch(**parts("rate=1r/h"))
    assert statuses(nginx.each(f"/?k=a&burst={burst}", "/?k=a")) == [429, 200]
    assert [level for level, _ in nginx.said(f'invalid burst "{burst}" for zone "z"')] == ["error"]


def test_in_a_dry_run_what_is_no_rate_passes(launch):
    nginx = launch(**parts(limit="nodelay; tollbar_dry_run on"))
    assert statuses(nginx.each("/?k=a&rate=x", "/?k=a&rate=1r/h", "/?k=a&rate=1r/h")) == [200] * 3
    assert [line.rpartition("[")[2] for line in nginx.access_log(3)] == ["REJECTED_DRY_RUN]", "PASSED]", "REJECTED_DRY_RUN]"]


def test_a_burst_by_a_variable_and_a_fixed_rate(launch):
    nginx = launch(**parts("rate=1r/h burst=3"))
    assert count(nginx.each(*["/?k=a&burst=1"] * 6)) == 2
    assert count(nginx.each(*["/?k=a&burst=5"] * 6)) == 4
    # Without the argument the burst is the zone's. A burst of 0 is valid.
    assert count(nginx.each(*["/?k=b"] * 6)) == 4
    assert count(nginx.each(*["/?k=c&burst=0"] * 6)) == 1
    assert count(nginx.each(*["/?k=d&burst=9223372036854775807"] * 6)) == 6


def test_the_burst_of_a_zone_by_a_variable(launch):
    nginx = launch(**parts("rate=1r/h burst=$arg_burst", "nodelay"))
    assert count(nginx.each(*["/?k=a&burst=2"] * 6)) == 3
    assert count(nginx.each(*["/?k=b"] * 6)) == 1


def test_retry_after_by_a_variable_burst(launch):
    nginx = launch(**parts("rate=1r/h"))
    nginx.each(*["/?k=a&burst=2"] * 3)
    assert 3590 < int(nginx.get("/?k=a&burst=2").headers["retry-after"]) <= 3600
    assert 7190 < int(nginx.get("/?k=a&burst=1").headers["retry-after"]) <= 7200


def test_a_variable_rate_delays(launch):
    nginx = launch(**parts(limit="burst=$arg_burst"))
    first, second = nginx.each("/?k=a&rate=1r/s&burst=1", "/?k=a&rate=1r/s&burst=1")
    assert first.took < 0.9 and 0.95 < second.done - first.sent < 4
    assert len(nginx.said("delaying request, excess: ")) == 1


def test_there_are_only_so_many_rates(launch):
    nginx = launch(**parts())
    with Kept(nginx.port) as kept:
        kept.send(*[f"/?k=a&rate={n}r/h" for n in range(1, 141)])
        found = [kept.read().status for _ in range(140)]
    # A table has 128 policies, and one is the zone's own.
    assert found == [200] * 127 + [429] * 13
    assert policies(nginx) == 127
    complaints = nginx.said('invalid rate "', 'for zone "z", ', "policies")
    assert 1 <= len(complaints) <= 13 and {level for level, _ in complaints} == {"error"}
    # Rates that already have a policy still work, in any spelling.
    known = nginx.each("/?k=b&rate=1r/h", "/?k=b&rate=1.0r/h", "/?k=b&rate=127r/h", "/?k=b&rate=128r/h")
    assert statuses(known) == [200, 429, 200, 429]


def test_more_spellings_than_are_remembered(launch):
    nginx = launch(**parts(limit="burst=999 nodelay"))
    with Kept(nginx.port) as kept:
        for _ in range(2):
            kept.send(*[f"/?k=a&rate={'0' * n}1r/{'0' * m}1h" for n in range(14) for m in range(8)],
                      *[f"/?k=a&rate={'0' * n}1.0r/{'0' * m}1h" for n in range(14) for m in range(8)])
            assert {kept.read().status for _ in range(2 * 14 * 8)} == {200}
        kept.send("/?k=a&rate=1r/h")
        assert kept.read().headers["ratelimit"].startswith(f'"z";r={1000 - 449};')
    assert policies(nginx) == 1


def client_of_each_worker(nginx, stack):
    """A connection to each worker. Which one takes a connection is nobody's choice, so there are
    some until both have."""
    clients = {}
    while len(clients) < 2:
        client = stack.enter_context(Kept(nginx.port))
        client.send("/")
        clients[client.read().headers["x-worker"]] = client
    return list(clients.values())


def test_workers_agree_on_the_number_of_a_rate(launch):
    """Both workers meet the same new rates in the same instant, as many as a zone can have."""
    zones = range(21)
    nginx = launch(http="add_header X-Worker $pid;" + "".join(f"tollbar_zone $arg_k zone=z{z}:344k rate=$arg_rate;" for z in zones),
                   server=f"location / {{ {CONTENT} }}" + "".join(
                       f"location /{z} {{ tollbar zone=z{z}; {CONTENT} }}" for z in zones), workers=2)
    workers = nginx.workers()
    with ExitStack() as stack:
        clients = client_of_each_worker(nginx, stack)
        for path in [f"/{z}?k=a&rate={n}r/d" for z in zones for n in range(1, 128)]:
            for worker in workers:
                os.kill(worker, signal.SIGSTOP)
            for client in clients:
                client.send(path)
            for worker in workers:
                os.kill(worker, signal.SIGCONT)
            # Both workers together admit one request.
            assert sorted(client.read().status for client in clients) == [200, 429]


def test_rates_stay_over_a_reload(launch):
    nginx = launch(**parts(limit="burst=5 nodelay"))
    assert count(nginx.volley("/?k=a&rate=1r/h", 4)) == 4
    assert nginx.reload()
    assert count(nginx.volley("/?k=a&rate=1r/h", 9)) == 2
    assert policies(nginx) == 1


def test_rates_stay_in_a_zone_of_another_size(launch):
    nginx = launch(**parts(limit="burst=5 nodelay"))
    nginx.each("/?k=a&rate=7r/d", "/?k=a&rate=8r/d")
    assert count(nginx.volley("/?k=a&rate=1r/h", 4)) == 4
    larger = parts(limit="burst=5 nodelay")
    larger["http"] = larger["http"].replace(":1m", ":2m")
    assert nginx.reload(**larger)
    assert count(nginx.volley("/?k=a&rate=1r/h", 9)) == 2
    assert count(nginx.volley("/?k=a&rate=7r/d", 9)) == 5
    assert policies(nginx) == 3


def test_from_rates_to_a_policy_with_a_table_of_its_own(launch):
    nginx = launch(**parts())
    nginx.get("/?k=a&rate=1r/h")
    assert nginx.reload(**parts('policy="2/d algo sliding-log"', ""))
    assert count(nginx.volley("/?k=a", 9)) == 2
    assert [level for level, _ in nginx.said('zone "z" starts empty')] == ["warn"]
    assert nginx.reload(**parts())
    assert statuses(nginx.each("/?k=a&rate=1r/h", "/?k=a&rate=1r/h")) == [200, 429]
