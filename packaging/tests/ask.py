"""Asks a server under gunicorn with eight workers 400 times, by 16 threads: exactly 100 pass."""

import collections
import http.client
import os
import subprocess
import sys
import threading
import time

WORKERS = 8
log = open("/tmp/gunicorn.log", "w+")
server = subprocess.Popen(
    [sys.executable, "-m", "gunicorn", "--workers", str(WORKERS), "--worker-class", "uvicorn.workers.UvicornWorker"]
    + ["--bind", "127.0.0.1:8083", "app:app"],
    cwd=os.path.dirname(__file__),
    stderr=log,
)


def status() -> int:
    connection = http.client.HTTPConnection("127.0.0.1", 8083, timeout=30)
    connection.request("GET", "/")
    return connection.getresponse().status


try:
    # Until all workers can answer: the limit is to be one of all of them.
    for _ in range(600):
        with open(log.name) as written:
            ready = written.read().count("Application startup complete")
        if ready == WORKERS:
            break
        time.sleep(0.1)
    assert ready == WORKERS, f"{ready} workers of {WORKERS}"
    answers = collections.Counter[int]()
    lock = threading.Lock()

    def ask(times: int) -> None:
        for _ in range(times):
            code = status()
            with lock:
                answers[code] += 1

    threads = [threading.Thread(target=ask, args=(25,)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
finally:
    server.terminate()
    server.wait()
print(dict(answers))
assert answers == {200: 100, 429: 300}
