"""The faces of FastAPI, Flask, Django, Django REST framework and Celery, with the frameworks; and
their examples under real servers."""

import os
import subprocess
import sys
import textwrap
import time

import pytest
import servers
import tollbar
from test_limits import path  # noqa: F401, a fixture
from test_web import asgi_app, call_asgi, call_wsgi, wsgi_app
from tollbar import asgi, wsgi

QUOTA = "3/day algo fixed-window anchor first"


def isolated(program, **environment):
    """Runs a program in a process of its own, because Django is configured once, and returns what
    it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)],
        cwd=servers.EXAMPLES,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def by_query(request):
    return 2 if request.get("QUERY_STRING", request.get("query_string")) in ("big", b"big") else 1


def teapot(request, refusal):
    assert refusal.headers[0][0] == "Content-Type" and refusal.body
    return refusal._replace(status=418, headers=[("Content-Type", "application/json"), *refusal.headers[1:]], body=b'{"code": "late"}')


@pytest.mark.parametrize(("call", "middleware", "app"), [(call_wsgi, wsgi, wsgi_app), (call_asgi, asgi, asgi_app)])
def test_the_middleware_takes_costs_by_request_and_a_hook(call, middleware, app):
    limited = middleware.RateLimit(app, QUOTA, cost=by_query, refuse=teapot)
    query = {"QUERY_STRING": "big", "query_string": b"big"}
    assert str(call(limited, **query)[0]).startswith("200")
    status, headers, body = call(limited, **query)
    assert str(status).startswith("418") and body == b'{"code": "late"}'
    assert headers["content-type"] == "application/json" and headers["content-length"] == str(len(body)) and "retry-after" in headers
    # The refused one has taken nothing.
    assert str(call(limited)[0]).startswith("200") and str(call(limited)[0]).startswith("418")
    # A request without a key gets its status through the hook, too.
    keyless = middleware.RateLimit(app, QUOTA, key=lambda request: None, refuse=lambda request, refusal: refusal._replace(status=999))
    assert str(call(keyless)[0]).startswith("999")


def test_several_policies_with_a_cost_by_request():
    table = tollbar.Table({"low": "3/day", "high": "9/day"}, 100)
    limited = wsgi.RateLimit(wsgi_app, table, policy=("low", "high"), cost=by_query)
    assert call_wsgi(limited, QUERY_STRING="big")[0] == "200 OK"
    assert call_wsgi(limited, QUERY_STRING="big")[0] == "429 Too Many Requests"
    assert (table.peek(tollbar.address_key("192.0.2.1"), policy="high").remaining, call_wsgi(limited)[0]) == (7, "200 OK")


def test_fastapi(path):  # noqa: F811
    lines = isolated(
        """
        from fastapi.testclient import TestClient
        import fastapi_app
        client = TestClient(fastapi_app.app, client=("192.0.2.1", 5))
        print([client.get("/").status_code for _ in range(101)].count(200), dict(client.get("/").headers)["ratelimit-policy"])
        answers = [client.get(path, headers={"x-api-key": "ann"}) for path in ("/report", "/search", "/report", "/report", "/search")]
        print([answer.status_code for answer in answers], answers[0].headers["ratelimit"])
        refused = client.get("/report", headers={"x-api-key": "ann"})
        print(refused.status_code, refused.json(), refused.headers["retry-after"].isdecimal(), refused.headers["content-length"] == str(len(refused.content)))
        print(client.get("/search").status_code, client.get("/search", headers={"x-api-key": "bob"}).json())
        print([key for key in fastapi_app.app.openapi()["paths"]["/"]["get"]])
        """,
        TABLE=path,
    )
    assert lines[0] == '100 "address";q=100;w=86400'
    assert lines[1].startswith("[200, 200, 200, 200, 200]") and '"second";r=45' in lines[1] and '"day";r=15' in lines[1]
    assert lines[2] == "429 {'detail': 'your plan allows 20 a day'} True True"
    assert lines[3] == "401 found" and "parameters" not in lines[4]


def test_flask(path):  # noqa: F811
    lines = isolated(
        """
        import flask_app, tollbar.flask
        @flask_app.app.get("/other")
        @tollbar.flask.RateLimit("1/day", key=lambda request: request.args.get("who"), cost=lambda request: 1, missing_status=401)
        def other():
            return {"a": 1}, 201, {"x-more": "yes"}
        client = flask_app.app.test_client()
        answers = [client.get("/login") for _ in range(6)]
        print([answer.status_code for answer in answers], answers[0].headers["ratelimit-policy"], answers[0].headers.getlist("ratelimit"))
        print(answers[5].headers["retry-after"].isdecimal(), answers[5].data, answers[5].headers["content-length"])
        print([client.get("/").status_code for _ in range(300)].count(200), client.get("/").status_code)
        print([client.get("/", environ_base={"REMOTE_ADDR": "192.0.2.7"}).status_code for _ in range(310)].count(200))
        flask_app.table.reset(tollbar.address_key("127.0.0.1"), "all")
        first, second, none = (client.get("/other" + query) for query in ("?who=a", "?who=a", ""))
        print(first.status_code, first.json, first.headers["x-more"], second.status_code, none.status_code)
        """,
        TABLE=path,
    )
    assert lines[0].startswith("[200, 200, 200, 200, 200, 429] ") and '"login";q=5;w=86400' in lines[0]
    assert lines[1] == "True b'Too Many Requests\\n' 18"
    # The five requests that passed the login view were counted by the limit of all requests. The
    # sixth was refused, so that limit got it back.
    assert lines[2] == "295 429" and lines[3] == "310" and lines[4] == "201 {'a': 1} yes 429 401"


def test_django(path):  # noqa: F811
    lines = isolated(
        """
        import asyncio, django_app
        from django.test import AsyncClient, Client
        from django.conf import settings
        client = Client()
        answers = [client.get("/api") for _ in range(6)]
        print([answer.status_code for answer in answers], answers[5].headers["Retry-After"].isdecimal(), "throttled" in answers[5].content.decode())
        print([client.get("/").status_code for _ in range(300)].count(200), client.get("/").status_code, client.get("/").headers["RateLimit-Policy"])
        async def run():
            settings.TOLLBAR = {"table": "2/day", "key": lambda request: request.headers.get("x-who"), "cost": lambda request: 1, "missing_status": 401}
            client = AsyncClient()
            return [(await client.get("/", headers=headers)).status_code for headers in ({"x-who": "a"},) * 3 + ({},)]
        print(asyncio.run(run()))
        """,
        TABLE=path,
    )
    assert lines[0] == "[200, 200, 200, 200, 200, 429] True True"
    # The throttle refused the sixth request, so the middleware got it back.
    assert lines[1] == '295 429 "all";q=300;w=86400'
    assert lines[2] == "[200, 200, 429, 401]"


def test_a_throttle_has_keys_and_costs_by_request(path):  # noqa: F811
    lines = isolated(
        """
        import django_app
        from tollbar.drf import Throttle
        class User:
            def __init__(self, pk): self.pk, self.is_authenticated = pk, pk is not None
        class Request:
            def __init__(self, pk, address="192.0.2.1"):
                self.user, self.headers = User(pk), {"x-forwarded-for": "198.51.100.1"}
                self.META = {"REMOTE_ADDR": address}
        class Costly(Throttle):
            table, exempt = "5/day", {"2001:db8::1"}
            def get_cost(self, request, view): return 3
        def ask(*who):
            throttle = Costly()
            return throttle.allow_request(Request(*who), None), throttle.wait() is not None and throttle.wait() > 10
        print(ask(1), ask(1), ask(2), ask(None), ask(None, "192.0.2.2"), [ask(None, "2001:db8::9")[0] for _ in range(5)])
        class Keyless(Throttle):
            table = "5/day"
            def get_key(self, request, view): return None
        throttle = Keyless()
        print(throttle.allow_request(Request(1), None), throttle.wait())
        """,
        TABLE=path,
    )
    assert lines[0] == "(True, False) (False, True) (True, False) (True, False) (True, False) [True, True, True, True, True]"
    assert lines[1] == "False None"


def test_celery(path):  # noqa: F811
    lines = isolated(
        """
        import time
        import celery_app
        from celery.contrib.testing.worker import start_worker
        with start_worker(celery_app.app, pool="threads", concurrency=4, perform_ping_check=False):
            started = time.monotonic()
            results = [celery_app.send.delay("ann") for _ in range(7)]
            states = []
            for result in results:
                try:
                    states.append(result.get(timeout=60))
                except Exception as error:
                    states.append(str(error))
            print(sum("sent to ann" == state for state in states), sum("send is limited" in state for state in states))
            print(time.monotonic() - started > 0.35)
        """,
        TABLE=path,
    )
    assert lines[-2:] == ["5 2", "True"]


@pytest.mark.parametrize(
    ("server", "app", "limits"),
    [
        ("uvicorn", "fastapi_app:app", {"/": 100, "/search": 0}),
        ("uvicorn", "starlette_app:app", {"/": 99}),
        ("gunicorn", "flask_app:app", {"/login": 5}),
        ("gunicorn", "django_app:app", {"/api": 5}),
    ],
)
def test_eight_workers_are_exact(server, app, limits, path, tmp_path):  # noqa: F811
    """Of Starlette's permits the request that looks whether the server is there takes one."""
    with servers.serving(server, app, tmp_path / "log", TABLE=path) as port:
        for name, most in limits.items():
            seen = servers.statuses(port, name, 200)
            assert seen[200] == most and sum(seen.values()) == 200 and set(seen) <= {200, 429, 401}


