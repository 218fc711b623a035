"""Requests that have to wait: that they do, for how long, and what may happen to them meanwhile."""

import re
import time

import pytest

from harness.client import connect, count, request, statuses
from harness.config import CONTENT
from harness.edges import again_if_late
from harness.server import wait_until

# nginx looks at its clock once per turn of its event loop, so a wait may begin a little before we
# sent the request.
EARLY = 0.05
# How late an answer may be on a machine that is busy with other things.
LATE = 3.0


def parts(limit, rate="2r/s"):
    return {
        "http": f"limit_req_zone $arg_k zone=z:1m rate={rate};",
        "server": f"location / {{ {limit} add_header X-Limit $limit_req_status always; {CONTENT} }}",
    }


def assert_waits(answers, expected, lag):
    waits = sorted(a.took for a in answers if a.status == 200)
    assert len(waits) == len(expected)
    for found, wanted in zip(waits, expected):
        assert wanted - EARLY - lag <= found <= wanted + LATE, waits


@pytest.mark.parametrize("limit, waits", [
    ("limit_req zone=z burst=3;", [0, 0.5, 1.0, 1.5]),
    ("limit_req zone=z burst=3 delay=2;", [0, 0, 0, 0.5]),
    ("limit_req zone=z burst=4 delay=1;", [0, 0, 0.5, 1.0, 1.5]),
    ("limit_req zone=z burst=3 delay=3;", [0, 0, 0, 0]),
    ("limit_req zone=z burst=3 nodelay;", [0, 0, 0, 0]),
])
def test_a_volley_is_spread_over_time(launch, limit, waits):
    nginx = launch(**parts(limit))
    # A busy machine tries again until ten requests took less than a third of a second. No permit
    # comes back in that time.
    for key in range(10):
        began = time.monotonic()
        answers = nginx.volley(f"/?k={key}", 10)
        lag = answers[-1].done - began
        if answers[-1].status == 503 and lag < 0.3:
            break
    else:
        raise AssertionError("the last of ten was never refused within a third of a second")
    assert_waits(answers, waits, lag)
    assert count(answers, 503) == 10 - len(waits)
    # nginx refuses at once, and not after the delayed requests.
    assert all(a.took < max(waits) + LATE for a in answers if a.status == 503)


@again_if_late(0.03)
def test_without_nodelay_the_longest_wait_is_not_that_of_nodelay(launch):
    """The test above distinguishes the kinds of delay by their times, with bounds for slow
    machines; this one by a header."""
    for limit, delayed in (("burst=3", 3), ("burst=3 delay=2", 1), ("burst=3 nodelay", 0)):
        nginx = launch(**parts(f"limit_req zone=z {limit};", "30r/s"))
        found = [a.headers.get("x-limit") for a in nginx.volley("/?k=a", 12)]
        # On a slow machine permits may come back between the first request and the last.
        assert found.count("PASSED") >= 4 - delayed
        assert (found.count("DELAYED") > 0) == (delayed > 0)


@again_if_late(1)
def test_a_delayed_client_gets_the_whole_answer(launch):
    nginx = launch(**parts("limit_req zone=z burst=1;", "1r/s"))
    first, second = nginx.each("/?k=a", "/?k=a")
    assert second.headers["x-limit"] == "DELAYED"
    assert second.body == first.body and len(first.body) == 43


def test_other_keys_do_not_wait(launch):
    nginx = launch(**parts("limit_req zone=z burst=5;", "10r/m"))
    waiting = connect(nginx.port)
    nginx.get("/?k=a")
    waiting.sendall(request("/?k=a"))
    wait_until(lambda: nginx.said("delaying request"), "the request is delayed")
    # The one that waits does so for six seconds.
    began = time.monotonic()
    assert statuses(nginx.each("/?k=b", "/?k=c")) == [200, 200]
    assert time.monotonic() - began < 5
    waiting.close()


def test_a_client_that_goes_away_while_it_waits(launch):
    nginx = launch(**parts("limit_req zone=z burst=1;", "6r/m"))
    workers = nginx.workers()
    nginx.get("/?k=a")
    gone = connect(nginx.port)
    gone.sendall(request("/?k=a"))
    wait_until(lambda: nginx.said("delaying request"), "the request is delayed")
    gone.close()
    began = time.monotonic()
    log = nginx.access_log(lines=2)
    # It would have waited for ten seconds; that it went is noticed when it goes.
    assert time.monotonic() - began < 8
    assert log[1] == "499 GET /?k=a [DELAYED]"
    # The permit of the request that was given up stays charged.
    assert nginx.get("/?k=a").status == 503
    assert nginx.workers() == workers


def test_many_clients_that_go_away_leave_nothing_behind(launch):
    nginx = launch(**parts("limit_req zone=z burst=1;", "6r/m"))
    workers = nginx.workers()
    nginx.each(*[f"/?k={i}" for i in range(50)])
    gone = []
    for i in range(50):
        gone.append(connect(nginx.port))
        gone[-1].sendall(request(f"/?k={i}"))
    wait_until(lambda: len(nginx.said("delaying request")) == 50, "all are delayed")
    for s in gone:
        s.close()
    nginx.access_log(lines=100)
    assert len([line for line in nginx.access_log() if line.startswith("499 ")]) == 50
    assert nginx.get("/?k=new").status == 200
    assert nginx.workers() == workers


def test_a_request_that_waits_survives_a_reload(launch):
    nginx = launch(**parts("limit_req zone=z burst=1;", "20r/m"))
    nginx.get("/?k=a")
    waiting = connect(nginx.port)
    waiting.sendall(request("/?k=a"))
    wait_until(lambda: nginx.said("delaying request"), "the request is delayed")
    assert nginx.reload()
    waiting.settimeout(30)
    assert waiting.recv(64).startswith(b"HTTP/1.1 200 ")
    waiting.close()


def test_the_body_of_a_post_that_waits(launch):
    """The body is on its way while the request waits; what answers it afterwards still sees all of
    it."""
    nginx = launch(port_count=2, http=f"""
        limit_req_zone $arg_k zone=z:1m rate=20r/m;
        server {{ listen 127.0.0.1:@PORT1@; location / {{ return 200 $http_content_length; }} }}""",
        server="location / { limit_req zone=z burst=1; proxy_pass http://127.0.0.1:@PORT1@; }")
    nginx.get("/?k=a")
    body = b"x" * 300000
    s = connect(nginx.port)
    s.sendall(request("/?k=a", method="POST", headers=[f"Content-Length: {len(body)}"]) + body[:1000])
    wait_until(lambda: nginx.said("delaying request"), "the request is delayed")
    s.sendall(body[1000:])
    found = b""
    while piece := s.recv(65536):
        found += piece
    assert found.startswith(b"HTTP/1.1 200 ") and found.endswith(b"300000")


@again_if_late(1)
def test_the_line_of_a_delay(launch):
    nginx = launch(**parts("limit_req zone=z burst=1;", "1r/s"))
    nginx.each("/?k=a", "/?k=a")
    [(level, message)] = nginx.said("delaying")
    assert level == "warn"
    assert re.fullmatch(
        r'delaying request, excess: (1\.000|0\.\d\d\d), by zone "z", client: 127\.0\.0\.1, server: , '
        r'request: "GET /\?k=a HTTP/1\.1", host: "tollbar\.test"', message)
