"""The headers of tollbar_headers and Retry-After, byte for byte."""

import time

import pytest

from harness import places
from harness.config import CONTENT
from harness.edges import again_if_late
from harness.tollbar import Tollbar, launcher, raw_headers

launch = launcher(Tollbar)

# 36 seconds for each request: no test takes as long.
ZONE = "tollbar_zone $arg_k zone=z:1m rate=100r/h burst=2;"

LEGACY = [b"X-RateLimit-Limit: 3", b"X-RateLimit-Remaining: 2", b"X-RateLimit-Reset: 36"]
DRAFT = [b'RateLimit-Policy: "z";q=100;w=3600', b'RateLimit: "z";r=2;t=36']


def parts(headers, limit="tollbar zone=z nodelay;", http=ZONE, more=""):
    return {"http": http, "server": f"{headers and f'tollbar_headers {headers};'} location / {{ {limit} {CONTENT} }} {more}"}


@pytest.mark.parametrize("headers, expected", [
    ("", []), ("off", []), ("legacy", LEGACY), ("draft", DRAFT), ("both", LEGACY + DRAFT),
])
def test_a_request_that_is_let_through(launch, headers, expected):
    nginx = launch(**parts(headers))
    assert raw_headers(nginx, "/?k=a") == [b"HTTP/1.1 200 OK", *expected]


@pytest.mark.parametrize("headers, expected", [
    ("off", []),
    ("legacy", [b"X-RateLimit-Limit: 3", b"X-RateLimit-Remaining: 0", b"X-RateLimit-Reset: 108"]),
    ("draft", [b'RateLimit-Policy: "z";q=100;w=3600', b'RateLimit: "z";r=0;t=36']),
])
def test_a_request_that_is_refused(launch, headers, expected):
    nginx = launch(**parts(headers))
    nginx.volley("/?k=a", 3)
    first, *found = raw_headers(nginx, "/?k=a")
    assert first == b"HTTP/1.1 429 Too Many Requests"
    # Up to a few seconds may have passed since the three.
    assert found[0] in [b"Retry-After: %d" % n for n in range(30, 37)]
    for line, wanted in zip(found[1:], expected, strict=True):
        assert line in [wanted.replace(b"108", b"%d" % n) for n in range(100, 109)] + [wanted.replace(b"t=36", b"t=%d" % n) for n in range(30, 37)]
    if headers == "draft":
        assert found[2].rpartition(b"t=")[2] == found[0].rpartition(b" ")[2]


def test_retry_after_is_at_least_a_second_and_rounded_up(launch):
    nginx = launch(**parts("off", http="tollbar_zone $arg_k zone=z:1m rate=2r/s;"))
    answers = nginx.volley("/?k=a", 5)
    assert {a.headers["retry-after"] for a in answers if a.status == 429} == {"1"}
    assert all("retry-after" not in a.headers for a in answers if a.status == 200)


def test_a_request_that_can_never_pass_is_not_told_when_to_come_again(launch):
    nginx = launch(**parts("both", limit="tollbar zone=z cost=$arg_cost nodelay;"))
    assert raw_headers(nginx, "/?k=a&cost=4") == [
        b"HTTP/1.1 429 Too Many Requests", b"X-RateLimit-Limit: 3", b"X-RateLimit-Remaining: 3", b"X-RateLimit-Reset: 0",
        b'RateLimit-Policy: "z";q=100;w=3600', b'RateLimit: "z";r=3']


@pytest.mark.parametrize("rate, quota, window", [
    ("rate=10r/s", 10, 1), ("rate=10r/m", 10, 60), ("rate=5r/h", 5, 3600), ("rate=0.5r/s", 1, 2), ("rate=1.5r/m", 3, 120),
    ("rate=30r/10s", 30, 10), ("rate=1r/d", 1, 86400), ("rate=1000000000r/s", 10**9, 1), ("rate=10r/100ms", 100, 1),
    ("rate=1r/1500ms", 1, 2), ("policy=100/min", 100, 60), ("policy=7/day", 7, 86400),
    ("policy=5/s algo fixed-window", 5, 1), ("policy=10/100ms", 100, 1),
])
def test_the_quota_and_the_window_of_a_limit(launch, rate, quota, window):
    nginx = launch(**parts("draft", http=f'tollbar_zone $arg_k zone=z:1m "{rate}";'))
    assert nginx.get("/?k=a").headers["ratelimit-policy"] == f'"z";q={quota};w={window}'


def test_the_example_of_the_draft(launch):
    nginx = launch(**parts("draft", http='tollbar_zone $arg_k zone=z:1m policy="100/min";'))
    assert raw_headers(nginx, "/?k=a")[1:] == [b'RateLimit-Policy: "z";q=100;w=60', b'RateLimit: "z";r=99;t=1']


