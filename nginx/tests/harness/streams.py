"""nginx with tollbar for stream, and connections to it."""

import re
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from . import config, places
from .client import connect
from .server import Nginx, end_all, wait_until

MODULE = "ngx_stream_tollbar_module.so"


def stream_itself():
    """The line that loads nginx's own stream module, where it is not built in."""
    said = subprocess.run([places.program("nginx"), "-V"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True).stdout.decode()
    if "--with-stream=dynamic" not in said:
        return ""
    path = Path(re.search(r"--modules-path=(\S+)", said)[1]) / "ngx_stream_module.so"
    if not path.is_file():
        raise places.Missing(f"{path} is not there: libnginx-mod-stream has it")
    return f"load_module {path};"


def text(**parts):
    whole = config.text(**parts)
    return f"{stream_itself()} {whole}"


class Streams(Nginx):
    """`stream` is what stands in that block; the http block listens on the first port, stream on
    the others, usually one."""

    def __init__(self, home, port_count=2, **parts):
        super().__init__(home, port_count=port_count, **parts)

    def write(self, stream="", **parts):
        self.parts = {"stream": stream, **parts}
        access = "log_format brief '$status [$tollbar_status] [$tollbar_conn_status]'; access_log stream.log brief;"
        whole = text(ports=self.ports, modules=[MODULE], stream=access + stream,
                     server=f"location / {{ {config.CONTENT} }}", **parts)
        for i, port in enumerate(self.ports):
            whole = whole.replace(f"@PORT{i}@", str(port))
        (self.home / "nginx.conf").write_text(whole)

    def logged(self, lines):
        path = self.home / "stream.log"

        def read():
            found = path.read_text().splitlines() if path.exists() else []
            return found if len(found) >= lines else None

        return wait_until(read, f"the log of connections has {lines} lines")

    def open(self):
        return Connection(self.ports[1])


class Connection:
    """A connection that says hello; the server behind nginx answers the same, unless nginx
    refuses."""

    def __init__(self, port):
        self.begun = time.monotonic()
        self.socket = connect(port)

    def passed(self, word=b"hello"):
        try:
            self.socket.sendall(word)
            there = self.socket.recv(len(word)) == word
        except (ConnectionResetError, BrokenPipeError):
            there = False
        self.took = time.monotonic() - self.begun
        if not there:
            self.socket.close()
        return there

    def close(self):
        self.socket.close()


class Echo(threading.Thread):
    """What nginx passes connections on to."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.taken = 0

    def run(self):
        while True:
            try:
                one, _ = self.listener.accept()
            except OSError:
                return
            self.taken += 1
            threading.Thread(target=self.serve, args=[one], daemon=True).start()

    def serve(self, one):
        with one:
            try:
                while data := one.recv(65536):
                    one.sendall(data)
            except OSError:
                pass


@pytest.fixture
def echo():
    one = Echo()
    one.start()
    yield one
    # A thread that accepts is not woken by close alone.
    one.listener.shutdown(socket.SHUT_RDWR)
    one.listener.close()


@pytest.fixture
def launch(tmp_path):
    running = []

    def start(stream, **parts):
        one = Streams(tmp_path / f"nginx{len(running)}", stream=stream, **parts)
        running.append(one)
        return one.start()

    yield start
    end_all(running)
