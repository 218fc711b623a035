"""An hour of a rate, in a time that the test moves and nothing else does.

nginx runs with time/stand_still.c before the system's library: its clock, which is that of its own
modules, and that of tollbar's are what the test says, to the nanosecond. All else is nginx and the
modules as they are.
"""

import mmap
import re
import struct
import time

import pytest

from harness import places, preload, tollbar
from harness.client import Kept
from harness.config import CONTENT
from harness.server import Nginx, end_all

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
STEP = SECOND // 2
HEADERS = "@ cost=$arg_cost; tollbar_headers draft"

FLAVOURS = {
    "stock": ([], "limit_req"),
    "drop-in": ([places.DROPIN], "limit_req"),
    "tollbar": ([tollbar.MODULE], "tollbar"),
}
OURS = ["drop-in", "tollbar"]


class Clock:
    """It runs until it is set."""

    def __init__(self, path):
        path.write_bytes(bytes(8))
        self.path = path
        with path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 8)
        self.start = None

    def set(self, since):
        """Nanoseconds since the first that is set, which is some seconds ahead of the real time."""
        if self.start is None:
            self.start = (time.monotonic_ns() // SECOND + 10) * SECOND
        struct.pack_into("q", self.memory, 0, self.start + since)


@pytest.fixture
def clock(tmp_path):
    return Clock(tmp_path / "clock")


@pytest.fixture
def launch(tmp_path, clock):
    running = []
    library = preload.library(tmp_path, "stand_still")

    def start(flavour, zone, limit="nodelay", size="344k", more=""):
        modules, word = FLAVOURS[flavour]
        # Connections have timers, too.
        patience = "client_header_timeout 10d; keepalive_timeout 10d; keepalive_time 10d; send_timeout 10d;"
        one = Nginx(tmp_path / f"nginx{len(running)}", wrapper=preload.wrapper(library, CLOCK_FILE=clock.path),
                    modules=modules, main="master_process off;", log_level="crit",
                    http=f"access_log off; {patience} {word}_zone $arg_k zone=z:{size} {zone};",
                    server=f"location / {{ {word} zone=z {limit}; {CONTENT} }} {more}")
        running.append(one)
        one.start()
        # In its first millisecond the library compares its clocks. The tests begin after it.
        assert one.get("/?k=first").status == 200
        return one

    yield start
    end_all(running)


def answers(nginx, clock, times, path="/?k=key"):
    """A request at each of the times: (time, answer)."""
    with Kept(nginx.port) as kept:
        for now in times:
            clock.set(now)
            kept.send(path)
            yield now, kept.read()


def admitted(nginx, clock, times):
    return [now for now, answer in answers(nginx, clock, times) if answer.status == 200]


@pytest.mark.parametrize("flavour", OURS)
def test_one_a_minute_is_sixty_an_hour(launch, clock, flavour):
    nginx = launch(flavour, "rate=1r/m")
    assert admitted(nginx, clock, range(0, HOUR + 1, STEP)) == list(range(0, HOUR + 1, MINUTE))


def test_one_a_minute_of_nginx_itself(launch, clock):
    """It counts in thousandths of a request a second, of which this rate has 16: one in 62.5
    seconds. That it says so here shows that the time is what the test makes it."""
    nginx = launch("stock", "rate=1r/m")
    assert admitted(nginx, clock, range(0, HOUR + 1, STEP)) == list(range(0, HOUR + 1, 62 * SECOND + STEP))


@pytest.mark.parametrize("flavour", OURS)
def test_the_minute_is_exact_to_the_nanosecond(launch, clock, flavour):
    nginx = launch(flavour, "rate=1r/m")
    around = [minute + by for minute in range(MINUTE, HOUR + 1, MINUTE) for by in (-1, 0)]
    assert admitted(nginx, clock, [0, *around]) == list(range(0, HOUR + 1, MINUTE))


@pytest.mark.parametrize("rate, an_hour", [("7r/m", 420), ("59r/m", 3540), ("3r/s", 10_800)])
@pytest.mark.parametrize("flavour", OURS)
def test_other_rates(launch, clock, flavour, rate, an_hour):
    """Where a permit's time is no whole number of nanoseconds. The burst keeps what goes by between
    two requests."""
    nginx = launch(flavour, f"rate={rate}", "burst=1 nodelay")
    # The times have nothing to do with the rate.
    times = range(0, HOUR, HOUR // (an_hour * 3) - 10_007)
    assert len(admitted(nginx, clock, times)) == an_hour + 1


@pytest.mark.parametrize("rate, seconds", [("0.5r/h", 7200), ("30r/10s", 1 / 3), ("1r/d", 86_400)])
def test_rates_in_other_words(launch, clock, rate, seconds):
    nginx = launch("tollbar", f"rate={rate}")
    wait = -(-SECOND * seconds // 1)
    assert admitted(nginx, clock, [0, int(wait) - 2, int(wait) + 1]) == [0, int(wait) + 1]


def test_retry_after_is_when_it_says(launch, clock):
    nginx = launch("tollbar", "rate=1r/m", "burst=3 nodelay")
    found = list(answers(nginx, clock, [0, 0, 0, 0, 0, 1, 59 * SECOND, 59 * SECOND + 1, 60 * SECOND - 1, 60 * SECOND]))
    assert [(answer.status, answer.headers.get("retry-after")) for _, answer in found] == [
        (200, None), (200, None), (200, None), (200, None),
        (429, "60"), (429, "60"), (429, "1"), (429, "1"), (429, "1"), (200, None)]


def told(answer):
    """`r` and `t` of RateLimit, and Retry-After."""
    found = re.fullmatch(r'"z";r=(\d+)(?:;t=(\d+))?', answer.headers["ratelimit"])
    return tuple(int(n) if n else None for n in (found[1], found[2], answer.headers.get("retry-after")))


# A policy, and for each request of a key: the header's permits left, its `t`, and Retry-After.
STATES = [
    ("rate=1r/m burst=3", [(3, 60, None), (2, 60, None), (1, 60, None), (0, 60, None), (0, 60, 60)]),
    ('policy="10/min burst 3"', [(2, 6, None), (1, 6, None), (0, 6, None), (0, 6, 6)]),
    ('policy="1/min algo interval anchor first"', [(0, 60, None), (0, 60, 60)]),
    ('policy="3/min algo fixed-window anchor first"', [(2, 60, None), (1, 60, None), (0, 60, None), (0, 60, 60)]),
    ('policy="3/min algo sliding-log"', [(2, 60, None), (1, 60, None), (0, 60, None), (0, 60, 60)]),
]


@pytest.mark.parametrize("policy, states", STATES, ids=[policy for policy, _ in STATES])
def test_t_is_when_there_is_more_to_use(launch, clock, policy, states):
    """At one instant. `remaining` grows at the second that is told, and not a second before; a
    refused request passes then."""
    nginx = launch("tollbar", policy.replace("rate=1r/m burst=3", "rate=1r/m"), HEADERS.replace("@", "burst=3 nodelay" if "burst=3" in policy else "nodelay"), size="2m")
    with Kept(nginx.port) as kept:
        def ask(now, cost=1):
            clock.set(now)
            kept.send(f"/?k=key&cost={cost}")
            answer = kept.read()
            return answer.status, told(answer)

        assert [ask(0)[1] for _ in states] == states
        (r, t, _) = states[-1]
        # A cost of 0 looks and takes nothing.
        assert ask(t * SECOND - SECOND, 0)[1][0] == r == 0
        assert ask(t * SECOND, 0)[1][0] > r
        assert ask(t * SECOND)[0] == 200


@pytest.mark.parametrize("policy", ["10/min burst 4 borrow", "10/min algo pacer slack 3", "10/min algo warm-up warm 2min"])
def test_what_lends_has_no_t_while_some_is_left(launch, clock, policy):
    """A request may then cost more than what is left, so nobody can ask when there is more. Python
    and Go say none, too."""
    nginx = launch("tollbar", f'policy="{policy}"', HEADERS.replace("@", "nodelay"))
    for _ in answers(nginx, clock, [0], "/?k=key&cost=1"):
        pass
    found = [told(answer) for cost in (0, 1, 0) for _, answer in answers(nginx, clock, [20 * SECOND], f"/?k=key&cost={cost}")]
    found += [told(answer) for _, answer in answers(nginx, clock, [20 * SECOND] * 4, "/?k=key&cost=1")]
    assert [t is None for _, t, _ in found] == [r > 0 for r, _, _ in found]
    assert found[0][0] > 0 and found[-1][0] == 0 and found[-1][1] == found[-1][2]


def test_all_of_a_quota_has_no_t(launch, clock):
    nginx = launch("tollbar", "rate=1r/m", HEADERS.replace("@", "burst=3 nodelay"))
    [(_, answer)] = answers(nginx, clock, [0], "/?k=key&cost=0")
    assert told(answer) == (4, None, None)


def test_a_refused_cost_waits_no_shorter_than_t(launch, clock):
    nginx = launch("tollbar", "rate=1r/m", HEADERS.replace("@", "burst=3 nodelay"))
    found = [told(answer) for _, answer in answers(nginx, clock, [0, 0, 0], "/?k=key&cost=3")]
    # One is left; the second of two that are missing is there after two minutes.
    assert found == [(1, 60, None), (1, 60, 120), (1, 60, 120)]


def test_t_of_a_limit_with_a_smaller_burst_than_its_zone(launch, clock):
    nginx = launch("tollbar", "rate=1r/m", HEADERS.replace("@", "burst=1 nodelay"), more="location /wide { tollbar zone=z burst=9 nodelay; }")
    found = [told(answer) for _, answer in answers(nginx, clock, [0, 0, 0, 30 * SECOND])]
    assert found == [(1, 60, None), (0, 60, None), (0, 60, 60), (0, 30, 30)]
