"""One request of a client is counted once, however many locations it goes through inside nginx."""

import pytest

from harness.client import connect, count, statuses
from harness.config import CONTENT
from harness.edges import again_if_late
from harness.http2 import PREFACE, RST_STREAM, SETTINGS, ask, frame, together
from harness.server import wait_until

# The key is one that subrequests have too: they have no arguments.
ZONES = """
    limit_req_zone $remote_addr zone=z:1m rate=1r/m;
    limit_req_zone $remote_addr zone=other:1m rate=1r/m;
"""
LIMIT = "limit_req zone=z burst=5 nodelay;"


def left(nginx):
    return count(nginx.volley("/left", 12))


# The permits left of six show how often nginx counted the request.
REST = f"location /left {{ {LIMIT} {CONTENT} }}"


def page(nginx, name, text):
    (nginx.home / "html" / name).write_text(text)


@pytest.mark.parametrize("location", [
    "rewrite ^ /left last;",
    "try_files /none /left;",
    "error_page 404 = /left; root /nonexistent;",
    "error_page 404 = @named; root /nonexistent;",
    "error_page 418 = /left; return 418;",
    "index none.html; error_page 403 404 = /left;",
])
@pytest.mark.parametrize("limited_before", [True, False])
def test_an_internal_redirect_is_counted_once(launch, location, limited_before):
    nginx = launch(http=ZONES, server=f"""
        location /go {{ {LIMIT if limited_before else ""} {location} }}
        location @named {{ {LIMIT} {CONTENT} }}
        {REST}""")
    assert nginx.get("/go").status == 200
    assert left(nginx) == 5


def test_a_limit_after_a_redirect_holds_if_none_was_met_before(launch):
    nginx = launch(http=ZONES, server=f"""
        location /go {{ try_files /none /end; }}
        location /end {{ limit_req zone=z; {CONTENT} }}""")
    assert statuses(nginx.each("/go", "/go")) == [200, 503]


def test_a_limit_after_a_redirect_does_not_hold_if_one_was_met_before(launch):
    nginx = launch(http=ZONES, server=f"""
        location /go {{ {LIMIT} try_files /none /end; }}
        location /end {{ limit_req zone=other; {CONTENT} }}""")
    assert statuses(nginx.each(*["/go"] * 4)) == [200] * 4


def test_a_limit_that_was_left_out_does_not_count_as_met(launch):
    # The key of the first is empty; so the second is asked.
    nginx = launch(http="limit_req_zone $arg_none zone=n:1m rate=1r/m;" + ZONES, server=f"""
        location /go {{ limit_req zone=n; try_files /none /end; }}
        location /end {{ limit_req zone=z; {CONTENT} }}""")
    assert statuses(nginx.each("/go", "/go")) == [200, 503]


def test_the_page_for_a_refusal_is_not_limited_again(launch):
    nginx = launch(http=ZONES, server=f"""
        error_page 503 =200 /sorry;
        location / {{ limit_req zone=z; {CONTENT} }}
        location /sorry {{ limit_req zone=z; {CONTENT} }}""")
    assert statuses(nginx.each("/", "/", "/")) == [200] * 3


def test_parts_of_a_page_of_ssi_are_counted_once_together(launch):
    nginx = launch(http=ZONES, server=f"""
        location /page {{ ssi on; default_type text/html; }}
        location /part {{ {LIMIT} default_type text/html; }}
        {REST}""")
    page(nginx, "part.txt", "part.")
    page(nginx, "page.html", '<!--#include virtual="/part.txt" -->' * 4)
    assert nginx.get("/page.html").body == b"part." * 4
    assert left(nginx) == 5


def test_a_part_of_ssi_that_waits(launch):
    nginx = launch(http="limit_req_zone $remote_addr zone=z:1m rate=2r/s;", server="""
        location /page { ssi on; default_type text/html; }
        location /part { limit_req zone=z burst=5; default_type text/html; }""")
    page(nginx, "part.txt", "part.")
    page(nginx, "page.html", 'a <!--#include virtual="/part.txt" --> z')
    answers = nginx.each("/page.html", "/page.html")
    assert [a.body for a in answers] == [b"a part. z"] * 2
    # The second comes half a second after the first.
    assert answers[1].done - answers[0].sent > 0.45


