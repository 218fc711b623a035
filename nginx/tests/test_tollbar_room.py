"""Zones with `room`: a reload turns any algorithm into any other, and keys keep their use."""

import itertools
import threading

import pytest

from harness import config, faces
from harness.client import count, statuses
from harness.config import CONTENT
from harness.server import check
from harness.streams import echo, launch as launch_stream  # noqa: F401
from harness.tollbar import MODULE, Tollbar, launcher

launch = launcher(Tollbar)

# An hour long, so that no permit of a test comes back by itself.
BUCKET = 'policy="20/h"'
WINDOW = 'policy="30/h algo sliding-window segments 10"'
LOG = 'policy="25/h algo sliding-log"'
FIXED = 'policy="40/h algo fixed-window anchor first"'
LIMITS = {BUCKET: 20, WINDOW: 30, LOG: 25, FIXED: 40}


def parts(limit, more="room=30", at="", size="8m"):
    return {
        "http": f"tollbar_zone $arg_k zone=z:{size} {limit} {more};",
        "server": f"location / {{ tollbar zone=z {at}; {CONTENT} }}",
    }


def through_each_pair(names):
    """The names in an order in which each stands once before each other."""
    left, at = set(itertools.permutations(names, 2)), names[0]
    yield at
    while left:
        ways = [pair for pair in left if pair[0] == at]
        # The way to a name that has most ways on never ends early.
        pair = max(ways, key=lambda way: (sum(other[0] == way[1] for other in left), way))
        left.remove(pair)
        at = pair[1]
        yield at


def test_any_algorithm_becomes_any_other(launch):
    """A key with six permits left has six under the next policy."""
    order = list(through_each_pair(list(LIMITS)))
    assert len(order) == 13
    nginx = launch(**parts(order[0]), workers=2)
    for n, (now, then) in enumerate(itertools.pairwise(order)):
        most = LIMITS[now] - 6
        assert count(nginx.volley(f"/?k={n}", most)) == most, (now, then)
        assert nginx.reload(**parts(then))
        assert count(nginx.volley(f"/?k={n}", 9)) == 6, (now, then)
        assert count(nginx.volley(f"/?k=fresh{n}", LIMITS[then] + 3)) == LIMITS[then], (now, then)
    assert not nginx.said("starts empty")


class Traffic:
    """Threads that ask all the time: `ask(n)` for n = 0, 1, 2, … of each, until the block ends."""

    def __init__(self, ask, threads=2):
        self.ask, self.over, self.failed = ask, threading.Event(), []
        self.asked = [0] * threads
        self.threads = [threading.Thread(target=self.run, args=(n,)) for n in range(threads)]

    def run(self, thread):
        try:
            while not self.over.is_set():
                self.ask(f"{thread}.{self.asked[thread]}")
                self.asked[thread] += 1
        except Exception as error:  # noqa: BLE001
            self.failed.append(error)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()
        assert not self.failed, self.failed[0]
        assert min(self.asked) > 0


@pytest.mark.parametrize("other", [LOG, WINDOW])
def test_reloads_under_traffic_keep_the_bounds(launch, other):
    """To and fro: a key that both policies admit is never refused, and no key gets more than both
    policies together."""
    nginx = launch(**parts(BUCKET), workers=2)
    bound = LIMITS[BUCKET] + LIMITS[other]
    admitted, modest = {}, []

    def ask(name):
        # Ten requests are below each policy. A greedy key asks on until it was refused often.
        modest.extend(statuses(nginx.volley(f"/?k=modest{name}", 5)))
        greedy = f"/?k=greedy{name.split('.')[0]}.{int(name.split('.')[1]) // 8}"
        admitted[greedy] = admitted.get(greedy, 0) + count(nginx.volley(greedy, 7))
        modest.extend(statuses(nginx.volley(f"/?k=modest{name}", 5)))

    with Traffic(ask):
        for limit in [other, BUCKET] * 3:
            assert nginx.reload(**parts(limit))
    assert set(modest) == {200}, {status: modest.count(status) for status in set(modest)}
    assert max(admitted.values()) <= bound, admitted
    assert max(admitted.values()) >= LIMITS[BUCKET]


def test_a_worker_that_ends_delays_no_request_under_the_next_policy(launch):
    """An old worker reads times of the new policy for some milliseconds. A window's are an hour
    long, and its own limit would make delays of them."""
    paced = parts("rate=10r/s burst=20", "room=30")
    nginx = launch(**paced, workers=2)
    took = []

    def ask(name):
        answer = nginx.get(f"/?k={name}")
        took.append((answer.status, answer.took))

    with Traffic(ask):
        for changed in [parts(FIXED), paced] * 3:
            assert nginx.reload(**changed)
    assert {status for status, _ in took} == {200}
    assert max(seconds for _, seconds in took) < 20


def test_a_worker_that_ends_refuses_nobody_whom_both_policies_admit(launch):
    """A reload changes the zone's policy while a worker of the old configuration still serves. The
    `burst` of the worker's limit is smaller than the zone's, so the worker compares it with the
    permits that are left, and must not do so by the other policy."""
    http = "tollbar_zone $arg_k zone=z:4m {} room=30;"
    place = "{{ tollbar zone=z {}; " + CONTENT + " }}"
    server = f"location / {place} location /more {place}"
    paced = {"http": http.format("rate=1r/h"), "server": server.format("burst=9 nodelay", "burst=39 nodelay")}
    window = {"http": http.format('policy="20/h algo sliding-window segments 10"'), "server": server.format("", "")}
    nginx = launch(**paced, workers=2)
    seen = []
    with Traffic(lambda name: seen.append(nginx.get(f"/?k={name}").status)):
        for changed in [window, paced] * 3:
            assert nginx.reload(**changed)
    assert set(seen) == {200}


