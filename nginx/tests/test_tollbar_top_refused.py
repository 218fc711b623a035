"""top_refused of tollbar_zone: the keys that a zone refuses most, on the status page."""

import json
from urllib.parse import quote

import pytest

from harness.config import CONTENT
from harness.tollbar import Tollbar, launcher

launch = launcher(Tollbar)

PAGES = "location /json { tollbar_status_page json; } location /metrics { tollbar_status_page prometheus; }"


def page(nginx):
    return json.loads(nginx.get("/json").body)["zones"]


def refused(nginx, zone=0):
    return page(nginx)[zone]["top_refused"]


def keys(nginx, zone=0):
    return [one["key"] for one in refused(nginx, zone)]


def refuse(nginx, path, key, times):
    """The first request takes the only permit of the hour, and so many more are refused. Every
    count is so large that a key stays when it is halved, which the table does each 68.7 s."""
    for _ in range(times + 1):
        nginx.get(f"{path}?k={quote(key, safe='')}")


def test_the_page_names_the_most_refused(launch):
    nginx = launch(http="tollbar_zone $arg_k zone=z:1m rate=1r/h top_refused=3;",
                   server=f"location / {{ tollbar zone=z nodelay; {CONTENT} }} {PAGES}")
    assert refused(nginx) == []
    for key, times in (("carol", 5), ("alice", 44), ("dave", 3), ("bob", 16)):
        refuse(nginx, "/", key, times)
    found = refused(nginx)
    assert [one["key"] for one in found] == ["alice", "bob", "carol"]
    assert found[0]["refused"] in (44, *range(21, 44)) and found[0]["policy"] == "1/h" and found[0]["cut"] is False
    assert found[0]["refused"] > found[1]["refused"] > found[2]["refused"]
    # A label for each key would make as many series as clients invent keys.
    assert b"alice" not in nginx.get("/metrics").body


@pytest.mark.parametrize("location", [
    "tollbar zone=z nodelay; tollbar zone=other nodelay;",
    "tollbar zone=other nodelay; tollbar zone=z nodelay;",
    "tollbar zone=z nodelay dry_run;",
    "tollbar zone=z burst=1 nodelay; tollbar zone=other nodelay;",
    "tollbar zone=z nodelay count=all;",
    "tollbar zone=z nodelay status=503;",
])
def test_every_way_to_refuse_records_the_key(launch, location):
    """Also a refusal by a peek, or by a burst of the limit's own, which the table would admit."""
    nginx = launch(http="tollbar_zone $arg_k zone=z:1m rate=1r/h top_refused=9; tollbar_zone $arg_k zone=other:1m rate=1000r/s burst=1000;",
                   server=f"location / {{ {location} {CONTENT} }} location /wider {{ tollbar zone=z burst=5 nodelay; {CONTENT} }} {PAGES}")
    for _ in range(12):
        nginx.get("/?k=ann")
    assert keys(nginx) == ["ann"] and refused(nginx)[0]["refused"] >= 4
    assert page(nginx)[0]["denied"] >= 8


def test_no_zone_records_keys_unless_it_is_asked(launch):
    nginx = launch(http="tollbar_zone $arg_k zone=z:1m rate=1r/h;", server=f"location / {{ tollbar zone=z nodelay; {CONTENT} }} {PAGES}")
    refuse(nginx, "/", "ann", 20)
    assert page(nginx)[0]["denied"] == 20 and "top_refused" not in page(nginx)[0]
    assert b"ann" not in nginx.get("/json").body


def test_hostile_keys(launch):
    nginx = launch(http="tollbar_zone $http_x_key zone=z:1m rate=1r/h top_refused=224;",
                   server=f"location / {{ tollbar zone=z nodelay; {CONTENT} }} {PAGES}")
    hostile = {'a"b\\c': 'a"b\\x5cc', "<script>&": "<script>&", "d e": "d\\x20e", "caf\u00e9": "caf\\xc3\\xa9", "y" * 60: "y" * 48,
               "z" * 48: "z" * 48, "\u2028": "\\xe2\\x80\\xa8"}
    for key in hostile:
        for _ in range(12):
            nginx.get("/", headers=[f"X-Key: {key}"])
    answer = nginx.get("/json").body
    found = {one["key"]: one["cut"] for one in json.loads(answer)["zones"][0]["top_refused"]}
    assert found == {text: len(key.encode()) > 48 for key, text in hostile.items()}
    assert b"<" not in answer and answer.isascii()


@pytest.mark.parametrize("variable, text", [("$tollbar_client", "127.0.0.1"), ("$binary_remote_addr", "127.0.0.1"),
                                            ("${binary_remote_addr}", "127.0.0.1"), ("x$binary_remote_addr", "x\\x7f\\x00\\x00\\x01")])
def test_addresses(launch, variable, text):
    nginx = launch(http=f"tollbar_zone {variable} zone=z:1m rate=1r/h top_refused=5;",
                   server=f"location / {{ tollbar zone=z nodelay; {CONTENT} }} {PAGES}")
    refuse(nginx, "/", "", 12)
    assert keys(nginx) == [text]


def test_addresses_of_ipv6(launch):
    nginx = launch(http="set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP;"
                   "tollbar_zone $tollbar_client zone=c:1m rate=1r/h top_refused=5; tollbar_zone $binary_remote_addr zone=b:1m rate=1r/h top_refused=5;",
                   server=f"location /c {{ tollbar zone=c nodelay; {CONTENT} }} location /b {{ tollbar zone=b nodelay; {CONTENT} }} {PAGES}")
    for _ in range(12):
        nginx.get("/c", headers=["X-Real-IP: 2001:db8::5"])
        nginx.get("/b", headers=["X-Real-IP: 2001:db8::5"])
    assert (keys(nginx, 0), keys(nginx, 1)) == (["2001:db8::/64"], ["2001:db8::5"])


def test_a_rate_with_variables_and_many_keys(launch):
    nginx = launch(http="tollbar_zone $arg_k zone=z:2m rate=$arg_rate top_refused=20;",
                   server=f"location / {{ tollbar zone=z nodelay; {CONTENT} }} {PAGES}")
    for _ in range(30):
        nginx.get("/?k=ann&rate=2r/h")
    for k in range(60):
        nginx.each(f"/?k={k}&rate=1r/h", f"/?k={k}&rate=1r/h", f"/?k={k}&rate=1r/h", f"/?k={k}&rate=1r/h", f"/?k={k}&rate=1r/h")
    found = refused(nginx)
    assert len(found) == 20 and (found[0]["key"], found[0]["policy"]) == ("ann", "2/h")
    assert {one["policy"] for one in found[1:]} == {"1/h"}


def test_a_reload_begins_and_ends_it(launch):
    parts = {"server": f"location / {{ tollbar zone=z nodelay; {CONTENT} }} {PAGES}"}
    zone = "tollbar_zone $arg_k zone=z:1m rate=1r/h{};"
    nginx = launch(http=zone.format(""), **parts)
    refuse(nginx, "/", "before", 20)
    nginx.reload(http=zone.format(" top_refused=5"), **parts)
    assert keys(nginx) == []
    refuse(nginx, "/", "ann", 20)
    assert keys(nginx) == ["ann"]
    nginx.reload(http=zone.format(""), **parts)
    assert "top_refused" not in page(nginx)[0]
    refuse(nginx, "/", "bob", 40)
    nginx.reload(http=zone.format(" top_refused=5"), **parts)
    assert "bob" not in keys(nginx)
