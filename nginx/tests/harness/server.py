"""A real nginx on loopback: started, asked, reloaded, upgraded, killed and stopped."""

import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

from . import client, config, places

# How long anything may take before a test gives up. Far beyond what a slow, busy machine needs.
PATIENCE = 60.0

LOG_LINE = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[(\w+)\] \d+#\d+: (?:\*\d+ )?(.*)$")


def wait_until(condition, what, patience=PATIENCE):
    end = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"gave up waiting until {what}")
        time.sleep(0.01)


def free_ports(count):
    held = []
    try:
        for _ in range(count):
            s = socket.socket()
            s.bind(("127.0.0.1", 0))
            held.append(s)
        return [s.getsockname()[1] for s in held]
    finally:
        for s in held:
            s.close()


def listening_ports():
    """The ports of IPv4 that somebody listens on."""
    lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return {int(local.rpartition(":")[2], 16) for _, local, _, state, *_ in lines if state == "0A"}


def children_of(pid):
    """The processes whose parent it is: as the kernel lists them, since tests ask every hundredth
    of a second, or by all processes' parents where it has no such list."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return [other for other in (int(p) for p in os.listdir("/proc") if p.isdigit()) if parent_of(other) == pid]


def parent_of(pid):
    try:
        # The name in brackets may hold anything, so the fields are counted from its end.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return None


def title_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def alive(pid):
    """Whether this process is there and is an nginx: one that was waited for may have left its
    number to another."""
    return "nginx" in title_of(pid)


def check(home, text):
    """`nginx -t` on a configuration: its exit code and all it said, without the times and the
    numbers of processes."""
    prepare(home)
    (home / "nginx.conf").write_text(text)
    done = subprocess.run(
        [places.program("nginx"), "-t", "-p", str(home), "-c", "nginx.conf", "-e", "stderr"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)
    return done.returncode, re.sub(r"(?m)^[\d/]+ [\d:]+ (\[\w+\]) \d+#\d+:", r"\1", done.stdout.decode(errors="replace"))


def complaints(said):
    """The lines of `nginx -t` that have a level, without the warnings about a worst case, since most
    policies of tests have one (test_worst_case.py)."""
    return [line for line in said.splitlines() if "[" in line and "whose worst case is" not in line]


def prepare(home):
    home.mkdir(parents=True, exist_ok=True)
    (home / "html").mkdir(exist_ok=True)


def end_all(running):
    """Stops each nginx, then looks for what must never stand in its log."""
    for one in running:
        one.stop()
    for one in running:
        one.check_log()


class Nginx:
    """One nginx. `parts` are those of config.text. It stays in the foreground and in a group of its
    own unless it is to be a daemon, which it must be to exchange its binary: in the foreground it
    takes itself for the new one."""

    def __init__(self, home, wrapper=(), port_count=1, **parts):
        self.home = Path(home)
        self.wrapper = list(wrapper)
        self.parts = parts
        self.port_count = port_count
        self.process = None
        # Masters that have started a new binary. They may still run.
        self.former = set()
        # Complaints in the log that the test expects.
        self.expected = ["exited on signal 9"]
        prepare(self.home)

    # Life

    def start(self):
        # Another program may take a port between our asking for it and nginx's binding it.
        for _ in range(5):
            self.ports = free_ports(self.port_count)
            self.write(**self.parts)
            self.process = subprocess.Popen(
                self.wrapper + [places.program("nginx"), "-p", str(self.home), "-c", "nginx.conf", "-e", "error.log"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True)
            self.wait_until(lambda: self.ready() or self.process.poll(), "nginx listens")
            if not self.process.poll():
                return self
            if "Address already in use" not in self.log_text():
                break
            (self.home / "error.log").unlink(missing_ok=True)
        raise AssertionError("nginx did not start:\n" + self.log_text())

    def write(self, **parts):
        self.parts = parts
        (self.home / "nginx.conf").write_text(config.text(ports=self.ports, **parts))

    def ready(self):
        """Whether it serves and heeds signals. While the process that began a daemon has not ended,
        the daemon takes itself for a new binary whose old one still runs, and ignores SIGUSR2."""
        return self.listens() and not (self.parts.get("daemon") and self.process.poll() is None)

    def listens(self):
        # With several processes the kernel accepts connections before a worker runs.
        return self.accepts() and ("master_process off" in self.parts.get("main", "") or self.complete(self.workers()))

    def accepts(self):
        """Whether a connection is taken, by whomever. nginx listens on one port after the other, so
        the first is not enough. The others are looked up and not connected to, since a limit may
        count connections."""
        if not self.wanted_ports() <= listening_ports():
            return False
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE):
                return True
        except OSError:
            return False

    def wanted_ports(self):
        """Those of ours that the configuration listens on, for TCP."""
        found = re.findall(r"\blisten\s+127\.0\.0\.1:(\d+)([^;]*);", (self.home / "nginx.conf").read_text())
        return {int(port) for port, options in found if "udp" not in options.split()} & set(self.ports)

    @property
    def port(self):
        return self.ports[0]

    def master(self):
        """The process that commands, also after the binary was exchanged."""
        try:
            return int((self.home / "nginx.pid").read_text())
        except (OSError, ValueError):
            return self.process.pid

    def children(self, title, master=None):
        master = master or self.master()
        return [pid for pid in children_of(master) if title_of(pid).startswith(title)]

    def workers(self, master=None):
        """The workers that serve; those that are shutting down have another title."""
        return [pid for pid in self.children("nginx: worker process", master)
                if title_of(pid) == "nginx: worker process"]

    def complete(self, pids):
        """Whether as many workers serve as there are to be."""
        return len(pids) >= self.parts.get("workers", 1)

    def kill_worker(self, pid=None):
        """Kill one worker without warning and wait until there is another in its place."""
        before = self.workers()
        pid = pid or before[0]
        os.kill(pid, signal.SIGKILL)
        self.wait_until(lambda: pid not in self.workers() and len(self.workers()) >= len(before), "a worker is replaced")

    def reload(self, **changes):
        """Reload with some parts of the configuration changed. True when nginx took it, False when
        it refused."""
        self.write(**{**self.parts, **changes})
        old, said = set(self.workers()), len(self.log_text())
        os.kill(self.master(), signal.SIGHUP)

        def settled():
            if "[emerg]" in self.log_text()[said:]:
                return "refused"
            now = self.workers()
            return self.complete(now) and not old & set(now) and "taken"

        return self.wait_until(settled, "the new configuration is in use") == "taken"

    def exchange_binary(self):
        """Start a second master on the same sockets. Gives the pids of both."""
        old = self.master()
        self.former.add(old)
        os.kill(old, signal.SIGUSR2)
        self.wait_until(lambda: self.master() != old and self.complete(self.workers()), "the second master serves")
        return old, self.master()

    def stop(self):
        if not self.process:
            return
        master = self.master()
        # The first process is a child of this one. As a daemon, or after an exchange of the binary,
        # the master is another process.
        for pid in {self.process.pid, master} | self.still_there():
            if alive(pid):
                os.kill(pid, signal.SIGTERM)
        try:
            self.process.wait(PATIENCE)
            self.wait_until(lambda: not alive(master) and not self.still_there(), "nginx has ended")
        finally:
            # If a test failed half-way, processes may be left. The process group holds only this
            # nginx.
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()

    def still_there(self):
        """The former masters that have not ended. The number of one that has may be another's by
        now, whose title has another home."""
        return {pid for pid in self.former if f"-p {self.home} " in title_of(pid) + " "}

    # What it says

    def wait_until(self, condition, what):
        """`wait_until` whose failure shows the end of the error log."""
        try:
            return wait_until(condition, what)
        except AssertionError as error:
            raise AssertionError(f"{error}; error.log ends with:\n" + "\n".join(self.log_text().splitlines()[-40:])) from None

    def log_text(self):
        try:
            return (self.home / "error.log").read_text(errors="replace")
        except OSError:
            return ""

    def said(self, *words):
        """The lines of the error log that hold all the words: (level, message)."""
        found = (LOG_LINE.match(line) for line in self.log_text().splitlines())
        return [m.groups() for m in found if m and all(w in m[2] for w in words)]

    def complaints(self):
        """What nothing in these tests should bring about, unless a test says so."""
        bad = [line for line in self.log_text().splitlines() if re.search(r"\[(alert|emerg|crit)\]", line)]
        return [line for line in bad if not any(words in line for words in self.expected)]

    def check_log(self):
        found = self.complaints()
        assert not found, "the error log has what must not be there:\n" + "\n".join(found)

    def access_log(self, lines=1):
        """The access log, when it has as many lines: they are written after the answer was sent."""
        path = self.home / "access.log"

        def read():
            found = path.read_text().splitlines() if path.exists() else []
            return found if len(found) >= lines else None

        return wait_until(read, f"the access log has {lines} lines")

    # Asking

    def get(self, path="/", **how):
        return client.volley(self.port, [path], **how)[0]

    def each(self, *paths, **how):
        """One request after the other."""
        return [self.get(path, **how) for path in paths]

    def volley(self, path, count, **how):
        """Many requests at once, each over a connection of its own that is open before the first is
        sent."""
        return client.volley(self.port, [path] * count, **how)