def test_names_are_quoted(launch):
    name = "a\"b\\\\c\u00e9"
    nginx = launch(**parts("draft", f"tollbar 'zone={name}';", f"tollbar_zone $arg_k 'zone={name}:1m' rate=1r/h;"))
    assert raw_headers(nginx, "/?k=a")[1] == b'RateLimit-Policy: "a\\"b\\\\c??";q=1;w=3600'


TWO = """
    tollbar_zone $arg_a zone=a:1m rate=100r/h burst=9;
    tollbar_zone $arg_b zone=b:1m rate=10r/h burst=1;
"""
BOTH = "tollbar zone=a nodelay; tollbar zone=b nodelay;"


def test_of_several_limits_legacy_has_the_one_that_binds(launch):
    nginx = launch(**parts("both", BOTH, TWO))
    assert raw_headers(nginx, "/?a=1&b=1") == [
        b"HTTP/1.1 200 OK", b"X-RateLimit-Limit: 2", b"X-RateLimit-Remaining: 1", b"X-RateLimit-Reset: 360",
        b'RateLimit-Policy: "a";q=100;w=3600, "b";q=10;w=3600', b'RateLimit: "a";r=9;t=36, "b";r=1;t=360']


def test_of_several_limits_a_refusal_has_the_one_that_refuses(launch):
    nginx = launch(**parts("both", BOTH, TWO))
    assert [a.status for a in nginx.each("/?b=1", "/?b=1")] == [200, 200]
    found = raw_headers(nginx, "/?a=1&b=1")
    assert found[0] == b"HTTP/1.1 429 Too Many Requests"
    assert 350 <= int(found[1].removeprefix(b"Retry-After: ")) <= 360
    assert found[2:4] == [b"X-RateLimit-Limit: 2", b"X-RateLimit-Remaining: 0"]
    # nginx peeked at the other limit and did not charge it.
    assert found[6].startswith(b'RateLimit: "a";r=10, "b";r=0;t=')


def test_retry_after_is_the_longest(launch):
    nginx = launch(http="tollbar_zone $arg_a zone=a:1m rate=1r/m; tollbar_zone $arg_b zone=b:1m rate=1r/h;",
                   server=f"location / {{ tollbar zone=a; tollbar zone=b; {CONTENT} }}")
    assert [a.status for a in nginx.each("/?a=1", "/?b=1")] == [200, 200]
    assert int(nginx.get("/?a=1&b=1").headers["retry-after"]) > 3000


def test_only_limits_that_apply_are_listed(launch):
    nginx = launch(**parts("draft", BOTH, TWO))
    assert raw_headers(nginx, "/?a=1") == [
        b"HTTP/1.1 200 OK", b'RateLimit-Policy: "a";q=100;w=3600', b'RateLimit: "a";r=9;t=36']
    assert raw_headers(nginx, "/") == [b"HTTP/1.1 200 OK"]


REFUSED = [b"X-RateLimit-Limit: 3", b"X-RateLimit-Remaining: 0"]


@pytest.mark.parametrize("page, status", [
    ("error_page 429 /sorry;", b"429"), ("error_page 429 =200 /sorry;", b"200"), ("error_page 429 = @sorry;", b"200"),
    ("error_page 429 https://other.test/;", b"302"),
])
def test_headers_survive_error_pages(launch, page, status):
    nginx = launch(**parts("legacy", more=f"{page} location /sorry {{ {CONTENT} }} location @sorry {{ {CONTENT} }}"))
    nginx.volley("/?k=a", 3)
    found = raw_headers(nginx, "/?k=a")
    assert found[0].split()[1] == status
    assert found[1].startswith(b"Retry-After: 3") and found[2:4] == REFUSED


def test_headers_are_on_other_errors(launch):
    nginx = launch(**parts("legacy", more="location /none { tollbar zone=z nodelay; }"))
    assert raw_headers(nginx, "/none?k=a") == [b"HTTP/1.1 404 Not Found", *LEGACY]


def test_headers_survive_a_range_that_cannot_be_satisfied(launch):
    nginx = launch(**parts("legacy", more="location /page { tollbar zone=z nodelay; }"))
    (nginx.home / "html" / "page").write_text("page")
    assert raw_headers(nginx, "/page?k=a", headers=["Range: bytes=100-"])[1:] == LEGACY


def test_headers_survive_redirects_inside_nginx(launch):
    nginx = launch(**parts("legacy", "tollbar zone=z nodelay; try_files /none /end;", more=f"location /end {{ {CONTENT} }}"))
    assert raw_headers(nginx, "/?k=a") == [b"HTTP/1.1 200 OK", *LEGACY]


def test_headers_are_on_answers_from_elsewhere(launch):
    nginx = launch(http=ZONE, server=f"""tollbar_headers legacy; location /behind/ {{ {CONTENT} }}
        location / {{ tollbar zone=z nodelay; proxy_pass http://127.0.0.1:@PORT0@/behind/; }}""")
    assert raw_headers(nginx, "/?k=a") == [b"HTTP/1.1 200 OK", *LEGACY]


