"""`sync_wait`: requests wait for the store's answer, and nobody is refused whom the store would
admit.

While nginx has never reached its store, a request waits for up to a second. The tests that need a
request that waits begin nginx with a store that is stopped (SIGSTOP)."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import fuzz, http2, memory
from harness.client import Answer, Kept, connect, count, request, statuses
from harness.config import CONTENT
from harness.machines import PAGES, leader, machines, wait_for_circuit, zone_of  # noqa: F401
from harness.server import PATIENCE, alive, wait_until
from test_tollbar_status_page import metrics

# No overdraft: without the wait every idle key's first request is refused.
FIVE = 'policy="5/min burst 5" overdraft=0'
WAIT = FIVE + " sync_wait=10s"
# Requests pass also if the store keeps them waiting for too long.
ALLOW = WAIT + " fallback=allow"
H2 = f"listen 127.0.0.1:@PORT1@ http2; location / {{ tollbar zone=z nodelay; {CONTENT} }} {PAGES}"
ONCE = 'policy="1/h burst 1" overdraft=0 sync_wait=10s'


def begin_waiting(machines, *paths, zone=WAIT, **parts):
    """An nginx whose store does not answer yet, and a connection for each path, whose request waits
    there. A busy machine may take too long for that, and then another nginx begins."""
    machines.begin_store().pause()
    for _ in range(20):
        nginx = machines.add(**machines.parts(zone, 1, **{"workers": 1, **parts}))
        asked = ask(nginx, *paths)
        zones = [zone_of(nginx)]
        while zones[-1]["circuit"] == "unknown" and zones[-1]["waiting"] < len(paths):
            zones.append(zone_of(nginx))
        if zones[-1]["circuit"] == "unknown":
            return nginx, asked
        for connection in asked:
            connection.close()
        nginx.stop()
    raise AssertionError("the store never kept requests waiting")


def ask(nginx, *paths):
    """Sends each request over a connection of its own."""
    asked = []
    for path in paths:
        asked.append(connect(nginx.port))
        asked[-1].sendall(request(path))
    return asked


def status_of(connection):
    with connection, connection.makefile("rb") as answer:
        return int((answer.readline().split() or [b"", b"0"])[1])


def wait_for_waiting(nginx, number):
    wait_until(lambda: zone_of(nginx)["waiting"] == number, f"{number} requests wait")


def undisturbed(nginxes, run):
    """The answers of a run in which store and workers were in time. On a busy machine the store's
    answer may take longer than 250 ms, and then the nodes decide by themselves. A worker may come
    to a request later than that, and then the permits that the store has served for the request
    have ended. Each run has a number, for keys of its own."""
    def opened():
        return [zone["opened"] for nginx in nginxes for zone in json.loads(nginx.get("/json").body)["zones"] if "opened" in zone]

    for number in range(50):
        for nginx in nginxes:
            wait_for_circuit(nginx, "closed")
        before = opened()
        answers = run(number)
        if opened() == before and all(in_time(answer) for answer in answers):
            return answers
    raise AssertionError("store and workers were never in time")


def in_time(answer):
    """A status alone does not say how long it took."""
    return not isinstance(answer, Answer) or answer.done - answer.sent < 0.2


@pytest.mark.parametrize("zone, passed", [(FIVE, 0), (WAIT, 200)])
def test_idle_keys(machines, zone, passed):
    """Of 200 idle keys under 5/min on two machines: all are refused, or none."""
    both = machines.begin(zone)
    answers = undisturbed(both, lambda run: [both[n % 2].get(f"/?k={run}-{n}") for n in range(200)])
    assert count(answers) == passed and count(answers, 429) == 200 - passed
    assert (sum(zone_of(nginx)["waited"] for nginx in both) >= 200) == (passed == 200)


def test_a_key_gets_what_one_store_would_give(machines):
    """Eight requests of each key by turns at two machines: five pass, as an exact store has it."""
    both = machines.begin(WAIT)
    for n in range(12):
        answers = undisturbed(both, lambda run, n=n: [both[i % 2].get(f"/?k={run}-{n}") for i in range(8)])
        assert statuses(answers) == [200] * 5 + [429] * 3
    assert {zone_of(nginx)["full"] for nginx in both} == {0}
    assert both[0].said("limiting requests, denied by the store")


def test_many_at_once(machines):
    """Two workers, and all of a key's permits at once."""
    [nginx] = machines.begin('policy="30/h burst 30" overdraft=0 sync_wait=10s', count=1)
    answers = undisturbed([nginx], lambda run: nginx.volley(f"/?k={run}", 60))
    assert count(answers) == 30 and count(answers, 429) == 30
    wait_for_waiting(nginx, 0)


