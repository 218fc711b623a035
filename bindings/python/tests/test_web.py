"""The middleware, called as servers call it, and under Flask and Starlette where they are."""

import asyncio
import time

import pytest
from tollbar import Policy, Table, address_key, asgi, wsgi
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
    """(status, headers, body), or the messages themselves of what is no HTTP."""
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
    assert headers["ratelimit"] == '"default";r=0;t=60'
    assert call_wsgi(app, REQUEST_METHOD="HEAD")[2] == b""
    assert call_wsgi(app, REMOTE_ADDR="192.0.2.2")[0] == "200 OK"


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
    assert headers["ratelimit"] == '"default";r=0;t=60'
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


def test_without_headers():
    app = wsgi.RateLimit(wsgi_app, "1/min", headers=False)
    assert set(call_wsgi(app)[1]) == {"content-type"}
    assert call_wsgi(app)[1]["retry-after"] == "60"


def refused_once():
    """A limit of two a second that has just refused, and with which headers."""
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
    # Requests from nobody are refused, as a table does unless it is told otherwise.
    assert call_wsgi(wsgi.RateLimit(wsgi_app, "5/min"), REMOTE_ADDR="")[0][:3] == "429"
    assert call_asgi(asgi.RateLimit(asgi_app, "5/min"), client=None)[0] == 429


def test_flask():
    flask = pytest.importorskip("flask")
    app = flask.Flask("app")
    app.add_url_rule("/", view_func=lambda: "hello")
    app.wsgi_app = wsgi.RateLimit(app.wsgi_app, "2/min")
    client = app.test_client()
    answers = [client.get("/") for _ in range(3)]
    assert [a.status_code for a in answers] == [200, 200, 429]
    assert answers[0].text == "hello" and answers[0].headers["RateLimit"] == '"default";r=1;t=30'
    assert answers[2].headers["Retry-After"] == "30"


def test_starlette():
    starlette = pytest.importorskip("starlette.applications")
    from starlette.middleware import Middleware
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def hello(request):
        return PlainTextResponse("hello")

    app = starlette.Starlette(
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
