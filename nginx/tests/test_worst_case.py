"""What a zone's policy admits in the worst case: a warning of the configuration, and a number of the
status page. crates/tollbar-cli/src/policy/tests.rs has the warnings of the command."""

import json

import pytest

from harness import config
from harness.config import CONTENT
from harness.server import check
from harness.tollbar import MODULE, Tollbar, launcher

launch = launcher(Tollbar)

PAGES = "location /json { tollbar_status_page json; } location /metrics { tollbar_status_page prometheus; }"


def parts(*limits):
    """Zones a, b, c, … with these limits, and pages."""
    names = "abcdefgh"[: len(limits)]
    return {
        "http": "".join(f"tollbar_zone $arg_k zone={name}:1m {limit};" for name, limit in zip(names, limits)),
        "server": "".join(f"location /{name} {{ tollbar zone={name}; {CONTENT} }}" for name in names) + PAGES,
    }


def warnings(tmp_path, limit):
    text = config.text(modules=[MODULE], ports=[8080], **parts(limit)).replace("error.log", "stderr")
    code, said = check(tmp_path / "nginx", text)
    assert code == 0, said
    return [line for line in said.splitlines() if "worst case" in line]


@pytest.mark.parametrize("policy, more, burst, strict", [
    ("120/min", "at most 239 permits in some window of one period: that is 119 permits more", True, "120/min"),
    ("2/s unit bytes", "at most 3 bytes in some window of one period: that is 1 byte more", True, "2/s"),
    ("10/s; 100/min", "at most 19 permits in some window of one period: that is 9 permits more", False, "10/s"),
    ("100/min algo fixed-window", "that is 100 permits more", False, "100/min"),
])
def test_a_policy_that_admits_more_than_it_says_is_a_warning(tmp_path, policy, more, burst, strict):
    (said,) = warnings(tmp_path, f'"policy={policy}"')
    assert said.startswith(f'[warn] zone "a" has the policy "{policy}", whose worst case is '), said
    assert f"{more} than the limit, and no burst in the text says so." in said, said
    assert ('A smaller "burst" lowers it.' in said) == burst, said
    never = f'"{strict} algo sliding-window mode strict" never admits more than {strict.split("/")[0]} '
    assert never in said, said
    assert "nginx.conf:" in said


@pytest.mark.parametrize("limit", [
    'policy="120/min burst 20"', 'policy="30/min burst 40 algo interval"', 'policy="10/s algo pacer slack 2"',
    'policy="10/min algo sliding-window mode strict"', 'policy="10/min algo sliding-log"',
    "policy=500/forever", "policy=9/month", "policy=1/s", "policy=0/s",
    # Here the burst is always told.
    "rate=120r/m burst=119", "rate=10r/s", "rate=$arg_rate",
])
def test_a_policy_that_says_it_is_none(tmp_path, limit):
    assert warnings(tmp_path, limit) == []


def test_the_pages_have_the_number(launch):
    nginx = launch(**parts("policy=120/min", "rate=10r/s burst=5", "policy=5/forever", "rate=$arg_rate"))
    page = {zone["name"]: zone.get("worst_case") for zone in json.loads(nginx.get("/json").body)["zones"]}
    assert page == {"a": 239, "b": 15, "c": None, "d": None}
    lines = [line for line in nginx.get("/metrics").body.decode().splitlines() if "worst_case" in line]
    assert lines == [
        "# HELP tollbar_policy_worst_case The most permits of a key in some window of one period.",
        "# TYPE tollbar_policy_worst_case gauge",
        'tollbar_policy_worst_case{limit="a",policy="0"} 239',
        'tollbar_policy_worst_case{limit="b",policy="0"} 15',
    ]
