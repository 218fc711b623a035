"""The sites of examples/rules/sites decide in nginx as their cases say, and as every other face does
(ffi-tests/rules/run.sh)."""

import importlib.util
import mmap
import socket
import struct

import pytest

from harness import config, places, preload
from harness.client import PATIENCE, parse
from harness.config import CONTENT
from harness.rules import Ruled
from harness.server import check, end_all
from harness.tollbar import MODULE
from test_time import Clock

SITES = places.ROOT / "examples" / "rules" / "sites"


def load_sites():
    spec = importlib.util.spec_from_file_location("sites", places.ROOT / "ffi-tests" / "rules" / "sites.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sites = load_sites()
FILES = sorted(path for path in SITES.iterdir() if not path.name.endswith(".cases.toml"))


class WallClock(Clock):
    """Also the wall clock, which calendars and schedules follow, is what the test says."""

    def __init__(self, path):
        super().__init__(path)
        path.write_bytes(bytes(16))
        with path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 16)

    def set_both(self, since, unix):
        struct.pack_into("q", self.memory, 8, unix)
        self.set(since)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return preload.library(tmp_path_factory.mktemp("library"), "stand_still")


@pytest.fixture
def launch(tmp_path, library):
    running = []

    def start(path, cases):
        home = tmp_path / f"nginx{len(running)}"
        clock = WallClock(tmp_path / f"clock{len(running)}")
        names = sorted({name for case in cases for step in case["step"] for name in step.get("fields", {})})
        words = sorted({name for case in cases for step in case["step"] for name in step.get("answer", {})})
        fields = "".join(f"tollbar_rules_field {name} $http_x_field_{name.lower()};" for name in names)
        fields += "".join(f"tollbar_rules_answer {name} $http_x_answer_{name.lower()};" for name in words)
        patience = "client_header_timeout 10d; keepalive_timeout 10d; keepalive_time 10d; send_timeout 10d;"
        one = Ruled(home, wrapper=preload.wrapper(library, CLOCK_FILE=clock.path), modules=[MODULE], main="master_process off;", log_level="crit",
                    http=f"""access_log off; {patience} set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP; client_max_body_size 0;
                             tollbar_rules {path}; {fields}""",
                    server=f'add_header X-Decision "$tollbar_rules_status $status $tollbar_rule" always; location / {{ {CONTENT} }}')
        running.append(one)
        one.start()
        one.clock = clock
        return one

    yield start
    end_all(running)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_site_decides_as_its_cases_say(launch, path):
    cases = sites.cases(path.with_name(path.stem + ".cases.toml"))
    for case in cases:
        nginx = launch(path, cases)
        assert list(sites.faults(case, decide(nginx, case))) == []


def decide(nginx, case):
    """Sends the requests of a case, each at its time: whether it passed, its status and the rule."""
    connection = None
    found = []
    for step, now, _, pairs in sites.requests(case):
        nginx.clock.set_both(now - sites.start(case), now)
        if connection is None:
            connection = socket.create_connection(("127.0.0.1", nginx.port), timeout=PATIENCE)
            stream = connection.makefile("rb")
        of = dict(pairs)
        has_body = "Content-Length" in of
        lines = [f"{of[':method']} {of[':path']} HTTP/1.1", f"Host: {of.get(':host', 'tollbar.test')}", f"X-Real-IP: {of.get(':address', '192.0.2.1')}"]
        lines += [f"X-Field-{name.replace('_', '-')}: {value}" for name, value in step.get("fields", {}).items()]
        lines += [f"X-Answer-{name}: {value}" for name, value in step.get("answer", {}).items()]
        lines += [f"{name}: {value}" for name, value in pairs if not name.startswith(":")]
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = stream.readline()
            assert line, (lines, head)
            head += line
        headers = parse(head).headers
        status, code, rule = (headers["x-decision"] + " ").split(" ")[:3]
        found.append((status == "PASSED", int(code) if status != "PASSED" else 200, rule))
        if has_body:
            # The announced body never comes.
            connection.close()
            connection = None
        else:
            stream.read(int(headers["content-length"]))
    if connection is not None:
        connection.close()
    return found


CHAT = "[group.a]\nkey = 'all'\nlimit = '100/h'\ncost = 'answer tokens'\nestimate = 10\n"


def test_a_cost_of_the_answer_needs_a_word_for_it(tmp_path):
    """Each request would cost its estimate for ever, and nobody would be told."""
    (tmp_path / "rules.toml").write_text("version = 1\n" + CHAT)
    code, said = check(tmp_path, config.text(modules=[MODULE], ports=[8080], http="tollbar_rules rules.toml;", server=f"location / {{ {CONTENT} }}"))
    assert code == 1
    assert 'have the cost "answer tokens", which no "tollbar_rules_answer" gives, in ' in said


def test_the_answer_settles_the_estimate(tmp_path):
    one = Ruled(tmp_path / "nginx", modules=[MODULE], http="tollbar_rules rules.toml; tollbar_rules_answer tokens $arg_tokens; tollbar_headers legacy;",
                server=f"location / {{ {CONTENT} }}")
    one.rules(CHAT)
    one.start()
    try:
        left = [int(one.get(f"/?tokens={tokens}").headers["x-ratelimit-remaining"]) for tokens in ("40", "", "1", "200", "0")]
        # 10 are taken first: 40 settle them, nothing leaves them, 1 gives nine back, and 200 are a
        # debt.
        assert left[:4] == [90, 50, 40, 39]
        assert one.get("/?tokens=0").status == 429
    finally:
        end_all([one])
