"""Limits that a function chooses for each request, requests that are skipped, limits that are
switched off, and all keys beginning anew: of the middleware, of the frameworks and of @limit."""

import asyncio
import sys

import pytest
import tollbar
from test_frameworks import isolated
from test_limits import path  # noqa: F401, a fixture
from test_web import asgi_app, call_asgi, call_wsgi, wsgi_app
from tollbar import Limited, Policy, Table, _alone, asgi, limit, wsgi

QUOTA = "{}/day algo fixed-window anchor first"
FACES = pytest.mark.parametrize(
    ("call", "middleware", "app"), [(call_wsgi, wsgi, wsgi_app), (call_asgi, asgi, asgi_app)], ids=["wsgi", "asgi"]
)


def query(request):
    text = request.get("QUERY_STRING", request.get("query_string")) or ""
    return text.decode() if isinstance(text, bytes) else text


def plan(request):
    """The policy of the request's plan, a number of requests a day. No plan is no limit."""
    return QUOTA.format(query(request)) if query(request) else None


def closed(app):
    """The application, whose body is closed when it has been sent, as servers do."""

    def whole(environ, start_response):
        body = app(environ, start_response)
        try:
            return list(body)
        finally:
            getattr(body, "close", lambda: None)()

    return whole


def passed(call, app, n, text):
    """How many of n requests with this query pass, and the fields of the last one."""
    answers = [
        call(closed(app) if call is call_wsgi else app, QUERY_STRING=text, query_string=text.encode()) for _ in range(n)
    ]
    return [str(status)[:3] for status, _, _ in answers].count("200"), answers[-1][1]


@FACES
def test_a_function_makes_the_policy(call, middleware, app):
    limited = middleware.RateLimit(app, plan)
    assert passed(call, limited, 5, "3")[0] == 3
    # Another plan's quota is its own, and its fields say so.
    count, headers = passed(call, limited, 2, "4")
    assert count == 2 and headers["ratelimit-policy"] == '"default";q=4;w=86400' and ";r=2" in headers["ratelimit"]
    count, headers = passed(call, limited, 50, "")
    assert count == 50 and "ratelimit" not in headers
    assert passed(call, limited, 5, "3")[0] == 0 and passed(call, limited, 5, "4")[0] == 2


@FACES
def test_a_function_chooses_policies_of_a_table(call, middleware, app):
    table = Table({"free": QUOTA.format(1), "paid": QUOTA.format(3)}, 100)
    chosen = {"free": "free", "both": ("free", "paid"), "own": Policy(QUOTA.format(2)), "none": None}
    limited = middleware.RateLimit(app, table, policy=lambda request: chosen[query(request)])
    # Both are charged, and the one of one request a day binds.
    count, headers = passed(call, limited, 2, "both")
    assert count == 1 and headers["ratelimit-policy"] == '"free";q=1;w=86400, "paid";q=3;w=86400'
    assert table.peek(tollbar.address_key("192.0.2.1"), policy="paid").remaining == 2
    assert (
        passed(call, limited, 3, "free")[0] == 0
        and passed(call, limited, 3, "own")[0] == 2
        and passed(call, limited, 9, "none")[0] == 9
    )
    # The table has got one policy more, once.
    assert table.stats().policies == 3
    with pytest.raises(KeyError):
        passed(call, middleware.RateLimit(app, table, policy=lambda request: "gold"), 1, "")


@FACES
def test_a_refusal_gives_back_what_a_chosen_policy_was_charged(call, middleware, app):
    table = Table("9/day", 100)
    inner = middleware.RateLimit(app, QUOTA.format(1))
    outer = middleware.RateLimit(inner, table, policy=lambda request: Policy("5/day"))
    count, headers = passed(call, outer, 4, "x")
    # The fields are those of the policy that was charged, and got the permit back.
    assert count == 1 and headers["ratelimit"].startswith('"default";r=4') and '"default";r=0' in headers["ratelimit"]
    key = tollbar.address_key("192.0.2.1")
    assert [table.peek(key, policy=number).remaining for number in (0, 1)] == [9, 4]


@FACES
def test_a_chosen_policy_is_charged_after_the_response(call, middleware, app):
    limited = middleware.RateLimit(app, plan, charge=lambda request, response: 2 * (response.status == 200))
    assert passed(call, limited, 4, "5")[0] == 3 and passed(call, limited, 4, "6")[0] == 3


