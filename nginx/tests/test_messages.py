"""Every message of the modules about a configuration, whole: where the fault is, what was found,
and what is expected.

In the configurations, {{…}} is the directive that the message is to name, and [[…]] one before it
that it names, too.
"""

import re

import pytest

from harness import config, places, rules, streams
from harness.config import CONTENT
from harness.server import check

NUMBER = "it must be a whole number from 1 to 9223372036854775807"
AMOUNT = f"{NUMBER}, or hold variables"
LEVELS = "it must be info, notice, warn or error"
ON_FULL = "it must be evict-nearest, inherit, allow or deny"
STATUS = "it must be a number from 400 to 599"
FLAG = 'it must be "on" or "off"'
FORM = "it must be zone=NAME:SIZE, such as zone=one:10m"
BYTES = "it must be a number of bytes, such as 10485760, 10240k or 10m"
RATE = "it must be like 10r/s, 0.5r/h or 30r/10s, with a unit out of ms, s, m, min, h and d"
WHOLE_RATE = "it must be a whole number from 1 on, a second or a minute, such as rate=10r/s or rate=30r/m"
LONG = "it must have a shorter period, or fewer digits"
ZERO = "it must be above zero, and so must its period"
HUGE = "99999999999999999999"
STORE = "sync=redis://127.0.0.1:6379 nodes=2"
SHARED = f"tollbar_zone $arg_k zone=z:1m rate=100r/s burst=20 {STORE};"


def zones_of(directive, more=""):
    """What is wrong with the parameters that all directives for zones have: (name, http, location,
    message)."""
    def row(name, parameters, message):
        return name, f"{{{{{directive} $arg_k {parameters}{more};}}}}", "", message

    return [
        row("no size", "zone=z", f'invalid zone size "zone=z", {FORM}'),
        row("an empty size", "zone=z:", f'invalid zone size "zone=z:", {BYTES}'),
        row("a size of words", "zone=z:big", f'invalid zone size "zone=z:big", {BYTES}'),
        row("no name", "zone=:1m", f'invalid zone name "zone=:1m", {FORM}'),
        row("a size too small", "zone=z:16k", 'zone "zone=z:16k" is too small, it must have at least 32k'),
        (f"{directive}: twice", f"[[{directive} $arg_k zone=z:1m{more};]] {{{{{directive} $arg_j zone=z:1m{more};}}}}", "",
         f'{directive} "z" is already bound to key "$arg_k" in {{first}}, and again'),
    ]


def limits_of(directive, zone, parameters):
    """The same of limits, after a zone."""
    def row(name, wrong, message):
        return name, zone, f"{{{{{directive} {wrong};}}}}", message

    return [
        row("no zone", "burst=5", f'"{directive}" must have "zone" parameter, such as zone=one'),
        row("no name", "zone=", 'invalid zone name "zone=", it must be the NAME of a zone'),
        row("an unknown zone", "zone=y", f'unknown zone "y" in "{directive}" directive, a "{directive}_zone" must declare it'),
        *[row(f"burst={n}", f"zone=z burst={n}", f'invalid burst value "burst={n}", {AMOUNT if "cost" in parameters else NUMBER}')
          for n in ("0", "-1", "", "some", HUGE)],
        *[row(f"delay={n}", f"zone=z burst=5 delay={n}", f'invalid delay value "delay={n}", {NUMBER}') for n in ("0", "x", "")],
        row("a burst too large", "zone=z burst=9223372036854775807",
            f'invalid burst 9223372036854775807 in "{directive}" directive, with the rate of zone "z" it must be at most {{burst}}'),
        row("another word", "zone=z gently", f'invalid parameter "gently", it must be {parameters}'),
        ("one zone twice", zone, f"[[{directive} zone=z;]] {{{{{directive} zone=z burst=2;}}}}",
         f'"{directive}" directive is duplicate: zone "z" is limited in {{first}}, and again'),
    ]


def others_of(prefix, status=True):
    """The same of the directives beside those."""
    def row(name, directive, message):
        return name, "", f"{{{{{prefix}_{directive};}}}}", message

    return [
        *[row(f"status {code}", f"status {code}", f'invalid value "{code}" in "{prefix}_status" directive, {STATUS}')
          for code in ("399", "600", "busy") if status],
        row("a level", "log_level debug", f'invalid value "debug" in "{prefix}_log_level" directive, {LEVELS}'),
        row("a dry run", "dry_run maybe", f'invalid value "maybe" in "{prefix}_dry_run" directive, {FLAG}'),
    ]


