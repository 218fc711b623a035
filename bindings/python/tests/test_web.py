"""The middleware, called as servers call it, and under Flask and Starlette where they are."""

import asyncio
import ipaddress
import itertools
import random
import time

import pytest
import tollbar
from edges import again_if_late
from tollbar import Lease, Limiter, Policy, Table, address_key, asgi, wsgi
from tollbar._http import client_key


def call_wsgi(app, **environ):
    """(status, headers by lower-case name, body)"""
    answer = []

    def start_response(status, headers, error=None):
        assert all(type(name) is str and type(value) is str for name, value in headers)
        answer.append((status, {name.lower(): value for name, value in headers}))
        return lambda data: None

    body = b"".join(app({"REQUEST_METHOD": "GET", "REMOTE_ADDR": "192.0.2.1", **environ}, start_response))
    return (*answer[0], body)


def call_asgi(app, **scope):
    """Returns (status, headers, body), or for other protocols than HTTP the messages."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "client": ("192.0.2.1", 5), "headers": [], **scope}
    asyncio.run(app(scope, receive, send))
    if scope["type"] != "http":
        return sent
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    assert all(name == name.lower() for name in headers)
    return sent[0]["status"], headers, b"".join(m.get("body", b"") for m in sent[1:])


def wsgi_app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]


async def asgi_app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": b"hello"})
    else:
        await send({"type": scope["type"] + ".seen"})


@again_if_late(0.5)
def test_wsgi():
    app = wsgi.RateLimit(wsgi_app, "2/min")
    status, headers, body = call_wsgi(app)
    assert (status, body) == ("200 OK", b"hello") and headers["content-type"] == "text/plain"
    assert headers["ratelimit-policy"] == '"default";q=2;w=60'
    assert headers["ratelimit"] == '"default";r=1;t=30'
    assert "retry-after" not in headers
    call_wsgi(app)
    status, headers, body = call_wsgi(app)
    assert status == "429 Too Many Requests" and body == b"Too Many Requests\n"
    assert headers["retry-after"] == "30" and headers["content-length"] == str(len(body))
    assert headers["ratelimit"] == '"default";r=0;t=30'
    assert call_wsgi(app, REQUEST_METHOD="HEAD")[2] == b""
    assert call_wsgi(app, REMOTE_ADDR="192.0.2.2")[0] == "200 OK"


@again_if_late(0.5)
def test_asgi():
    app = asgi.RateLimit(asgi_app, "2/min")
    status, headers, body = call_asgi(app)
    assert (status, body) == (200, b"hello") and headers["content-type"] == "text/plain"
    assert headers["ratelimit-policy"] == '"default";q=2;w=60'
    assert headers["ratelimit"] == '"default";r=1;t=30'
    call_asgi(app)
    status, headers, body = call_asgi(app)
    assert status == 429 and body == b"Too Many Requests\n"
    assert headers["retry-after"] == "30" and headers["content-length"] == str(len(body))
    assert headers["ratelimit"] == '"default";r=0;t=30'
    assert call_asgi(app, method="HEAD")[2] == b""
    assert call_asgi(app, client=("192.0.2.2", 1))[0] == 200


def test_asgi_of_other_types():
    app = asgi.RateLimit(asgi_app, "1/min")
    assert call_asgi(app, type="websocket") == [{"type": "websocket.seen"}]
    assert call_asgi(app, type="websocket")[0]["type"] == "websocket.close"
    for _ in range(3):
        assert call_asgi(app, type="lifespan") == [{"type": "lifespan.seen"}]


@pytest.mark.parametrize(
    ("policy", "quota"),
    [
        ("10/100ms", '"default";q=100;w=1'),
        ("3/1500ms", '"default";q=4;w=2'),
        ("1000/day", '"default";q=1000;w=86400'),
        ("10000000000/s", '"default";q=10000000000;w=1'),
    ],
)
def test_quotas(policy, quota):
    assert call_wsgi(wsgi.RateLimit(wsgi_app, Policy(policy)))[1]["ratelimit-policy"] == quota


def test_a_key_and_exempt_ones():
    table = Table({"api": "1/h", "other": "9/h"}, capacity=100)
    app = wsgi.RateLimit(
        wsgi_app, table, key=lambda environ: environ["USER"], policy="api", exempt={"root"}, name='the "api"'
    )
    assert [call_wsgi(app, USER="a")[0][:3] for _ in range(2)] == ["200", "429"]
    headers = call_wsgi(app, USER="b")[1]
    assert headers["ratelimit"].startswith('"the \\"api\\"";r=0;t=')
    for _ in range(3):
        status, headers, _body = call_wsgi(app, USER="root")
        assert status == "200 OK" and "ratelimit" not in headers
    assert not table.peek("a", policy="api")
    named = wsgi.RateLimit(wsgi_app, table, policy="other")
    assert call_wsgi(named)[1]["ratelimit-policy"] == '"other";q=9;w=3600'
    table.set_policy("other", "7/h")
    assert call_wsgi(named)[1]["ratelimit-policy"] == '"other";q=7;w=3600'
    with pytest.raises(ValueError, match="ASCII"):
        wsgi.RateLimit(wsgi_app, table, name="a\r\nb")


def test_what_waiting_does_not_help_has_no_retry_after():
    status, headers, _ = call_wsgi(wsgi.RateLimit(wsgi_app, "5/min", cost=6))
    assert status.startswith("429") and "retry-after" not in headers


@again_if_late(0.5)
def test_without_headers():
    app = wsgi.RateLimit(wsgi_app, "1/min", headers=False)
    assert set(call_wsgi(app)[1]) == {"content-type"}
    assert call_wsgi(app)[1]["retry-after"] == "60"


def refused_once():
    """Returns an application whose limit of two a second has just refused, and the headers of that
    refusal."""
    for _ in range(20):
        app = wsgi.RateLimit(wsgi_app, "2/s burst 1")
        assert call_wsgi(app)[0][:3] == "200"
        status, headers, *_ = call_wsgi(app)
        if status[:3] == "429":
            return app, headers
    raise AssertionError("never refused")


def test_retry_after_is_at_least_a_second():
    assert refused_once()[1]["retry-after"] == "1"


def test_clients():
    assert client_key("2001:db8::1") == client_key("2001:db8::ffff") == address_key("2001:db8::5")
    assert client_key("testclient") == "testclient"
    assert client_key("") is None and client_key(None) is None


NOBODY = "the request has no key that it could be counted by\n"


@pytest.mark.parametrize("missing", ["deny", "report"])
@pytest.mark.parametrize("key", [None, "", b""])
def test_a_request_without_a_key_is_told_so(missing, key):
    table = Table("5/min", capacity=10, missing=missing)
    app = wsgi.RateLimit(wsgi_app, table, key=lambda environ: key)
    body = f"Forbidden: {NOBODY}"
    assert call_wsgi(app) == (
        "403 Forbidden",
        {"content-type": "text/plain; charset=utf-8", "content-length": str(len(body))},
        body.encode(),
    )
    assert call_wsgi(app, REQUEST_METHOD="HEAD")[2] == b""
    app = asgi.RateLimit(asgi_app, table, key=lambda scope: key, missing_status=400)
    status, headers, body = call_asgi(app)
    assert status == 400 and body == f"Bad Request: {NOBODY}".encode() and "ratelimit" not in headers
    assert call_asgi(app, type="websocket") == [{"type": "websocket.close", "code": 1008, "reason": "Bad Request"}]
    # A request without a key passes if None is exempt.
    assert call_wsgi(wsgi.RateLimit(wsgi_app, table, key=lambda environ: key, exempt=[None]))[0] == "200 OK"


def test_a_client_without_an_address():
    assert call_wsgi(wsgi.RateLimit(wsgi_app, "5/min"), REMOTE_ADDR="")[0] == "403 Forbidden"
    assert call_asgi(asgi.RateLimit(asgi_app, "5/min"), client=None)[0] == 403


def test_a_table_may_let_pass_who_has_no_key():
    table = Table("1/min", capacity=10, missing="allow")
    app = wsgi.RateLimit(wsgi_app, table, key=lambda environ: None)
    for _ in range(3):
        assert call_wsgi(app) == ("200 OK", {"content-type": "text/plain"}, b"hello")


def test_keys_of_a_lease_need_not_be():
    with Lease("60/min burst 64", name="x", nodes=4, url="redis://127.0.0.1:1", start=False) as lease:
        assert call_wsgi(wsgi.RateLimit(wsgi_app, lease, key=lambda environ: None))[0] == "200 OK"


@pytest.mark.parametrize("status", [200, 304, 999])
def test_missing_status_is_one_that_refuses(status):
    with pytest.raises(ValueError, match=str(status)):
        wsgi.RateLimit(wsgi_app, "5/min", missing_status=status)


def test_exempt_addresses_are_text_or_of_ipaddress():
    exempt = {"192.0.2.7", ipaddress.ip_address("192.0.2.8"), "2001:db8::1", ipaddress.ip_address("2001:db8:1::")}
    app = wsgi.RateLimit(wsgi_app, "1/h", exempt=exempt)
    for address in ("192.0.2.7", "::ffff:192.0.2.7", "192.0.2.8", "2001:db8::1", "2001:db8::ffff", "2001:db8:1::5"):
        assert [call_wsgi(app, REMOTE_ADDR=address)[0][:3] for _ in range(3)] == ["200"] * 3, address
    for address in ("192.0.2.70", "2001:db8:2::1"):
        assert [call_wsgi(app, REMOTE_ADDR=address)[0][:3] for _ in range(2)] == ["200", "429"], address
    app = asgi.RateLimit(asgi_app, "1/h", exempt=["192.0.2.7", "testclient"])
    for host in ("192.0.2.7", "testclient"):
        assert [call_asgi(app, client=(host, 1))[0] for _ in range(3)] == [200] * 3
    assert [call_asgi(app, client=("192.0.2.70", 1))[0] for _ in range(2)] == [200, 429]


def test_exempt_keys_are_the_tables_keys():
    """The same bytes are the same key, whatever type they have."""
    for exempt, key in (({"root"}, b"root"), ({b"root"}, "root"), ([7], (7).to_bytes(8, "little")), ({None}, "")):
        app = wsgi.RateLimit(wsgi_app, "1/h", exempt=exempt, key=lambda environ: key)
        assert [call_wsgi(app)[0][:3] for _ in range(3)] == ["200"] * 3

    class Staff:
        def __contains__(self, key):
            return key.startswith("staff-")

    app = wsgi.RateLimit(wsgi_app, "1/h", exempt=Staff(), key=lambda environ: environ["USER"])
    assert [call_wsgi(app, USER="staff-1")[0][:3] for _ in range(3)] == ["200"] * 3
    assert [call_wsgi(app, USER="guest")[0][:3] for _ in range(2)] == ["200", "429"]


def test_exempt_keys_that_could_never_be_met_are_refused():
    for network in ("192.0.2.0/24", "2001:db8::/32"):
        with pytest.raises(ValueError, match="is a network; expected single addresses"):
            wsgi.RateLimit(wsgi_app, "1/h", exempt={network})
    with pytest.raises(TypeError, match="a key is bytes, str"):
        wsgi.RateLimit(wsgi_app, "1/h", exempt={ipaddress.ip_network("192.0.2.0/24")})
    with pytest.raises(TypeError, match="not one key"):
        wsgi.RateLimit(wsgi_app, "1/h", exempt="192.0.2.7")


SECOND = 1_000_000_000
POLICIES = [
    "10/s burst 4",
    "7/3s burst 5",
    "10/s burst 4 borrow",
    "7/3s burst 5 borrow",
    "10/s algo pacer",
    "10/s algo pacer slack 3",
    "10/s algo warm-up warm 2s",
    "10/s burst 4 algo interval",
    "10/s burst 4 algo interval anchor first",
    "5/s algo fixed-window",
    "5/s algo fixed-window anchor first",
    "5/s algo weighted-window",
    "6/3s algo sliding-window segments 6",
    "6/3s algo sliding-window segments 6 mode strict",
    "5/s algo sliding-log",
]


@pytest.mark.parametrize("text", POLICIES)
def test_more_is_there_when_t_says_and_not_before(text):
    random.seed(text)
    policy = Policy(text)
    seen = 0
    for _ in range(200):
        limiter, now = Limiter(policy), random.randrange(10**6) * 1_000_003
        for _ in range(random.randrange(9)):
            limiter.check(random.randint(1, 2), at=now)
            now += random.choice([0, random.randrange(SECOND // 3)])
        cost = random.randint(0, 3)
        decision = limiter.check(cost, at=now)
        after = limiter.more_after(decision, cost, at=now)
        if after is None:
            lends = "borrow" in text or "pacer" in text
            assert lends or limiter.peek(0, at=now + 1000 * SECOND).remaining <= decision.remaining
            continue
        seen += 1
        assert after > 0
        if not decision and cost == 1:
            assert after == decision.retry_after_ns
        if not decision and decision.retry_after_ns is not None:
            assert after <= decision.retry_after_ns
        assert limiter.peek(0, at=now + after).remaining > decision.remaining
        assert limiter.peek(0, at=now + after - 1).remaining <= decision.remaining
    assert seen > 50


def test_t_is_never_later_than_retry_after():
    """Another caller may take permits between the decision and the peek."""
    limiter = Limiter("10/s burst 4")
    assert limiter.take_up_to(3, at=SECOND) == 3
    refused = limiter.check(3, at=SECOND)
    assert (refused.remaining, refused.retry_after_ns) == (1, 200_000_000)
    # Now the bucket lacks more permits than at the decision.
    now = SECOND - 500_000_000
    assert limiter.peek(2, at=now).retry_after_ns > 200_000_000
    more = limiter.more_after(refused, 3, at=now)
    assert more == refused.retry_after_ns


@again_if_late(0.5)
def test_t_is_until_there_is_more():
    """t is the time until one more permit is left, not until all are: a client that waits for t=13
    beside `Retry-After: 1` waits 13 times too long."""
    app = wsgi.RateLimit(wsgi_app, "12/min burst 13")
    seen = [call_wsgi(app)[1] for _ in range(15)]
    assert [h["ratelimit"] for h in seen] == [f'"default";r={r};t=5' for r in [*range(12, -1, -1), 0, 0]]
    assert [h.get("retry-after") for h in seen] == [None] * 13 + ["5", "5"]
    # A request with a larger cost waits longer than t, after which one permit is left.
    table = Table("12/min burst 13", capacity=10)
    assert table.take_up_to("a", 12) == 12
    app = wsgi.RateLimit(wsgi_app, table, key=lambda environ: "a", cost=4)
    headers = call_wsgi(app)[1]
    assert headers["ratelimit"] == '"default";r=1;t=5' and headers["retry-after"] == "15"
    # A full bucket has no t, and neither has a limit of 0 or an exempt key.
    assert call_wsgi(wsgi.RateLimit(wsgi_app, "2/min", cost=0))[1]["ratelimit"] == '"default";r=2'
    app = wsgi.RateLimit(wsgi_app, "0/min")
    assert call_wsgi(app)[1]["ratelimit"] == '"default";r=0' and "retry-after" not in call_wsgi(app)[1]
    table.exempt("b")
    assert call_wsgi(wsgi.RateLimit(wsgi_app, table, key=lambda environ: "b"))[1]["ratelimit"] == '"default";r=999999999999999'
    # For a policy that lends, a peek does not show when more permits are left.
    app = wsgi.RateLimit(wsgi_app, "12/min borrow", key=lambda environ: "a")
    assert [call_wsgi(app)[1]["ratelimit"] for _ in range(2)] == ['"default";r=0;t=5'] * 2


@again_if_late(0.5)
def test_flask():
    import flask

    app = flask.Flask("app")
    app.add_url_rule("/", view_func=lambda: "hello")
    app.wsgi_app = wsgi.RateLimit(app.wsgi_app, "2/min")
    client = app.test_client()
    answers = [client.get("/") for _ in range(3)]
    assert [a.status_code for a in answers] == [200, 200, 429]
    assert answers[0].text == "hello" and answers[0].headers["RateLimit"] == '"default";r=1;t=30'
    assert answers[2].headers["Retry-After"] == "30"


@again_if_late(0.5)
def test_starlette():
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def hello(request):
        return PlainTextResponse("hello")

    app = Starlette(
        routes=[Route("/", hello)], middleware=[Middleware(asgi.RateLimit, table="2/min", name="site")]
    )
    scope = {"path": "/", "raw_path": b"/", "query_string": b"", "root_path": "", "http_version": "1.1", "scheme": "http"}
    answers = [call_asgi(app, **scope) for _ in range(3)]
    assert [a[0] for a in answers] == [200, 200, 429]
    assert answers[0][2] == b"hello" and answers[0][1]["ratelimit"] == '"site";r=1;t=30'
    assert answers[2][1]["retry-after"] == "30"


def test_a_limit_that_comes_back():
    app, _ = refused_once()
    time.sleep(0.6)
    assert call_wsgi(app)[0][:3] == "200"


def answers_wsgi(status, body=(b"hello",)):
    def app(environ, start_response):
        start_response(status, [("X-Cost", "3")])
        return body

    return app


def answers_asgi(status):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": status, "headers": [(b"x-cost", b"3")]})
        await send({"type": "http.response.body", "body": b"hel", "more_body": True})
        await send({"type": "http.response.body", "body": b"lo"})

    return app


def call_closing(app, **environ):
    """call_wsgi, as a server that closes what it was given."""
    kept = []

    def closing(environ, start_response):
        kept.append(app(environ, start_response))
        return kept[0]

    try:
        return call_wsgi(closing, **environ)
    finally:
        if kept and hasattr(kept[0], "close"):
            kept[0].close()


def failed(request, response):
    return response.status == 401


def test_wrong_passwords_ban_and_right_ones_cost_nothing():
    for ask, right, wrong in (
        (lambda app: int(call_closing(app)[0].split()[0]), answers_wsgi("200 OK"), answers_wsgi("401 Unauthorized")),
        (lambda app: call_asgi(app)[0], answers_asgi(200), answers_asgi(401)),
    ):
        table = Table("5/min ban 1h", capacity=100)
        kind = asgi if asyncio.iscoroutinefunction(right) else wsgi
        lets_in = kind.RateLimit(right, table, charge=failed)
        refuses = kind.RateLimit(wrong, table, charge=failed)
        assert [ask(lets_in) for _ in range(20)] == [200] * 20
        assert [ask(refuses) for _ in range(8)] == [401] * 5 + [429] * 3
        assert ask(lets_in) == 429
        key = address_key("192.0.2.1")
        assert table.peek(key).reason == "banned" and table.counts().denied == 4
        assert table.reset(key) and ask(lets_in) == 200


def test_refusals_count_for_a_ban():
    table = Table("1/h ban 1d after 3", capacity=100)
    app = wsgi.RateLimit(answers_wsgi("401 Unauthorized"), table, charge=failed)
    waits = [int(call_closing(app)[1].get("retry-after", 0)) for _ in range(5)]
    # The failure that takes the last permit is the first refusal, the second request's is the
    # second.
    assert waits[0] == 0 and waits[1] <= 3600 and all(w > 80_000 for w in waits[2:]), waits


def test_what_a_response_costs():
    seen = []

    def cost(request, response):
        seen.append((response.status, dict(response.headers).get("X-Cost") or dict(response.headers)["x-cost"], response.sent))
        return response.sent

    table = Table("8/h", capacity=100)
    app = wsgi.RateLimit(answers_wsgi("200 OK", [b"hel", b"lo"]), table, charge=cost)
    assert [call_closing(app)[0] for _ in range(3)] == ["200 OK"] * 2 + ["429 Too Many Requests"]
    table = Table("8/h", capacity=100)
    app = asgi.RateLimit(answers_asgi(200), table, charge=cost)
    assert [call_asgi(app)[0] for _ in range(3)] == [200, 200, 429]
    assert seen == [(200, "3", 5)] * 4
    # Two answers of five bytes are two more than eight: a debt.
    assert table.peek(address_key("192.0.2.1")).retry_after > 3600 / 8 * 2


def test_an_application_that_raises_has_failed():
    def raising(environ, start_response):
        raise KeyError("a fault")

    async def raising_too(scope, receive, send):
        raise KeyError("a fault")

    table = Table("2/h", capacity=100)
    seen = []

    def charge(request, response):
        seen.append(response.status)
        return 1

    with pytest.raises(KeyError):
        call_closing(wsgi.RateLimit(raising, table, charge=charge))
    with pytest.raises(KeyError):
        call_asgi(asgi.RateLimit(raising_too, table, charge=charge))
    assert seen == [500, 500] and not table.peek(address_key("192.0.2.1"))


def test_no_charge_after_a_refusal_or_for_who_is_exempt():
    table = Table("1/h", capacity=100)
    app = wsgi.RateLimit(answers_wsgi("200 OK"), table, charge=lambda environ, response: 1, exempt=["192.0.2.9"])
    assert [call_closing(app)[0][:3] for _ in range(4)] == ["200"] + ["429"] * 3
    assert table.peek(address_key("192.0.2.1")).retry_after <= 3600
    assert [call_closing(app, REMOTE_ADDR="192.0.2.9")[0] for _ in range(4)] == ["200 OK"] * 4
    assert table.peek(address_key("192.0.2.9")).remaining == 1


@pytest.mark.parametrize(
    ("messages", "charged"),
    [
        ([{"type": "websocket.close", "code": 4401}], (403, [], 0)),
        ([{"type": "websocket.accept", "headers": [(b"X-A", b"b")]}, {"type": "websocket.send", "text": "hi"}, {"type": "websocket.close"}], (101, [("X-A", "b")], 0)),
        ([{"type": "websocket.accept"}], (101, [], 0)),
        (
            [{"type": "websocket.http.response.start", "status": 401, "headers": []}, {"type": "websocket.http.response.body", "body": b"who?"}],
            (401, [], 4),
        ),
        ([], (500, [], 0)),
    ],
)
def test_b5_a_handshake_is_charged(messages, charged):
    """`charge` gets the response to a WebSocket's handshake, once, and bans those whose handshakes
    are refused."""
    seen, sent = [], []

    async def app(scope, receive, send):
        for message in messages:
            await send(message)

    def charge(scope, response):
        seen.append(tuple(response))
        return response.status in (401, 403)

    async def send(message):
        sent.append((message["type"], len(seen)))

    limited = asgi.RateLimit(app, "2/day ban 1day", charge=charge)
    scope = {"type": "websocket", "client": ("192.0.2.1", 1), "headers": []}
    for _ in range(4):
        asyncio.run(limited(scope, None, send))
    types = [message["type"] for message in messages]
    refused = charged[0] in (401, 403)
    assert seen == [charged] * (2 if refused else 4)
    assert [kind for kind, _ in sent] == (types * 2 + ["websocket.close"] * 2 if refused else types * 4)
    # An open WebSocket has been charged already.
    assert [count for kind, count in sent if kind == "websocket.accept"] == ([1, 2, 3, 4] if "websocket.accept" in types else [])


@pytest.mark.parametrize(
    ("first", "others"),
    [
        ("198.51.100.2", ["198.51.100.2:4000", "198.51.100.2:4001", "[::ffff:198.51.100.2]:80", " 198.51.100.2"]),
        ("2001:db8::1", ["[2001:db8::1]:4000", "[2001:db8::2]:4001", "[2001:db8::3]", "2001:db8::4%eth0"]),
    ],
)
def test_b3_an_address_with_a_port_is_the_address(first, others):
    app = wsgi.RateLimit(lambda environ, start: (start("200 OK", []), [b""])[1], "1/day")
    assert [call_wsgi(app, REMOTE_ADDR=address)[0][:3] for address in [first, *others]] == ["200", *["429"] * len(others)]
    assert {client_key(address) for address in others} == {address_key(first)}


def test_clients_behind_trusted_proxies():
    def wsgi_key(peer, forwarded, proxies):
        app = wsgi.RateLimit(None, "9/day", proxies=proxies)
        return app.gate.key({"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": forwarded})

    def asgi_key(peer, forwarded, proxies):
        app = asgi.RateLimit(None, "9/day", proxies=proxies)
        headers = [(b"x-forwarded-for", part.encode()) for part in forwarded.split(";")]
        return app.gate.key({"type": "http", "client": (peer, 1) if peer else None, "headers": headers})

    for key in (wsgi_key, asgi_key):
        client = address_key("198.51.100.7")
        assert key("10.0.0.1", "1.1.1.1, 198.51.100.7:4711, 10.0.0.2", ["10.0.0.0/8"]) == client
        assert key("10.0.0.1", "1.1.1.1, 198.51.100.7", "10.0.0.0/8") == client
        assert key("198.51.100.7", "1.1.1.1", ["10.0.0.0/8"]) == client
        assert key("198.51.100.7", "1.1.1.1", ()) == client
        assert key("", "1.1.1.1, 198.51.100.7", ["unix:"]) == client
        assert key("", "198.51.100.7", ["10.0.0.0/8"]) is None
        assert key("testclient", "198.51.100.7", ["10.0.0.0/8"]) == "testclient"
    # The header may come in several fields.
    assert asgi_key("10.0.0.1", "1.1.1.1;198.51.100.7;10.0.0.2", ["10.0.0.0/8"]) == address_key("198.51.100.7")
    for network in ("10.0.0.1/8", "host", ""):
        with pytest.raises(ValueError, match='proxies: expected a network such as "10.0.0.0/8"'):
            wsgi.RateLimit(None, "9/day", proxies=[network])
    with pytest.raises(TypeError, match="no `key` beside them"):
        asgi.RateLimit(None, "9/day", key=lambda scope: "k", proxies=["10.0.0.0/8"])


@pytest.mark.parametrize("kind", ["wsgi", "asgi"])
@pytest.mark.parametrize("order", list(itertools.permutations(["wide", "tight", "large"])))
@pytest.mark.parametrize("headers", ["draft-11", "draft-07", "draft-06", "legacy", ("legacy", "draft-11"), False])
def test_c1_stacked_limits_are_one_answer(kind, order, headers):
    """In each order of the layers the fields describe all limits (draft 11) or the one that binds,
    each once, and our own reader reads them; a layer that refuses gives back what those around it
    were charged."""
    policies = {"wide": "100/day", "tight": "2/day", "large": "1000/day"}
    tables = {name: Table(policy, 100) for name, policy in policies.items()}
    names = (headers,) if isinstance(headers, str) else headers or ()
    app = seen_wsgi if kind == "wsgi" else seen_asgi
    for name in order:
        app = (wsgi if kind == "wsgi" else asgi).RateLimit(app, tables[name], name=name, headers=headers)
    for call in range(4):
        fields = ask_wsgi(app) if kind == "wsgi" else ask_asgi(app)
        admitted = min(call + 1, 2)
        # Each field is there once.
        assert len(dict(fields)) == len(fields)
        fields = dict(fields)
        assert ("retry-after" in fields) == (call > 1)
        left = {name: tables[name].peek(address_key("192.0.2.1")).remaining for name in policies}
        assert left == {"wide": 100 - admitted, "tight": 2 - admitted, "large": 1000 - admitted}
        if "draft-11" in names:
            # The last one is the outermost. A refusal describes the layers that were asked.
            for name in order if call < 2 else order[order.index("tight") :]:
                assert f'"{name}";r={left[name]}' in fields["ratelimit"] and f'"{name}";q=' in fields["ratelimit-policy"]
        if "legacy" in names:
            assert (fields["x-ratelimit-limit"], fields["x-ratelimit-remaining"]) == ("2", str(2 - admitted))
        if "draft-07" in names:
            assert fields["ratelimit"].startswith(f"limit=2, remaining={2 - admitted}, reset=")
        if "draft-06" in names:
            assert fields["ratelimit-remaining"] == str(2 - admitted)
        if names:
            assert tollbar.http.read(fields.items()).remaining == 2 - admitted
        assert bool(names) or not [name for name in fields if "ratelimit" in name]


def seen_wsgi(environ, start):
    start("200 OK", [("X-Own", "1")])
    return [b""]


async def seen_asgi(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-own", b"1")]})
    await send({"type": "http.response.body"})


def ask_wsgi(app):
    got = []
    list(app({"REQUEST_METHOD": "GET", "REMOTE_ADDR": "192.0.2.1"}, lambda status, headers, *error: got.append(headers)))
    return [(name.lower(), value) for name, value in got[0]]


def ask_asgi(app):
    got = []

    async def send(message):
        got.append(message)

    asyncio.run(app({"type": "http", "client": ("192.0.2.1", 1), "headers": []}, None, send))
    return [(name.decode(), value.decode()) for name, value in got[0]["headers"]]


@pytest.mark.parametrize("kind", ["wsgi", "asgi"])
def test_an_applications_own_fields_stay(kind):
    def own_wsgi(environ, start):
        start("200 OK", [("ratelimit", "own")])
        return [b""]

    async def own_asgi(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"RateLimit", b"own")]})

    if kind == "wsgi":
        fields = ask_wsgi(wsgi.RateLimit(own_wsgi, "2/day"))
    else:
        fields = [(name.lower(), value) for name, value in ask_asgi(asgi.RateLimit(own_asgi, "2/day"))]
    assert fields == [("ratelimit", "own")]
