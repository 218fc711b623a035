"""tollbar under valgrind: requests that are odd, configurations that are wrong, reloads."""

import os
import signal

from harness import config, fuzz, memory, places, rules
from harness.config import CONTENT
from harness.server import PATIENCE, wait_until
from harness.tollbar import MODULE, Tollbar
from test_tollbar_config import CASES

SEED = int(os.environ.get("FUZZ_SEED", "1"))
PIECES = int(os.environ.get("FUZZ_PIECES", "1000" if "TOLLBAR_SOAK" in os.environ else "400"))

HTTP = """
    tollbar_zone $arg_k zone=one:1m rate=2r/s top_refused=224;
    tollbar_zone "$arg_a$arg_k" zone=two:344k rate=$arg_x;
    tollbar_zone "$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k"
                 zone=long:1m policy="1/s algo sliding-window";
    tollbar_zone $binary_remote_addr zone=address:1m policy="30/s burst 10";
    tollbar_zone $binary_remote_addr zone=log:2m policy="30/s algo sliding-log";
    tollbar_tree $arg_k zone=shop:1m rate=5/s top_refused=9;
    tollbar_tree_class ann zone=shop guaranteed=1/s;
    tollbar_tree_class users zone=shop parent=ann ceiling=2/s keys=9;
    tollbar_headers both;
    tollbar_rules_field account $arg_a;
"""
SHOW = 'add_header X-All "$tollbar_rule$tollbar_status$tollbar_remaining$tollbar_reset$tollbar_retry_after$tollbar_zone" always;'
SERVER = f"""
    location /rules {{ tollbar_rules {rules.SITE}; {SHOW} {CONTENT} }}
    location / {{ tollbar zone=one burst=2 nodelay cost=$arg_b; {SHOW} {CONTENT} }}
    location /delay {{ tollbar zone=one burst=5; {CONTENT} }}
    location /several {{ tollbar zone=one burst=9 delay=2; tollbar zone=two burst=$arg_b dry_run; tollbar zone=address;
                        tollbar zone=log; tollbar zone=long; {SHOW} {CONTENT} }}
    location /dry {{ tollbar_dry_run on; tollbar zone=two; tollbar zone=one burst=1; tollbar_headers off; {CONTENT} }}
    location /long {{ tollbar zone=long; {CONTENT} }}
    location /tree {{ tollbar zone=shop class=$arg_c cost=$arg_b; tollbar zone=log; {SHOW} {CONTENT} }}
    location /redirect {{ tollbar zone=one burst=9; try_files /none /delay; }}
    location /json {{ tollbar_status_page json; }}
    location /metrics {{ tollbar_status_page prometheus; }}
"""


def test_an_odd_stream_of_requests(tmp_path):
    report = tmp_path / "valgrind.xml"
    nginx = Tollbar(tmp_path / "nginx", wrapper=memory.wrapper(report), modules=[MODULE], main="master_process off;",
                    http=HTTP, server=SERVER).start()
    try:
        assert fuzz.stream(nginx.port, PIECES, SEED) > PIECES / 10
        for n in range(140):
            nginx.get(f"/dry?k=a&x={n + 1}r/h")
        assert {nginx.get("/rules/blog").status for _ in range(20)} == {200, 429}
        assert {nginx.get("/tree?k=a&c=users").status for _ in range(40)} == {200, 429}
        assert [nginx.get(f"/tree?k=a&c={name}").status for name in ("ann", "nobody", "")] == [429, 429, 200]
        assert [nginx.get(path).status for path in ("/?k=the-end", "/json", "/metrics")] == [200] * 3
        # A second configuration takes over the zones of the first. A single process does not serve
        # after that, with any module; but this way one process has had them both.
        os.kill(nginx.process.pid, signal.SIGHUP)
        wait_until(lambda: nginx.said("reconfiguring"), "it reloads")
        os.kill(nginx.process.pid, signal.SIGTERM)
        assert nginx.process.wait(PATIENCE) == 0
    finally:
        nginx.stop()
    # The run has reached all of these paths.
    for words in ("limiting requests,", "limiting requests, dry run", "delaying request,", "is more than 65535 bytes",
                  "invalid rate", "invalid cost", "a table has 1 to 128 policies"):
        assert nginx.said(words), words
    assert memory.faults(report) == []


# The configurations that the module refuses. nginx itself refuses the others before it calls the
# module.
WRONG = [case for case in CASES if case[3] and "zone" in case[1] + case[2]]


def test_wrong_configurations(tmp_path):
    cases = []
    for name, http, location, expected in memory.chosen(WRONG):
        content = "" if "return" in location else CONTENT
        text = config.text(modules=[MODULE], ports=[8080], http=http, server=f"location / {{ {location} {content} }}")
        cases.append((name, text, 0 if "no effect" in expected else 1))
    assert memory.faults_of_configurations(tmp_path, cases) == []