REQ = "limit_req_zone $arg_k zone=z:1m rate=1r/s;"
LIMIT_REQ = [
    *zones_of("limit_req_zone", " rate=1r/s"),
    ("no zone", "{{limit_req_zone $arg_k rate=1r/s rate=2r/s;}}", "", '"limit_req_zone" must have "zone" parameter, such as zone=one:10m'),
    ("another parameter", "{{limit_req_zone $arg_k zone=z:1m speed=1r/s;}}", "",
     'invalid parameter "speed=1r/s", it must be zone=NAME:SIZE or rate=RATE'),
    *[(f"rate={rate}", f"{{{{limit_req_zone $arg_k zone=z:1m rate={rate};}}}}", "", f'invalid rate "rate={rate}", {WHOLE_RATE}')
      for rate in ("0r/s", "-1r/s", "", "r/s", "5r/y", "0.5r/s", "fast", HUGE + "r/s")],
    ("a rate too high", "{{limit_req_zone $arg_k zone=z:1m rate=900000000000r/s;}}", "",
     'invalid rate "rate=900000000000r/s", it must be at most {rate}r/s'),
    *limits_of("limit_req", REQ, "zone=NAME, burst=NUMBER, delay=NUMBER or nodelay"),
    *others_of("limit_req"),
]

ZONE = "tollbar_zone $arg_k zone=z:1m rate=1r/s;"
IN_FILE = "tollbar_zone $arg_k zone=z file=/run/app/table rate=1r/s"


def files():
    """What is wrong with `file` and the parameters beside it. test_tollbar_file_faults.py has the
    messages about the file itself."""
    def row(name, parameters, message):
        return name, f"{{{{{IN_FILE} {parameters};}}}}", "", message

    mode = "it must be permissions that let the owner read and write, such as 0600 or 0660"
    alone = '"capacity", "mode" and "trust_anyone" must have "file" beside them, such as file=/run/app/table, in zone "z"'
    return [
        *[(f"a file and {zone}", f"{{{{{IN_FILE.replace('zone=z', zone)};}}}}", "",
           f'invalid zone "{zone}", beside "file" it must be zone=NAME, without a size') for zone in ("zone=z:1m", "zone=")],
        ("a file without a path", f"{{{{{IN_FILE.replace('/run/app/table', '')};}}}}", "",
         'invalid file value "file=", it must be the path of a table, such as file=/run/app/table'),
        *[row(f"mode={word}", f"mode={word}", f'invalid mode value "mode={word}", {mode}') for word in ("0400", "660x", "01600", "", "888", "77777777777")],
        *[row(f"capacity={word}", f"capacity={word}", f'invalid capacity value "capacity={word}", {NUMBER}') for word in ("0", "10m", "", HUGE)],
        row("a capacity too large", "capacity=9223372036854775807", 'zone "z" cannot have a table for 9223372036854775807 keys: {any}'),
        *[row(f"{word} without capacity", word,
              '"on_full" and "room" must have "capacity" beside them, without which the file of zone "z" has its own')
          for word in ("on_full=deny", "room=5")],
        *[(f"{word} without a file", f"{{{{{ZONE[:-1]} {word};}}}}", "", alone) for word in ("capacity=5", "mode=0600", "trust_anyone")],
    ]


RATES = [
    *[(f"rate={rate}", RATE) for rate in ("-1r/s", "", "r/s", "1.r/s", ".5r/s", "5r/y", "1r/", "fast", HUGE + "r/s")],
    *[(f"rate={rate}", ZERO) for rate in ("0r/s", "1r/0s")],
    ("rate=1r/999999999d", LONG), ("rate=900000000000r/s", "it must be at most {rate}r/s"),
]
PARAMETERS = ("zone=, rate=, policy=, burst=, ban=, after=, on_full=, hot_keys=, room=, top_refused=, or file=, capacity=, mode=, "
              "trust_anyone, or sync=, nodes=, fallback=, lease=, overdraft=, name=, sync_wait=, "
              "ssl_trusted_certificate=, ssl_certificate=, ssl_certificate_key=")
