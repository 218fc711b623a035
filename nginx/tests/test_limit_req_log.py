"""The lines in the error log, word for word, and their levels."""

import re

import pytest

from harness.config import CONTENT
from harness.edges import again_if_late

TAIL = r', client: 127\.0\.0\.1, server: , request: "GET /\?k=a HTTP/1\.1", host: "tollbar\.test"'


def parts(limit, rate="1r/m", zone="z"):
    return {
        "http": f"limit_req_zone $arg_k zone={zone}:1m rate={rate};",
        "server": f"location / {{ {limit} {CONTENT} }}",
    }


def excess_of(message):
    return float(re.search(r"excess: (\d+\.\d\d\d)", message)[1])


def test_the_line_of_a_refusal(launch):
    nginx = launch(**parts("limit_req zone=some_zone;", zone="some_zone"))
    nginx.each("/?k=a", "/?k=a")
    [(level, message)] = nginx.said("limiting")
    assert level == "error"
    assert re.fullmatch(r'limiting requests, excess: \d+\.\d\d\d by zone "some_zone"' + TAIL, message)
    # At one a minute a thousandth of a permit comes back in 60 ms. The two requests are less than
    # six seconds apart.
    assert 0.9 <= excess_of(message) <= 1.0


@again_if_late(3)
def test_the_excess_is_over_the_rate_and_not_over_the_burst(launch):
    nginx = launch(**parts("limit_req zone=z burst=3 nodelay;"))
    nginx.each(*["/?k=a"] * 7)
    found = [excess_of(message) for _, message in nginx.said("limiting")]
    # A refused request does not raise the excess, so it falls from 4.
    assert len(found) == 3 and found == sorted(found, reverse=True)
    assert all(3.95 <= x <= 4.0 for x in found)


@again_if_late(0.1)
def test_the_excess_of_those_that_wait(launch):
    # 600 a minute: each of the four waits a tenth of a second longer than the one before.
    nginx = launch(**parts("limit_req zone=z burst=4;", rate="10r/s"))
    nginx.volley("/?k=a", 5)
    found = [excess_of(message) for _, message in nginx.said("delaying")]
    assert found and all(x <= i + 1 for i, x in enumerate(found))
    assert found[0] > 0


@pytest.mark.parametrize("directive, refused, delayed", [
    ("", "error", "warn"),
    ("limit_req_log_level error;", "error", "warn"),
    ("limit_req_log_level warn;", "warn", "notice"),
    ("limit_req_log_level notice;", "notice", "info"),
    ("limit_req_log_level info;", "info", "info"),
])
@again_if_late(0.5)
def test_levels(launch, directive, refused, delayed):
    nginx = launch(**parts(f"{directive} limit_req zone=z burst=1;", rate="2r/s"))
    nginx.volley("/?k=a", 6)
    assert {level for level, _ in nginx.said("limiting requests,")} == {refused}
    assert {level for level, _ in nginx.said("delaying request,")} == {delayed}


@pytest.mark.parametrize("level, seen", [("crit", 0), ("error", 0), ("warn", 1), ("notice", 1)])
def test_what_is_below_the_level_of_the_log_is_not_written(launch, level, seen):
    nginx = launch(**parts("limit_req_log_level warn; limit_req zone=z;"), log_level=level)
    nginx.each("/?k=a", "/?k=a")
    assert len(nginx.said("limiting")) == seen


def test_what_passes_is_not_mentioned(launch):
    nginx = launch(**parts("limit_req zone=z burst=5 nodelay;"))
    nginx.each(*["/?k=a"] * 6)
    assert nginx.said("excess") == []


@pytest.mark.parametrize("mode, line", [
    ("", r'limiting requests, dry run, excess: \d\.\d\d\d by zone "z"'),
    ("burst=5", r'delaying request, dry run, excess: \d\.\d\d\d, by zone "z"'),
])
def test_the_lines_of_a_dry_run(launch, mode, line):
    nginx = launch(**parts(f"limit_req_dry_run on; limit_req zone=z {mode};"))
    nginx.each("/?k=a", "/?k=a")
    [(_, message)] = nginx.said("dry run")
    assert re.fullmatch(line + TAIL, message)
