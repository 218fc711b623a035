"""docs/from-limits.md: both sides of each row of its tables run, and
answer alike."""

import random
import re
import warnings
from pathlib import Path

import fastapi
import flask
import flask_limiter
import limits
import pytest
import slowapi
import slowapi.errors
import time_machine
import tollbar
import tollbar.fastapi
import tollbar.flask
from flask_limiter.util import get_remote_address
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter
from slowapi.util import get_remote_address as slow_address

with warnings.catch_warnings():
    # Starlette's client is about to change its HTTP library.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

MANUAL = Path(__file__).resolve().parents[3] / "docs" / "from-limits.md"


def section(name):
    return re.search(rf"^## {name}\n(.*?)^## ", MANUAL.read_text(), re.MULTILINE | re.DOTALL)[1]


def rows(name):
    """The rows of the section's first table, whose cells begin with code."""
    table = section(name).split("|---|---|\n")[1].split("\n\n")[0]
    found = [re.fullmatch(r"\| `(.*?)` \| `(.*?)`[^`]* \|", line).groups() for line in table.splitlines()]
    assert len(found) >= 7
    return found


# Users, plans, passwords and methods: each alone, and often enough to be refused.
REQUESTS = [
    *[("GET", {"x-user": "ann", "x-plan": "2/day"})] * 3,
    *[("GET", {"x-user": "bo", "x-plan": "3/day"})] * 3,
    *[("GET", {"x-user": "root", "x-plan": "1/day", "x-wrong": "1"})] * 4,
    *[("POST", {"x-user": "eve", "x-plan": "4/day", "x-wrong": "1"})] * 4,
    *[("GET", {"x-user": "ann", "x-plan": "2/day"})] * 2,
]


def test_from_limits():
    text = section("From limits")
    names = {"tollbar": tollbar}
    exec(text.split("```python\n")[1].split("```")[0], names)
    for left, right in rows("From limits"):
        theirs, ours = eval(left, names), eval(right, names)
        assert None in (theirs, ours) or theirs == pytest.approx(ours, abs=2), (left, theirs, right, ours)


def by_flask(decorator, limiter=None):
    """The statuses of a view under that decorator."""
    app = flask.Flask("app")
    names = {"request": flask.request, "RateLimit": tollbar.flask.RateLimit}
    if "limiter." in decorator:
        names["limiter"] = flask_limiter.Limiter(get_remote_address, app=app, storage_uri="memory://")

    def view():
        return ("no", 401) if "x-wrong" in flask.request.headers else "ok"

    app.route("/", methods=["GET", "POST"])(eval(decorator, names)(view))
    client = app.test_client()
    answers = [client.open("/", method=method, headers=headers) for method, headers in REQUESTS]
    return [answer.status_code for answer in answers], b"later" in b"".join(answer.data for answer in answers)


@pytest.mark.parametrize(("left", "right"), rows("From Flask-Limiter"))
def test_from_flask_limiter(left, right):
    theirs, ours = by_flask(left), by_flask(right)
    assert theirs == ours and {200, 429} <= set(ours[0]), (theirs, ours)


def by_fastapi(limit):
    app = fastapi.FastAPI()
    if "limiter." in limit:
        app.state.limiter = slowapi.Limiter(slow_address)
        app.add_exception_handler(slowapi.errors.RateLimitExceeded, slowapi._rate_limit_exceeded_handler)

        def route(request: fastapi.Request):
            return "ok"

        app.api_route("/", methods=["GET", "POST"])(eval(limit, {"limiter": app.state.limiter})(route))
    else:
        limited = eval(limit, {"RateLimit": tollbar.fastapi.RateLimit})
        app.api_route("/", methods=["GET", "POST"], dependencies=[fastapi.Depends(limited)])(lambda: "ok")
    client = TestClient(app, client=("192.0.2.1", 5))
    return [client.request(method, "/", headers=headers).status_code for method, headers in REQUESTS]


@pytest.mark.parametrize(("left", "right"), rows("From slowapi"))
def test_from_slowapi(left, right):
    theirs, ours = by_fastapi(left), by_fastapi(right)
    assert theirs == ours and {200, 429} == set(ours), (theirs, ours)


def test_a_refused_request_costs_nothing_here():
    """The difference that the page names: a fixed window of limits counts refused requests."""
    item, theirs = limits.parse("5/minute"), FixedWindowRateLimiter(MemoryStorage())
    ours = tollbar.Table("5/minute algo fixed-window anchor first", 10)
    assert [theirs.hit(item, "ann", cost=cost) for cost in (3, 3, 2)] == [True, False, False]
    assert [ours.allow("ann", cost) for cost in (3, 3, 2)] == [True, False, True]


STRATEGIES = {
    "fixed-window anchor first": FixedWindowRateLimiter,
    "sliding-log": MovingWindowRateLimiter,
    "weighted-window": SlidingWindowCounterRateLimiter,
}


@pytest.mark.parametrize("algorithm", STRATEGIES)
def test_the_algorithms_decide_as_their_strategies(algorithm):
    """Requests of cost 1 at random times. Their sliding window counter drops the fraction of its
    estimate, so it is the one that admits where the two first differ."""
    chance, allowed, first = random.Random(7), 0, set()
    with time_machine.travel(1_900_000_000.5, tick=False) as clock:
        for _ in range(20):
            limit, theirs = chance.randrange(1, 9), STRATEGIES[algorithm](MemoryStorage())
            item = limits.parse(f"{limit}/minute")
            ours = tollbar.Table(f"{limit}/minute algo {algorithm}", 10, clock="python")
            for _ in range(100):
                clock.shift(chance.choice((0.003, 1, 7, 23, 61)) * chance.random())
                answers = theirs.hit(item, "ann"), ours.allow("ann")
                allowed += answers[1]
                if answers[0] != answers[1]:
                    first.add(answers)
                    break
    assert allowed > 100 and first == ({(True, False)} if algorithm == "weighted-window" else set())