HTTP = [
    *zones_of("tollbar_zone", " rate=1r/s"),
    ("no zone", "{{tollbar_zone $arg_k rate=1r/s burst=2;}}", "", '"tollbar_zone" must have "zone" parameter, such as zone=one:10m'),
    ("no limit", "{{tollbar_zone $arg_k zone=z:1m;}}", "", '"tollbar_zone" must have "rate" or "policy" parameter, such as rate=10r/s'),
    ("two limits", "{{tollbar_zone $arg_k zone=z:1m rate=1r/s policy=1/s;}}", "",
     'a zone must have one "rate" or "policy", and "policy=1/s" is the second'),
    ("another parameter", "{{tollbar_zone $arg_k zone=z:1m speed=1r/s;}}", "", f'invalid parameter "speed=1r/s", it must be {PARAMETERS}'),
    *[(f"room={n}", f"{{{{{ZONE[:-1]} room={n};}}}}", "",
       f'invalid room value "room={n}", it must be a number of segments or permits from 1 to 16777216') for n in ("0", "many")],
    ("too small for a table", "{{tollbar_zone $arg_k zone=z:343k rate=1r/s;}}", "", 'zone "z" is too small, it must have at least 344k'),
    *[(rate, f"{{{{tollbar_zone $arg_k zone=z:1m {rate};}}}}", "", f'invalid rate "{rate}", {expected}') for rate, expected in RATES],
    ("burst=0", "{{tollbar_zone $arg_k zone=z:1m rate=1r/s burst=0;}}", "", f'invalid burst value "burst=0", {AMOUNT}'),
    ("burst of a policy's zone", "{{tollbar_zone $arg_k zone=z:1m policy=1/s burst=1;}}", "",
     '"burst" must be in the policy of zone "z", such as policy="10/s burst 20"'),
    *[(f"top_refused={n}", f"{{{{tollbar_zone $arg_k zone=z:1m rate=1r/s top_refused={n};}}}}", "",
       f'invalid top_refused value "top_refused={n}", it must be a number of keys from 1 to 224') for n in ("0", "225", "", "all")],
    ("top_refused beside hot_keys", "{{tollbar_zone $arg_k zone=z:1m rate=1r/s hot_keys=64 top_refused=9;}}", "",
     '"top_refused" must not be beside "hot_keys" in zone "z"'),
    ("top_refused beside sync", f"{{{{tollbar_zone $arg_k zone=z:1m rate=100r/s burst=20 {STORE} top_refused=9;}}}}", "",
     '"top_refused" must not be beside "sync" in zone "z"'),
    ("ban", "{{tollbar_zone $arg_k zone=z:1m rate=5r/m ban=long;}}", "", 'invalid ban value "ban=long", it must be a time such as 10m, 1h or 1d'),
    ("after", "{{tollbar_zone $arg_k zone=z:1m rate=5r/m ban=1h after=x;}}", "",
     'invalid after value "after=x", it must be a whole number from 1 to 1000'),
    ("after without ban", "{{tollbar_zone $arg_k zone=z:1m rate=5r/m after=3;}}", "",
     '"after" must have a "ban" beside it, such as ban=1h, in zone "z"'),
    ("ban beside a policy", "{{tollbar_zone $arg_k zone=z:1m policy=5/min ban=1h;}}", "",
     '"ban" must be in the policy of zone "z", such as policy="5/min ban 1h"'),
    ("ban and variables", "{{tollbar_zone $arg_k zone=z:1m rate=$arg_r ban=1h;}}", "",
     'with "ban", "rate" and "burst" must hold no variables, in zone "z"'),
    ("ban and sync", f"{{{{tollbar_zone $arg_k zone=z:1m rate=100r/s burst=20 {STORE} ban=1h;}}}}", "",
     '"ban" must be for a zone without "sync", not for zone "z"'),
    ("ban and burst", "tollbar_zone $arg_k zone=z:1m rate=5r/m ban=1h;", "{{tollbar zone=z burst=3;}}",
     'with "ban", "burst" must be in the "tollbar_zone" of zone "z"'),
    ("count", ZONE, "{{tollbar zone=z count=some;}}",
     'invalid count value "count=some", it must be failed, all, or status codes such as 401,403,5xx'),
    ("count and delay", ZONE, "{{tollbar zone=z burst=5 delay=2 count=failed;}}",
     'a limit with "count" or "when" delays no request, so it must have no "delay", unlike the limit of zone "z"'),
    ("count and sync", SHARED, "{{tollbar zone=z nodelay count=failed;}}",
     '"count" and "when" must be for a zone without "sync", not for zone "z"'),
    ("a class without classes", ZONE, "{{tollbar zone=z class=low;}}",
     '"class" must be for a zone whose policy has classes, such as policy="100/s reserve low 20 high 0", not for zone "z"'),
    ("an unknown class", "tollbar_zone $arg_k zone=z:1m 'policy=9/s reserve low 2';", "{{tollbar zone=z class=high;}}",
     'unknown class "high" in "tollbar" directive, the policy of zone "z" must have it'),
    ("on_full", "{{tollbar_zone $arg_k zone=z:1m rate=1r/s on_full=drop;}}", "", f'invalid value "on_full=drop", {ON_FULL}'),
    ("no closing quote", '{{tollbar_zone $arg_k zone=z:1m policy="10/s burst 20;}}', "",
     'no closing quote in "policy="10/s", it must be policy="LIMIT/PERIOD OPTIONS", and a list "policy=10/s; 1000/day"'),
    ("a policy", '{{tollbar_zone $arg_k zone=z:1m policy="5/s burrst 3";}}', "",
     'invalid policy "5/s burrst 3", column 5: expected `burst`, {any} or `reserve`'),
    ("a policy of no table", '{{tollbar_zone $arg_k zone=z:1m policy="5/s algo sliding-window anchor first";}}', "",
     'zone "z" cannot have this policy: {any}'),
    *limits_of("tollbar", ZONE, "zone=NAME, burst=, delay=, nodelay, cost=, count=, when=, class=, status= or dry_run"),
    *[(f"cost={cost}", ZONE, f"{{{{tollbar zone=z cost={cost};}}}}", f'invalid cost value "cost={cost}", {AMOUNT}') for cost in ("0", "x", "")],
    ("a cost too high", ZONE, "{{tollbar zone=z burst=3 cost=5;}}",
     'invalid cost 5 in "tollbar" directive, it must be at most 4, which is all that zone "z" allows at once'),
    *[(f"status={code}", ZONE, f"{{{{tollbar zone=z status={code};}}}}", f'invalid value "status={code}", {STATUS}') for code in ("200", "x")],
    ("burst for a policy", "tollbar_zone $arg_k zone=z:1m policy=1/s;", "{{tollbar zone=z burst=1;}}",
     '"burst" must be in the policy of zone "z"'),
    ("delay for a policy", "tollbar_zone $arg_k zone=z:1m policy=1/s;", "{{tollbar zone=z delay=1;}}",
     '"delay" must be for a "rate", not for the "policy" of zone "z"'),
    *others_of("tollbar"),
    *files(),
    ("a file and sync", f"{{{{tollbar_zone $arg_k zone=z file=/run/t rate=100r/s burst=20 {STORE};}}}}", "", '"file" must not be beside "sync" in zone "z"'),
    *[(f"a file and variables {words}", f"{{{{tollbar_zone $arg_k zone=z file=/run/t {words};}}}}", "",
       '"rate" and "burst" must not hold variables beside "file" in zone "z"') for words in ("rate=$arg_r", "rate=1r/s burst=$arg_b")],
    ("a file and a limit's variables", IN_FILE + ";", "{{tollbar zone=z burst=$arg_b;}}",
     '"burst" must hold no variables in a limit of a zone with "file", such as zone "z"'),
    ("headers", "", "{{tollbar_headers yes;}}", 'invalid value "yes" in "tollbar_headers" directive, it must be off, legacy, legacy-epoch, draft, draft-07, draft-06 or both'),
    ("a status page", "", "{{tollbar_status_page html;}}",
     'invalid value "html" in "tollbar_status_page" directive, it must be json or prometheus'),
]

