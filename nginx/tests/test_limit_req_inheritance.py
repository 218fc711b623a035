"""Which limits hold where: http, server, location, nested locations."""

import pytest

from harness.client import count, statuses, volley
from harness.config import CONTENT

ZONES = """
    limit_req_zone $arg_k zone=outer:1m rate=1r/m;
    limit_req_zone $arg_k zone=inner:1m rate=1r/m;
"""
OUTER = "limit_req zone=outer burst=1 nodelay;"
INNER = "limit_req zone=inner burst=3 nodelay;"


@pytest.mark.parametrize("http, server, outside, inside, admitted", [
    (OUTER, "", "", "", 2),
    ("", OUTER, "", "", 2),
    ("", "", OUTER, "", 2),
    ("", "", "", OUTER, 2),
    # A block with a limit of its own inherits none.
    (OUTER, INNER, "", "", 4),
    (OUTER, "", INNER, "", 4),
    (OUTER, "", "", INNER, 4),
    ("", OUTER, INNER, "", 4),
    ("", "", OUTER, INNER, 4),
    (INNER, OUTER, "", "", 2),
    (INNER + OUTER, "", "", "", 2),
    ("", INNER + OUTER, "", INNER, 4),
])
def test_the_nearest_level_that_has_limits_holds(launch, http, server, outside, inside, admitted):
    nginx = launch(http=ZONES + http, server=f"""{server}
        location / {{ {outside} location /in {{ {inside} {CONTENT} }} }}""")
    assert count(nginx.volley("/in?k=a", 8)) == admitted


def test_a_neighbour_is_not_limited(launch):
    nginx = launch(http=ZONES, server=f"""
        location /one {{ {OUTER} {CONTENT} }}
        location /two {{ {CONTENT} }}""")
    assert count(nginx.volley("/one?k=a", 8)) == 2
    assert count(nginx.volley("/two?k=a", 8)) == 8


def test_a_server_beside_has_its_own_limits(launch):
    nginx = launch(port_count=2, http=ZONES + OUTER + f"""
        server {{ listen 127.0.0.1:@PORT1@; {INNER} location / {{ {CONTENT} }} }}""",
        server=f"location / {{ {CONTENT} }}")
    assert count(nginx.volley("/?k=a", 8)) == 2
    assert count(volley(nginx.ports[1], ["/?k=a"] * 8)) == 4


@pytest.mark.parametrize("http, server, location, status", [
    ("limit_req_status 429;", "", "", 429),
    ("", "limit_req_status 429;", "", 429),
    ("limit_req_status 429;", "limit_req_status 430;", "", 430),
    ("limit_req_status 429;", "limit_req_status 430;", "limit_req_status 431;", 431),
])
def test_the_status_comes_from_the_nearest_level(launch, http, server, location, status):
    """Also when the limits themselves come from another."""
    nginx = launch(http=ZONES + OUTER + http, server=f"{server} location / {{ {location} {CONTENT} }}")
    assert statuses(nginx.each(*["/?k=a"] * 3)) == [200, 200, status]


def test_the_log_level_is_inherited_beside_the_limits(launch):
    nginx = launch(http=ZONES + OUTER + "limit_req_log_level notice;", server=f"""
        location / {{ {CONTENT} }}
        location /own {{ limit_req_log_level warn; {CONTENT} }}""")
    nginx.each(*["/?k=a"] * 3)
    nginx.get("/own?k=a")
    assert [level for level, _ in nginx.said("limiting")] == ["notice", "warn"]


def test_the_dry_run_is_inherited_beside_the_limits(launch):
    nginx = launch(http=ZONES + OUTER + "limit_req_dry_run on;", server=f"""
        location / {{ {CONTENT} }}
        location /real {{ limit_req_dry_run off; {CONTENT} }}""")
    assert statuses(nginx.each(*["/?k=a"] * 4)) == [200] * 4
    assert nginx.get("/real?k=a").status == 503


def test_inside_an_if(launch):
    nginx = launch(http=ZONES, server=f"""
        location / {{ {OUTER} if ($arg_x) {{ set $seen 1; }} {CONTENT} }}""")
    assert count(nginx.volley("/?k=a&x=1", 8)) == 2