@FACES
def test_skipped_and_switched_off(call, middleware, app):
    asked, on = [], False
    limited = middleware.RateLimit(
        app,
        QUOTA.format(1),
        skip=lambda request: query(request) == "health",
        key=lambda request: asked.append(1) or "k",
    )
    count, headers = passed(call, limited, 5, "health")
    # No key is made, and no field written.
    assert (count, asked, "ratelimit" in headers) == (5, [], False)
    assert passed(call, limited, 5, "x")[0] == 1
    assert passed(call, middleware.RateLimit(app, QUOTA.format(1), enabled=False), 5, "x")[0] == 5
    switched = middleware.RateLimit(app, QUOTA.format(1), enabled=lambda: on)
    assert passed(call, switched, 5, "x")[0] == 5
    on = True
    assert passed(call, switched, 5, "x")[0] == 1


@FACES
def test_all_keys_begin_anew(call, middleware, app):
    limited = middleware.RateLimit(app, plan)
    assert passed(call, limited, 5, "3")[0] == 3 and passed(call, limited, 5, "2")[0] == 2
    limited.reset_all()
    assert passed(call, limited, 5, "3")[0] == 3 and passed(call, limited, 5, "2")[0] == 2


@FACES
@pytest.mark.parametrize("wrong", [{"policy": "a"}, {"policy": lambda request: 0}])
def test_wrong_arguments(call, middleware, app, wrong):
    with pytest.raises(TypeError, match="expected no `policy` beside it"):
        middleware.RateLimit(app, plan, **wrong)
    with tollbar.Lease("60/s burst 99", name="a", nodes=2, url="redis://127.0.0.1:1", start=False) as lease:
        with pytest.raises(TypeError, match="a lease has one policy"):
            middleware.RateLimit(app, lease, policy=lambda request: 0)
        with pytest.raises(TypeError, match="the permits of a lease are in its store"):
            middleware.RateLimit(app, lease).reset_all()
    charged = middleware.RateLimit(
        app, Table(["1/s", "2/s"], 10), policy=lambda request: (0, 1), charge=lambda request, response: 1
    )
    with pytest.raises(TypeError, match="several policies"):
        passed(call, charged, 1, "x")


def test_a_tables_keys_begin_anew_but_those_with_a_policy_of_their_own(path):  # noqa: F811
    """In all processes that share it, of which a second opening is one."""
    with Table.open(path, {"a": "3/day", "b": QUOTA.format(2)}, 100) as table, Table.open(path) as other:
        table.set_override("vip", "4/day")
        for key, policy, burst in (("ann", "a", 3), ("ann", "b", 2), ("vip", "a", 4)):
            assert [table.allow(key, policy=policy) for _ in range(burst + 1)].count(True) == burst
        other.reset_all()
        assert [table.peek("ann", policy=name).remaining for name in ("a", "b")] == [3, 2] and table.peek(
            "vip"
        ).remaining == 0
        other.reset("vip")
        assert table.peek("vip").remaining == 4


def test_functions():
    calls = []

    @limit(lambda who, plan: plan and QUOTA.format(plan), key=lambda who, plan: who)
    def send(who, plan):
        calls.append(who)

    def refused(function, n, *arguments, **named):
        count = 0
        for _ in range(n):
            try:
                function(*arguments, **named)
            except Limited:
                count += 1
        return count

    assert [
        refused(send, 5, "ann", 3),
        refused(send, 5, "ann", 4),
        refused(send, 5, "bob", 3),
        refused(send, 50, "ann", None),
    ] == [2, 1, 2, 0]
    # Without a key all calls of a policy share it.
    shared = limit(lambda who: QUOTA.format(3))(lambda who: True)
    assert refused(shared, 2, "ann") + refused(shared, 3, "bob") == 2
    named = Table({"low": QUOTA.format(1), "high": QUOTA.format(3)}, 100)
    by_name = limit(named, key=lambda who: who, policy=lambda who: "high" if who == "ann" else None)(lambda who: True)
    assert (refused(by_name, 5, "ann"), refused(by_name, 5, "bob")) == (2, 0)
    on = False
    some = limit(QUOTA.format(1), skip=lambda who: who == "root", enabled=lambda: on)(lambda who: True)
    assert refused(some, 5, "ann") == 0
    on = True
    assert (refused(some, 5, "root"), refused(some, 5, "ann")) == (0, 4)
    assert refused(limit(QUOTA.format(1), enabled=False)(lambda: True), 5) == 0

    @limit(lambda who: QUOTA.format(2), key=lambda who: who, wait=0.01)
    async def ask(who):
        return who

    async def run():
        return await asyncio.gather(*(ask("ann") for _ in range(4)), return_exceptions=True)

    answers = asyncio.run(run())
    assert answers.count("ann") == 2 and sum(isinstance(answer, Limited) for answer in answers) == 2
    for wrong in (
        {"by": plan, "policy": 1},
        {"by": tollbar.Limiter("1/s"), "policy": lambda: 0},
        {"by": "1/s", "policy": lambda: 0},
    ):
        with pytest.raises(TypeError, match="limit:"):
            limit(**wrong)