SYNC = [
    (word, f"{{{{tollbar_zone $arg_k zone=z:1m rate=1r/s burst=9 {word};}}}}", "",
     f'"{word}" must have "sync" beside it, such as sync=redis://127.0.0.1:6379') for word in ("nodes=2", "fallback=deny", "lease=1s", "name=x")
] + [
    (word, f"{{{{tollbar_zone $arg_k zone=z:1m rate=100r/s burst=20 {STORE} {word};}}}}", "", f'invalid value "{word}", {expected}')
    for word, expected in [
        *[(f"nodes={n}", "it must be a whole number from 1 to 65535") for n in ("0", "65536", "two", "")],
        *[(f"lease={n}", "it must be a time from 1ms to 10m") for n in ("0ms", "601s", "long")],
        *[(f"sync_wait={n}", "it must be a time from 250ms to 1m") for n in ("249ms", "61s", "on")],
        ("overdraft=some", "it must be a whole number, 0 or more"), ("fallback=pray", "it must be share, deny or allow")]
] + [
    ("no nodes", "{{tollbar_zone $arg_k zone=z:1m rate=100r/s burst=20 sync=redis://127.0.0.1;}}", "",
     '"sync" must have "nodes" parameter beside it, such as nodes=4, in zone "z"'),
    ("a name", f"{{{{tollbar_zone $arg_k zone=z:1m rate=100r/s burst=20 {STORE} 'name=a b';}}}}", "",
     'invalid "name" "a b" of zone "z", it must be 1 to 64 visible ASCII characters without braces'),
    ("a burst too small", f"{{{{tollbar_zone $arg_k zone=z:1m rate=100r/s {STORE} overdraft=1;}}}}", "",
     'the burst of zone "z" is too small for "sync": the "overdraft" of 2 "nodes" takes up all of it'),
    ("a policy that cannot be leased", f'{{{{tollbar_zone $arg_k zone=z:1m policy="9/s algo fixed-window" {STORE};}}}}', "",
     'zone "z" cannot have "sync": only a single gcra can be leased, {any}'),
    ("hot_keys", f"{{{{tollbar_zone $arg_k zone=z:1m rate=100r/s burst=20 {STORE} hot_keys=64;}}}}", "",
     '"hot_keys" must not be beside "sync" in zone "z"'),
    ("on_full", f"{{{{tollbar_zone $arg_k zone=z:1m rate=100r/s burst=20 {STORE} on_full=deny;}}}}", "",
     '"on_full" must not be beside "sync" in zone "z"'),
    ("room", f"{{{{tollbar_zone $arg_k zone=z:1m rate=100r/s burst=20 {STORE} room=5;}}}}", "",
     '"room" must not be beside "sync" in zone "z"'),
    ("variables", f"{{{{tollbar_zone $arg_k zone=z:1m rate=$arg_r {STORE};}}}}", "",
     '"rate" and "burst" must not hold variables beside "sync" in zone "z"'),
    ("too small for a node", f"{{{{{SHARED.replace(':1m', ':100k')}}}}}", "", 'zone "z" is too small, with "sync" it must have at least 364k'),
    ("one name of two zones", f"[[{SHARED}]] {{{{{SHARED.replace('=z:', '=y:').replace(';', ' name=z;')}}}}}", "",
     'zone "y" must have another "name" in the store than zone "z", which has it in {first}; declared'),
    ("a URL", "{{tollbar_zone $arg_k zone=z:1m rate=100r/s burst=20 nodes=2 sync=http://127.0.0.1;}}", "",
     'invalid "sync" of zone "z", column 1: expected redis://, rediss:// or unix:'),
    ("a host", "{{tollbar_zone $arg_k zone=z:1m rate=100r/s burst=20 nodes=2 sync=redis://no-such-host.invalid;}}", "",
     'host not found in "sync" of zone "z": "no-such-host.invalid"'),
    *[(f"TLS: {word}", f"{{{{tollbar_zone $arg_k zone=z:1m rate=100r/s burst=20 {store} nodes=2 {word};}}}}", "", expected)
      for store, word, expected in [
          ("sync=redis://127.0.0.1", "ssl_certificate=a.pem", '"ssl_trusted_certificate", "ssl_certificate" and "ssl_certificate_key" must have '
                                                              'sync=rediss:// beside them, in zone "z"'),
          ("sync=rediss://127.0.0.1", "ssl_certificate=a.pem", '"ssl_certificate" and "ssl_certificate_key" must be together, in zone "z"'),
          ("sync=rediss://127.0.0.1", "ssl_certificate_key=", 'invalid value "ssl_certificate_key=", it must be the path of a file'),
          ("sync=rediss://127.0.0.1", "ssl_trusted_certificate=/none.pem", 'zone "z" cannot use "ssl_trusted_certificate" "/none.pem", it must be a PEM file that nginx can '
                                                                       'read, a key without a password and of its certificate: No such file or directory')]],
    ("no nodelay", SHARED, "{{tollbar zone=z;}}", 'with "sync" no request is delayed, so "nodelay" must be in a limit of zone "z"'),
    ("burst", SHARED, "{{tollbar zone=z burst=5 nodelay;}}", 'with "sync", "burst" must be in the "tollbar_zone" of zone "z"'),
    ("delay", SHARED, "{{tollbar zone=z delay=5;}}", 'with "sync" no request is delayed, so "nodelay" must replace "delay" in a limit of zone "z"'),
    ("a cost too high", SHARED, "{{tollbar zone=z nodelay cost=18;}}",
     'invalid cost 18 in "tollbar" directive, it must be at most {cost}, which is all that zone "z" allows at once'),
]