def test_a_client_that_closes(machines):
    nginx, asked = begin_waiting(machines, "/?k=a", "/?k=b", "/?k=c")
    for connection in asked:
        connection.close()
    wait_for_waiting(nginx, 0)
    machines.store.resume()
    wait_for_circuit(nginx, "closed")
    assert [line.split()[0] for line in nginx.access_log(3) if "/?k" in line] == ["499"] * 3
    assert nginx.get("/?k=a").status == 200


@pytest.mark.parametrize("changed", [ALLOW, ALLOW.replace("sync_wait=10s", ""), ALLOW.replace("5/min", "6/min")])
def test_a_reload_while_requests_wait(machines, changed):
    """The old worker ends when its requests have their answers."""
    nginx, asked = begin_waiting(machines, "/?k=a", "/?k=b", zone=ALLOW)
    [old] = nginx.workers()
    nginx.write(**{**nginx.parts, **machines.parts(changed, 1, workers=1)})
    os.kill(nginx.master(), signal.SIGHUP)
    wait_until(lambda: nginx.said("reconfiguring"), "nginx reloads")
    machines.store.resume()
    assert [status_of(connection) for connection in asked] == [200, 200]
    wait_until(lambda: not alive(old), "the old worker ends")
    wait_for_circuit(nginx, "closed")
    # Only a node that nobody has used begins to count anew.
    assert zone_of(nginx)["waited"] == (0 if "6/min" in changed else 2)


def test_quit_while_requests_wait(machines):
    nginx, asked = begin_waiting(machines, "/?k=a", "/?k=b", zone=ALLOW)
    os.kill(nginx.master(), signal.SIGQUIT)
    wait_until(lambda: nginx.said("gracefully shutting down"), "nginx shuts down")
    machines.store.resume()
    assert [status_of(connection) for connection in asked] == [200, 200]
    assert nginx.process.wait(PATIENCE) == 0
    assert nginx.said("open socket") == []


def test_a_killed_worker(machines):
    nginx, asked = begin_waiting(machines, "/?k=a", "/?k=b", zone=ALLOW)
    [old] = nginx.workers()
    os.kill(old, signal.SIGKILL)
    for connection in asked:
        with pytest.raises(ConnectionError):
            assert not connection.recv(1)
            raise ConnectionResetError
    wait_until(lambda: nginx.workers() not in ([], [old]), "a worker follows")
    machines.store.resume()
    # The requests that died with the worker do not wait any more.
    wait_for_waiting(nginx, 0)
    assert nginx.get("/?k=a").status == 200


def test_the_one_who_asks_is_killed(machines):
    """Requests in the other worker go on waiting until another client has taken over."""
    [nginx] = machines.begin(WAIT, count=1, workers=2)
    for n in range(3):
        pid = wait_until(lambda: leader(nginx, machines.store), "a worker asks the store")
        os.kill(pid, signal.SIGKILL)
        answers = nginx.volley(f"/?k={n}", 5)
        # A request that the killed worker had accepted has no answer.
        assert count(answers) + count(answers, 0) == 5
        wait_until(lambda: nginx.complete(nginx.workers()), "the worker is back")
    assert nginx.get("/?k=x").status == 200


