"""What a request is told by a limit that many machines share: several limits, headers, variables,
dry run, the status page, valgrind."""

import json
import os
import re
import signal
import time

import pytest

from harness import fuzz, memory, paced, places
from harness.client import count, statuses
from harness.config import CONTENT
from harness.machines import PAGES, machines, wait_for_circuit, zone_of  # noqa: F401
from harness.server import PATIENCE, wait_until
from test_sync_machines import ASKED, BURST, RATE, ZONE
from test_tollbar_status_page import metrics

LOCAL = "tollbar_zone $arg_l zone=local:1m rate=1r/h burst=2;"
LIMITS = f"location / {{ tollbar zone=z nodelay; tollbar zone=local nodelay; {CONTENT} }}"
OTHER = f"location /other {{ tollbar zone=local nodelay; {CONTENT} }}"


def several(machines, zone=ZONE, server=LIMITS, more=LOCAL, nodes=1):
    machines.begin_store()
    parts = machines.parts(zone, nodes, more=more)
    nginx = machines.add(**{**parts, "server": f"{server} {OTHER} {PAGES}"})
    wait_for_circuit(nginx, "closed")
    return nginx


def spent(nginx):
    """Permits that the node has let through or holds."""
    zone = zone_of(nginx)
    return zone["granted"] + zone["overdrawn"] + zone["fallback_permits"]


@pytest.mark.parametrize("order", ["z first", "z last"])
def test_who_is_refused_elsewhere_is_not_charged(machines, order):
    server = LIMITS if order == "z first" else f"location / {{ tollbar zone=local nodelay; tollbar zone=z nodelay; {CONTENT} }}"
    nginx = several(machines, server=server)
    for _ in range(3):
        # A new key has no permits until its first lease, some milliseconds later. The other limit
        # does not charge these refusals.
        wait_until(lambda: nginx.get("/?k=a&l=a").status == 200, "a lease")
    assert statuses(nginx.each(*["/?k=a&l=a"] * 5)) == [429] * 5

    def at_rest():
        found = [zone_of(nginx)[name] for name in ("granted", "overdrawn", "denied")]
        time.sleep(0.25)
        return found == [zone_of(nginx)[name] for name in ("granted", "overdrawn", "denied")]

    # After the last admission the node asked for another lease.
    wait_until(at_rest, "nothing is on its way from the store")
    before = zone_of(nginx)
    assert count(nginx.volley("/?k=b&l=a", 30)) == 0
    after = zone_of(nginx)
    # For a key that the other limit refused, the node asked for no lease and counted no refusal.
    assert [after[name] for name in ("granted", "overdrawn", "denied")] == [before[name] for name in ("granted", "overdrawn", "denied")]


def test_who_is_refused_here_is_not_charged_elsewhere(machines):
    nginx = several(machines, zone="rate=1r/h burst=5 lease=1ms overdraft=1")
    # All clients together have six permits, and the node has few of them at first. The other limit
    # would admit three of each client.
    answers = []

    def is_admitted():
        answers.append(nginx.get(f"/?k=a&l={len(answers)}").status)
        return answers[-1] == 200

    # A new key has no permits until its first lease.
    wait_until(is_admitted, "a lease")
    for _ in range(11):
        is_admitted()
    assert 1 <= answers.count(200) <= 6
    for n, status in enumerate(answers):
        left = 2 if status == 200 else 3
        assert count(nginx.each(*[f"/other?l={n}"] * 4)) == left


def test_two_that_are_shared(machines):
    """The first is looked at before the second is charged, and who is refused by what it has is
    asked for at the store: else it would never have any."""
    store = machines.begin_store()
    more = f"tollbar_zone $arg_l zone=y:1m {ZONE} sync={store.url} nodes=1;"
    server = f"location / {{ tollbar zone=z nodelay; tollbar zone=y nodelay; {CONTENT} }} {PAGES}"
    nginx = machines.add(**{**machines.parts(ZONE, 1, more=more), "server": server})
    wait_for_circuit(nginx, "closed")
    run = paced.paced([nginx.port], ASKED, 3, path="/?k=a&l=a")
    assert run.lost == 0 and run.excess(RATE) <= BURST
    assert run.reached() >= 0.6 * RATE


