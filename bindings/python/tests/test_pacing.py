"""Pacing of outgoing requests, against servers on this machine that refuse.

Tests of times have lower bounds only: a busy machine may wake a sleeper late, and it never wakes
one early."""

import asyncio
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import aiohttp
import httpx
import pytest
import requests
import tollbar
from tollbar import pacing


class Server:
    """Answers the requests with these statuses and headers in turn, and then with 200. Records the
    time of each request."""

    def __init__(self, *answers):
        server = self
        self.times = []
        lock, left = threading.Lock(), list(answers)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                with lock:
                    server.times.append(time.monotonic())
                    status, headers = left.pop(0) if left else (200, {})
                self.send_response(status)
                for name, value in {**headers, "Content-Length": "0"}.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def by_requests(url, count, pace):
    with requests.Session() as session:
        session.mount("http://", pacing.requests_adapter(pace))
        return [session.get(f"{url}/a?b").status_code for _ in range(count)]


def by_httpx(url, count, pace):
    with httpx.Client(transport=pacing.httpx_transport(pace)) as client:
        return [client.get(f"{url}/a?b").status_code for _ in range(count)]


def by_httpx_async(url, count, pace):
    async def run():
        async with httpx.AsyncClient(transport=pacing.httpx_async_transport(pace)) as client:
            return [(await client.get(f"{url}/a?b")).status_code for _ in range(count)]

    return asyncio.run(run())


def by_aiohttp(url, count, pace):
    async def run():
        statuses = []
        async with aiohttp.ClientSession(middlewares=[pacing.aiohttp_middleware(pace)]) as session:
            for _ in range(count):
                async with session.get(f"{url}/a?b") as response:
                    statuses.append(response.status)
        return statuses

    return asyncio.run(run())


LIBRARIES = [by_requests, by_httpx, by_httpx_async, by_aiohttp]


@pytest.mark.parametrize("get", LIBRARIES)
def test_a_retry_after_stops_the_next_request(get):
    pace = pacing.Pacing()
    with Server((200, {}), (429, {"Retry-After": "1"})) as server:
        assert get(server.url, 3, pace) == [200, 429, 200]
        # The client hears of the second that begins with the server's answer.
        assert server.times[2] - server.times[1] >= 1.0
        assert len(server.times) == 3
        assert pace.state(server.url).rate < 1e6


@pytest.mark.parametrize("get", LIBRARIES)
def test_a_ceiling_spaces_the_requests(get):
    with Server() as server:
        begin = time.monotonic()
        assert get(server.url, 6, pacing.Pacing(most=50)) == [200] * 6
        # The first of six turns comes at once, and the others 20 ms after each other.
        assert time.monotonic() - begin >= 0.1


def test_one_retry_after_stops_all_threads():
    pace = pacing.Pacing()
    with Server((429, {"Retry-After": "1"})) as server:
        assert by_requests(server.url, 1, pace) == [429]
        with ThreadPoolExecutor(5) as pool:
            jobs = [pool.submit(get, server.url, 1, pace) for get in (*LIBRARIES, by_requests)]
            assert [job.result() for job in jobs] == [[200]] * 5
        assert min(server.times[1:]) - server.times[0] >= 1.0


class Clock:
    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now


def test_turns_and_pauses_on_the_callers_clock():
    clock = Clock()
    pace = pacing.Pacing(most=10, burst=2, pause_most=60, clock=clock)
    assert pace.state("a") is None
    turns = [pace.turn("a") for _ in range(4)]
    assert [pace.wait(turn) for turn in turns] == [0, 0, 0.1, 0.2]
    pace.leave(turns[2])
    assert pace.wait(turns[3]) == 0.1
    pace.respond(turns[0], 429, [("retry-AFTER", "7"), ("Content-Type", "text/plain")])
    clock.now = 1_000_000_000
    assert pace.state("a").paused == 6 and pace.wait(turns[3]) == 6
    clock.now = 7_000_000_000
    assert pace.wait(turns[3]) == 0
    pace.respond(turns[1], 403, [("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "999999")])
    assert pace.state("a").paused == 60
    assert pace.wait(pace.turn("b")) == 0


def test_aimd_rises_evenly():
    clock = Clock()
    pace = pacing.Pacing(algorithm="aimd", increase=5, clock=clock)
    for status in [200] * 200 + [429] + [200] * 100:
        clock.now += 10_000_000
        pace.respond(pace.turn("a"), status, [])
        if status == 429:
            cut = pace.state("a").rate
    assert pace.state("a").rate == pytest.approx(cut + 5)


def test_a_cancelled_task_gives_its_turn_back():
    async def run():
        clock = Clock()
        pace = pacing.Pacing(most=10, clock=clock)
        await pace.acquire_async("a")
        task = asyncio.create_task(pace.acquire_async("a"))
        await asyncio.sleep(0)
        assert pace.state("a").waiting == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert pace.wait(pace.turn("a")) == 0.1

    asyncio.run(run())


def test_the_example():
    example = Path(__file__).resolve().parents[3] / "examples" / "python" / "paced.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    accepted, refused = (int(part.split()[0]) for part in done.stdout.split(", ")[:2])
    # A pace that ignored the refusals would have half of them refused.
    assert accepted + refused == 100 and refused <= 10


def test_wrong_arguments():
    for options, error in (
        ({"algorithm": "tcp"}, ValueError),
        ({"algorithm": "aimd"}, ValueError),
        ({"increase": 5}, ValueError),
        ({"least": 0}, tollbar.Error),
        ({"least": 2, "most": 1}, tollbar.Error),
        ({"hosts": 0}, tollbar.Error),
        ({"burst": -1}, ValueError),
        ({"burst": 1 << 32}, ValueError),
    ):
        with pytest.raises(error):
            pacing.Pacing(**options)


def test_one_host_has_one_name():
    assert pacing._origin("HTTPS://user:word@Api.Example:8443/a?b@c#d") == "https://api.example:8443"
    assert pacing._origin("http://a?b") == "http://a"


def test_the_libraries_are_optional():
    assert "requests" in sys.modules
    code = "import sys; from tollbar import pacing; assert not {'requests', 'httpx', 'aiohttp', 'anyio'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
