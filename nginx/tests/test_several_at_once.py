"""Requests of two workers race for the last permits of a limit. The request that loses leaves the
other limits uncharged.

Between its look at the limit and its charge a request asks 30 other limits, so it often loses the
race. Only that limit ever refuses. The charges of a slow limit, `a`, are then as many as the
admissions. A loser keeps the time for which it held the permit, microseconds of an hour, so the
losers of a run keep less than one permit together.
"""

import re
import time

import pytest

from harness import load, places
from harness.client import connect
from harness.config import CONTENT
from harness.server import Nginx, end_all
from harness.streams import Streams
from harness.tollbar import Tollbar

OTHERS = 30
SECONDS = 1
# Rates of `b`. At 1400r/s, a permit in 0.7 ms, keys give no permits back, so nginx charges `b`
# after `a`. At 1000r/s it charges `b` before `a`.
RACED = ["1400r/s", "1000r/s"]


@pytest.fixture
def start(tmp_path):
    running = []

    def begin(kind, **parts):
        running.append(kind(tmp_path, workers=2, **parts))
        return running[-1].start()

    yield begin
    end_all(running)


def limits(prefix, key, slow, raced, first):
    """The zones and the limits `a`, `b`, for whose permits the requests race, and others. `first`
    is the first of `a` and `b`; the other is last."""
    zones = f"{prefix}_zone {key} zone=a:1m {slow}; {prefix}_zone {key} zone=b:1m rate={raced};"
    zones += "".join(f"{prefix}_zone {key} zone=o{n}:1m rate=100000r/s;" for n in range(OTHERS))
    a = f"{prefix} zone=a {'burst=900000 nodelay' if 'rate=' in slow else ''};"
    b = f"{prefix} zone=b;"
    others = "".join(f"{prefix} zone=o{n} burst=90000 nodelay;" for n in range(OTHERS))
    return zones, b + others + a if first == "b" else a + others + b


def run(nginx, log, port=0):
    """Returns the numbers of refused and admitted requests."""
    # A busy machine may need several runs for enough races.
    for _ in range(5):
        nginx_port, nginx.ports[0] = nginx.ports[0], nginx.ports[port]
        wrk = load.begin(nginx, connections=16, seconds=SECONDS)
        nginx.ports[0] = nginx_port
        wrk.communicate(timeout=300)
        # Until the last lines are written.
        size = -1
        while size != (size := (nginx.home / log).stat().st_size):
            time.sleep(0.2)
        text = (nginx.home / log).read_text()
        found = text.count("REJECTED"), text.count("PASSED")
        if found[0] > 1000 and found[1] > 100 * SECONDS:
            return found
    raise AssertionError(f"too few requests: {found}")


def owed(nginx):
    """What a key owes, by the message of a dry run."""
    excess = [float(re.search(r"excess: ([\d.]+)", message)[1]) for _, message in nginx.said("dry run", 'by zone "a"')]
    return excess[-1]


@pytest.mark.parametrize("first", "ab")
@pytest.mark.parametrize("raced", RACED)
@pytest.mark.parametrize("slow", ["1/h burst 100000", "100000/8760h algo fixed-window anchor first"])
def test_a_loser_leaves_no_limit_charged(start, slow, raced, first):
    zones, several = limits("tollbar", "$binary_remote_addr", f'policy="{slow}"', raced, first)
    nginx = start(Tollbar, modules=["ngx_http_tollbar_module.so"], http=zones, server=f"""
        location / {{ {several} {CONTENT} }}
        location /left {{ access_log off; tollbar zone=a cost=$arg_cost; add_header X-Left $tollbar_remaining always; {CONTENT} }}""")
    _, admitted = run(nginx, "access.log")
    charged = 100_000 - int(nginx.get("/left?cost=0").headers["x-left"])
    assert charged - admitted in (0, 1), (charged, admitted)


@pytest.mark.parametrize("first", "ab")
@pytest.mark.parametrize("raced", RACED)
def test_the_drop_in(start, raced, first):
    zones, several = limits("limit_req", "$binary_remote_addr", "rate=1r/m", raced, first)
    nginx = start(Nginx, modules=[places.DROPIN], http=zones, server=f"""
        location / {{ {several} {CONTENT} }}
        location /left {{ access_log off; limit_req zone=a; limit_req_dry_run on; {CONTENT} }}""")
    _, admitted = run(nginx, "access.log")
    nginx.get("/left")
    # Minus the permits that time has refilled.
    assert -1 < owed(nginx) - admitted < 1, (owed(nginx), admitted)


@pytest.mark.parametrize("first", "ab")
@pytest.mark.parametrize("raced", RACED)
def test_connections(start, raced, first):
    zones, several = limits("tollbar", "$remote_addr", "rate=1r/m", raced, first)
    answer = r'return "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";'.replace("\\r\\n", "\r\n")
    nginx = start(Streams, port_count=3, stream=f"""{zones}
        server {{ listen 127.0.0.1:@PORT1@; {several} {answer} }}
        server {{ listen 127.0.0.1:@PORT2@; access_log off; tollbar zone=a; tollbar_dry_run on; {answer} }}""")
    _, admitted = run(nginx, "stream.log", port=1)
    with connect(nginx.ports[2]) as one:
        while one.recv(1000):
            pass
    assert -1 < owed(nginx) - admitted < 1, (owed(nginx), admitted)
