"""The module in a real nginx with Debian's Lua module."""

import math
import os
import re
import sys
import threading
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "nginx" / "tests"))

from harness.client import count, statuses  # noqa: E402
from harness.server import Nginx  # noqa: E402

# Where Debian has them; OpenResty has them within.
DIRECTORY = Path(os.environ.get("NGINX_MODULES", "/usr/lib/nginx/modules"))
MODULES = [DIRECTORY / "ndk_http_module.so", DIRECTORY / "ngx_http_lua_module.so"]

CHECK = """
    location / {
        access_by_lua_block {
            ngx.header["X-Worker"] = ngx.worker.pid()
            local allowed, retry_after, remaining = clients:check(ngx.var.arg_k, tonumber(ngx.var.arg_cost))
            if allowed == false then ngx.header["Retry-After"] = math.ceil(retry_after) end
            if not allowed then return ngx.exit(429) end
            ngx.header["X-Left"] = remaining
        }
        empty_gif;
    }
"""
OPEN = 'assert(require("tollbar").open("{path}", "{policy}", {{ capacity = 1000 }}))'


def parts(make, server=CHECK, more="", workers=2):
    return {
        "modules": MODULES,
        "workers": workers,
        "main": "env TOLLBAR_LIBRARY;",
        "http": f'lua_package_path "{ROOT}/bindings/lua/?.lua;;"; {more} init_by_lua_block {{ clients = {make} }}',
        "server": server,
    }


@pytest.fixture
def path():
    name = f"/dev/shm/tollbar-nginx-lua-{os.getpid()}-{time.monotonic_ns()}"
    yield name
    if os.path.exists(name):
        os.unlink(name)


@pytest.fixture
def launch(tmp_path):
    running = []

    def start(**how):
        one = Nginx(tmp_path / f"nginx{len(running)}", **how)
        running.append(one)
        return one.start()

    yield start
    for one in running:
        one.stop()
    for one in running:
        assert one.complaints() == []
        assert [words for level, words in one.said("lua") if level == "error"] == []


def workers_of(answers):
    return {a.headers["x-worker"] for a in answers}


def both_workers(nginx):
    """Asks under ever new keys until each worker has answered, and what all of them were given."""
    seen, given = set(), []
    for k in range(200):
        answers = nginx.volley(f"/?k=w{k}", 12)
        given.append(count(answers))
        seen |= workers_of(answers)
        if len(seen) == 2:
            return given
    raise AssertionError(f"one worker has answered all: {seen}")


def test_workers_share_a_named_table(launch, path):
    nginx = launch(**parts(OPEN.format(path=path, policy="6/day")), listen="reuseport")
    assert set(both_workers(nginx)) == {6}
    refused = nginx.get("/?k=w0")
    assert refused.status == 429
    # A permit comes back every four hours.
    assert 4 * 3600 - 60 < int(refused.headers["retry-after"]) <= 4 * 3600
    assert [a.headers["x-left"] for a in nginx.each("/?k=new", "/?k=new&cost=3")] == ["5", "2"]


def test_a_table_of_init_by_lua_is_one_for_all_workers(launch):
    make = 'assert(require("tollbar").table("6/day", { capacity = 1000, shared = true }))'
    nginx = launch(**parts(make), listen="reuseport")
    assert set(both_workers(nginx)) == {6}
    for pid in nginx.workers():
        nginx.kill_worker(pid)
    assert nginx.get("/?k=w0").status == 429


def test_a_killed_worker_takes_nothing_with_it(launch, path):
    nginx = launch(**parts(OPEN.format(path=path, policy="6/day")))
    assert count(nginx.volley("/?k=a", 4)) == 4
    for pid in nginx.workers():
        nginx.kill_worker(pid)
    assert count(nginx.volley("/?k=a", 9)) == 2


def test_workers_that_are_killed_under_load(launch, path):
    """What passed is the policy's, but for what a killed worker had charged and could not answer
    any more."""
    nginx = launch(**parts(OPEN.format(path=path, policy="3000/day")))
    answered, stop, killed = [], threading.Event(), 0

    def ask():
        while not stop.is_set():
            # Paced by the kills, so that permits are left until the last kill.
            if len(answered) >= 400 * (killed + 1):
                time.sleep(0.001)
                continue
            try:
                answered.append(nginx.get("/?k=a").status)
            except ConnectionError:
                answered.append(0)

    clients = [threading.Thread(target=ask) for _ in range(4)]
    for client in clients:
        client.start()
    try:
        for killed in range(6):
            nginx.kill_worker()
    finally:
        stop.set()
        for client in clients:
            client.join()
    before = answered.count(200)
    assert 0 < before < 3000, "the kills came too late to meet anything"
    while 429 not in answered:
        answered += statuses(nginx.volley("/?k=a", 200))
    assert 3000 - answered.count(0) <= answered.count(200) <= 3000
    assert answered.count(0) <= 4 * 6


def test_a_reload_keeps_what_was_spent(launch, path):
    nginx = launch(**parts(OPEN.format(path=path, policy="6/day")))
    assert count(nginx.volley("/?k=a", 4)) == 4
    assert nginx.reload()
    assert count(nginx.volley("/?k=a", 9)) == 2


def test_without_the_cache_of_code(launch, path):
    # A Lua state for each request, which loads the module and declares everything anew.
    server = CHECK.replace("access_by_lua_block {", f"access_by_lua_block {{ local clients = {OPEN.format(path=path, policy='6/day')}")
    nginx = launch(**parts("1", server=server, more="lua_code_cache off;"))
    nginx.expected.append("lua_code_cache is off")
    assert count(nginx.volley("/?k=a", 9)) == 6