@pytest.mark.parametrize("fallback, expected", [("share", 429), ("deny", 429), ("allow", 200)])
def test_a_store_that_stops(machines, fallback, expected):
    """After 250 ms at most the limit's `fallback` decides, also about those who wait. Without an
    overdraft a share has no permit at first, and then refills one in 100 ms."""
    [nginx] = machines.begin(f'policy="10/s burst 10" overdraft=0 sync_wait=10s fallback={fallback}', count=1)
    assert nginx.get("/?k=before").status == 200
    machines.store.pause()
    waited = nginx.volley("/?k=a", 2)
    assert statuses(waited) == [expected] * 2 and max(answer.took for answer in waited) < 5
    zone = zone_of(nginx)
    assert (zone["circuit"], zone["waiting"], zone["waited"]) == ("open", 0, 3) and zone["opened"] >= 1
    # While the circuit is open, nobody waits.
    if fallback == "share":
        wait_until(lambda: nginx.get("/?k=a").status == 200, "the share has a permit")
    else:
        assert nginx.get("/?k=a").status == expected
    zone = zone_of(nginx)
    assert zone["waited"] == 3
    assert (zone["fallback_permits"], zone["uncounted"]) == {"share": (1, 0), "deny": (0, 0), "allow": (0, 3)}[fallback]
    machines.store.resume()
    wait_for_circuit(nginx, "closed")
    assert nginx.get("/?k=d").status == 200


def test_more_than_may_wait(machines):
    """1,024 requests may wait in a worker. Others are refused, with a reason and a counter."""
    nginx, asked = begin_waiting(machines, "/?k=first", zone=f"{WAIT} fallback=deny", size="4m", port_count=2, server=H2,
                                 more="http2_max_concurrent_streams 2000;")
    with ThreadPoolExecutor() as pool:
        flight = pool.submit(http2.together, nginx.ports[1], [f"/?k={n}" for n in range(1100)])
        wait_until(lambda: zone_of(nginx)["wait_full"] == 77, "77 requests are refused")
        machines.store.resume()
        answers = flight.result()
    assert count(answers, 429) >= 77 and status_of(asked[0]) in (200, 429)
    zone = zone_of(nginx)
    assert (zone["wait_full"], zone["waited"], zone["waiting"]) == (77, 1024, 0)
    assert len(nginx.said('limiting requests, queue full, by zone "z"')) == 77


def test_many_keys_at_once(machines):
    """A thousand streams of one connection, each of another key."""
    [nginx] = machines.begin(WAIT, count=1, size="4m", port_count=2, server=H2, more="http2_max_concurrent_streams 2000;")
    answers = undisturbed([nginx], lambda run: http2.together(nginx.ports[1], [f"/?k={run}-{n}" for n in range(1000)]))
    assert count(answers) == 1000


def test_streams_of_http2_that_are_cancelled(machines):
    nginx, [other] = begin_waiting(machines, "/?k=c", port_count=2, server=H2)
    with connect(nginx.ports[1]) as s:
        s.sendall(http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0) + http2.ask(1, "/?k=a") + http2.ask(3, "/?k=b"))
        wait_until(lambda: zone_of(nginx)["waited"] == 3, "all have waited")
        s.sendall(http2.frame(http2.RST_STREAM, 0, 1, b"\0\0\0\x08"))
    other.close()
    wait_for_waiting(nginx, 0)
    machines.store.resume()
    wait_for_circuit(nginx, "closed")
    assert nginx.get("/?k=d").status == 200


def test_keepalive(machines):
    """Requests that a client sends one behind the other are answered in their order."""
    [nginx] = machines.begin(ONCE, count=1)

    def run(number):
        with Kept(nginx.port) as kept:
            kept.send(*[f"/?k={number}-{n}" for n in (1, 1, 2, 2, 3, 3)])
            return [kept.read().status for _ in range(6)]

    assert undisturbed([nginx], run) == [200, 429] * 3


