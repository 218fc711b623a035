"""nginx decides as every other face of the rules does: by the example's file, request by request,
in a time that the test moves."""

import socket
import subprocess

import pytest

from harness import places, preload, rules
from harness.client import PATIENCE, parse
from harness.config import CONTENT
from harness.rules import Ruled
from harness.server import end_all
from harness.tollbar import MODULE
from test_time import Clock

LOG = places.ROOT.parent / "shared" / "data" / "access.log"
COMMAND = places.ROOT / "build" / "tollbar"


@pytest.fixture
def nginx(tmp_path):
    """Its clock stands still until the test moves it. Clients are those that X-Real-IP says."""
    clock = Clock(tmp_path / "clock")
    patience = "client_header_timeout 10d; keepalive_timeout 10d; keepalive_time 10d; send_timeout 10d;"
    one = Ruled(tmp_path / "nginx", wrapper=preload.wrapper(preload.library(tmp_path, "stand_still"), CLOCK_FILE=clock.path),
                modules=[MODULE], main="master_process off;", log_level="crit",
                http=f"""access_log off; {patience} set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP; large_client_header_buffers 4 64k;
                         tollbar_rules {rules.SITE}; tollbar_rules_field account $http_x_account;""",
                server=f'add_header X-Decision "$tollbar_rules_status $status $tollbar_rule" always; location / {{ {CONTENT} }}')
    one.start()
    one.clock = clock
    yield one
    end_all([one])


def requests(*arguments):
    """Those of ffi-tests/rules/requests.py, which all faces decide: a time and the fields."""
    path = places.ROOT / "ffi-tests" / "rules" / "requests.py"
    done = subprocess.run(["python3", path, *arguments], stdout=subprocess.PIPE, check=True)
    for line in done.stdout.splitlines():
        time, *words = line.split(b"\t")
        yield int(time), list(zip(words[::2], words[1::2], strict=True))


def test_every_rule(nginx):
    every = list(requests())[:6000]
    by_library = rules.binding().Rules(rules.SITE)
    expected = []
    for time, fields in every:
        answer = by_library.check(fields, now_ns=time)
        expected.append((answer.allowed, answer.status, answer.rule or ""))
    assert decide(nginx, every) == expected
    assert {rule for allowed, _, rule in expected if not allowed} >= {"site", "api", "login", "report", "blog"}


# The log is not part of the project.
if LOG.is_file():
    def test_the_log_as_the_command_replays_it(nginx, tmp_path):
        """The log is in no order of time, which neither face can go back in, so both have it in
        order."""
        lines = LOG.read_bytes().splitlines(keepends=True)
        every = list(requests(str(LOG)))
        assert len(lines) == len(every)
        order = sorted(range(len(every)), key=lambda n: every[n][0])
        (tmp_path / "log").write_bytes(b"".join(lines[n] for n in order))
        subprocess.run([COMMAND, "replay", "--rules", rules.SITE, "--reorder", "0", "--decisions", tmp_path / "decisions", tmp_path / "log"],
                       stdout=subprocess.DEVNULL, check=True)
        expected = []
        for line in (tmp_path / "decisions").read_text().splitlines():
            verdict, status, rule = line.split(" ")
            expected.append((verdict == "A", int(status), "" if rule == "-" else rule))
        found = decide(nginx, [every[n] for n in order])
        assert len(found) == len(expected) == 10_000
        assert found == expected
        assert 100 < sum(not allowed for allowed, _, _ in found) < 5000


def decide(nginx, every):
    """Sends each request at its time: whether nginx lets it pass, the status of a refusal or else
    200, and the rule."""
    first = every[0][0]
    found = []
    with socket.create_connection(("127.0.0.1", nginx.port), timeout=PATIENCE) as connection:
        stream = connection.makefile("rb")
        for time, fields in every:
            nginx.clock.set(time - first)
            of = dict(fields)
            method, path = of[b":method"], of[b":path"]
            lines = [method + b" " + path + b" HTTP/1.1", b"Host: tollbar.test", b"X-Real-IP: " + of[b":address"]]
            lines += [b"X-" + name[1:].title() + b": " + value for name, value in fields if name == b":account"]
            lines += [name + b": " + value for name, value in fields if not name.startswith(b":")]
            connection.sendall(b"\r\n".join([*lines, b"", b""]))
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                line = stream.readline()
                assert line, (path, head)
                head += line
            headers = parse(head).headers
            if method != b"HEAD":
                stream.read(int(headers["content-length"]))
            status, code, rule = (headers["x-decision"] + " ").split(" ")[:3]
            found.append((status == "PASSED", int(code) if status != "PASSED" else 200, rule))
    return found