def test_a_mirror_is_not_counted(launch):
    nginx = launch(http=ZONES, server=f"""
        location / {{ {LIMIT} mirror /mirror; mirror /mirror; {CONTENT} }}
        location /mirror {{ internal; {LIMIT} {CONTENT} }}
        {REST}""")
    assert nginx.get("/").status == 200
    assert left(nginx) == 5


def test_the_question_for_leave_is_not_counted(launch):
    nginx = launch(http=ZONES, server=f"""
        location / {{ {LIMIT} auth_request /leave; {CONTENT} }}
        location /leave {{ internal; {LIMIT} {CONTENT} }}
        {REST}""")
    assert nginx.get("/").status == 200
    assert left(nginx) == 5


def test_the_question_for_leave_is_limited_when_the_page_is_not(launch):
    nginx = launch(http=ZONES, server=f"""
        location / {{ auth_request /leave; {CONTENT} }}
        location /leave {{ internal; limit_req zone=z; limit_req_status 403; {CONTENT} }}""")
    assert statuses(nginx.each("/", "/")) == [200, 403]


def test_what_return_answers_is_never_limited(launch):
    nginx = launch(http=ZONES, server="location / { limit_req zone=z; return 204; }")
    assert statuses(nginx.each(*["/"] * 4)) == [204] * 4


def test_limits_come_before_access_rules(launch):
    nginx = launch(http=ZONES, server=f"location / {{ limit_req zone=z; deny all; {CONTENT} }}")
    assert statuses(nginx.each("/", "/")) == [403, 503]


def test_streams_of_http2_are_requests_of_their_own(launch):
    nginx = launch(http=ZONES, server=f"location / {{ {LIMIT} {CONTENT} }}", listen="http2")
    answers = together(nginx.port, ["/"] * 12)
    assert statuses(answers) == [200] * 6 + [503] * 6
    assert [len(a.body) for a in answers[:6]] == [43] * 6


@again_if_late(1.5)
def test_streams_of_http2_wait_beside_each_other(launch):
    nginx = launch(http="limit_req_zone $arg_k zone=z:1m rate=2r/s;", listen="http2",
                   server=f"location / {{ limit_req zone=z burst=4; {CONTENT} }}")
    answers = together(nginx.port, ["/?k=a"] * 4 + ["/?k=b"] * 4)
    assert statuses(answers) == [200] * 8
    for waits in ([a.took for a in answers[:4]], [a.took for a in answers[4:]]):
        # nginx reads its clock once per turn of its event loop, so a wait may be 50 ms shorter. The
        # upper margin is for slow machines, and smaller than the 3.5 s of eight requests that wait
        # one after another.
        assert all(i * 0.5 - 0.05 <= wait <= i * 0.5 + 1.5 for i, wait in enumerate(waits)), waits


def test_a_stream_of_http2_that_is_cancelled_while_it_waits(launch):
    nginx = launch(http="limit_req_zone $arg_k zone=z:1m rate=6r/m;", listen="http2",
                   server=f"location / {{ limit_req zone=z burst=2; {CONTENT} }}")
    workers = nginx.workers()
    with connect(nginx.port) as s:
        s.sendall(PREFACE + frame(SETTINGS, 0, 0) + ask(1, "/?k=a") + ask(3, "/?k=a") + ask(5, "/?k=a"))
        wait_until(lambda: len(nginx.said("delaying")) == 2, "two are delayed")
        s.sendall(frame(RST_STREAM, 0, 3, b"\0\0\0\x08"))
        # Closing the connection cancels the other delayed request.
        assert nginx.access_log(lines=2)[1].startswith("499 ")
    assert nginx.access_log(lines=3)[2].startswith("499 ")
    assert statuses(together(nginx.port, ["/?k=a", "/?k=b"])) == [503, 200]
    assert nginx.workers() == workers
