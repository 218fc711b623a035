"""tollbar_conn: how many requests a key may have at one time."""

import resource
import time

import pytest

from harness import config
from harness.client import Kept
from harness.config import CONTENT
from harness.held import END, HOLD, Counting, Held, end, hold, room, wait_for_room
from harness.server import check
from harness.tollbar import MODULE, launcher

launch = launcher(Counting)

ZONE = "tollbar_conn_zone $arg_k zone=z:1m;"


def parts(limit="tollbar_conn z 3;", zone=ZONE, more=""):
    return {"http": zone, "server": f"location / {{ {limit} {HOLD} }} {more} {END}"}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("limit", [1, 3, 20])
def test_as_many_as_the_limit(launch, workers, limit):
    nginx = launch(**parts(f"tollbar_conn z {limit};"), workers=workers)
    held, refused = [], []
    for _ in range(limit + 5):
        one = Held(nginx.port, "/?k=a")
        (held if one.answer() == 100 else refused).append(one)
    assert len(held) == limit and [one.status for one in refused] == [429] * 5
    # Another key has its own.
    assert room(nginx, "/?k=b", limit) == limit
    # For each that ends another is let in.
    end(held[:1])
    wait_for_room(nginx, "/?k=a", 1)
    end(held[1:])
    wait_for_room(nginx, "/?k=a", limit)


def test_all_at_once(launch):
    nginx = launch(**parts("tollbar_conn z 5;"), workers=2, listen="reuseport")
    for _ in range(10):
        held, refused = hold(nginx, "/?k=a", 30)
        assert len(held) == 5 and refused == [429] * 25
        end(held)
        wait_for_room(nginx, "/?k=a", 5)


def test_a_client_that_goes_away(launch):
    nginx = launch(**parts("tollbar_conn z 2;"))
    held, _ = hold(nginx, "/?k=a", 2)
    held[0].drop()
    wait_for_room(nginx, "/?k=a", 1)
    held[1].drop()
    wait_for_room(nginx, "/?k=a", 2)


def test_a_kept_connection_is_counted_only_while_it_is_asked(launch):
    nginx = launch(**parts("tollbar_conn z 1;", more=f"location /image {{ tollbar_conn z 1; {CONTENT} }}"))
    with Kept(nginx.port) as kept:
        for _ in range(5):
            kept.send("/image?k=a")
            assert kept.read().status == 200
        wait_for_room(nginx, "/?k=a", 1)


def test_a_request_without_a_key_is_not_counted(launch):
    nginx = launch(**parts("tollbar_conn z 1;"))
    held, refused = hold(nginx, "/", 5)
    assert len(held) == 5 and refused == []
    end(held)
    assert nginx.access_log(10)[0].endswith("[-]")


def test_keys_of_any_length(launch):
    nginx = launch(**parts("tollbar_conn z 1;"))
    long = "x" * 3000
    held, _ = hold(nginx, f"/?k={long}a", 1)
    assert room(nginx, f"/?k={long}a", 1) == 0
    assert room(nginx, f"/?k={long}b", 1) == 1
    end(held)


def test_several_limits_are_all_or_none(launch):
    nginx = launch(**parts("tollbar_conn one 4; tollbar_conn two 2;", more=f"location /one {{ tollbar_conn one 4; {HOLD} }}",
                           zone="tollbar_conn_zone $arg_a zone=one:1m; tollbar_conn_zone $arg_b zone=two:1m;"))
    held, refused = hold(nginx, "/?a=a&b=b", 6)
    assert len(held) == 2 and len(refused) == 4
    assert {tuple(said.rpartition("by zone ")[2].split(",")[:1]) for _, said in nginx.said("limiting")} == {('"two"',)}
    # A request that `two` has refused does not count for `one`.
    assert room(nginx, "/one?a=a", 4) == 2
    end(held)
    wait_for_room(nginx, "/one?a=a", 4)


def test_two_limits_with_one_zone_in_different_places(launch):
    nginx = launch(**parts("tollbar_conn z 5;", more=f"location /less {{ tollbar_conn z 2; {HOLD} }}"))
    held, _ = hold(nginx, "/?k=a", 3)
    assert room(nginx, "/less?k=a", 2) == 0
    assert room(nginx, "/?k=a", 5) == 2
    end(held)
    wait_for_room(nginx, "/less?k=a", 2)


def test_limits_are_inherited(launch):
    nginx = launch(http=ZONE + "tollbar_conn z 2;",
                   server=f"location / {{ {HOLD} }} location /own {{ tollbar_conn z 4; {HOLD} }} {END}")
    held, _ = hold(nginx, "/?k=a", 6)
    assert len(held) == 2
    assert room(nginx, "/own?k=a", 4) == 2
    end(held)