OF_TREE = "tollbar_tree $arg_k zone=z:1m rate=1000/s;"
TREE = OF_TREE + " tollbar_tree_class a zone=z; tollbar_tree_class b zone=z parent=a;"
CLASS = "it must be zone=NAME, parent=NAME, guaranteed=RATE, ceiling=RATE or keys=NUMBER"
TREES = [
    *zones_of("tollbar_tree", " rate=1000/s"),
    ("no zone", "{{tollbar_tree $arg_k rate=1000/s burst=1s;}}", "", '"tollbar_tree" must have "zone" parameter, such as zone=one:10m'),
    ("no rate", "{{tollbar_tree $arg_k zone=z:1m;}}", "", '"tollbar_tree" must have "rate" parameter, such as rate=1000/s'),
    ("another parameter", "{{tollbar_tree $arg_k zone=z:1m rate=1000/s ban=1h;}}", "",
     'invalid parameter "ban=1h", it must be zone=NAME:SIZE, rate=RATE, burst=TIME or top_refused=NUMBER'),
    *[(f"burst={time}", f"{{{{tollbar_tree $arg_k zone=z:1m rate=1000/s burst={time};}}}}", "",
       f'invalid burst value "burst={time}", it must be a time from 1ms to 10s') for time in ("0", "11s", "long", "")],
    ("a burst too short", "{{tollbar_tree $arg_k zone=z:1m rate=2/s burst=1s;}}", "",
     '"burst" must be the time of at least 20 requests of the rate of tree "z"'),
    *[(f"rate={rate}", f"{{{{tollbar_tree $arg_k zone=z:1m rate={rate};}}}}", "",
       f'invalid rate "{rate}" in "tollbar_tree" directive, it must be like 1000/s or 300/min, up to 1000000/s') for rate in ("10r/s", "0/s", "2000000/s")],
    ("too small for a table", "{{tollbar_tree $arg_k zone=z:64k rate=1000/s;}}", "", 'zone "z" is too small, it must have at least {size}k'),
    ("a class without a zone", f"{OF_TREE} {{{{tollbar_tree_class a ceiling=1/s;}}}}", "",
     '"tollbar_tree_class" must have "zone" parameter, such as zone=one'),
    ("a class of no tree", f"{OF_TREE} {{{{tollbar_tree_class a zone=y;}}}}", "", 'unknown tree "y", a "tollbar_tree" before must declare it'),
    ("a class of a zone", f"{ZONE} {{{{tollbar_tree_class a zone=z;}}}}", "", 'unknown tree "z", a "tollbar_tree" before must declare it'),
    ("a class of no parent", f"{OF_TREE} {{{{tollbar_tree_class a zone=z parent=b;}}}}", "",
     'unknown parent "b", a "tollbar_tree_class" before must declare it'),
    ("a class twice", f"{OF_TREE} tollbar_tree_class a zone=z; {{{{tollbar_tree_class a zone=z;}}}}", "",
     'class "a" is already declared, each class of a tree must have its own name'),
    ("another parameter of a class", f"{OF_TREE} {{{{tollbar_tree_class a zone=z rate=1/s;}}}}", "", f'invalid parameter "rate=1/s", {CLASS}'),
    ("keys=0", f"{OF_TREE} {{{{tollbar_tree_class a zone=z keys=0;}}}}", "", f'invalid keys value "keys=0", {NUMBER}'),
    ("more than all guaranteed", f"{OF_TREE} {{{{tollbar_tree_class a zone=z guaranteed=1001/s;}}}}", "",
     'class "a" cannot be in tree "z": more is guaranteed than the ceiling or the parent\'s guaranteed rate'),
    ("a rate of a class", f"{OF_TREE} {{{{tollbar_tree_class a zone=z ceiling=5r/s;}}}}", "",
     'class "a" cannot be in tree "z": the rate of a class is LIMIT/PERIOD, from 1 in 9 minutes to 1000000/s'),
    ("no class", TREE, "{{tollbar zone=z;}}", '"class" must be in a limit of tree "z"'),
    *[(f"class={name}", TREE, f"{{{{tollbar zone=z class={name};}}}}",
       f'unknown class "{name}" in "tollbar" directive, it must be a class of tree "z" without children') for name in ("c", "a", "")],
    ("burst", TREE, "{{tollbar zone=z class=b burst=5;}}", '"burst" must be in the "tollbar_tree" of tree "z"'),
    ("delay", TREE, "{{tollbar zone=z class=b delay=5;}}", '"delay" must be for a "rate" of "tollbar_zone", not for tree "z"'),
    ("count", TREE, "{{tollbar zone=z class=b count=all;}}", '"count" and "when" must be for a "tollbar_zone", not for tree "z"'),
    ("two trees", f"{TREE} tollbar_tree $arg_k zone=y:1m rate=1000/s; tollbar_tree_class a zone=y;",
     "tollbar zone=z class=b; {{tollbar zone=y class=a;}}", 'a location must have the limit of one tree, and has a second one of tree "y"'),
    ("a cost too high", TREE, "{{tollbar zone=z class=b cost=101;}}",
     'invalid cost 101 in "tollbar" directive, it must be at most 100, which is all that zone "z" allows at once'),
]

