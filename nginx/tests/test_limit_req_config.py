"""What the directives accept: what nginx's own module accepts, and nothing else. What the drop-in
says where it accepts nothing is in test_messages.py; it is what nginx says, and what is
expected."""

import pytest

from harness import config, places
from harness.config import CONTENT
from harness.server import check

ZONE = "limit_req_zone $arg_k zone=z:1m rate=1r/s;"

# A name, the lines of http, the lines of the location, and a part of nginx's message; None if nginx
# accepts the configuration. The part shows that nginx refuses for the reason that the case is
# about. A pair has the stock module's words and the drop-in's.
CASES = [
    # limit_req_zone
    ("the usual", ZONE, "limit_req zone=z burst=5 nodelay;", None),
    ("another order", "limit_req_zone $arg_k rate=1r/s zone=z:1m;", "limit_req zone=z;", None),
    ("no unit of the rate", "limit_req_zone $arg_k zone=z:1m rate=10;", "limit_req zone=z;", None),
    ("a long key", 'limit_req_zone "$arg_a $arg_b text" zone=z:1m rate=10r/m;', "limit_req zone=z;", None),
    ("a zone nobody uses", ZONE, "", None),
    ("two parameters", "limit_req_zone $arg_k zone=z:1m;", "", 'invalid number of arguments in "limit_req_zone"'),
    ("four parameters", "limit_req_zone $arg_k zone=z:1m rate=1r/s sync;", "", 'invalid number of arguments'),
    ("no zone", "limit_req_zone $arg_k rate=1r/s rate=2r/s;", "", '"limit_req_zone" must have "zone" parameter'),
    ("no rate", "limit_req_zone $arg_k zone=y:1m zone=z:1m;", "limit_req zone=z;", None),
    ("another parameter", "limit_req_zone $arg_k zone=z:1m speed=1r/s;", "", 'invalid parameter "speed=1r/s"'),
    ("no size", "limit_req_zone $arg_k zone=z rate=1r/s;", "", 'invalid zone size "zone=z"'),
    ("an empty size", "limit_req_zone $arg_k zone=z: rate=1r/s;", "", 'invalid zone size "zone=z:"'),
    ("a size that is none", "limit_req_zone $arg_k zone=z:big rate=1r/s;", "", 'invalid zone size "zone=z:big"'),
    ("a negative size", "limit_req_zone $arg_k zone=z:-1 rate=1r/s;", "", 'invalid zone size'),
    ("a size too small", "limit_req_zone $arg_k zone=z:16k rate=1r/s;", "", 'zone "zone=z:16k" is too small'),
    ("one byte too small", "limit_req_zone $arg_k zone=z:32767 rate=1r/s;", "", 'is too small'),
    ("the least size", "limit_req_zone $arg_k zone=z:32k rate=1r/s;", "limit_req zone=z;", None),
    ("a zone without a name", "limit_req_zone $arg_k zone=:1m rate=1r/s;", "", ('"limit_req_zone" must have "zone"', 'invalid zone name "zone=:1m"')),
    ("the rate zero", "limit_req_zone $arg_k zone=z:1m rate=0r/s;", "", 'invalid rate "rate=0r/s"'),
    ("the rate negative", "limit_req_zone $arg_k zone=z:1m rate=-1r/s;", "", 'invalid rate "rate=-1r/s"'),
    ("the rate empty", "limit_req_zone $arg_k zone=z:1m rate=;", "", 'invalid rate "rate="'),
    ("the rate only a unit", "limit_req_zone $arg_k zone=z:1m rate=r/s;", "", 'invalid rate "rate=r/s"'),
    ("a rate by the hour", "limit_req_zone $arg_k zone=z:1m rate=1r/h;", "", 'invalid rate "rate=1r/h"'),
    ("a fraction", "limit_req_zone $arg_k zone=z:1m rate=0.5r/s;", "", 'invalid rate "rate=0.5r/s"'),
    ("words for a rate", "limit_req_zone $arg_k zone=z:1m rate=fast;", "", 'invalid rate "rate=fast"'),
    ("a unit in capitals", "limit_req_zone $arg_k zone=z:1m rate=1R/S;", "", 'invalid rate "rate=1R/S"'),
    ("a rate past all numbers", "limit_req_zone $arg_k zone=z:1m rate=99999999999999999999r/s;", "", 'invalid rate'),
    ("the same zone twice", ZONE + ZONE, "", '"z" is already bound to key "$arg_k"'),
    ("the same zone with another key", ZONE + ZONE.replace("arg_k", "arg_j"), "", 'limit_req_zone "z" is already bound'),
    ("the same zone with another size", ZONE + ZONE.replace("1m", "2m"), "", 'conflicts with already declared size'),
    ("a zone of limit_conn", "limit_conn_zone $arg_k zone=z:1m;" + ZONE, "", 'is already declared for a different use'),
    ("a zone of limit_conn after", ZONE + "limit_conn_zone $arg_k zone=z:1m;", "", 'is already declared for a different'),
    ("a variable nobody knows", "limit_req_zone $nothing zone=z:1m rate=1r/s;", "limit_req zone=z;",
     'unknown "nothing" variable'),
    ("a key that is no variable's name", "limit_req_zone ${arg zone=z:1m rate=1r/s;", "", "closing bracket in"),
    ("in a server", "", "limit_req_zone $arg_k zone=z:1m rate=1r/s;", 'directive is not allowed here'),
    # limit_req
    ("no parameter", ZONE, "limit_req;", 'invalid number of arguments in "limit_req"'),
    ("too many parameters", ZONE, "limit_req zone=z burst=1 nodelay delay=1;", 'invalid number of arguments'),
    ("limit_req without zone", ZONE, "limit_req burst=5;", '"limit_req" must have "zone" parameter'),
    ("an unknown zone", ZONE, "limit_req zone=y;", ('zero size shared memory zone "y"', 'unknown zone "y" in "limit_req" directive')),
    ("a zone that is declared later", "server { location / { limit_req zone=z; } }" + ZONE, "", None),
    ("a zone of another kind", "limit_conn_zone $arg_k zone=c:1m;", "limit_req zone=c;", 'the shared memory zone "c"'),
    ("a zone with an empty name", ZONE, "limit_req zone=;", ('zero size shared memory zone ""', 'invalid zone name "zone="')),
    ("burst=0", ZONE, "limit_req zone=z burst=0;", 'invalid burst value "burst=0"'),
    ("burst=-1", ZONE, "limit_req zone=z burst=-1;", 'invalid burst value "burst=-1"'),
    ("burst=", ZONE, "limit_req zone=z burst=;", 'invalid burst value "burst="'),
    ("burst=some", ZONE, "limit_req zone=z burst=some;", 'invalid burst value "burst=some"'),
    ("delay=0", ZONE, "limit_req zone=z burst=5 delay=0;", 'invalid delay value "delay=0"'),
    ("delay=x", ZONE, "limit_req zone=z burst=5 delay=x;", 'invalid delay value "delay=x"'),
    ("delay=", ZONE, "limit_req zone=z delay=;", 'invalid delay value "delay="'),
    ("delay without burst", ZONE, "limit_req zone=z delay=3;", None),
    ("delay above burst", ZONE, "limit_req zone=z burst=3 delay=30;", None),
    ("nodelay without burst", ZONE, "limit_req zone=z nodelay;", None),
    ("nodelay=1", ZONE, "limit_req zone=z nodelay=1;", 'invalid parameter "nodelay=1"'),
    ("another word", ZONE, "limit_req zone=z gently;", 'invalid parameter "gently"'),
    ("one zone twice in a location", ZONE, "limit_req zone=z; limit_req zone=z burst=2;", ('"limit_req" directive is duplicate', '"limit_req" directive is duplicate: zone "z"')),
    ("one zone twice between levels", ZONE + "limit_req zone=z;", "limit_req zone=z burst=2;", None),
    ("a very great burst", ZONE, "limit_req zone=z burst=1000000000;", None),
    ("a burst past all numbers", ZONE, "limit_req zone=z burst=99999999999999999999;", 'invalid burst value'),
    ("in an if", ZONE, "if ($arg_k) { limit_req zone=z; }", '"limit_req" directive is not allowed here'),
    # the others
    ("status 399", ZONE, "limit_req_status 399;", ("value must be between 400 and 599", 'invalid value "399" in "limit_req_status"')),
    ("status 600", ZONE, "limit_req_status 600;", ("value must be between 400 and 599", 'invalid value "600" in "limit_req_status"')),
    ("status 400", ZONE, "limit_req_status 400;", None),
    ("status 599", ZONE, "limit_req_status 599;", None),
    ("status in words", ZONE, "limit_req_status busy;", ('invalid number', 'invalid value "busy" in "limit_req_status"')),
    ("status twice", ZONE, "limit_req_status 429; limit_req_status 430;", '"limit_req_status" directive is duplicate'),
    ("a level", ZONE, "limit_req_log_level notice;", None),
    ("a level that is none", ZONE, "limit_req_log_level debug;", 'invalid value "debug"'),
    ("a level twice", ZONE, "limit_req_log_level info; limit_req_log_level warn;", 'directive is duplicate'),
    ("a dry run", ZONE, "limit_req_dry_run on;", None),
    ("a dry run that is neither on nor off", ZONE, "limit_req_dry_run maybe;", 'invalid value "maybe" in "limit_req_dry_run"'),
    ("a dry run twice", ZONE, "limit_req_dry_run on; limit_req_dry_run off;", 'directive is duplicate'),
    ("a variable of that name", ZONE, "set $limit_req_status x;", 'the duplicate "limit_req_status" variable'),
]


def said(tmp_path, flavour, http, location):
    # The same directory for both, since its name is in the messages.
    parts = {"http": http, "server": f"location / {{ {location} {CONTENT} }}"}
    return check(tmp_path / "nginx", config.text(modules=places.modules_of(flavour), ports=[8080], **parts))


@pytest.mark.parametrize("http, location, words", [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_accepted(tmp_path, flavour, http, location, words):
    code, text = said(tmp_path, flavour, http, location)
    if words is None:
        assert (code, "test is successful" in text) == (0, True), text
        assert (code, text) == said(tmp_path, places.STOCK_FLAVOUR, http, location)
    else:
        if isinstance(words, tuple):
            words = words[flavour == places.DROPIN_FLAVOUR]
        assert (code, words in text) == (1, True), text
