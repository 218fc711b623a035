"""The module under valgrind: requests that are odd, configurations that are wrong, reloads."""

import os
import signal
import subprocess

from harness import config, fuzz, memory, places
from harness.config import CONTENT
from harness.server import PATIENCE, Nginx, wait_until
from test_limit_req_config import CASES

SEED = int(os.environ.get("FUZZ_SEED", "1"))
PIECES = int(os.environ.get("FUZZ_PIECES", "1000" if "TOLLBAR_SOAK" in os.environ else "400"))

# A minute between two requests of a key is longer than the whole stream under valgrind on a slow
# machine, so the zones `long` and `dry` refuse some requests in every run.
HTTP = """
    limit_req_zone $arg_k zone=one:1m rate=2r/s;
    limit_req_zone "$arg_a$arg_k" zone=two:32k rate=2r/s;
    limit_req_zone "$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k$arg_k"
                   zone=long:1m rate=1r/m;
    limit_req_zone "$arg_a$arg_k" zone=dry:32k rate=1r/m;
    limit_req_zone $binary_remote_addr zone=address:1m rate=30r/s;
"""
SERVER = f"""
    location / {{ limit_req zone=one burst=2 nodelay; {CONTENT} }}
    location /delay {{ limit_req zone=two burst=5; {CONTENT} }}
    location /several {{ limit_req zone=one burst=9 delay=2; limit_req zone=two burst=3; limit_req zone=address burst=50;
                        {CONTENT} }}
    location /dry {{ limit_req_dry_run on; limit_req zone=dry; {CONTENT} }}
    location /long {{ limit_req zone=long; {CONTENT} }}
    location /redirect {{ limit_req zone=one burst=9; try_files /none /delay; }}
"""


def test_an_odd_stream_of_requests(tmp_path):
    report = tmp_path / "valgrind.xml"
    nginx = Nginx(tmp_path / "nginx", wrapper=memory.wrapper(report), modules=[places.DROPIN], main="master_process off;",
                  http=HTTP, server=SERVER).start()
    try:
        assert fuzz.stream(nginx.port, PIECES, SEED) > PIECES / 10
        assert nginx.get("/?k=the-end").status == 200
        # A second configuration takes over the zones of the first. A single process does not serve
        # after that, with any module; but this way one process has had them both.
        os.kill(nginx.process.pid, signal.SIGHUP)
        wait_until(lambda: nginx.said("reconfiguring"), "it reloads")
        os.kill(nginx.process.pid, signal.SIGTERM)
        assert nginx.process.wait(PATIENCE) == 0
    finally:
        nginx.stop()
    # The run has reached all of these paths.
    for words in ("limiting requests,", "limiting requests, dry run", "delaying request,", "is more than 65535 bytes"):
        assert nginx.said(words), words
    assert memory.faults(report) == []


# The configurations that the module refuses. nginx itself refuses the others before it calls the
# module.
WRONG = [case for case in CASES if case[3] and "zone" in case[1] + case[2]]


def test_wrong_configurations(tmp_path):
    cases = [(name, config.text(modules=[places.DROPIN], ports=[8080], http=http,
                                server=f"location / {{ {location} {CONTENT} }}"), 1)
             for name, http, location, _ in memory.chosen(WRONG)]
    assert memory.faults_of_configurations(tmp_path, cases) == []


PLANTED = """
#include <stdlib.h>
static char *volatile kept;
__attribute__((noinline)) static void tollbar_planted(void) {
    char *volatile lost = malloc(10);
    kept = malloc(8);
    lost[0] = kept[8];
    lost = NULL;
}
int main(void) { tollbar_planted(); return 0; }
"""


def test_what_is_planted_is_found(tmp_path):
    """A leak and a read past the end, so that the silence of the others means something."""
    (tmp_path / "planted.c").write_text(PLANTED)
    subprocess.run([os.environ.get("CC", "cc"), "-g", "-O0", "-o", tmp_path / "planted", tmp_path / "planted.c"], check=True)
    report = tmp_path / "valgrind.xml"
    subprocess.run([*memory.wrapper(report), tmp_path / "planted"], stderr=subprocess.DEVNULL, check=True)
    assert sorted(fault.partition(":")[0] for fault in memory.faults(report)) == ["InvalidRead", "Leak_DefinitelyLost"]
