"""Zones of tollbar_conn with `adaptive`: the limit is learned from the upstream's latency."""

import json
import re
import socket
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import config
from harness.client import count, statuses
from harness.config import CONTENT
from harness.held import END, HOLD, Counting, end, hold, room, wait_for_room
from harness.server import check, wait_until
from harness.tollbar import MODULE, launcher

launch = launcher(Counting)

PAGES = "location /json { tollbar_status_page json; } location /metrics { tollbar_status_page prometheus; }"


class Upstream:
    """A server of so many desks, each of which serves a request in `seconds`. Further requests
    wait. A path with /503 in it gets this status at once."""

    def __init__(self, desks, seconds):
        self.desks, self.seconds = threading.Semaphore(desks), seconds
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                one, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=[one], daemon=True).start()

    def serve(self, one):
        with one:
            status = "503 No" if b"/503" in one.recv(65536) else "200 OK"
            if status == "200 OK":
                with self.desks:
                    time.sleep(self.seconds)
            one.sendall(f"HTTP/1.0 {status}\r\nContent-Length: 2\r\n\r\nok".encode())

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture
def upstream(request):
    one = Upstream(*request.param)
    yield one
    one.close()


def parts(adaptive, limit="tollbar_conn z;", where=HOLD, more=""):
    return {
        "http": f"tollbar_conn_zone all zone=z:1m {adaptive};",
        "server": f"location / {{ {limit} {where} }} {PAGES} {END} {more}",
    }


def learned(nginx):
    """What the zone has learned, by the page of JSON."""
    (zone,) = json.loads(nginx.get("/json").body)["adaptive"]
    assert zone["name"] == "z"
    return zone


class Users:
    """Users who ask again after each answer, and after a refusal only after a pause."""

    def __init__(self, nginx, many, seconds, pause=0.1):
        self.nginx, self.pause, self.over = nginx, pause, time.monotonic() + seconds
        with ThreadPoolExecutor(many) as pool:
            found = list(pool.map(lambda _: self.ask(), range(many)))
        self.answers = sorted((answer for one in found for answer in one), key=lambda answer: answer.sent)

    def ask(self):
        found = []
        while time.monotonic() < self.over:
            found.append(self.nginx.get("/"))
            if found[-1].status != 200:
                time.sleep(self.pause)
        return found

    def took(self):
        """The usual time of an answer in the second half."""
        middle = (self.answers[0].sent + self.answers[-1].sent) / 2
        return statistics.median(a.took for a in self.answers if a.status == 200 and a.sent > middle)


@pytest.mark.parametrize("upstream", [(4, 0.1)], indirect=True)
def test_the_limit_settles_near_what_the_upstream_sustains(launch, upstream):
    """A server of four desks of 100 ms. Thirty users at once wait 750 ms each without a limit."""
    nginx = launch(**parts("adaptive initial=20", where=f"proxy_pass http://127.0.0.1:{upstream.port};"), workers=2)
    # An idle server refuses nobody, and the limit learns how fast it is.
    idle = Users(nginx, 3, 6)
    assert set(statuses(idle.answers)) == {200}
    before = learned(nginx)
    assert before["denied"] == 0 and before["allowed"] == len(idle.answers)
    assert 0.1e9 <= before["latency_nanoseconds"] < 0.2e9
    crowd = Users(nginx, 30, 10)
    after = learned(nginx)
    assert set(statuses(crowd.answers)) == {200, 503}
    assert after["denied"] == count(crowd.answers, 503)
    # 1.5 times the latency of an idle server, and a queue of four: ten.
    print(f"the limit is {after['limit']}, and an answer takes {crowd.took():.3f} s")
    assert 4 <= after["limit"] <= 16, after
    assert crowd.took() < 0.5, crowd.took()
    assert after["in_flight"] == 0
    again = Users(nginx, 3, 2)
    assert set(statuses(again.answers)) == {200}


FIXED = "adaptive least=3 initial=3 most=3"


@pytest.mark.parametrize("status, given", [(503, ""), (429, "tollbar_conn_status 429;")])
def test_requests_beyond_the_limit_are_refused_and_counted(launch, status, given):
    nginx = launch(**parts(FIXED, f"{given} tollbar_conn z;"), workers=2, listen="reuseport")
    held, refused = hold(nginx, "/", 8)
    assert len(held) == 3 and refused == [status] * 5
    numbers = {"limit": 3, "in_flight": 3, "latency_nanoseconds": 0, "allowed": 3, "denied": 5}
    assert learned(nginx) == {"name": "z", **numbers}
    page = nginx.get("/metrics").body.decode()
    assert re.findall(r"(?m)^tollbar_adaptive_\w+\{.*$", page) == [
        'tollbar_adaptive_limit{limit="z"} 3',
        'tollbar_adaptive_in_flight{limit="z"} 3',
        'tollbar_adaptive_latency_nanoseconds{limit="z"} 0',
        'tollbar_adaptive_decisions_total{limit="z",verdict="allowed"} 3',
        'tollbar_adaptive_decisions_total{limit="z",verdict="denied"} 5',
    ]
    assert len(nginx.said("limiting connections by zone \"z\"")) == 5
    nginx.kill_worker()
    wait_until(lambda: room(nginx, "/", 3) > 0, "the requests of a killed worker no longer count")
    for one in held:
        one.drop()
    wait_for_room(nginx, "/", 3)