def test_errors_fail_closed(launch):
    nginx = launch(**parts('assert(require("tollbar").table("6/day", { capacity = 10, missing = "report" }))'))
    answer = nginx.get("/")
    assert (answer.status, "retry-after" in answer.headers) == (429, False)
    assert nginx.get("/?k=a").status == 200


def test_waiting_lets_others_go_on(launch):
    server = """
    location /wait { access_by_lua_block {
        local began = ngx.now()
        if not limiter:wait(tonumber(ngx.var.arg_patience)) then return ngx.exit(429) end
    } empty_gif; }
    location / { empty_gif; }
"""
    # A busy machine may lose a second between two requests.
    make = '0; limiter = assert(require("tollbar").limiter("1/2s burst 1"))'
    nginx = launch(**parts(make, server=server, workers=1))
    # Of six requests one passes at once and three two seconds apart. The other two would wait
    # longer than their patience.
    answers = nginx.volley("/wait?patience=6.1", 6)
    assert sorted(statuses(answers)) == [200] * 4 + [429] * 2
    passed = sorted(a.done for a in answers if a.status == 200)
    refused = [a.took for a in answers if a.status == 429]
    # No earlier than booked, but for how long an answer is on its way to a busy client.
    assert all(later - earlier > 0.25 for earlier, later in zip(passed, passed[1:])), passed
    assert max(refused) < passed[-1] - passed[0]


def test_pacing_lets_others_go_on(launch):
    server = """
    location /paced { access_by_lua_block {
        local ticket = assert(pace:acquire("http://api"))
        assert(pace:respond(ticket, 200, {}))
    } empty_gif; }
    location / { empty_gif; }
"""
    make = '0; pace = assert(require("tollbar").pacing { least = 0.5, most = 0.5 })'
    nginx = launch(**parts(make, server=server, workers=1))
    answers = []
    paced = threading.Thread(target=lambda: answers.extend(nginx.volley("/paced", 3)))
    paced.start()
    # The second and third wait for two and four seconds, in light threads of the only worker.
    assert nginx.get("/").status == 200 and paced.is_alive()
    paced.join()
    assert statuses(answers) == [200] * 3
    done = sorted(answer.done for answer in answers)
    # Two seconds apart, but for how long an answer is on its way to a busy client.
    assert all(later - earlier > 1 for earlier, later in zip(done, done[1:], strict=False)), done


def test_waiting_for_a_key(launch):
    """Two workers, whose requests for one key depart one after the other; another key is not held
    up."""
    server = """
    location /wait { access_by_lua_block {
        if not clients:wait(ngx.var.arg_k, tonumber(ngx.var.arg_patience)) then return ngx.exit(429) end
    } empty_gif; }
"""
    make = '0; clients = assert(require("tollbar").table("1/2s burst 1", { capacity = 10, shared = true }))'
    nginx = launch(**parts(make, server=server, workers=2))
    answers = nginx.volley("/wait?k=a&patience=6.1", 6)
    assert sorted(statuses(answers)) == [200] * 4 + [429] * 2
    passed = sorted(a.done for a in answers if a.status == 200)
    assert all(later - earlier > 0.25 for earlier, later in zip(passed, passed[1:])), passed
    assert nginx.get("/wait?k=b&patience=0").status == 200


def test_waiting_in_line(launch):
    """What cannot be booked, by nginx's own semaphores."""
    server = """
    location /wait { access_by_lua_block {
        if not limiter:wait(tonumber(ngx.var.arg_patience)) then return ngx.exit(429) end
        if package.loaded["ngx.semaphore"] == nil then return ngx.exit(500) end
    } empty_gif; }
"""
    make = '0; limiter = assert(require("tollbar").limiter("1/300ms algo sliding-log"))'
    nginx = launch(**parts(make, server=server, workers=1))
    began = time.monotonic()
    assert statuses(nginx.volley("/wait?patience=60", 5)) == [200] * 5
    assert time.monotonic() - began >= 4 * 0.3
    # A waiter without patience left is refused, and those behind it move up.
    answers = sorted(statuses(nginx.volley("/wait?patience=0.75", 20)))
    assert answers[0] == 200 and answers[-1] == 429 and set(answers) == {200, 429}
    assert nginx.get("/wait?patience=60").status == 200


def test_the_configuration_of_the_readme(launch, path):
    """As a reader would take it, but for where things are."""
    text = (ROOT / "bindings" / "lua" / "README.md").read_text()
    block = re.search(r"```nginx\n(.*?)```", text, re.S)[1]
    block = block.replace("/usr/local/share/lua/5.1", f"{ROOT}/bindings/lua").replace("/run/nginx/clients", path)
    http, server = re.fullmatch(r"(.*?)server \{\n(.*)\}\n", block, re.S).groups()
    server = server.replace("location / {", "location / { empty_gif;")
    nginx = launch(modules=MODULES, main="env TOLLBAR_LIBRARY;", workers=2, http=http, server=server)
    began = time.monotonic()
    answers = nginx.volley("/", 60)
    most = 20 + math.ceil(10 * (time.monotonic() - began))
    assert 20 <= count(answers) <= most and count(answers) + count(answers, 429) == 60
    assert {a.headers["retry-after"] for a in answers if a.status == 429} == {"1"}
