"""Starts the examples under real servers with eight workers, and sends requests to them."""

import http.client
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"
WORKERS = 8
# Each inherits a socket that is bound, so nobody else can take its port.
COMMANDS = {
    "uvicorn": ["uvicorn", "--workers", "WORKERS", "--log-level", "warning", "--fd", "SOCKET"],
    "gunicorn": ["gunicorn", "--workers", "WORKERS", "--log-level", "warning", "--bind", "fd://SOCKET"],
}


@contextmanager
def serving(server, app, log, workers=WORKERS, **environment):
    """Serves an application of the examples, and yields the port."""
    with closing(socket.socket()) as listener, open(log, "w") as out:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        command = [word.replace("SOCKET", str(listener.fileno())).replace("WORKERS", str(workers)) for word in COMMANDS[server]]
        process = subprocess.Popen(
            [sys.executable, "-m", *command, app],
            cwd=EXAMPLES,
            env={**os.environ, **environment},
            stdout=out,
            stderr=out,
            pass_fds=[listener.fileno()],
        )
    try:
        deadline = time.monotonic() + 120  # eight workers import the framework on a busy machine
        while True:
            try:
                status(port, "/nothing")
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline, Path(log).read_text()
                time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(120)


def answer(port, path, headers=None, method="GET"):
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, path, headers={"Connection": "close", **(headers or {})})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()


def status(port, path, headers=None):
    return answer(port, path, headers)[0]


def statuses(port, path, requests=400):
    """How many of the requests, 16 at a time, got each status."""
    with ThreadPoolExecutor(16) as pool:
        return Counter(pool.map(lambda _: status(port, path), range(requests)))