def test_redirects_and_subrequests_are_counted_once(launch):
    nginx = launch(**parts("tollbar_conn z 2;", more=f"""
        location /redirect {{ tollbar_conn z 2; try_files /none /?$args; }}
        location /named {{ tollbar_conn z 2; error_page 418 = @named; try_files /none =418; }}
        location @named {{ tollbar_conn z 2; rewrite ^ /end break; proxy_pass http://127.0.0.1:@PORT0@; }}
    """))
    for path in ("/redirect?k=a", "/named?k=a"):
        held, refused = hold(nginx, path, 4)
        assert len(held) == 2 and refused == [429, 429], path
        end(held)
        wait_for_room(nginx, path, 2)


def test_a_refused_request_is_not_asked_again_by_its_error_page(launch):
    nginx = launch(**parts("tollbar_conn z 1; error_page 429 = /page?$args;",
                           more=f"location /page {{ tollbar_conn z 1; {CONTENT} }}"))
    held, _ = hold(nginx, "/?k=a", 1)
    assert nginx.get("/?k=a").status == 200
    assert nginx.access_log(1)[-1] == "200 GET /?k=a [REJECTED]"
    assert nginx.get("/page?k=a").status == 429
    end(held)


def test_the_status_variable_and_the_status(launch):
    nginx = launch(**parts("tollbar_conn z 1; tollbar_conn_status 503;"))
    held, _ = hold(nginx, "/?k=a", 1)
    assert nginx.get("/?k=a").status == 503
    end(held)
    # The log has the held request, which has ended, and the proxied request to /end.
    lines = sorted(line for line in nginx.access_log(3) if "end" not in line)
    assert lines == ["200 POST /?k=a [PASSED]", "503 GET /?k=a [REJECTED]"]


def test_a_dry_run(launch):
    nginx = launch(**parts("tollbar_conn z 2; tollbar_conn_dry_run on;"))
    held, refused = hold(nginx, "/?k=a", 5)
    assert len(held) == 5 and refused == []
    assert len(nginx.said('limiting connections, dry run, by zone "z"')) == 3
    end(held)
    lines = [line for line in nginx.access_log(10) if "POST /?k" in line]
    assert sorted(lines) == ["200 POST /?k=a [PASSED]"] * 2 + ["200 POST /?k=a [REJECTED_DRY_RUN]"] * 3


@pytest.mark.parametrize("directive, level", [
    ("", "error"), ("tollbar_conn_log_level warn;", "warn"), ("tollbar_conn_log_level info;", "info"),
])
def test_the_line_in_the_log(launch, directive, level):
    nginx = launch(**parts(f"tollbar_conn z 1; {directive}"))
    held, _ = hold(nginx, "/?k=a", 2)
    [(found, line)] = nginx.said("limiting connections")
    assert found == level
    assert line.startswith('limiting connections by zone "z", client: 127.0.0.1, server: , request: "POST /?k=a HTTP/1.1"')
    end(held)


# A zone of 32 KB has some 2,500 slots: one for each key that a worker has requests of.
@pytest.mark.parametrize("on_full, status", [("", 429), ("on_full=deny", 429), ("on_full=allow", 100)])
def test_a_full_zone(launch, on_full, status):
    # The test and nginx each need a descriptor for every connection.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(8000, hard)), hard))
    nginx = launch(**parts("tollbar_conn z 1;", zone=f"tollbar_conn_zone $arg_k zone=z:32k {on_full};"))
    began = time.monotonic()
    asked = [Held(nginx.port, f"/?k=key{i}") for i in range(4000)]
    statuses = [one.answer() for one in asked]
    if status == 100:
        assert statuses == [100] * 4000
    else:
        # The full zone refuses every key that has no slot.
        assert set(statuses) == {100, 429} and 1500 < statuses.count(100) < 2600
        assert room(nginx, f"/?k=key{statuses.index(100)}", 1) == 0
    lines = nginx.said('zone "z" is full: a key without a slot is')
    assert {level for level, _ in lines} == {"error"}
    # However many they are, one line a second.
    assert len(lines) <= time.monotonic() - began + 2
    for one in asked:
        one.drop()
    wait_for_room(nginx, "/?k=new", 1)


def test_the_highest_limit(tmp_path):
    text = config.text(modules=[MODULE], ports=[8080], http=ZONE, server=f"location / {{ tollbar_conn z 65535; {CONTENT} }}")
    assert check(tmp_path / "nginx", text)[0] == 0
