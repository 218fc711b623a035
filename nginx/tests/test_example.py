"""examples/nginx, started as somebody would who wants to see it, and asked with the lines that it
prints."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from harness import places
from harness.server import PATIENCE, free_ports

RUN = places.ROOT / "examples" / "nginx" / "run.sh"


class Example:
    def __init__(self, *arguments):
        # A group of its own, as a shell gives it: Ctrl-C goes to all of the group.
        self.process = subprocess.Popen([str(RUN), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.said = ""
        for line in self.process.stdout:
            self.said += line
            if "Ctrl-C" in line:
                break
        where = re.search(r"serves (\S+) at http://127\.0\.0\.1:(\d+); its logs are in (\S+)\.\n", self.said)
        assert where, self.said
        self.port, self.home = int(where[2]), Path(where[3])

    def line(self, words):
        """What one of the printed lines prints."""
        [line] = [line for line in self.said.splitlines() if re.match("curl|for", line) and words in line]
        return subprocess.run(["bash", "-c", line], stdout=subprocess.PIPE, check=True, timeout=PATIENCE).stdout.decode()

    def end(self, how=signal.SIGINT):
        os.killpg(self.process.pid, how)
        self.process.stdout.read()
        return self.process.wait(PATIENCE)


@pytest.fixture
def run():
    running = []

    def start(*arguments):
        running.append(Example(*arguments))
        return running[-1]

    yield start
    for one in running:
        if one.process.poll() is None:
            one.end()


def test_the_printed_lines(run):
    one = run()
    begun = time.monotonic()
    heads = [dict(re.findall(r"(?m)^([\w-]+): (.*?)\r$", answer)) | {"status": answer.split()[1]}
             for answer in one.line("alices-key").split("HTTP/1.1")[1:] for answer in ["HTTP/1.1" + answer]]
    assert [head["status"] for head in heads] == ["200", "200", "200", "429"]
    assert [head["X-RateLimit-Remaining"] for head in heads] == ["2", "1", "0", "0"]
    assert all('"customer";q=6;w=60' in head["RateLimit-Policy"] for head in heads)
    # A permit comes back every ten seconds.
    assert [head.get("Retry-After") for head in heads[:3]] == [None] * 3
    assert 10 - (time.monotonic() - begun) <= int(heads[3]["Retry-After"]) <= 10
    assert one.line("bobs-key").split() == ["200"] * 3
    assert sorted(one.line("downloads").split()) == ["200", "200", "429"]
    begun = time.monotonic()
    flood = one.line("[1-40]").split()
    earned = int(10 * (time.monotonic() - begun)) + 1
    assert len(flood) == 40 and 21 <= flood.count("200") <= 21 + earned and flood[:21] == ["200"] * 21
    assert set(flood) <= {"200", "429"}
    assert '"name":"customer"' in one.line("/limits")
    # The access log has the refusals, and the error log has no warning.
    assert " 429 " in (one.home / "access.log").read_text()
    assert not re.search(r"\[(alert|emerg|crit|warn)\]", (one.home / "error.log").read_text())


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_leaves_nothing(run, how):
    [port] = free_ports(1)
    one = run(str(port))
    assert one.port == port
    assert one.end(how) == 0
    assert not one.home.exists()
    # The port is free again.
    again = run(str(port))
    assert again.line("bobs-key").split() == ["200"] * 3


def test_two_beside_each_other(run):
    one, two = run(), run()
    assert one.port != two.port


def test_a_port_that_is_in_use(run):
    one = run()
    done = subprocess.run([str(RUN), str(one.port)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE,
                          check=False)
    assert done.returncode == 1 and b"in use" in done.stdout
