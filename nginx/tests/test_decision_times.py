"""How long decisions take, on the page for Prometheus."""

import re

from harness.client import Kept
from harness.config import CONTENT
from harness.tollbar import Tollbar, launcher

launch = launcher(Tollbar)

PAGE = "location /metrics { tollbar_status_page prometheus; }"
ZONES = "tollbar_zone $arg_k zone=z:1m rate=100r/s; tollbar_zone $arg_j zone=y:1m policy=5/h;"


def parts(page=PAGE):
    return {
        "http": ZONES,
        "server": f"location / {{ tollbar zone=z nodelay; {CONTENT} }}"
                  f"location /two {{ tollbar zone=z nodelay; tollbar zone=y; {CONTENT} }}"
                  f"location /free {{ {CONTENT} }} {page}",
    }


def times(nginx):
    """({bound: count}, sum, count) of the histogram."""
    page = nginx.get("/metrics").body.decode()
    assert page.count("# TYPE tollbar_decision_nanoseconds histogram\n") == 1
    found = re.findall(r'(?m)^tollbar_decision_nanoseconds_bucket\{le="([^"]+)"\} (\d+)$', page)
    total, count = (
        int(re.search(rf"(?m)^tollbar_decision_nanoseconds_{word} (\d+)$", page)[1]) for word in ("sum", "count")
    )
    return {bound: int(number) for bound, number in found}, total, count


def ask(nginx, path, count):
    with Kept(nginx.port) as kept:
        for _ in range(count):
            kept.send(path)
            kept.read()


def test_one_in_1024_requests_is_measured(launch):
    nginx = launch(**parts())
    bounds, total, count = times(nginx)
    assert list(bounds) == [str(1 << n) for n in range(8, 25)] + ["+Inf"]
    assert (set(bounds.values()), total, count) == ({0}, 0, 0)
    # The first of a process, and then each 1,024th, whether a limit admits it or refuses it.
    ask(nginx, "/?k=a", 1)
    assert times(nginx)[2] == 1
    ask(nginx, "/two?k=a&j=a", 1023)
    assert times(nginx)[2] == 1
    ask(nginx, "/two?k=a&j=a", 1)
    bounds, total, count = times(nginx)
    assert count == 2 and bounds["+Inf"] == 2 and total > 0
    assert sorted(bounds.values()) == list(bounds.values())
    # Requests without a limit count for nothing.
    ask(nginx, "/free", 1100)
    assert times(nginx)[2] == 2
    # The times of all workers are together, and a reload goes on.
    assert nginx.reload() and times(nginx)[2] == 2
    ask(nginx, "/?k=a", 1)
    assert times(nginx)[2] == 3


def test_nothing_is_measured_that_no_page_shows(launch):
    nginx = launch(**parts(page=""))
    ask(nginx, "/?k=a", 3)
    assert nginx.reload(**parts()) and times(nginx)[2] == 0
    nginx.reload(http="", server=f"location / {{ {CONTENT} }} {PAGE}")
    assert "decision_nanoseconds" not in nginx.get("/metrics").body.decode()