def test_b3_proxies_that_write_ports(path):  # noqa: F811
    """ProxyFix and NUM_PROXIES hand the text of X-Forwarded-For on; `proxies` reads it itself."""
    lines = isolated(
        """
        import flask, django, fastapi, tollbar.flask, tollbar.fastapi, tollbar.django
        from fastapi.testclient import TestClient
        from werkzeug.middleware.proxy_fix import ProxyFix
        ports = [f"198.51.100.2:{4000 + n}" for n in range(4)] + ["198.51.100.2", "1.1.1.1, 198.51.100.2:9"]
        networks = [f"[2001:db8::{n}]:{4000 + n}" for n in range(4)]
        app = flask.Flask("fixed")
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=1)
        tollbar.flask.RateLimit("2/day").init_app(app)
        app.get("/")(lambda: "")
        client = app.test_client()
        for values in ports, networks:
            print([client.get("/", headers={"X-Forwarded-For": value}).status_code for value in values])
        app = flask.Flask("own")
        tollbar.flask.RateLimit("2/day", proxies="127.0.0.1").init_app(app)
        app.get("/")(lambda: "")
        client = app.test_client()
        print([client.get("/", headers={"X-Forwarded-For": value}).status_code for value in ports])
        print([client.get("/", headers={"X-Forwarded-For": f"192.0.2.{n}"}, environ_base={"REMOTE_ADDR": "203.0.113.1"}).status_code for n in range(3)])
        limit = tollbar.fastapi.RateLimit("2/day", proxies=["unix:", "10.0.0.0/8"])
        app = fastapi.FastAPI(dependencies=[fastapi.Depends(limit)])
        app.get("/")(lambda: {})
        client = TestClient(app, client=("10.0.0.1", 1))
        print([client.get("/", headers={"X-Forwarded-For": value}).status_code for value in ports])
        from django.conf import settings
        settings.configure(
            SECRET_KEY="x", ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, MIDDLEWARE=["tollbar.django.rate_limit"],
            TOLLBAR={"table": "2/day", "proxies": ["127.0.0.1"]}, DATABASES={}, INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"],
            REST_FRAMEWORK={"NUM_PROXIES": 1, "UNAUTHENTICATED_USER": None, "DEFAULT_AUTHENTICATION_CLASSES": []},
        )
        django.setup()
        from django.http import HttpResponse
        from django.test import Client, RequestFactory
        from django.urls import path
        import tollbar.drf
        urlpatterns = [path("", lambda request: HttpResponse())]
        client = Client()
        print([client.get("/", headers={"X-Forwarded-For": value}).status_code for value in ports])
        class Throttle(tollbar.drf.Throttle):
            table = "2/day"
        def allows(value):
            request = RequestFactory().get("/", headers={"X-Forwarded-For": value})
            request.user = None
            return Throttle().allow_request(request, None)
        for values in ports, networks:
            print([allows(value) for value in values])
        """,
        TABLE=path,
    )
    assert lines[:2] == ["[200, 200, 429, 429, 429, 429]", "[200, 200, 429, 429]"]
    assert lines[2:4] == ["[200, 200, 429, 429, 429, 429]", "[200, 200, 429]"]
    assert lines[4:6] == ["[200, 200, 429, 429, 429, 429]"] * 2
    assert lines[6:] == ["[True, True, False, False, False, False]", "[True, True, False, False]"]