@pytest.mark.parametrize("page", ["auth", "parts"])
def test_subrequests(machines, page):
    """A request is counted once, by the first of its subrequests that comes to a limit."""
    places = (f"location /auth/ {{ auth_request /limited; {CONTENT} }} location /parts/ {{ ssi on; }}"
              f"location = /limited {{ tollbar zone=z nodelay; {CONTENT} }} {PAGES}")
    machines.begin_store()
    parts = machines.parts(FIVE.replace("5", "2") + " sync_wait=10s", 1)
    # auth_request passes no arguments on.
    nginx = machines.add(**{**parts, "http": parts["http"].replace("$arg_k", "$arg_k$http_x_key"), "server": places})
    wait_for_circuit(nginx, "closed")
    (nginx.home / "html" / "parts").mkdir()
    (nginx.home / "html" / "parts" / "index.html").write_text('<!--#include virtual="/limited?k=$arg_k" --><!--#include virtual="/limited?k=$arg_k" -->')
    (nginx.home / "html" / "auth").mkdir()

    def run(number):
        if page == "auth":
            return nginx.each(*["/auth/"] * 3, headers=[f"X-Key: {number}"])
        return nginx.each(*[f"/parts/index.html?k={number}"] * 3)

    answers = undisturbed([nginx], run)
    if page == "auth":
        # auth_request answers with 500 if its subrequest is refused.
        assert statuses(answers) == [200, 200, 500]
    else:
        assert [answer.body.count(b"<h1>429") for answer in answers] == [0, 0, 1]


LOCAL = "tollbar_zone $arg_l zone=local:1m rate=1r/h burst=1;"


def several(machines, zone=WAIT, y=ONCE):
    """Locations with two limits of the store, z and y, and with a local one."""
    store = machines.begin_store()
    more = f"{LOCAL} tollbar_zone $arg_l zone=y:1m {y} sync={store.url} nodes=1;"
    server = "".join(f"location /{name} {{ {' '.join(f'tollbar zone={zone} nodelay;' for zone in limits)} {CONTENT} }}"
                     for name, limits in {"zy": "zy", "yz": "yz", "z": "z", "y": "y", "zl": ["z", "local"], "l": ["local"]}.items())
    nginx = machines.add(**{**machines.parts(zone, 1, more=more), "server": server + PAGES})
    wait_for_circuit(nginx, "closed")
    wait_until(lambda: zone_of(nginx, "y")["circuit"] == "closed", "the other circuit is closed")
    return nginx


def test_who_is_refused_elsewhere_is_not_charged(machines):
    """A local limit refuses: the store is not asked."""
    nginx = several(machines)
    answers = undisturbed([nginx], lambda run: nginx.each(*[f"/zl?k={run}&l={run}"] * 10, *[f"/z?k={run}"] * 5))
    assert statuses(answers) == [200] * 2 + [429] * 8 + [200] * 3 + [429] * 2


def test_who_is_refused_by_the_store_is_not_charged_elsewhere(machines):
    nginx = several(machines, zone=ONCE)
    answers = undisturbed([nginx], lambda run: nginx.each(*[f"/zl?k={run}&l={run}-{n}" for n in range(4)],
                                                          *[f"/l?l={run}-{n}" for n in range(4) for _ in range(3)]))
    assert statuses(answers) == [200] + [429] * 3 + [200, 429, 429] + [200, 200, 429] * 3


@pytest.mark.parametrize("place", ["zy", "yz"])
def test_two_limits_of_the_store(machines, place):
    """y refuses ten. z, which is asked first, charges the first of them, because only then the node
    learns that y has nothing left. The permit that z served stays with the node for a moment."""
    nginx = several(machines)
    answers = undisturbed([nginx], lambda run: nginx.each(*[f"/{place}?k={run}&l={run}"] * 11, *[f"/z?k={run}"] * 6,
                                                          *[f"/{place}?k={run}&l={run}-b"] * 4, *[f"/y?l={run}-b"] * 2))
    assert statuses(answers[:11]) == [200] + [429] * 10
    assert statuses(answers[11:17]) in ([200] * 3 + [429] * 3, [200] * 4 + [429] * 2)
    # z refuses four, and y charges none of them.
    assert statuses(answers[17:]) == [429] * 4 + [200, 429]


@pytest.mark.parametrize("place", ["zy", "yz"])
def test_two_limits_at_once(machines, place):
    nginx = several(machines, y=WAIT.replace("5/min burst 5", "20/h burst 20"), zone=WAIT.replace("5/min burst 5", "30/h burst 30"))
    answers = undisturbed([nginx], lambda run: nginx.volley(f"/{place}?k={run}&l={run}", 40))
    # A request that got y's permit first is refused if others have taken z's last one meanwhile, and
    # the permit of y is lost, as docs/nginx.md says. 15, 19 and 20 were seen.
    assert 10 <= count(answers) <= 20 and count(answers) + count(answers, 429) == 40


