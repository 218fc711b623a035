"""What counts, under valgrind: for http and for stream, with reloads."""

import os
import signal

from harness import memory
from harness.client import PATIENCE
from harness.config import CONTENT
from harness.held import END, HOLD, Counting, Held, end, hold
from harness.server import wait_until
from harness.streams import Streams, echo  # noqa: F401
from harness.tollbar import MODULE

HTTP = """
    tollbar_conn_zone $arg_k zone=one:1m;
    tollbar_conn_zone "$arg_a$arg_k" zone=two:32k on_full=allow;
    tollbar_conn_zone all zone=learns:1m adaptive initial=2 most=2;
"""
SERVER = f"""
    location / {{ tollbar_conn one 2; tollbar_conn two 1; {HOLD} }}
    location /dry {{ tollbar_conn one 1; tollbar_conn_dry_run on; {HOLD} }}
    location /image {{ tollbar_conn one 1; error_page 429 /again; {CONTENT} }}
    location /again {{ tollbar_conn one 1; {CONTENT} }}
    location /learns {{ tollbar_conn learns; {HOLD} }}
    location = /json {{ tollbar_status_page json; }}
    location = /metrics {{ tollbar_status_page prometheus; }}
    location /redirect {{ tollbar_conn one 2; try_files /none /?$args; }}
    {END}
"""


def reload_and_end(nginx):
    # nginx as a single process stops serving after a reload, with or without this module. Still,
    # one process has had both configurations.
    os.kill(nginx.process.pid, signal.SIGHUP)
    wait_until(lambda: nginx.said("reconfiguring"), "it reloads")
    os.kill(nginx.process.pid, signal.SIGTERM)
    assert nginx.process.wait(PATIENCE) == 0


def test_http(tmp_path):
    report = tmp_path / "valgrind.xml"
    nginx = Counting(tmp_path / "nginx", wrapper=memory.wrapper(report), modules=[MODULE], main="master_process off;",
                     http=HTTP, server=SERVER).start()
    try:
        held, refused = hold(nginx, "/?k=a", 4)
        assert len(held) == 1 and len(refused) == 3
        assert [nginx.get(path).status for path in ("/image?k=b", "/redirect?k=" + "x" * 3000, "/")] == [200, 200, 200]
        dry, refused = hold(nginx, "/dry?k=a", 3)
        assert len(dry) == 3 and refused == []
        learned, refused = hold(nginx, "/learns", 3)
        assert len(learned) == 2 and refused == [503]
        end(learned)
        assert [nginx.get(path).status for path in ("/json", "/metrics")] == [200, 200]
        gone = Held(nginx.port, "/?k=gone")
        assert gone.answer() == 100
        gone.drop()
        end(held)
        end(dry)
        # This request is still open when nginx ends.
        left = Held(nginx.port, "/?k=left")
        assert left.answer() == 100
        reload_and_end(nginx)
    finally:
        nginx.stop()
    assert memory.faults(report) == []


def test_stream(tmp_path, echo):  # noqa: F811
    report = tmp_path / "valgrind.xml"
    stream = f"""
        tollbar_zone $remote_addr zone=r:1m rate=2r/s;
        tollbar_conn_zone $remote_addr zone=z:1m;
        server {{ listen 127.0.0.1:@PORT1@; tollbar zone=r burst=3; tollbar_conn z 2; proxy_pass 127.0.0.1:{echo.port}; }}
    """
    nginx = Streams(tmp_path / "nginx", wrapper=memory.wrapper(report), main="master_process off;", stream=stream).start()
    try:
        several = [nginx.open() for _ in range(7)]
        # The rate admits four connections, three of them delayed, and the connection limit admits
        # two of the four.
        assert sum(one.passed() for one in several) == 2
        for one in several:
            one.close()
        waiting = [nginx.open() for _ in range(3)]
        wait_until(lambda: len(nginx.said("delaying connection")) > 3, "somebody waits")
        reload_and_end(nginx)
        for one in waiting:
            one.close()
    finally:
        nginx.stop()
    for words in ("limiting new connections", "delaying connection", "limiting connections by zone"):
        assert nginx.said(words), words
    assert memory.faults(report) == []
