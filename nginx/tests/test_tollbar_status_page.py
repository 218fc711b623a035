"""tollbar_status_page: valid JSON and Prometheus' text, and the numbers in them."""

import json
import os
import re
import signal

import pytest

from harness import places
from harness.client import Kept
from harness.config import CONTENT
from harness.rules import Ruled
from harness.server import wait_until
from harness.tollbar import MODULE, Tollbar, launcher

launch = launcher(Tollbar)

ZONES = """
    tollbar_zone $arg_k zone=first:1m rate=1r/h burst=9;
    tollbar_zone "$arg_k \\"text\\"" 'zone=sec"o\\\\nd\u00e9:2m' policy="5/s algo fixed-window";
    tollbar_zone $arg_k zone=third:344k rate=$arg_rate on_full=deny;
"""
PAGES = "location /json { tollbar_status_page json; } location /metrics { tollbar_status_page prometheus; }"


def parts(http=ZONES):
    return {"http": http, "server": f"""
        location / {{ tollbar zone=first nodelay; {CONTENT} }}
        location /third {{ tollbar zone=third; {CONTENT} }}
        {PAGES}"""}


def zones(nginx):
    return {zone["name"]: zone for zone in json.loads(nginx.get("/json").body)["zones"]}


TEXT = r'"((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf'([a-z_:][a-z0-9_:]*)\{{limit={TEXT}((?:,[a-z]+={TEXT})*)\}} (\d+)', re.ASCII | re.IGNORECASE)


def metrics(text):
    """A small parser of the text format: {(name, limit): value}, and {(name, limit, other
    labels...): value}. Every sample stands below the help and type of its name."""
    assert text.endswith("\n")
    found, helped, typed = {}, set(), {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert name not in helped and len(line.split(" ", 3)) == 4
            helped.add(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name in helped and name not in typed and kind in ("counter", "gauge", "histogram")
            assert name.endswith("_total") == (kind == "counter")
            typed[name] = kind
            current = name
        # test_decision_times.py reads the histogram.
        elif typed[current] == "histogram":
            assert line.startswith(f"{current}_")
        else:
            name, limit, others, _, number = SAMPLE.fullmatch(line).groups()
            assert name == current
            values = [re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), value) for value in [limit, *re.findall(f"={TEXT}", others)]]
            assert (name, *values) not in found
            found[name, *values] = int(number)
    return found


def test_json(launch):
    nginx = launch(**parts())
    answer = nginx.get("/json")
    assert answer.status == 200 and answer.headers["content-type"] == "application/json"
    assert int(answer.headers["content-length"]) == len(answer.body)
    found = json.loads(answer.body)
    assert set(found) == {"version", "zones"}
    assert [(z["name"], z["key"]) for z in found["zones"]] == [
        ("first", "$arg_k"), ('sec"o\\nd\u00e9', '$arg_k "text"'), ("third", "$arg_k")]
    assert [z.get("policy") for z in found["zones"]] == ["1/h burst 10", "5/s algo fixed-window", None]
    assert [z["policies"] for z in found["zones"]] == [1, 1, 0]
    for zone, size in zip(found["zones"], (1 << 20, 2 << 20, 344 << 10), strict=True):
        assert size * 0.8 < zone["bytes"] < size
        # The smallest table has 108 KiB of administration.
        assert zone["slots"] * 16 <= zone["bytes"] and zone["capacity"] <= zone["slots"]
        assert zone["keys"] == zone["inserted"] == 0


def test_the_numbers_count(launch):
    nginx = launch(**parts())
    for k in range(25):
        nginx.each(f"/?k={k}", f"/?k={k}")
    nginx.each("/third?k=1&rate=1r/h", "/third?k=1&rate=2r/h", "/third?k=1&rate=2r/h")
    found = zones(nginx)
    assert (found["first"]["keys"], found["first"]["inserted"]) == (25, 25)
    assert (found["third"]["keys"], found["third"]["policies"]) == (2, 2)
    by_prometheus = metrics(nginx.get("/metrics").body.decode())
    assert by_prometheus["tollbar_table_used_slots", "first"] == 25
    assert by_prometheus["tollbar_table_inserts_total", "first"] == 25
    assert by_prometheus["tollbar_decisions_total", "first", "0", "allowed"] == 50