def test_d4_every_kind_of_response_has_the_fields():
    lines = isolated(
        """
        import fastapi, flask, tollbar
        from fastapi.responses import JSONResponse
        from fastapi.testclient import TestClient
        for middleware in False, True:
            limits = [fastapi.Depends(tollbar.fastapi.RateLimit("100/day", name=name)) for name in ("one", "two")]
            app = fastapi.FastAPI(dependencies=limits, responses=tollbar.fastapi.RESPONSES)
            if middleware:
                app.add_middleware(tollbar.fastapi.Fields)
            @app.get("/value")
            async def value(): return {}
            @app.get("/response")
            async def response(): return JSONResponse({})
            @app.get("/error")
            async def error(): raise fastapi.HTTPException(404)
            @app.websocket("/ws")
            async def ws(socket: fastapi.WebSocket):
                await socket.accept()
                await socket.close()
            client = TestClient(app)
            with client.websocket_connect("/ws"):
                pass
            print([client.get(path).headers.get_list("ratelimit-policy") for path in ("/value", "/response", "/error")])
        print(client.get("/value").headers["ratelimit"])
        print("429" in app.openapi()["paths"]["/value"]["get"]["responses"])
        app = fastapi.FastAPI(dependencies=[fastapi.Depends(tollbar.fastapi.RateLimit("1/day"))])
        @app.websocket("/ws")
        async def one(socket: fastapi.WebSocket):
            await socket.accept()
        client = TestClient(app)
        with client.websocket_connect("/ws"):
            pass
        try:
            with client.websocket_connect("/ws"):
                print("accepted")
        except Exception as refused:
            print(type(refused).__name__, refused.code)

        app = flask.Flask("app")
        limit = tollbar.flask.RateLimit("2/day", key=lambda request: request.path)
        @app.get("/value")
        @limit
        def value(): return "value"
        @app.get("/abort")
        @limit
        def aborted(): flask.abort(404)
        @app.get("/error")
        @limit
        def failed(): raise ZeroDivisionError
        client = app.test_client()
        print([client.get(path).headers.getlist("RateLimit-Policy") for path in ("/value", "/abort", "/error")])
        client.get("/value")
        print(client.get("/value").data)
        app = flask.Flask("handled")
        app.register_error_handler(429, lambda error: ("ours", 429))
        app.get("/value")(limit(lambda: "value"))
        refused = app.test_client().get("/value")
        print(refused.data, refused.status_code, refused.headers["Retry-After"].isdecimal(), len(refused.headers.getlist("RateLimit")))
        """
    )
    policies = """['"one";q=100;w=86400, "two";q=100;w=86400']"""
    assert lines[0] == f"[{policies}, [], []]"
    assert lines[1] == f"[{policies}, {policies}, {policies}]"
    assert lines[2].count(";r=") == 2 and lines[3] == "True" and lines[4] == "WebSocketDisconnect 1008"
    assert lines[5] == """[['"default";q=2;w=86400'], ['"default";q=2;w=86400'], ['"default";q=2;w=86400']]"""
    assert lines[6:] == ["b'Too Many Requests\\n'", "b'ours' 429 True 1"]