PROGRAM = """
import tollbar
def plan(request):
    number = {get}
    return number + "/day algo fixed-window anchor first" if number else None
def skip(request):
    return request_path(request) == "/health"
def charge(request, response):
    seen.append((response.status, response.sent, dict(response.headers).get("{type}", "").partition(";")[0]))
    return response.status == 401
seen = []
"""


def test_fastapi():
    lines = isolated(
        PROGRAM.format(get='request.headers.get("x-plan")', type="content-type")
        + """
from fastapi import Depends, FastAPI, HTTPException, WebSocket
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient
from tollbar.fastapi import RESPONSES, Fields, RateLimit
request_path = lambda request: request.url.path
by_plan = RateLimit(plan, skip=skip)
wrong = RateLimit("2/day algo fixed-window anchor first", charge=charge)
app = FastAPI(dependencies=[Depends(by_plan)], responses=RESPONSES)
app.get("/")(lambda: "ok")
app.get("/health")(lambda: "ok")
@app.get("/login", dependencies=[Depends(wrong)])
def login(password: str = ""):
    if password != "right":
        raise HTTPException(401)
    return StreamingResponse(iter(["a" * 1000]))
client = TestClient(app, client=("192.0.2.1", 5), raise_server_exceptions=False)
get = lambda path, plan="": client.get(path, headers={"x-plan": plan}).status_code
print([get("/", "3") for _ in range(4)], [get("/", "2") for _ in range(3)])
print([get("/") for _ in range(9)].count(200), [get("/health", "1") for _ in range(9)].count(200))
by_plan.reset_all()
print(get("/", "3"))
try:
    TestClient(app).get("/login")
except RuntimeError as error:
    print("expected: app.add_middleware(tollbar.fastapi.Fields)" in str(error))
app.middleware_stack = None
app.add_middleware(Fields)
print([get("/login?password=" + word) for word in ("right", "right", "no", "right", "no", "right")], seen)
answer = client.get("/login")
print(answer.status_code, "ratelimit" in answer.headers, "429" in app.openapi()["paths"]["/login"]["get"]["responses"])

@app.websocket("/ws")
async def talk(socket: WebSocket):
    await socket.accept()
    await socket.close()
def opens():
    try:
        with client.websocket_connect("/ws", headers={"x-plan": "1"}) as socket:
            return True
    except Exception as refused:
        return type(refused).__name__
print([opens() for _ in range(3)])
"""
    )
    assert lines[:4] == ["[200, 200, 200, 429] [200, 200, 429]", "9 9", "200", "True"]
    assert lines[4] == "[200, 200, 401, 200, 401, 429] " + str(
        [(200, 1000, "")] * 2 + [(401, 25, "application/json"), (200, 1000, ""), (401, 25, "application/json")]
    )
    assert lines[5] == "429 True True" and lines[6] == "[True, 'WebSocketDisconnect', 'WebSocketDisconnect']"


def test_flask():
    lines = isolated(
        PROGRAM.format(get='request.headers.get("x-plan")', type="Content-Type")
        + """
import flask
from tollbar.flask import RateLimit
request_path = lambda request: request.path
app = flask.Flask("app")
limited = RateLimit(plan, skip=skip)
limited.init_app(app)
app.get("/", endpoint="root")(lambda: "ok")
app.get("/health", endpoint="health")(lambda: "ok")
@app.get("/login")
@RateLimit("2/day algo fixed-window anchor first", charge=charge)
def login():
    password = flask.request.args.get("password")
    if password == "stream":
        return flask.Response(iter(["a" * 1000]))
    return "welcome" if password == "right" else flask.abort(401) if password == "no" else 1 / 0
client = app.test_client()
get = lambda path, plan="": client.get(path, headers={"x-plan": plan}).status_code
print([get("/", "3") for _ in range(4)], [get("/", "2") for _ in range(3)])
print([get("/") for _ in range(9)].count(200), [get("/health", "1") for _ in range(9)].count(200))
limited.reset_all()
print(get("/", "3"))
words = ("right", "stream", "no", "right", "oh", "no", "right")
print([get("/login?password=" + word) for word in words], [(status, sent) for status, sent, _ in seen])
"""
    )
    assert lines[:3] == ["[200, 200, 200, 429] [200, 200, 429]", "9 9", "200"]
    assert (
        lines[3].startswith("[200, 200, 401, 200, 500, 401, 429] [(200, 7), (200, 0), (401, ")
        and lines[3].count("(500, ") == 1
    )