@pytest.mark.parametrize("server", ["tollbar zone=z nodelay dry_run;", "tollbar_dry_run on; tollbar zone=z nodelay;"])
def test_nobody_waits_in_a_dry_run(machines, server):
    [nginx] = machines.begin(WAIT, count=1, server=f"location / {{ {server} {CONTENT} }} {PAGES}")
    assert nginx.get("/?k=a").status == 200
    assert zone_of(nginx)["waited"] == 0 and nginx.said("limiting requests, dry run, pending")


def test_headers_and_variables(machines):
    show = 'add_header X-All "$tollbar_status,$tollbar_zone,$tollbar_retry_after" always;'
    [nginx] = machines.begin(ONCE, count=1, more="tollbar_headers draft;",
                             server=f"location / {{ tollbar zone=z nodelay; {show} {CONTENT} }} {PAGES}")
    passed, refused = undisturbed([nginx], lambda run: nginx.each(*[f"/?k={run}"] * 2))
    assert passed.headers["x-all"] == "PASSED,z," and passed.headers["ratelimit-policy"] == '"z";q=1;w=3600'
    assert refused.status == 429 and refused.headers["x-all"].startswith("REJECTED,z,")
    # The store says when the next permit comes.
    assert 3000 < int(refused.headers["retry-after"]) <= 3600


def test_the_status_page(machines):
    nginx, asked = begin_waiting(machines, "/?k=a", "/?k=b", zone=ALLOW)
    numbers = metrics(nginx.get("/metrics").body.decode())
    assert [numbers[f"tollbar_lease_{name}", "z"] for name in ("circuit", "waiting", "waited_total", "wait_full_total")] == [0, 2, 2, 0]
    machines.store.resume()
    assert [status_of(connection) for connection in asked] == [200, 200]
    wait_for_circuit(nginx, "closed")
    numbers = metrics(nginx.get("/metrics").body.decode())
    assert [numbers[f"tollbar_lease_{name}", "z"] for name in ("circuit", "waiting", "waited_total")] == [1, 0, 2]


def test_under_valgrind(machines, tmp_path):
    """One process: waits that are answered, given up, and cut off by a reload; the end."""
    store = machines.begin_store()
    report = tmp_path / "valgrind.xml"
    more = f"{LOCAL} tollbar_headers both; tollbar_zone $arg_l zone=y:1m {ONCE} sync={store.url} nodes=1;"
    server = (f"location / {{ tollbar zone=z nodelay cost=$arg_b; {CONTENT} }}"
              f"location /both {{ tollbar zone=z nodelay; tollbar zone=y nodelay; tollbar zone=local nodelay; {CONTENT} }} {PAGES}")
    nginx = machines.add(wrapper=memory.wrapper(report),
                         **{**machines.parts(WAIT, 1, more=more, main="master_process off;"), "server": server})
    wait_for_circuit(nginx, "closed")
    assert fuzz.stream(nginx.port, 75, 1) > 7
    answers = undisturbed([nginx], lambda run: nginx.volley(f"/both?k=both{run}&l={run}", 12))
    assert count(answers) == 1 and count(answers, 429) == 11
    store.pause()
    for connection in ask(nginx, "/?k=c", "/?k=d"):
        connection.close()
    asked = ask(nginx, "/?k=e", "/?k=f")
    assert [status_of(connection) for connection in asked] == [429, 429]
    store.resume()
    wait_for_circuit(nginx, "closed")
    store.pause()
    asked = ask(nginx, "/?k=g", "/?k=h")
    os.kill(nginx.process.pid, signal.SIGHUP)
    wait_until(lambda: nginx.said("reconfiguring"), "it reloads")
    for connection in asked:
        connection.close()
    os.kill(nginx.process.pid, signal.SIGTERM)
    assert nginx.process.wait(PATIENCE) == 0
    assert memory.faults(report) == []