def test_a_limit_for_a_subrequest_is_told_with_the_whole(launch):
    nginx = launch(**parts("legacy", "auth_request /leave;", http=ZONE.replace("$arg_k", "$remote_addr"),
                           more=f"location /leave {{ tollbar zone=z nodelay; {CONTENT} }}"))
    assert raw_headers(nginx, "/") == [b"HTTP/1.1 200 OK", *LEGACY]


def test_a_part_of_a_page_that_comes_too_late_adds_nothing(launch):
    nginx = launch(http=ZONE.replace("$arg_k", "$remote_addr"), server="""
        tollbar_headers legacy;
        location /page { ssi on; default_type text/html; }
        location /part { tollbar zone=z nodelay; default_type text/html; }""")
    (nginx.home / "html" / "part.txt").write_text("part.")
    (nginx.home / "html" / "page.html").write_text('a<!--#include virtual="/part.txt" -->z')
    answer = nginx.get("/page.html")
    assert answer.body == b"apart.z"
    assert not [name for name in answer.headers if name.startswith("x-ratelimit")]


def test_headers_are_inherited_and_replaced(launch):
    nginx = launch(http=ZONE + "tollbar_headers legacy;", server=f"""
        location / {{ tollbar zone=z nodelay; {CONTENT} }}
        location /draft {{ tollbar_headers draft; tollbar zone=z nodelay; {CONTENT} }}
        location /off {{ tollbar_headers off; tollbar zone=z nodelay; {CONTENT} }}""")
    assert raw_headers(nginx, "/?k=a")[1:] == LEGACY
    assert raw_headers(nginx, "/draft?k=b")[1:] == DRAFT
    assert raw_headers(nginx, "/off?k=c")[1:] == []


@again_if_late(1)
def test_a_delayed_request_has_headers(launch):
    nginx = launch(**parts("legacy", "tollbar zone=z burst=1;", "tollbar_zone $arg_k zone=z:1m rate=1r/s;"))
    nginx.get("/?k=a")
    assert raw_headers(nginx, "/?k=a")[1:] == [b"X-RateLimit-Limit: 2", b"X-RateLimit-Remaining: 0", b"X-RateLimit-Reset: 2"]


@pytest.mark.parametrize("kind, expected", [
    ("draft-07", [b"RateLimit-Policy: 100;w=3600", b"RateLimit: limit=100, remaining=2, reset=36"]),
    ("draft-06", [b"RateLimit-Limit: 100", b"RateLimit-Remaining: 2", b"RateLimit-Reset: 36", b"RateLimit-Policy: 100;w=3600"]),
])
def test_older_drafts(launch, kind, expected):
    nginx = launch(**parts(kind))
    assert raw_headers(nginx, "/?k=a") == [b"HTTP/1.1 200 OK", *expected]


def test_a_reset_since_1970(launch):
    nginx = launch(**parts("legacy-epoch"))
    reset = raw_headers(nginx, "/?k=a")[3]
    assert reset.startswith(b"X-RateLimit-Reset: ")
    # nginx's clock may be a second behind.
    assert -5 <= int(reset.rpartition(b" ")[2]) - 36 - time.time() <= 5


def test_a_list_is_described_by_the_policy_that_bound(launch):
    nginx = launch(**parts("draft", http='tollbar_zone $arg_k zone=z:1m "policy=2/h; 5/day";'))
    assert raw_headers(nginx, "/?k=a")[1] == b'RateLimit-Policy: "z";q=2;w=3600'
    nginx = launch(**parts("draft", http='tollbar_zone $arg_k zone=z:1m "policy=5/h; 2/day";'))
    assert raw_headers(nginx, "/?k=a")[1] == b'RateLimit-Policy: "z";q=2;w=86400'


HIDDEN = "".join(f"proxy_hide_header {name};" for name in (
    "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit-Policy", "RateLimit"))


@pytest.mark.parametrize("headers, hide, expected", [
    ("both", HIDDEN, LEGACY + DRAFT),
    ("off", "", [b"X-RateLimit-Limit: 7", b'RateLimit: "up";r=6']),
])
def test_c1_the_fields_of_an_upstream_are_left_out_or_kept(launch, headers, hide, expected):
    """As the document says."""
    upstream = f"""location /up {{ tollbar_headers off; add_header X-RateLimit-Limit 7; add_header RateLimit '"up";r=6'; {CONTENT} }}"""
    nginx = launch(http=ZONE, server=f"""tollbar_headers {headers}; {upstream}
        location / {{ tollbar zone=z nodelay; {hide} proxy_pass http://127.0.0.1:@PORT0@/up; }}""")
    first, *found = raw_headers(nginx, "/?k=a")
    assert first == b"HTTP/1.1 200 OK" and sorted(found) == sorted(expected)
    text = (places.ROOT / "docs" / "nginx.md").read_text()
    assert all(directive in text for directive in filter(None, hide.split(";")))
