"""A real redis-server in a directory of its own: started, stopped, paused and asked."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from . import places
from .server import PATIENCE, free_ports, wait_until


class Store:
    """It keeps nothing on the disk. It listens on a port of 127.0.0.1 and on a unix socket."""

    def __init__(self, *options):
        # Short, since a socket's path may have 107 bytes.
        self.home = Path(tempfile.mkdtemp(prefix="tollbar-store-"))
        self.options = options
        [self.port] = free_ports(1)
        self.process = None
        self.has_run = False

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def socket(self):
        return self.home / "redis.sock"

    def start(self):
        """Another program may have the port. The first start then takes another one. A later start
        waits until the port is free."""
        end = time.monotonic() + PATIENCE
        while True:
            self.launch()
            if wait_until(lambda: self.process.poll() is not None or self.answers(), "redis-server answers") and self.process.poll() is None:
                self.has_run = True
                return self
            log = (self.home / "log").read_text()
            assert "Address already in use" in log and time.monotonic() < end, log
            (self.home / "log").unlink()
            if not self.has_run:
                [self.port] = free_ports(1)
            time.sleep(0.1)

    def launch(self):
        self.process = subprocess.Popen(
            [places.program("redis-server"), "--port", str(self.port), "--bind", "127.0.0.1", "--unixsocket", str(self.socket),
             # nginx's workers may be another user's.
             "--unixsocketperm", "777", "--dir", str(self.home), "--save", "", "--appendonly", "no", "--logfile", "log",
             *self.options],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def answers(self):
        try:
            # A store that wants a password is ready, too.
            return self.command("PING").startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False

    def connections(self):
        """Those of the library's clients."""
        return self.command("CLIENT", "LIST").count(b"name=tollbar")

    def command(self, *words):
        """The first line of the reply, or the text in it."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(PATIENCE)
            s.connect(str(self.socket))
            s.sendall(b"".join([b"*%d\r\n" % len(words), *(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words)]))
            reply = s.makefile("rb")
            line = reply.readline().strip()
            return reply.read(int(line[1:])) if line.startswith(b"$") and line != b"$-1" else line

    def keys(self):
        return int(self.command("DBSIZE")[1:])

    def pause(self):
        """It is there, and does not answer."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self):
        """What it held is gone; connections are reset, new ones refused."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def end(self):
        self.kill()
        shutil.rmtree(self.home, ignore_errors=True)
