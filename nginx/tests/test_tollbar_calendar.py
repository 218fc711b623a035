"""Calendar quotas: a zone's windows are the days and months of its time zone, on nginx's wall
clock."""

import datetime
import time
import zoneinfo

import pytest

from harness import config
from harness.client import count
from harness.config import CONTENT
from harness.edges import away_from_edges
from harness.server import check
from harness.tollbar import MODULE, Tollbar, launcher

launch = launcher(Tollbar)


def parts(policy):
    return {"http": f'tollbar_zone $arg_k zone=z:1m "policy={policy}";', "server": f"location / {{ tollbar zone=z; {CONTENT} }}"}


def day_that_begins(at):
    """A rule of a time zone whose next day begins at `at`, in whole Unix seconds."""
    ahead = -at % 86_400
    return f"ABC-{ahead // 3600}:{ahead // 60 % 60:02}:{ahead % 60:02}"


def test_a_quota_begins_anew_with_the_day_of_its_zone(launch):
    # A slow machine gets a later midnight.
    for wait in (5, 20, 60):
        midnight = int(time.time()) + wait
        nginx = launch(**parts(f"3/day zone {day_that_begins(midnight)}"))
        before = count(nginx.volley("/?k=a", 8))
        refused = nginx.get("/?k=a")
        if time.time() < midnight:
            break
        nginx.stop()
    assert before == 3
    assert refused.status == 429
    assert 0 < int(refused.headers["retry-after"]) <= wait
    time.sleep(max(0, midnight - time.time() + 0.1))
    assert count(nginx.volley("/?k=a", 8)) == 3
    assert 86_300 < int(nginx.get("/?k=a").headers["retry-after"]) <= 86_400


def test_a_month_by_the_name_of_a_zone(launch):
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    away_from_edges()
    nginx = launch(**parts("4/month zone Europe/Berlin"))
    assert count(nginx.volley("/?k=a", 9)) == 4
    assert count(nginx.volley("/?k=b", 9)) == 4
    wait = int(nginx.get("/?k=a").headers["retry-after"])
    now = datetime.datetime.now(berlin)
    first = datetime.datetime(now.year + now.month // 12, now.month % 12 + 1, 1, tzinfo=berlin)
    assert abs(first.timestamp() - now.timestamp() - wait) < 30
    # A reload keeps the count.
    nginx.reload()
    assert count(nginx.volley("/?k=a", 9)) == 0


def test_a_reload_between_a_rate_and_a_quota(launch):
    away_from_edges()
    nginx = launch(**parts("4/week"))
    assert count(nginx.volley("/?k=before", 9)) == 4
    for n, policy in enumerate(("6/month", "6/year zone Asia/Tokyo", "6/week")):
        assert nginx.reload(**parts(policy))
        assert count(nginx.volley(f"/?k=new{n}", 9)) == 6


@pytest.mark.parametrize("zone", ["Atlantis/City", "Asia/Gaza"])
def test_a_zone_without_a_rule_is_refused(tmp_path, zone):
    text = config.text(modules=[MODULE], ports=[8080], **parts(f"4/month zone {zone}"))
    code, said = check(tmp_path, text)
    assert code != 0 and "column 14" in said and "a zone whose future is one rule" in said