CONN = "tollbar_conn_zone $arg_k zone=z:1m;"
CONNS = [
    *zones_of("tollbar_conn_zone"),
    ("no zone", "{{tollbar_conn_zone $arg_k on_full=deny;}}", "", '"tollbar_conn_zone" must have "zone" parameter, such as zone=one:1m'),
    ("too small for its workers", "{{tollbar_conn_zone $arg_k zone=z:32k;}}", "",
     'zone "z" of 32768 bytes is too small, for 1024 workers it must have at least {size}k'),
    *[(f"a number of {n}", CONN, f"{{{{tollbar_conn z {n};}}}}",
       f'invalid number of connections "{n}", it must be a whole number from 1 to 65535') for n in ("0", "-1", "some", "65536")],
    ("an unknown zone", CONN, "{{tollbar_conn y 1;}}", 'unknown zone "y" in "tollbar_conn" directive, a "tollbar_conn_zone" must declare it'),
    ("no name", CONN, '{{tollbar_conn "" 1;}}', 'invalid zone name "", it must be the NAME of a zone'),
    ("one zone twice", CONN, "[[tollbar_conn z 1;]] {{tollbar_conn z 2;}}",
     '"tollbar_conn" directive is duplicate: zone "z" is limited in {first}, and again'),
]

LEARNS = '"initial", "least", "most" and "timeout" must have "adaptive" beside them in zone "z"'
TIMEOUT = '"adaptive=aimd" must have a "timeout", such as timeout=500ms, and "adaptive" must have none, in zone "z"'


def learning(parameters, message):
    """What is wrong with a zone of connections whose limit learns."""
    return f"learns: {parameters}", f"{{{{tollbar_conn_zone $arg_k zone=z:1m {parameters};}}}}", "", message


