"""Messages that a fault could bring with every request: each worker logs one a second, and says how
many it left out."""

import re
import time

import pytest

from harness import places, streams
from harness.client import Kept
from harness.config import CONTENT
from harness.server import Nginx, end_all, wait_until
from harness.tollbar import MODULE

SIZE = 1 << 20
MORE = re.compile(r" \(and (\d+) more since the last line\)")


def damage(pid):
    """Fills the zone's memory with zeroes, behind the page that is nginx's own: no policy is left
    in the table."""
    spans = {}
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            if "/dev/zero" in line:
                span, _, _, _, inode, *_ = line.split()
                start, end = (int(at, 16) for at in span.split("-"))
                # The library has parts of it treated in other ways, so it is several lines.
                spans[inode] = min(start, spans.get(inode, (start,))[0]), end
    [start] = [start for start, end in spans.values() if end - start == SIZE]
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(start + 4096)
        memory.write(bytes(SIZE - 4096))


def told(nginx, *words):
    """How many messages the log stands for, and its lines."""
    lines = [line for _, line in nginx.said(*words)]
    return sum(1 + sum(int(n) for n in MORE.findall(line)) for line in lines), lines


def all_are_told(nginx, ask, count, *words):
    """`count` faults at once take a few lines, and the first of another second says how many they
    were."""
    began = time.monotonic()
    for _ in range(count):
        ask()
    assert len(told(nginx, *words)[1]) <= time.monotonic() - began + 2
    asked = count

    def complete():
        nonlocal asked
        ask()
        asked += 1
        return told(nginx, *words)[0] == asked

    # The module logs the last requests of a second in the next second.
    wait_until(complete, "the log stands for all of them")
    assert len(told(nginx, *words)[1]) <= time.monotonic() - began + 2


@pytest.fixture
def run(tmp_path):
    running = []

    def start(kind=Nginx, **parts):
        nginx = kind(tmp_path / "nginx", **parts).start()
        running.append(nginx)
        nginx.expected.append("gives no answer")
        return nginx

    yield start
    end_all(running)


@pytest.mark.parametrize("word, module, refused", [("tollbar", MODULE, 429), ("limit_req", places.DROPIN, 503)])
@pytest.mark.parametrize("limits", [1, 2])
def test_a_table_that_cannot_be_asked(run, word, module, refused, limits):
    more = f"{word}_zone $arg_j zone=y:2m rate=1000r/s;" if limits > 1 else ""
    nginx = run(modules=[module], http=f"{word}_zone $arg_k zone=z:1m rate=1000r/s; {more}",
                server=f"location / {{ {word} zone=z burst=1000 nodelay; {more and f'{word} zone=y burst=1000 nodelay;'} {CONTENT} }}")
    assert nginx.get("/?k=a&j=a").status == 200
    damage(nginx.workers()[0])
    with Kept(nginx.port) as kept:
        def ask():
            kept.send("/?k=a&j=a")
            assert kept.read().status == refused

        all_are_told(nginx, ask, 200, 'zone "z" gives no answer: the table has no policy of that number')


def test_a_table_of_connections_that_cannot_be_asked(run):
    nginx = run(streams.Streams, stream="tollbar_zone $remote_addr zone=z:1m rate=1000r/s; server { listen 127.0.0.1:@PORT1@; "
                "tollbar zone=z burst=1000 nodelay; return x; }")
    damage(nginx.workers()[0])
    all_are_told(nginx, lambda: nginx.open().passed(), 100, 'zone "z" gives no answer: the table has no policy of that number')


@pytest.mark.parametrize("limit, query, words", [
    ("burst=$arg_b nodelay", "b=x", 'invalid burst "x" for zone "z", it must be a whole number, in '),
    ("cost=$arg_b nodelay", "b=-1", 'invalid cost "-1" for zone "z", it must be a whole number, in '),
    ("nodelay", "r=5r/y", 'invalid rate "5r/y" for zone "z", it must be like 10r/s, '),
])
def test_a_variable_that_holds_something_else(run, limit, query, words):
    rate = "$arg_r" if "r=" in query else "1r/s"
    nginx = run(modules=[MODULE], http=f"tollbar_zone $remote_addr zone=z:1m rate={rate};",
                server=f"location / {{ tollbar zone=z {limit}; {CONTENT} }}")
    with Kept(nginx.port) as kept:
        def ask():
            kept.send(f"/?{query}")
            assert kept.read().status == 429

        all_are_told(nginx, ask, 200, words, f" in {nginx.home}/nginx.conf:")


def test_one_kind_of_message_does_not_keep_another_out_of_the_log(run):
    """A client that sends wrong rates all the time could hide that the table has no place for
    another right one."""
    nginx = run(modules=[MODULE], http="tollbar_zone $remote_addr zone=z:1m rate=$arg_r;",
                server=f"location / {{ tollbar zone=z burst=$arg_b cost=$arg_c nodelay; {CONTENT} }}\n"
                       f"location /other {{ tollbar zone=z burst=$arg_b nodelay; {CONTENT} }}")
    with Kept(nginx.port) as kept:
        def ask(path):
            kept.send(path)
            return kept.read().status

        assert {ask(f"/?r={n + 1}r/h") for n in range(127)} == {200}
        # All in a moment. Each of the first kind's would hold back the next one of another kind, if
        # they shared a second.
        for _ in range(3):
            for path in ("/?r=x", "/?r=129r/h", "/?r=1r/h&b=x", "/?r=1r/h&c=x", "/other?r=1r/h&b=x"):
                assert ask(path) == 429
    for words in ('invalid rate "x"', 'invalid rate "129r/h" for zone "z", a table has 1 to 128 policies', 'invalid cost "x"'):
        assert nginx.said(words), words
    # A line of the configuration has its own.
    lines = {re.search(r"nginx.conf:(\d+)", line)[1] for _, line in nginx.said('invalid burst "x"')}
    assert len(lines) == 2


def test_workers_count_for_themselves(run):
    """So a line of one does not keep another's back."""
    nginx = run(modules=[MODULE], workers=2, http="tollbar_zone $remote_addr zone=z:1m rate=$arg_r;",
                server=f"location / {{ tollbar zone=z nodelay; {CONTENT} }}")
    seen = set()

    def both():
        nginx.volley("/?r=x", 20)
        seen.update(re.findall(r"\[error\] (\d+)#", nginx.log_text()))
        return len(seen) == 2

    wait_until(both, "both workers have said so")