def test_a_full_zone_shows(launch):
    nginx = launch(**parts())
    with Kept(nginx.port) as kept:
        seen = set()
        for start in range(0, 8000, 50):
            kept.send(*[f"/third?rate=1r/h&k={k}" for k in range(start, start + 50)])
            for _ in range(50):
                seen.add(kept.read().status)
    third = zones(nginx)["third"]
    assert seen == {200, 429}
    assert third["refused"] > 1000 and third["keys"] + third["refused"] == 8000


def test_prometheus(launch):
    nginx = launch(**parts())
    answer = nginx.get("/metrics")
    assert answer.status == 200 and answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert int(answer.headers["content-length"]) == len(answer.body)
    found = metrics(answer.body.decode())
    assert {key[1] for key in found} == {"first", 'sec"o\\nd\u00e9', "third"}
    # The names are those of the library's writer, and one of the module's own. The third zone's first
    # policy is that of no request, and has no series.
    assert {key[1:3] for key in found if key[0] == "tollbar_decisions_total"} == {(zone, "0") for zone in ("first", 'sec"o\\nd\u00e9')}
    assert ("tollbar_policy_info", "first", "0", "1/h burst 10") in found
    by_json = zones(nginx)
    for zone, numbers in by_json.items():
        assert {"bytes": found["tollbar_table_size_bytes", zone], "slots": found["tollbar_table_slots", zone],
                "keys": found["tollbar_table_used_slots", zone], "evicted": found["tollbar_table_evictions_total", zone],
                "refused": found["tollbar_table_refused_keys_total", zone]}.items() <= numbers.items()
    written = re.findall(r'"(tollbar_\w+)"', (places.ROOT / "src" / "metrics.rs").read_text())
    written.append("tollbar_policy_worst_case")
    assert {key[0].removesuffix("_total") for key in found} <= {name.removesuffix("_total") for name in written}


def test_c9_more_zones_than_a_call_had_room_for(launch):
    nginx = launch(http="".join(f"tollbar_zone $arg_k zone=z{n}:344k rate=1r/s;" for n in range(70)),
                   server="location /metrics { tollbar_status_page prometheus; }")
    text = nginx.get("/metrics").body.decode()
    assert len({key[1] for key in metrics(text)}) == 70
    heads = [line for line in text.splitlines() if line.startswith("# HELP ")]
    assert len(heads) == len(set(heads)) > 10


def test_c8_a_rate_with_variables_is_shown_without_the_burst_above_all_limits(launch):
    nginx = launch(http="tollbar_zone $arg_k zone=z:1m rate=$arg_rate;",
                   server=f"location / {{ tollbar zone=z burst=3 nodelay; {CONTENT} }} location /metrics {{ tollbar_status_page prometheus; }}")
    assert nginx.get("/?k=a&rate=60r/m").status == 200
    texts = {key[3] for key in metrics(nginx.get("/metrics").body.decode()) if key[0] == "tollbar_policy_info"}
    assert texts == {"60/min"}


RULES = """
[group.site]
limit = '3/h'
[shadow.strict]
of = 'site'
limit = '1/h'
"""


def test_rules_have_metrics_of_all_workers(tmp_path):
    nginx = Ruled(tmp_path / "nginx", modules=[MODULE], workers=2, http=f"{ZONES} tollbar_rules rules.toml;",
                  server=f"location / {{ {CONTENT} }} location /metrics {{ tollbar_rules off; tollbar_status_page prometheus; }}")
    nginx.rules(RULES)
    nginx.start()
    try:
        assert sorted(answer.status for answer in nginx.volley("/", 10)) == [200] * 3 + [429] * 7
        name = str(tmp_path / "nginx" / "rules.toml")
        for _ in range(2):
            found = metrics(nginx.get("/metrics").body.decode())
            assert found["tollbar_shadow_disagreements_total", name, "strict", "site", "refuse"] == 2
            assert found["tollbar_rule_decisions_total", name, "site", "enforced", "refused"] == 7
            # Counts go on over a reload.
            assert nginx.reload()
        assert found["tollbar_rules_generation", name] == 2 and ("tollbar_table_slots", "first") in found
    finally:
        nginx.stop()