HTTP_CONNS = [
    learning("on_full=drop",
        'invalid parameter "on_full=drop", it must be zone=NAME:SIZE, on_full=deny or on_full=allow, '
             "or adaptive, initial=, least=, most=, timeout="),
    *[learning(f"adaptive {word}={n}", f'invalid {word} value "{word}={n}", it must be a whole number from 1 to 65535')
      for word in ("initial", "least", "most") for n in ("0", "65536", "some")],
    learning("adaptive=aimd timeout=fast",
        'invalid timeout value "timeout=fast", it must be a time such as 500ms or 2s'),
    *[learning(word, LEARNS) for word in ("initial=5", "least=5", "most=5", "timeout=1s")],
    *[learning(words, TIMEOUT) for words in ("adaptive=aimd", "adaptive timeout=1s")],
    learning("adaptive least=50 initial=10",
        '"least" must be at most "initial", and "initial" at most "most", in zone "z"'),
    ("no number", CONN, "{{tollbar_conn z;}}", '"tollbar_conn" must have a number, because zone "z" has no "adaptive"'),
    ("a number for a limit that learns", CONN[:-1] + " adaptive;", "{{tollbar_conn z 5;}}",
     '"tollbar_conn" must have no number, because zone "z" learns its limit'),
]
STREAM_CONNS = [
    ("another parameter", "{{tollbar_conn_zone $arg_k zone=z:1m on_full=drop;}}", "",
     'invalid parameter "on_full=drop", it must be zone=NAME:SIZE, on_full=deny or on_full=allow'),
]

STREAM = [
    *zones_of("tollbar_zone", " rate=1r/s"),
    ("no zone", "{{tollbar_zone $remote_addr rate=1r/s on_full=deny rate=1r/s;}}", "",
     '"tollbar_zone" must have "zone" parameter, such as zone=one:10m'),
    ("no rate", "{{tollbar_zone $remote_addr zone=z:1m on_full=deny;}}", "", '"tollbar_zone" must have "rate" parameter, such as rate=10r/s'),
    ("another parameter", "{{tollbar_zone $remote_addr zone=z:1m policy=1/s;}}", "",
     'invalid parameter "policy=1/s", it must be zone=NAME:SIZE, rate=RATE, on_full=WORD, hot_keys=NUMBER, room=NUMBER, '
     "or file=, capacity=, mode=, trust_anyone"),
    ("hot_keys", "{{tollbar_zone $remote_addr zone=z:1m rate=1r/s hot_keys=-1;}}", "",
     'invalid hot_keys value "hot_keys=-1", it must be a number of keys from 0 to 16384'),
    ("on_full", "{{tollbar_zone $remote_addr zone=z:1m rate=1r/s on_full=drop;}}", "", f'invalid value "on_full=drop", {ON_FULL}'),
    *[(rate, f"{{{{tollbar_zone $remote_addr zone=z:1m {rate};}}}}", "", f'invalid rate "{rate}", {expected}') for rate, expected in RATES],
    *files(),
    *limits_of("tollbar", ZONE.replace("$arg_k", "$remote_addr"), "zone=NAME, burst=NUMBER, delay=NUMBER or nodelay"),
    *others_of("tollbar", status=False),
]


def rows(module, cases):
    return [(module, *case[1:]) for case in cases], [f"{module}: {case[0]}" for case in cases]


RULES = [
    ("more zones than a page has room for", "".join(f"tollbar_zone $arg_k zone=z{n}:344k rate=1r/s;" for n in range(1025)),
     "{{tollbar_status_page prometheus;}}", '"tollbar_status_page prometheus" has room for 1024 zones, and there must not be 1025'),
    *[(f"rules with {word}", f"{{{{tollbar_rules {rules.SITE} {word};}}}}", "",
       f'invalid parameter "{word.split()[-1]}" in "tollbar_rules" directive, it must be keys=NUMBER, from 1 on, or room=NUMBER, each once')
      for word in ("keys=0", "keys=x", "size=1m", "keys=5 keys=6", "room=5 room=6")],
    ("rules with no room", f"{{{{tollbar_rules {rules.SITE} room=0;}}}}", "",
     'invalid room value "room=0", it must be a number of segments or permits from 1 to 16777216'),
    ("rules with two numbers of keys", f"[[tollbar_rules {rules.SITE};]]", f"{{{{tollbar_rules {rules.SITE} keys=5;}}}}",
     f'"{rules.SITE}" has keys=100000 and room=0 in {{first}}, and keys=5 and room=0 here, the numbers must be equal'),
    ("rules with two numbers of segments", f"[[tollbar_rules {rules.SITE} room=3;]]", f"{{{{tollbar_rules {rules.SITE} room=4;}}}}",
     f'"{rules.SITE}" has keys=100000 and room=3 in {{first}}, and keys=100000 and room=4 here, the numbers must be equal'),
    ("a field of nginx itself", "{{tollbar_rules_field Path $uri;}}", "",
     'invalid name "Path" in "tollbar_rules_field" directive, nginx itself gives the method, the path, the address and the host, so the name must be another'),
]

PARTS = [rows("rules", RULES), rows("limit_req", LIMIT_REQ), rows("http", HTTP), rows("sync", SYNC),
    rows("tree", TREES), rows("conn", [*CONNS, *HTTP_CONNS, *others_of("tollbar_conn")]),
         rows("stream", STREAM), rows("stream conn", [*CONNS, *STREAM_CONNS, *others_of("tollbar_conn", status=False)])]
ROWS = [row for part, _ in PARTS for row in part]
NAMES = [name for _, names in PARTS for name in names]