@pytest.mark.parametrize("asynchronous", [False, True])
def test_django(asynchronous):
    lines = isolated(
        PROGRAM.format(get='request.headers.get("x-plan")', type="Content-Type")
        + f"""
import asyncio, django
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client
from django.urls import path
request_path = lambda request: request.path
options: tollbar.django.Options
FIVE = "5/day algo fixed-window anchor first"
settings.configure(ROOT_URLCONF="__main__", ALLOWED_HOSTS=["*"], SECRET_KEY="k", INSTALLED_APPS=["rest_framework"],
    MIDDLEWARE=["tollbar.django.fields", "tollbar.django.rate_limit"], REST_FRAMEWORK={{"UNAUTHENTICATED_USER": None}},
    TOLLBAR={{"table": lambda request: plan(request) or FIVE, "skip": skip, "charge": charge}})
django.setup()
from rest_framework.decorators import api_view, throttle_classes
from rest_framework.response import Response
import tollbar.django, tollbar.drf
class Slow(tollbar.drf.Throttle):
    table = tollbar.Table("9/day", 100)
    def get_policy(self, request, view):
        return tollbar.Policy(plan(request)) if plan(request) else None
api = api_view(["GET"])(throttle_classes([Slow])(lambda request: Response("ok")))
def view(request):
    return HttpResponse("no", status=401) if request.GET.get("password") == "no" else HttpResponse("ok")
urlpatterns = [path("", view), path("health", view), path("api", api)]
# Each client loads the middleware anew.
client = AsyncClient() if {asynchronous} else Client()
def get(url, plan=""):
    answer = client.get(url, headers={{"x-plan": plan}})
    return asyncio.run(answer) if {asynchronous} else answer
print([get("/?password=" + word, "2").status_code for word in ("right", "no", "right", "no", "right")], seen[:2])
def wrong(url, plan, n):
    return [get(url + "?password=no", plan).status_code for _ in range(n)].count(401)
print(wrong("/", "", 7), wrong("/health", "1", 9))
answers = [get("/api", "3") for _ in range(5)]
limits = [answer.headers["ratelimit"].count("r=") for answer in (*answers, get("/api"))]
print([answer.status_code for answer in answers], limits)
"""
    )
    assert lines[0] == "[200, 401, 200, 401, 429] [(200, 2, 'text/html'), (401, 2, 'text/html')]"
    assert lines[1] == "5 9"
    # The throttle's limit and the middleware's; without a plan the throttle limits nothing.
    assert lines[2] == "[200, 200, 200, 429, 429] [2, 2, 2, 2, 2, 1]"


def test_channels():
    """A WebSocket of Django Channels above the limit is closed before it is accepted."""
    lines = isolated(
        """
import asyncio, django
from django.conf import settings
settings.configure(INSTALLED_APPS=["channels"], SECRET_KEY="k", ALLOWED_HOSTS=["*"])
django.setup()
import tollbar
from channels.generic.websocket import WebsocketConsumer
from channels.routing import ProtocolTypeRouter, URLRouter
from asgiref.testing import ApplicationCommunicator
from django.urls import path
class Talk(WebsocketConsumer):
    pass
routes = ProtocolTypeRouter({"websocket": URLRouter([path("ws/", Talk.as_asgi())])})
app = tollbar.asgi.RateLimit(routes, "2/day algo fixed-window anchor first", key=lambda scope: "ann")
async def opens():
    scope = {"type": "websocket", "path": "/ws/", "headers": [], "query_string": b"", "subprotocols": []}
    talk = ApplicationCommunicator(app, scope)
    await talk.send_input({"type": "websocket.connect"})
    answer = await talk.receive_output()
    if answer["type"] == "websocket.accept":
        await talk.send_input({"type": "websocket.disconnect", "code": 1000})
    await talk.wait()
    return answer["type"].removeprefix("websocket."), answer.get("code")
async def main():
    return [await opens() for _ in range(4)]
print(asyncio.run(main()))
"""
    )
    assert lines == ["[('accept', None), ('accept', None), ('close', 1008), ('close', 1008)]"]


def test_one_warning_when_workers_do_not_share_a_function_s_policy(monkeypatch, recwarn):
    monkeypatch.setattr(_alone, "_workers", lambda: 4)
    monkeypatch.setitem(sys.modules, "gunicorn", sys)
    called, shared = limit("9/day")(lambda: True), limit(tollbar.Limiter("9/day"))(lambda: True)
    assert all(called() and shared() for _ in range(3))
    (warning,) = recwarn
    assert (
        str(warning.message).startswith("4 workers have a table of '9/day' each") and warning.category is RuntimeWarning
    )
    recwarn.clear()
    by_function = limit(lambda who: "8/day" if who else None)(lambda who: True)
    assert by_function("") and not recwarn.list and by_function("ann") and by_function("ann")
    assert "'8/day'" in str(recwarn.pop().message) and not recwarn.list