def test_a_reload_with_another_size_moves_windows_too(launch):
    nginx = launch(**parts(LOG))
    assert count(nginx.volley("/?k=a", 20)) == 20
    assert nginx.reload(**parts(LOG, size="9m")) and count(nginx.volley("/?k=a", 9)) == 5
    assert not nginx.said("starts empty")


def test_a_reload_with_another_burst_keeps_what_was_spent(launch):
    """As in a zone without room: four of six spent are four of nine."""
    nginx = launch(**parts("rate=1r/h burst=5", at="nodelay"))
    assert count(nginx.volley("/?k=a", 4)) == 4
    assert nginx.reload(**parts("rate=1r/h burst=8", at="nodelay"))
    assert count(nginx.volley("/?k=a", 9)) == 5


def test_a_zone_that_gets_more_room_begins_anew_only_where_nothing_can_be_moved(launch):
    nginx = launch(**parts(BUCKET, ""))
    assert count(nginx.volley("/?k=a", 14)) == 14
    assert nginx.reload(**parts(BUCKET)) and count(nginx.volley("/?k=a", 2)) == 2
    assert nginx.reload(**parts(BUCKET, "room=60")) and count(nginx.volley("/?k=a", 9)) == 4
    # A calendar has another clock.
    assert nginx.reload(**parts('policy="9/month"')) and count(nginx.volley("/?k=a", 20)) == 9
    assert [level for level, _ in nginx.said('zone "z" starts empty')] == ["warn"]


@pytest.mark.parametrize("limit, more, said", [
    ('policy="30/s algo sliding-log"', "room=30", None),
    ('policy="31/s algo sliding-log"', "room=30", 'zone "z" cannot have this policy: '),
    (BUCKET, "room=0", 'invalid room value "room=0", it must be a number of segments or permits from 1 to 16777216'),
    (BUCKET, "room=many", 'invalid room value "room=many"'),
    (BUCKET, "room=16777217", 'invalid room value "room=16777217"'),
    (BUCKET, "room=100000", 'zone "z" is too small, it must have at least '),
    ("rate=1r/s burst=9", "room=9 sync=redis://127.0.0.1:1 nodes=2", '"room" must not be beside "sync" in zone "z"'),
])
def test_room_in_a_configuration(tmp_path, limit, more, said):
    at = "nodelay" if "sync" in more else ""
    text = config.text(modules=[MODULE], ports=[8080], **parts(limit, more, at)).replace("error.log", "stderr")
    code, output = check(tmp_path / "nginx", text)
    assert code == (said is not None) and (said or "is successful") in output, output


@pytest.fixture
def path(tmp_path):
    (tmp_path / "run").mkdir(mode=0o700)
    return tmp_path / "run" / "table"


def file(path, limit, more="capacity=1000 room=30"):
    return {**parts(""), "http": f"tollbar_zone $arg_k zone=z file={path} {limit} {more};"}


def test_a_file_with_room_changes_for_other_programs_too(launch, path):
    nginx = launch(**file(path, BUCKET))
    with faces.tollbar().Table.open(path, "20/h", 1000, room=30) as table:
        assert count(nginx.volley("/?k=a", 14)) == 14
        assert nginx.reload(**file(path, LOG))
        assert str(table.policy(0)) == "25/h algo sliding-log"
        assert sum(table.allow("a") for _ in range(9)) == 6 and count(nginx.volley("/?k=a", 3)) == 0
        # Another program makes a window of it, and a reload goes on with that.
        table.set_policy(0, "40/h algo fixed-window anchor first")
        assert nginx.reload(**file(path, LOG)) and count(nginx.volley("/?k=b", 50)) == 40
        assert nginx.reload(**file(path, BUCKET)) and count(nginx.volley("/?k=c", 50)) == 20


@pytest.mark.parametrize("more, said", [
    ("capacity=1000", "found a table with other options"),
    ("capacity=1000 room=31", "1024 overrides and room 31, or"),
    ("room=30", '"on_full" and "room" must have "capacity" beside them'),
])
def test_a_file_has_the_room_that_it_was_made_with(tmp_path, path, more, said):
    faces.tollbar().Table.open(path, "20/h", 1000, room=30).close()
    text = config.text(modules=[MODULE], ports=[8080], **file(path, BUCKET, more)).replace("error.log", "stderr")
    code, output = check(tmp_path / "nginx", text)
    assert code == 1 and said in output, output


def test_connections_keep_the_permits_that_they_have_left(launch_stream, echo):
    """With room another rate is set in the memory of the zone. Without, a key lacks as many permits
    of the new burst."""
    def stream(room, rate, burst):
        return (f"tollbar_zone $tollbar_client zone=s:4m rate={rate} {room};"
                f"server {{ listen 127.0.0.1:@PORT1@; tollbar zone=s burst={burst} nodelay; "
                f"proxy_pass 127.0.0.1:{echo.port}; }}")

    def passed(nginx, tries):
        found = 0
        for _ in range(tries):
            one = nginx.open()
            found += one.passed()
            one.close()
        return found

    for room, left in ("room=9", 6), ("", 16):
        nginx = launch_stream(stream(room, "1r/h", 9))
        assert passed(nginx, 4) == 4
        assert nginx.reload(stream=stream(room, "2r/h", 19))
        assert passed(nginx, 20) == left