def test_headers(machines):
    nginx = several(machines, more=LOCAL + "tollbar_headers both;", server=f"location / {{ tollbar zone=z nodelay; {CONTENT} }}",
                    nodes=2)
    first = nginx.get("/?k=a")
    assert first.headers["x-ratelimit-limit"] == str(BURST) and 0 <= int(first.headers["x-ratelimit-remaining"]) < BURST
    assert first.headers["ratelimit-policy"] == '"z";q=100;w=1'
    # Only the store knows when the bucket is full again, so there is no reset.
    assert "x-ratelimit-reset" not in first.headers and ";t=" not in first.headers["ratelimit"]
    refused = [answer for answer in nginx.volley("/?k=a", 60) if answer.status == 429]
    # An estimate of some milliseconds, rounded up.
    assert refused and {answer.headers["retry-after"] for answer in refused} == {"1"}
    assert {answer.headers["x-ratelimit-remaining"] for answer in refused} == {"0"}


def test_headers_of_several(machines):
    nginx = several(machines, more=LOCAL + "tollbar_headers draft;")
    headers = nginx.get("/?k=a&l=a").headers
    # Limits with a table come first, in any order of the configuration.
    assert headers["ratelimit-policy"] == '"local";q=1;w=3600, "z";q=100;w=1'
    assert headers["ratelimit"].startswith('"local";r=2;t=3600, "z";r=')


def test_variables(machines):
    show = 'add_header X-All "$tollbar_status,$tollbar_zone,$tollbar_remaining,$tollbar_reset,$tollbar_retry_after" always;'
    nginx = several(machines, server=f"location / {{ tollbar zone=z nodelay; {show} {CONTENT} }}")
    said = {tuple(answer.headers["x-all"].split(",")) for answer in nginx.volley("/?k=a", 60)}
    passed = {words for words in said if words[0] == "PASSED"}
    assert passed and {(words[1], words[3], words[4]) for words in passed} == {("z", "", "")}
    assert {words for words in said if words[0] == "REJECTED"} == {("REJECTED", "z", "0", "", "1")}


@pytest.mark.parametrize("server", [f"location / {{ tollbar zone=z nodelay dry_run; {CONTENT} }}",
                                    f"location / {{ tollbar_dry_run on; tollbar zone=z nodelay; {CONTENT} }}"])
def test_dry_run(machines, server):
    nginx = several(machines, server=server)
    assert count(nginx.volley("/?k=a", 60)) == 60
    assert zone_of(nginx)["denied"] > 0 and spent(nginx) > 0
    reasons = {line.split(", ")[2] for _, line in nginx.said("limiting requests, dry run, ", ', by zone "z"')}
    assert reasons and reasons <= {"pending", "over the rate", "denied by the store"}


def test_costs(machines):
    nginx = several(machines, server=f"location / {{ tollbar zone=z nodelay cost=$arg_c; {CONTENT} }}")
    wait_until(lambda: nginx.get("/?k=a&c=3").status == 200, "a lease of three")
    assert {answer.status for answer in nginx.volley("/?k=a&c=0", 30)} == {200}
    refused = nginx.get("/?k=a&c=19")
    assert refused.status == 429 and "retry-after" not in refused.headers
    assert nginx.said("cost 19 is more than the burst ever allows, by zone")