def test_ten_refusals_raise_one_series_by_ten(launch):
    """Counts are the zone's: of all workers, and of one that was killed."""
    nginx = launch(**parts())
    look = lambda: metrics(nginx.get("/metrics").body.decode())
    while nginx.get("/?k=1").status == 200:
        pass
    for _ in range(2):
        before = look()
        assert [nginx.get("/?k=1").status for _ in range(10)] == [429] * 10
        after = look()
        assert {name: after[name] - before[name] for name in after if after[name] != before[name]} == {
            ("tollbar_decisions_total", "first", "0", "denied"): 10}
        workers = nginx.workers()
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        wait_until(lambda: len(nginx.workers()) == len(workers) and not set(workers) & set(nginx.workers()), "workers are back")
        series = ("tollbar_decisions_total", "first", "0", "denied")
        assert look()[series] == after[series]


def changes(nginx, ask):
    """What `ask` adds to the decisions of the page: {(zone, policy, verdict): count}, which JSON
    and Prometheus agree about."""
    def decisions():
        by_json = {(zone["name"], one["policy"], verdict): one[verdict]
                   for zone in zones(nginx).values() for one in zone["decisions"] for verdict in ("allowed", "denied", "never")}
        # JSON leaves out the first policy of a zone whose rate has variables, because it is that of
        # no request.
        numbered = {}
        for zone in zones(nginx).values():
            first = "policy" not in zone
            numbered.update({(zone["name"], str(number + first)): one["policy"] for number, one in enumerate(zone["decisions"])})
        by_prometheus = {(key[1], numbered[key[1:3]], key[3]): number for key, number in metrics(nginx.get("/metrics").body.decode()).items()
                         if key[0] == "tollbar_decisions_total" and key[1:3] in numbered}
        assert by_json == by_prometheus
        return by_json
    before = decisions()
    ask()
    after = decisions()
    return {key: after[key] - before.get(key, 0) for key in after if after[key] != before.get(key, 0)}


def test_each_rate_is_a_series(launch):
    nginx = launch(**parts())
    paths = ["/third?k=1&rate=1r/h", "/third?k=1&rate=2r/h", "/third?k=1&rate=2r/h", "/third?k=1&rate=2r/h"]
    assert changes(nginx, lambda: nginx.each(*paths)) == {
        ("third", "1/h", "allowed"): 1, ("third", "2/h", "allowed"): 1, ("third", "2/h", "denied"): 2}


def test_a_refusal_at_a_look_is_one_series(launch):
    """Limits before the last are looked at before any is charged. A refusal counts at the first
    limit that refuses, and once."""
    nginx = launch(http="""
        tollbar_zone $arg_a zone=a:1m rate=1r/h;
        tollbar_zone $arg_b zone=b:1m rate=2r/h;
        tollbar_zone $arg_c zone=c:1m rate=3r/h burst=9;""", server=f"""
        location / {{ tollbar zone=a; tollbar zone=b; tollbar zone=c nodelay; {CONTENT} }}
        location /quiet {{ tollbar zone=a; tollbar zone=b; tollbar zone=c nodelay; tollbar_headers both; {CONTENT} }}
        {PAGES}""")
    a, b, c = ("a", "1/h"), ("b", "2/h burst 1"), ("c", "3/h burst 10")
    for path in ("/", "/quiet"):
        def ask(n, path=path, **keys):
            return [nginx.get(path + "?" + "&".join(f"{k}={path[1:]}{v}" for k, v in keys.items())).status for _ in range(n)]
        assert changes(nginx, lambda: ask(1, a=1, b=1, c=1)) == {(*a, "allowed"): 1, (*b, "allowed"): 1, (*c, "allowed"): 1}
        # The first two refuse; then the second alone.
        assert changes(nginx, lambda: ask(10, a=1, b=1, c=1)) == {(*a, "denied"): 10}
        assert changes(nginx, lambda: ask(10, a=2, b=1, c=1)) == {(*b, "denied"): 10}
    # The last is charged without a look.
    assert changes(nginx, lambda: [nginx.get("/?c=full") for _ in range(20)]) == {(*c, "allowed"): 10, (*c, "denied"): 10}