def test_c1_layers_of_several_frameworks_are_one_answer():
    """Middleware around a framework's own limit: the outermost writes the fields of all, and a
    refusal charges nobody."""
    lines = isolated(
        """
        import asyncio, fastapi, flask, tollbar
        from fastapi.testclient import TestClient
        wide, tight = (tollbar.Table(policy, 100) for policy in ("100/day", "2/day"))
        left = lambda table: [table.peek(tollbar.address_key(f"192.0.2.{n}")).remaining for n in (1,)]
        app = fastapi.FastAPI(dependencies=[fastapi.Depends(tollbar.fastapi.RateLimit(tight, name="tight"))])
        app.get("/")(lambda: {})
        app.add_middleware(tollbar.asgi.RateLimit, table=wide, name="wide")
        client = TestClient(app, client=("192.0.2.1", 1))
        for _ in range(4):
            answer = client.get("/")
            print(answer.status_code, answer.headers.get_list("ratelimit-policy"), answer.headers["ratelimit"], left(wide), left(tight))
        wide.reset(tollbar.address_key("192.0.2.1")), tight.reset(tollbar.address_key("192.0.2.1"))
        app = flask.Flask("app")
        app.get("/")(tollbar.flask.RateLimit(tight, name="tight")(lambda: "value"))
        app.wsgi_app = tollbar.wsgi.RateLimit(app.wsgi_app, wide, name="wide")
        client = app.test_client()
        for _ in range(4):
            answer = client.get("/", environ_base={"REMOTE_ADDR": "192.0.2.1"})
            print(answer.status_code, answer.headers.getlist("RateLimit-Policy"), answer.headers["RateLimit"], left(wide), left(tight))
        """
    )
    policies = """['"wide";q=100;w=86400, "tight";q=2;w=86400']"""
    for n, line in enumerate(lines):
        at = n % 4
        admitted = min(at + 1, 2)
        assert line.startswith(f"{200 if at < 2 else 429} {policies} "), line
        assert f'"wide";r={100 - admitted}' in line and f'"tight";r={2 - admitted}' in line, line
        assert line.endswith(f"[{100 - admitted}] [{2 - admitted}]"), line
    assert len(lines) == 8


