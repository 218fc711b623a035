"""What several nginx do while the store fails, and what they say about it."""

import time

import pytest

from harness import paced
from harness.machines import machines, wait_for_circuit, zone_of  # noqa: F401
from harness.server import wait_until
from test_sync_machines import ASKED, BURST, RATE, ZONE, holds, ports


def circuits(nginx):
    """What the log says of the store: how loud, and whether it is there."""
    return [(level, "not" not in words) for level, words in nginx.said('zone "z": the store')]


def test_share(machines):
    machines.begin(ZONE)
    store = machines.store
    times = []
    run = paced.paced(ports(machines), ASKED, 7, events=[(2, lambda: times.append(time.monotonic())), (2, store.kill), (5, store.start),
                                                         (5, lambda: times.append(time.monotonic()))])
    outage = times[1] - times[0]
    # Without the store both machines together admit at most the limit, half of it each.
    holds(run, 2)
    # A share has a permit every 20 ms and gets a request every 7 ms, so both admit 83 a second at
    # best, and one alone 42.
    assert run.reached(0, 2) >= 0.8 * RATE and run.reached(2.5, 5) >= 0.7 * RATE and run.reached(5.5, 7) >= 0.8 * RATE
    for nginx in machines.nginxes:
        zone = zone_of(nginx)
        # Its share is 50 a second. It may find the store some time after that has begun.
        assert 80 < zone["fallback_permits"] < 50 * outage + 70 and zone["uncounted"] == 0 and zone["opened"] >= 1
        wait_for_circuit(nginx, "closed")
        said = wait_until(lambda: circuits(nginx)[-1:] == [("notice", True)] and circuits(nginx), "the log says so, too")
        assert ("error", False) in said
        assert nginx.said("does not answer", "each machine admits its share of the rate")
        assert nginx.said("the store answers again")


def test_share_is_a_share(machines):
    """Of three machines one is asked: it has a third."""
    [nginx] = machines.begin("rate=120r/s burst=40", count=1, nodes=3)
    run = paced.paced([nginx.port], ASKED, 4, events=[(1, machines.store.kill)])
    assert 0.7 * 40 <= run.reached(1.5, 4) and run.rate(1.5, 4) <= 1.2 * 40


def test_deny(machines):
    machines.begin(ZONE + " fallback=deny")
    store = machines.store
    run = paced.paced(ports(machines), ASKED, 6, events=[(1, store.kill), (4, store.start)])
    holds(run, 2)
    assert run.rate(2, 4) == 0 and run.reached(0, 1) >= 0.8 * RATE and run.reached(4.5, 6) >= 0.8 * RATE
    assert all(zone_of(nginx)["fallback_permits"] == 0 for nginx in machines.nginxes)
    assert machines.nginxes[0].said("does not answer", "requests that no lease covers are refused")


def test_allow(machines):
    machines.begin(ZONE + " fallback=allow")
    store = machines.store
    run = paced.paced(ports(machines), ASKED, 5, events=[(1, store.kill), (3, store.start)])
    assert run.lost == 0
    assert run.reached(1.5, 3) >= 1.8 * ASKED and run.rate(4, 5) <= RATE + BURST
    assert all(zone_of(nginx)["uncounted"] > 100 for nginx in machines.nginxes)
    assert machines.nginxes[0].said("does not answer", "requests that no lease covers pass uncounted")


def test_a_flush(machines):
    """The machines remember what the store forgets, but for the last lease: the machine that asks
    first does not know what the other was granted since its own last question, two permits."""
    machines.begin(ZONE)
    flush = [(n / 2, lambda: machines.store.command("FLUSHALL")) for n in range(1, 8)]
    run = paced.paced(ports(machines), ASKED, 4, events=flush)
    holds(run, 2 + 2 * len(flush))
    assert run.reached() >= 0.8 * RATE


@pytest.mark.parametrize("fallback", ["share", "deny"])
def test_a_store_that_does_not_answer_keeps_nobody_waiting(machines, fallback):
    """SIGSTOP is the worst: connections are taken, and nothing comes. A request takes well under a
    millisecond; a call that waited for the store would take as long as it is stopped, three
    seconds, so two tell them apart on the busiest machine."""
    machines.begin(f"{ZONE} fallback={fallback}")
    store = machines.store
    run = paced.paced(ports(machines), ASKED, 6, events=[(1, store.pause), (4, store.resume)])
    holds(run, 2)
    assert run.slowest() < 2
    assert sorted(run.took)[len(run.took) // 2] < 0.05
    assert run.reached(5, 6) >= 0.7 * RATE
    assert run.rate(2, 4) == 0 if fallback == "deny" else run.reached(1.5, 4) >= 0.7 * RATE


def test_a_store_that_was_never_there(machines):
    store = machines.begin_store()
    store.kill()
    nginx = machines.add(**machines.parts(ZONE, 2))
    run = paced.paced([nginx.port], ASKED, 2)
    assert 0.3 * RATE <= run.reached() and run.rate() <= 0.7 * RATE
    assert zone_of(nginx)["granted"] == 0
    store.start()
    wait_for_circuit(nginx, "closed")
    assert paced.paced([nginx.port], ASKED, 2).reached(0.5) >= 0.8 * RATE


def test_a_store_that_refuses(machines):
    """A wrong password is a store that does not answer, and the log has its words."""
    store = machines.begin_store("--requirepass", "secret")
    nginx = machines.add(**machines.parts(ZONE, 2, url=f"redis://:wrong@127.0.0.1:{store.port}"))
    wait_for_circuit(nginx, "open")
    assert nginx.get("/?k=a").status == 200
    assert nginx.said("the store does not answer: the server refuses this user or password (AUTH): WRONGPASS")


@pytest.mark.parametrize("rules, words", [
    ("-evalsha", "the server does not let this user run a command or use a key (EVALSHA"),
    ("-set", "the server does not let this user run the script, which needs GET, MGET, SET and TIME (EVALSHA"),
    ("-script|load", "the server does not let this user run a command or use a key (SCRIPT LOAD): NOPERM")])
def test_a_store_that_lacks_a_right(machines, rules, words):
    """The log names the command."""
    store = machines.begin_store()
    assert store.command("ACL", "SETUSER", "ann", "on", ">pass", "~*", "+@all", rules) == b"+OK"
    nginx = machines.add(**machines.parts(ZONE, 2, url=f"redis://ann:pass@127.0.0.1:{store.port}"))
    wait_for_circuit(nginx, "open")
    assert nginx.said("the store does not answer", words)
    assert store.command("ACL", "SETUSER", "ann", "+@all") == b"+OK"
    wait_for_circuit(nginx, "closed")


def test_a_store_that_is_full(machines):
    store = machines.begin_store()
    nginx = machines.add(**machines.parts(ZONE, 2))
    wait_for_circuit(nginx, "closed")
    assert store.command("CONFIG", "SET", "maxmemory", "1") == b"+OK"
    wait_for_circuit(nginx, "open")
    assert nginx.said("the store does not answer: the server is out of memory (EVALSHA", "OOM")