def test_a_refusal_by_a_smaller_burst_is_one_series(launch):
    """A limit whose burst is smaller than its zone's refuses what the table would let pass."""
    nginx = launch(http="tollbar_zone $arg_k zone=z:1m rate=1r/h burst=9;", server=f"""
        location / {{ tollbar zone=z burst=2 nodelay; {CONTENT} }}
        location /cost {{ tollbar zone=z burst=2 cost=$arg_n nodelay; {CONTENT} }}
        location /dry {{ tollbar_dry_run on; tollbar zone=z burst=2 nodelay; {CONTENT} }}
        location /larger {{ tollbar zone=z nodelay; {CONTENT} }}
        {PAGES}""")
    z = ("z", "1/h burst 10")
    assert changes(nginx, lambda: [nginx.get("/?k=1") for _ in range(13)]) == {(*z, "allowed"): 3, (*z, "denied"): 10}
    assert changes(nginx, lambda: [nginx.get("/dry?k=1") for _ in range(10)]) == {(*z, "denied"): 10}
    assert changes(nginx, lambda: [nginx.get("/cost?k=2&n=4") for _ in range(10)]) == {(*z, "never"): 10}


def test_names_that_are_no_text(launch, tmp_path):
    nginx = launch(**parts("tollbar_zone $arg_k 'zone=a\x01b:1m' rate=1r/s; tollbar_zone $arg_k zone=first:1m rate=1r/s;"
                           "tollbar_zone $arg_k zone=third:1m rate=1r/s;"))
    # The name has bytes that are not UTF-8, so the test writes the file as bytes.
    path = nginx.home / "nginx.conf"
    whole = path.read_bytes().replace(b"a\x01b", b"a\xff\x01\xc3(\ttab")
    nginx.write = lambda **_: path.write_bytes(whole)
    assert nginx.reload()
    assert set(zones(nginx)) == {"a???(?tab", "first", "third"}
    assert metrics(nginx.get("/metrics").body.decode())["tollbar_table_used_slots", "a???(?tab"] == 0


def test_without_zones(launch):
    nginx = launch(http="", server=PAGES)
    assert json.loads(nginx.get("/json").body)["zones"] == []
    assert metrics(nginx.get("/metrics").body.decode()) == {}


@pytest.mark.parametrize("path", ["/json", "/metrics"])
@pytest.mark.parametrize("method, status", [
    ("GET", 200), ("HEAD", 200), ("POST", 405), ("PUT", 405), ("DELETE", 405), ("OPTIONS", 405),
])
def test_methods(launch, path, method, status):
    nginx = launch(**parts())
    answer = nginx.get(path, method=method)
    assert answer.status == status
    if method == "HEAD":
        assert answer.body == b"" and int(answer.headers["content-length"]) > 100


def test_a_status_page_can_be_limited_itself(launch):
    nginx = launch(http="tollbar_zone $arg_k zone=z:1m rate=1r/h;",
                   server="location / { tollbar zone=z; tollbar_status_page json; }")
    assert [a.status for a in nginx.each("/?k=a", "/?k=a")] == [200, 429]


def test_a_status_page_by_ssi(launch):
    nginx = launch(http=ZONES, server=f"location / {{ ssi on; default_type text/html; }} {PAGES}")
    (nginx.home / "html" / "page.html").write_text('<!--#include virtual="/json" -->')
    assert len(json.loads(nginx.get("/page.html").body)["zones"]) == 3
