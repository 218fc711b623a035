"""What the directives accept, and what nginx says where they do not."""

import pytest

from harness import config
from harness.config import CONTENT
from harness.server import check, complaints
from harness.tollbar import MODULE

ZONE = "tollbar_zone $arg_k zone=z:1m rate=1r/s;"

# A name, the lines of http, the lines of the location, and a part of nginx's message; None if nginx
# accepts the configuration.
CASES = [
    # tollbar_zone
    ("the usual", ZONE, "tollbar zone=z burst=5 nodelay;", None),
    ("another order", "tollbar_zone $arg_k rate=1r/s zone=z:1m;", "tollbar zone=z;", None),
    ("a zone nobody uses", ZONE, "", None),
    ("all parameters", "tollbar_zone $arg_k zone=z:1m rate=1r/s burst=3 on_full=deny hot_keys=64;", "tollbar zone=z;", None),
    ("the least size", "tollbar_zone $arg_k zone=z:344k rate=1r/s;", "tollbar zone=z;", None),
    ("no limit", "tollbar_zone $arg_k zone=z:1m;", "", '"tollbar_zone" must have "rate" or "policy" parameter'),
    ("no limit, but a burst", "tollbar_zone $arg_k zone=z:1m burst=1;", "", '"tollbar_zone" must have "rate" or "policy"'),
    ("two rates", "tollbar_zone $arg_k zone=z:1m rate=1r/s rate=2r/s;", "", 'one "rate" or "policy", and "rate=2r/s" is the second'),
    ("rate and policy", "tollbar_zone $arg_k zone=z:1m rate=1r/s policy=1/s;", "", 'one "rate" or "policy", and "policy=1/s" is the second'),
    ("only a key", "tollbar_zone $arg_k;", "", 'invalid number of arguments'),
    ("no zone", "tollbar_zone $arg_k rate=1r/s;", "", '"tollbar_zone" must have "zone" parameter'),
    ("no zone but a burst", "tollbar_zone $arg_k rate=1r/s burst=2;", "", '"tollbar_zone" must have "zone" parameter'),
    ("another parameter", "tollbar_zone $arg_k zone=z:1m speed=1r/s;", "", 'invalid parameter "speed=1r/s"'),
    ("no size", "tollbar_zone $arg_k zone=z rate=1r/s;", "", 'invalid zone size "zone=z"'),
    ("a size that is none", "tollbar_zone $arg_k zone=z:big rate=1r/s;", "", 'invalid zone size "zone=z:big"'),
    ("a size too small", "tollbar_zone $arg_k zone=z:16k rate=1r/s;", "", 'zone "zone=z:16k" is too small'),
    ("a size too small for a table", "tollbar_zone $arg_k zone=z:343k rate=1r/s;", "",
     'zone "z" is too small, it must have at least 344k'),
    ("a size too small for logs", "tollbar_zone $arg_k zone=z:1m 'policy=1000/s algo sliding-log';", "",
     'zone "z" is too small, it must have at least 4'),
    ("the rate zero", "tollbar_zone $arg_k zone=z:1m rate=0r/s;", "", 'invalid rate "rate=0r/s"'),
    ("the rate negative", "tollbar_zone $arg_k zone=z:1m rate=-1r/s;", "", 'invalid rate "rate=-1r/s"'),
    ("the rate empty", "tollbar_zone $arg_k zone=z:1m rate=;", "", 'invalid rate "rate="'),
    ("the rate only a unit", "tollbar_zone $arg_k zone=z:1m rate=r/s;", "", 'invalid rate "rate=r/s"'),
    ("a point and nothing", "tollbar_zone $arg_k zone=z:1m rate=1.r/s;", "", 'invalid rate "rate=1.r/s"'),
    ("nothing and a point", "tollbar_zone $arg_k zone=z:1m rate=.5r/s;", "", 'invalid rate "rate=.5r/s"'),
    ("an unknown unit", "tollbar_zone $arg_k zone=z:1m rate=1r/w;", "", 'invalid rate "rate=1r/w"'),
    ("no unit after the stroke", "tollbar_zone $arg_k zone=z:1m rate=1r/;", "", 'invalid rate "rate=1r/"'),
    ("a period of zero", "tollbar_zone $arg_k zone=z:1m rate=1r/0s;", "", 'invalid rate "rate=1r/0s"'),
    ("a period past all times", "tollbar_zone $arg_k zone=z:1m rate=1r/999999999d;", "", 'invalid rate'),
    ("words for a rate", "tollbar_zone $arg_k zone=z:1m rate=fast;", "", 'invalid rate "rate=fast"'),
    ("a rate past all numbers", "tollbar_zone $arg_k zone=z:1m rate=99999999999999999999r/s;", "", 'invalid rate'),
    ("a rate past all counting", "tollbar_zone $arg_k zone=z:1m rate=900000000000r/s;", "", 'invalid rate'),
    ("the highest rate", "tollbar_zone $arg_k zone=z:1m rate=1000000000r/s;", "tollbar zone=z;", None),
    ("a rate without a unit", "tollbar_zone $arg_k zone=z:1m rate=10;", "tollbar zone=z;", None),
    ("the same zone twice", ZONE + ZONE, "", 'tollbar_zone "z" is already bound to key "$arg_k"'),
    ("the same zone with another size", ZONE + ZONE.replace("1m", "2m"), "", 'conflicts with already declared size'),
    ("a zone of limit_conn", "limit_conn_zone $arg_k zone=z:1m;" + ZONE, "", 'is already declared for a different use'),
    ("a variable nobody knows", "tollbar_zone $nothing zone=z:1m rate=1r/s;", "", 'unknown "nothing" variable'),
    ("a rate nobody knows", "tollbar_zone $arg_k zone=z:1m rate=$nothing;", "", 'unknown "nothing" variable'),
    ("burst=0 of a zone", "tollbar_zone $arg_k zone=z:1m rate=1r/s burst=0;", "", 'invalid burst value "burst=0"'),
    ("burst and policy", "tollbar_zone $arg_k zone=z:1m policy=1/s burst=1;", "",
     '"burst" must be in the policy of zone "z"'),
    ("a ban", "tollbar_zone $arg_k zone=z:1m rate=5r/m burst=4 ban=1h after=3;", "tollbar zone=z nodelay count=failed;", None),
    ("a ban in a policy", 'tollbar_zone $arg_k zone=z:1m policy="5/min ban 1h";', "tollbar zone=z count=403,5xx when=$arg_w;", None),
    ("a ban that is no time", "tollbar_zone $arg_k zone=z:1m rate=5r/m ban=long;", "", 'invalid ban value "ban=long", it must be a time'),
    ("a ban of no time", "tollbar_zone $arg_k zone=z:1m rate=5r/m ban=0;", "", 'invalid ban value "ban=0"'),
    ("a ban past all times", "tollbar_zone $arg_k zone=z:1m rate=1000000000r/s ban=100000d;", "", 'zone "z" cannot have this policy: a ban needs'),
    ("after without ban", "tollbar_zone $arg_k zone=z:1m rate=5r/m after=3;", "", '"after" must have a "ban" beside it'),
    ("after=0", "tollbar_zone $arg_k zone=z:1m rate=5r/m ban=1h after=0;", "", 'invalid after value "after=0"'),
    ("after=1001", "tollbar_zone $arg_k zone=z:1m rate=5r/m ban=1h after=1001;", "", 'from 1 to 1000'),
    ("ban beside a policy", "tollbar_zone $arg_k zone=z:1m policy=5/min ban=1h;", "", '"ban" must be in the policy of zone "z"'),
    ("ban and a rate of variables", "tollbar_zone $arg_k zone=z:1m rate=$arg_r ban=1h;", "", 'must hold no variables, in zone "z"'),
    ("ban and sync", "tollbar_zone $arg_k zone=z:10m rate=10r/s burst=99 sync=redis://127.0.0.1 nodes=2 ban=1h;", "",
     '"ban" must be for a zone without "sync"'),
    ("ban and a burst of a limit", "tollbar_zone $arg_k zone=z:1m rate=5r/m ban=1h;", "tollbar zone=z burst=3;",
     'with "ban", "burst" must be in the "tollbar_zone" of zone "z"'),
    ("count of nothing", ZONE, "tollbar zone=z count=;", 'invalid count value "count=", it must be failed, all, or status codes'),
    ("count of a word", ZONE, "tollbar zone=z count=some;", 'invalid count value "count=some"'),
    ("count of no status", ZONE, "tollbar zone=z count=401,99;", 'invalid count value "count=401,99"'),
    ("count of a trailing comma", ZONE, "tollbar zone=z count=401,;", 'invalid count value "count=401,"'),
    ("count of a class that is none", ZONE, "tollbar zone=z count=6xx;", 'invalid count value "count=6xx"'),
    ("when nobody knows", ZONE, "tollbar zone=z when=$nothing;", 'unknown "nothing" variable'),
    ("count and delay", ZONE, "tollbar zone=z burst=5 delay=2 count=failed;", 'so it must have no "delay", unlike the limit of zone "z"'),
    ("count and sync", "tollbar_zone $arg_k zone=z:10m rate=10r/s burst=99 sync=redis://127.0.0.1 nodes=2;",
     "tollbar zone=z nodelay count=failed;", 'must be for a zone without "sync", not for zone "z"'),
    ("on_full unknown", "tollbar_zone $arg_k zone=z:1m rate=1r/s on_full=drop;", "",
     'invalid value "on_full=drop", it must be evict-nearest, inherit, allow or deny'),
    ("hot_keys of no number", "tollbar_zone $arg_k zone=z:1m rate=1r/s hot_keys=many;", "",
     'invalid hot_keys value "hot_keys=many", it must be a number of keys from 0 to 16384'),
    ("too many hot_keys", "tollbar_zone $arg_k zone=z:1m rate=1r/s hot_keys=16385;", "", 'invalid hot_keys value "hot_keys=16385"'),
    ("in a server", "", ZONE, 'directive is not allowed here'),
    # policies
    ("a policy in one word", "tollbar_zone $arg_k zone=z:1m policy=100/min;", "tollbar zone=z;", None),
    ("a policy in quotes", 'tollbar_zone $arg_k zone=z:1m "policy=10/s burst 20";', "tollbar zone=z;", None),
    ("quotes around the value", 'tollbar_zone $arg_k zone=z:1m policy="10/s burst 20" on_full=deny;', "tollbar zone=z;", None),
    ("a word in quotes", 'tollbar_zone $arg_k zone=z:1m policy="10/s";', "tollbar zone=z;", None),
    ("no closing quote", 'tollbar_zone $arg_k zone=z:1m policy="10/s burst 20;', "", 'no closing quote in "policy="10/s"'),
    ("nothing but a quote", 'tollbar_zone $arg_k zone=z:1m policy=";', "", 'no closing quote in "policy=""'),
    ("a policy of nothing", 'tollbar_zone $arg_k zone=z:1m policy="";', "", 'invalid policy "", column 1: expected'),
    ("a bad word", 'tollbar_zone $arg_k zone=z:1m policy="5/s burrst 3";', "",
     'invalid policy "5/s burrst 3", column 5: expected `burst`'),
    ("a bad number", 'tollbar_zone $arg_k zone=z:1m policy="5/s burst 0";', "", 'invalid policy "5/s burst 0", column '),
    ("a window whose start is in no word", 'tollbar_zone $arg_k zone=z:1m policy="5/s algo sliding-window anchor first";', "",
     'zone "z" cannot have this policy: '),
    *[(f"the algorithm {algorithm}", f'tollbar_zone $arg_k zone=z:4m policy="5/s algo {algorithm}";', "tollbar zone=z nodelay;",
       None) for algorithm in ("gcra", "interval", "fixed-window", "weighted-window", "sliding-window", "sliding-log", "pacer",
                               "warm-up warm 1s cold 3")],
    # tollbar
    ("no parameter", ZONE, "tollbar;", 'invalid number of arguments in "tollbar"'),
    ("tollbar without zone", ZONE, "tollbar burst=5;", '"tollbar" must have "zone" parameter'),
    ("an unknown zone", ZONE, "tollbar zone=y;", 'unknown zone "y" in "tollbar" directive'),
    ("a zone that is declared later", "server { location / { tollbar zone=z; } }" + ZONE, "", None),
    ("a zone of another kind", "limit_conn_zone $arg_k zone=c:1m;", "tollbar zone=c;", 'the shared memory zone "c"'),
    ("a zone with an empty name", ZONE, "tollbar zone=;", 'invalid zone name "zone="'),
    ("burst=0", ZONE, "tollbar zone=z burst=0;", 'invalid burst value "burst=0"'),
    ("burst=-1", ZONE, "tollbar zone=z burst=-1;", 'invalid burst value "burst=-1"'),
    ("burst=some", ZONE, "tollbar zone=z burst=some;", 'invalid burst value "burst=some"'),
    ("the largest burst", ZONE, "tollbar zone=z burst=9223372036854775807;", 'invalid burst 9223372036854775807 in "tollbar" directive'),
    ("cost=0", ZONE, "tollbar zone=z cost=0;", 'invalid cost value "cost=0"'),
    ("cost=x", ZONE, "tollbar zone=z cost=x;", 'invalid cost value "cost=x"'),
    ("a cost that can never be paid", ZONE, "tollbar zone=z burst=3 cost=5;",
     'invalid cost 5 in "tollbar" directive, it must be at most 4'),
    ("a cost that can just be paid", ZONE, "tollbar zone=z burst=4 cost=5;", None),
    ("delay=0", ZONE, "tollbar zone=z burst=5 delay=0;", 'invalid delay value "delay=0"'),
    ("delay=x", ZONE, "tollbar zone=z burst=5 delay=x;", 'invalid delay value "delay=x"'),
    ("nodelay=1", ZONE, "tollbar zone=z nodelay=1;", 'invalid parameter "nodelay=1"'),
    ("status=200", ZONE, "tollbar zone=z status=200;", 'invalid value "status=200", it must be a number from 400 to 599'),
    ("status=x", ZONE, "tollbar zone=z status=x;", 'invalid value "status=x"'),
    ("status=503", ZONE, "tollbar zone=z status=503 dry_run;", None),
    ("another word", ZONE, "tollbar zone=z gently;", 'invalid parameter "gently"'),
    ("twice", ZONE, "tollbar zone=z; tollbar zone=z burst=1;", '"tollbar" directive is duplicate: zone "z"'),
    ("burst for a policy", "tollbar_zone $arg_k zone=z:1m policy=1/s;", "tollbar zone=z burst=1;",
     '"burst" must be in the policy of zone "z" in '),
    ("delay for a policy", "tollbar_zone $arg_k zone=z:1m policy=1/s;", "tollbar zone=z delay=1;",
     '"delay" must be for a "rate", not for the "policy" of zone "z" in '),
    ("variables everywhere", "tollbar_zone $arg_k zone=z:1m rate=$arg_r burst=$arg_b;",
     "tollbar zone=z burst=$arg_c cost=${arg_d}0;", None),
    # The others
    ("a status code", ZONE, "tollbar zone=z; tollbar_status 503;", None),
    ("a status code of success", ZONE, "tollbar_status 200;", 'invalid value "200" in "tollbar_status" directive'),
    ("a log level", ZONE, "tollbar_log_level notice;", None),
    ("an unknown log level", ZONE, "tollbar_log_level debug;", 'invalid value "debug"'),
    ("a dry run", ZONE, "tollbar_dry_run on;", None),
    ("a dry run of maybe", ZONE, "tollbar_dry_run maybe;", 'invalid value "maybe" in "tollbar_dry_run" directive'),
    ("unknown headers", ZONE, "tollbar_headers new;", 'invalid value "new"'),
    ("headers twice", ZONE, "tollbar_headers off; tollbar_headers both;", '"tollbar_headers" directive is duplicate'),
    ("an unknown status page", ZONE, "tollbar_status_page html;", 'invalid value "html" in "tollbar_status_page" directive, it must be json or prometheus'),
    # return
    ("return", ZONE, "tollbar zone=z; return 200;", '[warn] "tollbar" has no effect beside "return", which comes first, in '),
    ("return before", ZONE, "return 200; tollbar zone=z;", '"tollbar" has no effect beside "return"'),
    ("return after set", ZONE, "set $x $arg_a; set $y 1; set $x 2; tollbar zone=z; return 200;", None),
    ("return after plain sets", ZONE, "set $x 1; set $y 2; tollbar zone=z; return 200;", '"tollbar" has no effect beside'),
    ("return at times", ZONE, "if ($arg_a) { return 200; } tollbar zone=z;", None),
    ("return in a place inside", ZONE, "tollbar zone=z; location /inside { return 200; }", None),
    ("return after break", ZONE, "break; tollbar zone=z; return 200;", None),
    ("return of a server", ZONE + "server { return 200; tollbar zone=z; }", "", '"tollbar" has no effect beside "return"'),
]



def said(home, http, location):
    content = "" if "return" in location or "status_page" in location else CONTENT
    return check(home, config.text(modules=[MODULE], ports=[8080], http=http,
                                   server=f"location / {{ {location} {content} }}"))


@pytest.mark.parametrize("http, location, expected", [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_configuration(tmp_path, http, location, expected):
    code, words = said(tmp_path, http, location)
    found = complaints(words)
    if expected is None:
        assert (code, found) == (0, []), words
    else:
        assert expected in words
        assert code == (0 if "[warn]" in words else 1), words
        assert len(found) == 1, words


def test_a_warning_names_the_file_and_the_line(tmp_path):
    _, words = said(tmp_path, ZONE, "\n\n\ntollbar zone=z;\nreturn 200;")
    lines = (tmp_path / "nginx.conf").read_text().splitlines()
    assert f"nginx.conf:{lines.index('tollbar zone=z;') + 1}" in words


def test_an_unknown_zone_is_named_with_its_line(tmp_path):
    _, words = said(tmp_path, ZONE, "\n\n\ntollbar zone=y;\n")
    lines = (tmp_path / "nginx.conf").read_text().splitlines()
    assert f"nginx.conf:{lines.index('tollbar zone=y;') + 1}" in words
