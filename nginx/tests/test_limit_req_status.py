"""limit_req_status, limit_req_dry_run and $limit_req_status."""

import pytest

from harness.client import Kept, statuses
from harness.config import CONTENT
from harness.edges import again_if_late

SLOW = "limit_req_zone $arg_k zone=z:1m rate=1r/m;"
TELL = "add_header X-Limit $limit_req_status always;"


def parts(limit, zone=SLOW):
    return {"http": zone, "server": f"location / {{ {TELL} {limit} {CONTENT} }}"}


def told(answers):
    return [a.headers.get("x-limit") for a in answers]


@pytest.mark.parametrize("status", [400, 403, 418, 429, 500, 503, 598, 599])
def test_the_status_of_a_refusal(launch, status):
    nginx = launch(**parts(f"limit_req zone=z; limit_req_status {status};"))
    assert statuses(nginx.each("/?k=a", "/?k=a")) == [200, status]


def test_444_closes_without_an_answer(launch):
    nginx = launch(**parts("limit_req zone=z; limit_req_status 444;"))
    first, second = nginx.each("/?k=a", "/?k=a")
    assert first.status == 200
    assert (second.status, second.body) == (0, b"")


def test_an_error_page_for_the_refusal(launch):
    nginx = launch(http=SLOW, server=f"""
        error_page 429 = @refused;
        location / {{ limit_req zone=z; limit_req_status 429; {CONTENT} }}
        location @refused {{ {TELL} return 420 "later"; }}""")
    first, second = nginx.each("/?k=a", "/?k=a")
    assert (first.status, second.status, second.body) == (200, 420, b"later")
    assert second.headers["x-limit"] == "REJECTED"


def test_passed_and_rejected(launch):
    nginx = launch(**parts("limit_req zone=z burst=1 nodelay;"))
    assert told(nginx.each(*["/?k=a"] * 3)) == ["PASSED", "PASSED", "REJECTED"]


@again_if_late(1)
def test_delayed(launch):
    nginx = launch(**parts("limit_req zone=z burst=1;", "limit_req_zone $arg_k zone=z:1m rate=1r/s;"))
    assert told(nginx.each("/?k=a", "/?k=a")) == ["PASSED", "DELAYED"]


@pytest.mark.parametrize("limit, values", [
    ("limit_req zone=z;", ["PASSED", "REJECTED_DRY_RUN", "REJECTED_DRY_RUN", "REJECTED_DRY_RUN"]),
    ("limit_req zone=z burst=2;", ["PASSED", "DELAYED_DRY_RUN", "DELAYED_DRY_RUN", "REJECTED_DRY_RUN"]),
    ("limit_req zone=z burst=2 delay=1;", ["PASSED", "PASSED", "DELAYED_DRY_RUN", "REJECTED_DRY_RUN"]),
    ("limit_req zone=z burst=2 nodelay;", ["PASSED", "PASSED", "PASSED", "REJECTED_DRY_RUN"]),
])
def test_a_dry_run_tells_and_lets_through(launch, limit, values):
    nginx = launch(**parts("limit_req_dry_run on; " + limit))
    answers = nginx.each(*["/?k=a"] * 4)
    assert statuses(answers) == [200] * 4
    assert told(answers) == values
    # At one a minute any wait would have been one of a minute.
    assert max(a.took for a in answers) < 30


def test_a_dry_run_counts_as_the_real_one_does(launch):
    nginx = launch(http=SLOW, server=f"""
        location /dry {{ {TELL} limit_req_dry_run on; limit_req zone=z burst=2 nodelay; {CONTENT} }}
        location /real {{ {TELL} limit_req zone=z burst=2 nodelay; {CONTENT} }}""")
    assert statuses(nginx.each("/dry?k=a", "/dry?k=a", "/real?k=a", "/real?k=a")) == [200, 200, 200, 503]


def test_dry_run_off(launch):
    nginx = launch(http=SLOW + "limit_req_dry_run on;",
                   server=f"location / {{ limit_req_dry_run off; limit_req zone=z; {CONTENT} }}")
    assert statuses(nginx.each("/?k=a", "/?k=a")) == [200, 503]


def test_the_access_log_has_the_status(launch):
    nginx = launch(**parts("limit_req zone=z;"))
    nginx.each("/?k=a", "/?k=a", "/?")
    assert nginx.access_log(lines=3) == ["200 GET /?k=a [PASSED]", "503 GET /?k=a [REJECTED]", "200 GET /? [-]"]


def test_no_status_where_nothing_is_limited(launch):
    nginx = launch(http=SLOW, server=f"location / {{ {TELL} {CONTENT} }}")
    assert told([nginx.get("/?k=a")]) == [None]


def test_no_status_of_a_request_before_on_the_same_connection(launch):
    nginx = launch(http=SLOW, server=f"""
        location / {{ {TELL} limit_req zone=z; {CONTENT} }}
        location /free {{ {TELL} {CONTENT} }}""")
    with Kept(nginx.port) as kept:
        kept.send("/?k=a", "/?k=a", "/free")
        assert told(kept.read() for _ in range(3)) == ["PASSED", "REJECTED", None]
