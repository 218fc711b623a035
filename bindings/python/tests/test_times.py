"""S52: how long decisions take, as a histogram."""

import asyncio
import re

import pytest

import tollbar
from tollbar import Table, Times, _times, asgi, wsgi


@pytest.fixture
def clock(monkeypatch):
    """A clock that the tests move."""
    now = [0]
    monkeypatch.setattr(_times, "perf_counter_ns", lambda: now[0])
    return now


def values(times, name="client"):
    text = tollbar.metrics({}, times={name: times})
    return dict(re.findall(r"tollbar_decision_nanoseconds(\S+) (\d+)\n", text))


def test_s52_one_in_1024_requests_is_measured(clock):
    lasts = {0: 256, 1024: 257, 2048: 3_000, 3072: 10**9}
    seen = []

    def key(scope):
        clock[0] += lasts.get(len(seen), 0)
        seen.append(1)
        return "key"

    async def app(scope, receive, send):
        clock[0] += 10**12
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def nothing(*_):
        pass

    times = Times()
    limited = asgi.RateLimit(app, "5/s", key=key, times=times)
    scope = {"type": "http", "headers": [], "method": "GET", "path": "/"}

    async def ask():
        for _ in range(3 * 1024 + 2):
            await limited(dict(scope), nothing, nothing)

    asyncio.run(ask())
    found = values(times)
    bucket = {bound: found[f'_bucket{{limit="client",le="{bound}"}}'] for bound in (256, 512, 2048, 4096, 1 << 24, "+Inf")}
    assert bucket == {256: "1", 512: "2", 2048: "2", 4096: "3", 1 << 24: "3", "+Inf": "4"}
    assert found['_sum{limit="client"}'] == str(256 + 257 + 3_000 + 10**9)
    assert found['_count{limit="client"}'] == "4" and len(found) == 20


def test_s52_wsgi_and_metrics_beside_tables(clock):
    def app(environ, start_response):
        start_response("200 OK", [])
        return [b""]

    def key(environ):
        clock[0] += 1_000
        return "key"

    times, table = Times(every=2), Table("1/min", 10)
    limited = wsgi.RateLimit(app, table, key=key, times=times)
    for _ in range(5):
        list(limited({"REQUEST_METHOD": "GET"}, lambda *_: None))
    # Refused requests are measured, too.
    assert values(times, 'a"b')['_count{limit="a\\"b"}'] == "3"
    text = tollbar.metrics({"t": table}, openmetrics=True, times={"x": times, "y": Times()})
    assert text.endswith("# EOF\n") and text.count("# TYPE tollbar_decision_nanoseconds histogram\n") == 1
    assert 'tollbar_decision_nanoseconds_sum{limit="x"} 3000\n' in text
    assert 'tollbar_decision_nanoseconds_count{limit="y"} 0\n' in text
    with pytest.raises(ValueError, match="from 1 on, not 0"):
        Times(0)
