"""HTTP header fields: every dialect, the reader's results, and the middleware's choice of
dialects."""

from __future__ import annotations

import json
import re

import pytest
from test_web import call_wsgi, wsgi_app

from tollbar import Limiter, PolicyError, Policy, Table, http, wsgi

SECOND = 1_000_000_000


def refused() -> http.Limit:
    limiter = Limiter("2/min")
    assert limiter.check(2, at=0)
    decision = limiter.check(1, at=0)
    return http.Limit("a", "2/min", decision, limiter.more_after(decision, 1, at=0))


@pytest.mark.parametrize(
    "options, expected",
    [
        ({"draft": None}, [("Retry-After", "30")]),
        ({"draft": None, "retry_after": False}, []),
        (
            {"draft": None, "legacy": "seconds"},
            [("Retry-After", "30"), ("X-RateLimit-Limit", "2"), ("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "60")],
        ),
        (
            {"draft": None, "legacy": "epoch", "retry_after": False},
            [("X-RateLimit-Limit", "2"), ("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "1060")],
        ),
        (
            {"draft": 6, "retry_after": False},
            [("RateLimit-Limit", "2"), ("RateLimit-Remaining", "0"), ("RateLimit-Reset", "30"), ("RateLimit-Policy", "2;w=60")],
        ),
        (
            {"draft": 7, "retry_after": False},
            [("RateLimit-Policy", "2;w=60"), ("RateLimit", "limit=2, remaining=0, reset=30")],
        ),
        ({"retry_after": False}, [("RateLimit-Policy", '"a";q=2;w=60'), ("RateLimit", '"a";r=0;t=30')]),
    ],
)
def test_each_dialect(options, expected):
    written = http.fields([refused()], time_ns=1000 * SECOND, **options)
    assert written == expected
    if options.get("draft", 11):
        assert http.read(written, time_ns=0) == http.Seen(2, 60 * SECOND, 0, 30 * SECOND, None)
        assert http.read({name.lower(): value for name, value in written}).limit == 2


def test_a_list_is_described_by_the_policy_that_bound():
    limiter = Limiter("10/s; 12/day")
    assert limiter.check(10, at=0) and limiter.check(2, at=SECOND)
    decision = limiter.check(1, at=2 * SECOND)
    assert decision.bound == 1
    assert ("RateLimit-Policy", '"a";q=12;w=86400') in http.fields([http.Limit("a", Policy("10/s; 12/day"), decision)])


def test_a_problem():
    one = refused()
    body = json.loads(http.problem([one, one._replace(name='b "c"', decision=Limiter("1/s").check())], 503))
    assert body["status"] == 503 and body["violated-policies"] == ["a"] and body["type"].endswith("#quota-exceeded")


def test_what_is_wrong_is_said():
    one = refused()
    with pytest.raises(ValueError, match="draft is 6, 7, 11 or None, not 8"):
        http.fields([one], draft=8)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="legacy is 'seconds', 'epoch' or None, not 'minutes'"):
        http.fields([one], legacy="minutes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected 1 to 16 limits, found 0"):
        http.fields([])
    with pytest.raises(ValueError, match="expected 1 to 16 limits, found 17"):
        http.fields([one] * 17)
    with pytest.raises(PolicyError):
        http.fields([one._replace(policy="2/eon")])
    with pytest.raises(TypeError):
        http.fields([one._replace(decision=None)])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=re.escape("more_after() takes the Decision first")):
        Table("1/s", capacity=10).more_after("k", one.decision)  # type: ignore[arg-type]


def test_what_a_client_reads_is_hostile():
    # A value with a line break cannot add a line.
    assert http.read({"Server": "x\nRetry-After: 9"}).retry_after_ns is None
    assert http.read([("Retry-After", "Sun, 06 Nov 1994 08:49:40 GMT")], time_ns=784_111_777 * SECOND).retry_after_ns == 3 * SECOND
    assert http.read([("Retry-After", "\u2603"), ("RateLimit", '"')]) == http.Seen(None, None, None, None, None)


def test_the_middleware_writes_the_dialects_that_it_is_told():
    seen = call_wsgi(wsgi.RateLimit(wsgi_app, "2/min", headers=("legacy", "draft-07")))[1]
    assert seen["x-ratelimit-remaining"] == "1" and seen["ratelimit"] == "limit=2, remaining=1, reset=30"
    seen = call_wsgi(wsgi.RateLimit(wsgi_app, "2/min", headers="draft-06"))[1]
    assert seen["ratelimit-limit"] == "2"
    assert "ratelimit" not in call_wsgi(wsgi.RateLimit(wsgi_app, "2/min", headers=False))[1]
    with pytest.raises(ValueError, match="headers names 'legacy', .* not 'draft-12'"):
        wsgi.RateLimit(wsgi_app, "2/min", headers="draft-12")
    with pytest.raises(ValueError, match="at most one draft dialect"):
        wsgi.RateLimit(wsgi_app, "2/min", headers=("draft-06", "draft-11"))