@pytest.mark.parametrize(("server", "app"), [("uvicorn", "alone:asgi"), ("gunicorn", "alone:wsgi")])
def test_b6_workers_with_a_table_each_are_warned_of(server, app, tmp_path):
    """A policy in place of a table makes one in each worker. A table in a file, and one worker, are
    not warned of."""
    (tmp_path / "alone.py").write_text(
        textwrap.dedent(
            """
            import os, tollbar.asgi, tollbar.wsgi
            table = "20/day" if os.environ["TABLE"] == "" else tollbar.Table.open(os.environ["TABLE"], "20/day", 1000)

            async def asgi(scope, receive, send):
                if scope["type"] == "http":
                    await send({"type": "http.response.start", "status": 200, "headers": []})
                    await send({"type": "http.response.body"})

            def wsgi(environ, start):
                start("200 OK", [])
                return [b""]

            asgi, wsgi = tollbar.asgi.RateLimit(asgi, table), tollbar.wsgi.RateLimit(wsgi, table)
            """
        )
    )
    for table, workers in (("", 3), ("", 1), (str(tmp_path / "table"), 3)):
        log = tmp_path / "log"
        with servers.serving(server, app, log, workers=workers, PYTHONPATH=str(tmp_path), TABLE=table) as port:
            # A worker that starts late is not there with the first request of the others.
            deadline = time.monotonic() + 60
            while True:
                servers.statuses(port, "/", 30)
                warned = "3 workers have a table of '20/day' each, so together they admit 3 times as much" in log.read_text()
                if warned or table or workers == 1 or time.monotonic() > deadline:
                    break
        assert warned == (workers > 1 and not table), log.read_text()
        assert warned == ("RuntimeWarning" in log.read_text()), log.read_text()


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_b6_shared_memory_of_a_spawned_process_is_warned_of(method, tmp_path):
    (tmp_path / "program.py").write_text(
        textwrap.dedent(
            """
            import multiprocessing, sys, tollbar
            table = tollbar.Table("5/day", 100, shared=True)

            def take(_):
                return sum(table.allow("k") for _ in range(5))

            if __name__ == "__main__":
                with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
                    print(take(0) + pool.map(take, [0])[0])
            """
        )
    )
    done = subprocess.run([sys.executable, "program.py", method], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("5\n" if method == "fork" else "10\n")
    assert ("shared=True shares a table with processes that are forked later" in done.stderr) == (method != "fork")