def text_of(module, outer, inner):
    marked = [part.replace("{{", "\n").replace("}}", " # fault\n").replace("[[", "\n").replace("]]", " # first\n") for part in (outer, inner)]
    workers = 1024 if "1024 workers" in str(ROWS) and ":32k" in outer and "conn" in module else 1
    if module.startswith("stream"):
        block, server = (part.replace("$arg_k", "$remote_addr").replace("$arg_j", "$remote_port") for part in marked)
        return streams.text(modules=[streams.MODULE], workers=workers, stream=f"{block} server {{ listen 127.0.0.1:8081; {server} return x; }}")
    file = places.DROPIN if module == "limit_req" else "ngx_http_tollbar_module.so"
    content = "" if "status_page" in inner else CONTENT
    return config.text(modules=[file], ports=[8080], workers=workers, http=marked[0], server=f"location / {{ {marked[1]} {content} }}")


def pattern(expected, home, text):
    """The message as a regular expression, with what depends on the library for any number."""
    def line(mark):
        return f"{home}/nginx.conf:{[n for n, line in enumerate(text.splitlines(), 1) if line.endswith(mark)][0]}"

    found = re.escape(expected)
    for name, value in {"first": re.escape(line("# first")) if "# first" in text else "", "burst": r"\d{9,19}", "rate": r"\d{10,12}",
                        "size": r"\d+", "cost": r"\d+", "any": ".+"}.items():
        found = found.replace(re.escape(f"{{{name}}}"), value)
    return rf"(?:nginx: )?\[emerg\] {found} in {re.escape(line('# fault'))}"


@pytest.mark.parametrize("module, outer, inner, expected", ROWS, ids=NAMES)
def test_a_message_says_where_what_was_found_and_what_is_expected(tmp_path, module, outer, inner, expected):
    text = text_of(module, outer, inner)
    if module.startswith("stream"):
        expected = expected.replace("$arg_k", "$remote_addr")
    code, said = check(tmp_path, text)
    complaints = [line for line in said.splitlines() if "[" in line and "test failed" not in line]
    assert code == 1 and len(complaints) == 1, said
    assert re.fullmatch(pattern(expected, tmp_path, text), complaints[0]), complaints[0]
    assert re.search(r"must|expected|cannot|too small for|host not found|limited in|already bound", complaints[0])


# Messages that no configuration file alone can cause.
ELSEWHERE = [
    # The library of rules, and the faults in a rules file.
    '"tollbar_rules" cannot load', '"tollbar_rules" cannot use', "%V: %s",
    # About the file of a zone: test_tollbar_file_faults.py.
    'zone "%V" has lost its file', 'zone "%V" has its file in', 'zone "%V" has no file', 'zone "%V" found a table', 'zone "%V" cannot use "%V"',
    'zone "%V" cannot open "%V"', 'zone "%V" cannot trust "%V"', 'zone "%V" has the policy', 'zone "%V" cannot change the policy',
    # test_tollbar_file_several.py
    'zone "%V" and others cannot have their policies in one file',
    "/dev/urandom cannot be read", 'zone "%V" cannot be used again', 'zone "%V" of %uz bytes cannot hold',
    # nginx without OpenSSL; and a fault that OpenSSL does not name.
    "TLS must have an nginx", "OpenSSL does not say",
    # No memory.
    'tree "%V" cannot be made',
    # Any other fault of the client than the URL's, and a host that the system finds without an
    # address.
    '"sync" of zone "%V": %s', "no address",
]


def formats():
    """The formats of the messages about a configuration, out of the sources: (file, format)."""
    for path in sorted((places.ROOT / "nginx").glob("*/*.c")):
        source = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        source = re.sub(r"NGX_TOLLBAR_CONF_\w+|\bAMOUNT\b", '"%s"', source)
        for call in re.findall(r"(?:conf_refuse|conf_late|conf_log_error|wrong|NGX_LOG_EMERG[^;]*?)\((?:[^;])*;", source):
            for literal in re.findall(r'"(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*', call):
                whole = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literal)).replace('\\"', '"')
                if " " in whole.strip():
                    yield path.name, whole


def test_every_message_has_a_row():
    """A message that nobody tests may say anything."""
    told = [expected for _, _, _, expected in ROWS]
    missing = []
    count = 0
    for file, whole in formats():
        if any(whole.startswith(one) for one in ELSEWHERE):
            continue
        count += 1
        regex = re.escape(whole)
        regex = regex.replace(re.escape("%V:%ui"), ".*")
        for part in ("%uL", "%ui", "%uzk", "%uz", "%uD", r"%\*s", "%s", "%V"):
            regex = regex.replace(re.escape(part.replace("\\", "")), ".*")
        # nginx appends the place of the directive to a message that comes after it has read the
        # file.
        regex = regex.removesuffix(re.escape(" in ") + ".*")
        if not any(re.search(regex, one) for one in told):
            missing.append(f"{file}: {whole}")
    assert count > 60
    assert missing == []