def test_an_empty_key_is_not_counted(launch):
    nginx = launch(http=f"tollbar_conn_zone $arg_k zone=z:1m {FIXED};",
                   server=f"location / {{ tollbar_conn z; {HOLD} }} {END}")
    # Keys have one limit together.
    some = hold(nginx, "/?k=a", 2)[0] + hold(nginx, "/?k=b", 1)[0]
    assert len(some) == 3 and hold(nginx, "/?k=c", 1)[1] == [503]
    free, refused = hold(nginx, "/", 4)
    assert len(free) == 4 and refused == []
    end(some + free)


@pytest.mark.parametrize("upstream", [(50, 0.002)], indirect=True)
def test_a_server_that_refuses_lowers_the_limit(launch, upstream):
    """With `adaptive=aimd` a 503 of the upstream lowers the limit. A 503 or 404 that nginx answers by
    itself does not."""
    server = f"proxy_pass http://127.0.0.1:{upstream.port};"
    own = f"location /own {{ tollbar_conn z; {CONTENT} }} location /none {{ tollbar_conn z; }}"
    nginx = launch(**parts("adaptive=aimd timeout=30s initial=20 most=20", where=server, more=own))

    def ask(path, seconds=1.0):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            nginx.volley(path, 4)

    ask("/none")
    ask("/own")
    ask("/")
    assert learned(nginx)["limit"] == 20
    ask("/503")
    low = learned(nginx)["limit"]
    assert low < 18
    # A reload goes on with what was learned, and other parameters begin anew.
    assert nginx.reload() and learned(nginx)["limit"] == low
    changed = parts("adaptive=aimd timeout=30s initial=19 most=20", where=server)
    assert nginx.reload(**changed) and learned(nginx)["limit"] == 19
    nginx.kill_worker()
    assert nginx.reload(**changed) and learned(nginx)["limit"] == 19
    fixed = parts("", "tollbar_conn z 5;", server)
    assert nginx.reload(**fixed) and "adaptive" not in json.loads(nginx.get("/json").body)


@pytest.mark.parametrize("adaptive, limit, said", [
    ("adaptive", "tollbar_conn z;", None),
    ("adaptive=gradient2 initial=5 least=5 most=5 on_full=allow", "tollbar_conn z;", None),
    ("adaptive=aimd timeout=500ms", "tollbar_conn z;", None),
    ("adaptive initial=5000", "tollbar_conn z;", None),
    ("adaptive most=5", "tollbar_conn z;", None),
    ("adaptive", "tollbar_conn z 5;", '"tollbar_conn" must have no number, because zone "z" learns its limit'),
    ("", "tollbar_conn z;", '"tollbar_conn" must have a number, because zone "z" has no "adaptive"'),
    ("adaptive=vegas", "", 'invalid parameter "adaptive=vegas", it must be zone=NAME:SIZE, on_full=deny or '
     'on_full=allow, or adaptive'),
    ("initial=5", "", '"initial", "least", "most" and "timeout" must have "adaptive" beside them in zone "z"'),
    ("adaptive timeout=5s", "", '"adaptive=aimd" must have a "timeout"'),
    ("adaptive=aimd", "", '"adaptive=aimd" must have a "timeout"'),
    ("adaptive=aimd timeout=0", "", 'invalid timeout value "timeout=0"'),
    ("adaptive least=6 initial=5", "", '"least" must be at most "initial", and "initial" at most "most", in zone "z"'),
    ("adaptive initial=6 most=5", "", '"least" must be at most "initial"'),
    ("adaptive least=0", "", 'invalid least value "least=0", it must be a whole number from 1 to 65535'),
    ("adaptive most=65536", "", 'invalid most value "most=65536"'),
    ("adaptive initial=many", "", 'invalid initial value "initial=many"'),
])
def test_adaptive_in_a_configuration(tmp_path, adaptive, limit, said):
    text = config.text(modules=[MODULE], ports=[8080], **parts(adaptive, limit)).replace("error.log", "stderr")
    code, output = check(tmp_path / "nginx", text)
    assert code == (said is not None) and (said or "is successful") in output, output
