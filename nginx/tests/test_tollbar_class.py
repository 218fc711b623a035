"""`class` of a limit: a request of a class leaves the class's reserve to the other classes."""

import pytest

from harness import config
from harness.client import count
from harness.config import CONTENT
from harness.server import check
from harness.tollbar import MODULE, Tollbar, launcher

launch = launcher(Tollbar)

POLICY = '"policy=50/d reserve standard 10 urgent 0"'


def parts(limit="class=$arg_class", zone=POLICY, more=""):
    return {"http": f"tollbar_zone $arg_k zone=z:1m {zone}; tollbar_zone $arg_k zone=y:1m rate=1000r/s;",
            "server": f"location / {{ tollbar zone=z {limit}; {more} {CONTENT} }}"}


@pytest.mark.parametrize("standard, urgent", [("standard", "urgent"), ("1", "2")])
@pytest.mark.parametrize("more", ["", "tollbar zone=y burst=200 nodelay;", "tollbar_headers draft;"])
def test_standard_requests_stop_exactly_at_the_reserve(launch, standard, urgent, more):
    nginx = launch(**parts(more=more))
    assert count(nginx.volley(f"/?k=a&class={standard}", 60)) == 40
    assert count(nginx.volley(f"/?k=a&class={urgent}", 15)) == 10
    assert count(nginx.volley("/?k=b", 60)) == 50, "a request without a class leaves no reserve"


def test_a_class_without_variables(launch):
    nginx = launch(**parts("class=standard", more="", zone=POLICY))
    assert count(nginx.volley("/?k=a", 60)) == 40


def test_a_refusal_waits_for_the_reserve_too(launch):
    nginx = launch(**parts(zone='"policy=50/50h reserve standard 10"'))
    assert count(nginx.volley("/?k=a", 50)) == 50
    assert 10 * 3600 < int(nginx.get("/?k=a&class=standard").headers["retry-after"]) <= 11 * 3600
    assert 0 < int(nginx.get("/?k=a").headers["retry-after"]) <= 3600


def test_a_refusal_for_the_reserve_counts_for_a_ban(launch):
    nginx = launch(**parts(zone='"policy=50/d ban 1h after 3 reserve standard 10"'))
    assert count(nginx.volley("/?k=a&class=standard", 43)) == 40
    assert nginx.get("/?k=a").status == 429, "the third refusal bans the key"


def test_an_unknown_class_is_refused_with_a_line_in_the_log(launch):
    nginx = launch(**parts())
    assert nginx.get("/?k=a&class=other").status == 429
    assert [level for level, _ in nginx.said('unknown class "other" for zone "z"')] == ["error"]
    assert count(nginx.volley("/?k=a&class=urgent", 60)) == 50, "it has charged nothing"


@pytest.mark.parametrize("zone, limit, message", [
    ("rate=1r/s", "class=low", '"class" must be for a zone whose policy has classes, such as policy="100/s reserve low 20 high 0", not for zone "z"'),
    ("policy=10/s", "class=$arg_c", '"class" must be for a zone whose policy has classes'),
    (POLICY, "class=low", 'unknown class "low" in "tollbar" directive, the policy of zone "z" must have it'),
    (POLICY, "class=", 'unknown class "" in "tollbar" directive, the policy of zone "z" must have it'),
    (POLICY, "class=standard cost=41", 'invalid cost 41 in "tollbar" directive'),
    ('"policy=10/s reserve low 10"', "", "column 18: a policy without borrow and credit has up to four classes"),
])
def test_a_wrong_class_is_refused_when_nginx_reads_the_configuration(tmp_path, zone, limit, message):
    text = config.text(modules=[MODULE], ports=[8080], http=f"tollbar_zone $arg_k zone=z:1m {zone};",
                       server=f"location / {{ tollbar zone=z {limit}; {CONTENT} }}")
    code, said = check(tmp_path, text)
    assert code != 0 and message in said