def test_the_status_page(machines):
    nginx = several(machines, zone=ZONE + " fallback=deny name=a\\\\b", nodes=3)
    paced.paced([nginx.port], ASKED, 1, path="/?k=a&l=")
    zone = {}

    def at_rest():
        before = zone_of(nginx)
        time.sleep(0.25)
        zone.update(zone_of(nginx))
        # Idle, it still asks now and then whether the store is there.
        return zone["circuit"] == "closed" and {**before, "asked": 0} == {**zone, "asked": 0}

    wait_until(at_rest, "nothing is on its way from the store")
    assert (zone["sync"], zone["nodes"], zone["fallback"], zone["circuit"]) == ("a\\b", 3, "deny", "closed")
    assert zone["key"] == "$arg_k" and zone["policy"] == "100/s burst 21" and "slots" not in zone
    assert 0.8 * (1 << 20) / 2 < zone["bytes"] < 1 << 20 and zone["capacity"] >= 1000
    assert zone["granted"] > 0 and zone["asked"] > 0 and zone["denied"] > 0
    numbers = metrics(nginx.get("/metrics").body.decode())
    assert numbers["tollbar_lease_circuit", "z"] == 1
    for name, json_name in {"granted_permits_total": "granted", "overdrawn_permits_total": "overdrawn", "fallback_permits_total": "fallback_permits",
                            "uncounted_permits_total": "uncounted", "denied_total": "denied", "queue_full_total": "queue_full",
                            "full_total": "full", "opened_total": "opened", "owed_permits": "owed"}.items():
        assert numbers[f"tollbar_lease_{name}", "z"] == zone[json_name]
    # Each refusal has one reason.
    reasons = {"pending": "denied_pending", "denied by the store": "denied_by_store", "store down": "denied_by_fallback", "table full": "full",
               "queue full": "wait_full"}
    for reason, json_name in reasons.items():
        assert numbers["tollbar_lease_refused_total", "z", reason] == zone[json_name]
    assert zone["denied"] == sum(zone[json_name] for json_name in reasons.values())
    assert zone["denied_by_store"] + zone["denied_pending"] > 0
    # The page has no metric of leases for a zone with a table, and none of tables for a zone with a
    # lease.
    assert ("tollbar_table_used_slots", "local") in numbers and ("tollbar_table_used_slots", "z") not in numbers
    assert ("tollbar_lease_granted_permits_total", "local") not in numbers
    machines.store.kill()
    wait_for_circuit(nginx, "open")
    written = metrics(nginx.get("/metrics").body.decode())
    assert written["tollbar_lease_circuit", "z"] == 2
    # C9: the alerts name metrics that are there, and the store's state among them.
    alerts = (places.ROOT / "examples" / "metrics" / "alerts.yml").read_text()
    named = set(re.findall(r"\btollbar_lease_\w+", alerts))
    assert "tollbar_lease_circuit" in named and named <= {key[0] for key in written}, named


def test_a_status_page_of_nothing_but_nodes(machines):
    nginx = several(machines, more="tollbar_zone $arg_l zone=local:1m rate=1r/h burst=9 " + "sync=redis://127.0.0.1:1 nodes=1 "
                    "lease=1ms overdraft=1;")
    assert {zone["name"] for zone in json.loads(nginx.get("/json").body)["zones"]} == {"z", "local"}
    assert {key[1] for key in metrics(nginx.get("/metrics").body.decode())} == {"z", "local"}


def test_under_valgrind(machines, tmp_path):
    """One process: the store comes, goes and comes again; odd requests; a second configuration; the
    end."""
    store = machines.begin_store()
    report = tmp_path / "valgrind.xml"
    server = (f"location / {{ tollbar zone=z nodelay cost=$arg_b; tollbar zone=local nodelay; {CONTENT} }}"
              f"location /redirect {{ tollbar zone=y nodelay; try_files /none /; }} {PAGES}")
    more = (f"{LOCAL.replace('1r/h', '1000r/s')} tollbar_headers both;"
            f"tollbar_zone $arg_k$arg_a zone=y:364k policy=\"50/s burst 20\" sync=unix:{store.socket} nodes=2 fallback=deny;")
    nginx = machines.add(wrapper=memory.wrapper(report),
                         **{**machines.parts(ZONE, 2, more=more, main="master_process off;"), "server": server})
    wait_for_circuit(nginx, "closed")
    for _ in range(2):
        assert fuzz.stream(nginx.port, 75, 1) > 7
        paced.paced([nginx.port], 40, 1)
        store.kill()
        wait_for_circuit(nginx, "open")
        paced.paced([nginx.port], 40, 1)
        store.start()
        wait_for_circuit(nginx, "closed")
    assert nginx.get("/metrics").status == 200
    os.kill(nginx.process.pid, signal.SIGHUP)
    wait_until(lambda: nginx.said("reconfiguring"), "it reloads")
    os.kill(nginx.process.pid, signal.SIGTERM)
    assert nginx.process.wait(PATIENCE) == 0
    assert memory.faults(report) == []
