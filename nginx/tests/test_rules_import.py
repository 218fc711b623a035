"""B1: stock nginx beside the rules that `tollbar rules import nginx` makes of its limits: 10,000
requests, and each gets the same answer.

Both are servers of one nginx. At 1r/m no permit comes back while the test runs, so that no answer
depends on an instant."""

import random
import subprocess

from harness import places
from harness.client import Kept, request, statuses
from harness.config import CONTENT
from harness.rules import Ruled
from harness.server import end_all
from harness.tollbar import MODULE

COMMAND = places.ROOT / "build" / "tollbar"
VARIABLES = ["$binary_remote_addr", "${remote_addr}", "$http_x_tenant", "${http_x_key}", "$cookie_sid", "$arg_k", "$host"]
LOCATIONS = 20
REQUESTS = 500


def a_key(chance):
    return chance.choice(["", "", ":", "-"]).join(chance.choice(VARIABLES) for _ in range(chance.randrange(1, 4)))


def a_request(chance, number):
    """Its path and headers: any of the keys' variables may be missing."""
    headers = [f"{name}: {chance.choice(values)}" for name, values in (
        ("X-Tenant", ["x", "y"]), ("X-Key", ["k", "l"]), ("Cookie", ["sid=s", "other=o"])) if chance.random() < 0.5]
    return f"/l{number}{chance.choice(['', '/x'])}{chance.choice(['', '?k=a', '?k=b'])}", headers


def test_b1_stock_nginx_and_the_imported_rules_answer_alike(tmp_path):
    chance = random.Random(1)
    zones = "".join(f'limit_req_zone "{a_key(chance)}" zone=z{n}:64k rate=1r/m;\n' for n in range(LOCATIONS))
    limits = [f"limit_req zone=z{n} {chance.choice(['', 'burst=1', 'burst=3'])} nodelay;" for n in range(LOCATIONS)]
    locations = "".join(f"location /l{n} {{ {limit.replace('  nodelay', '')} {{}} }}\n" for n, limit in enumerate(limits))
    limited = f"{zones} limit_req_status 429;"
    given = tmp_path / "given.conf"
    given.write_text(f"events {{}}\nhttp {{ {limited} server {{ listen 80; {locations.replace('{}', '')} }} }}")
    imported = subprocess.run([COMMAND, "rules", "import", "nginx", given], stdout=subprocess.PIPE, text=True, check=False)
    assert imported.returncode in (0, 1) and imported.stdout.count("[group.") == LOCATIONS, imported
    fields = "".join(f"tollbar_rules_field {name} ${name};" for name in ("arg_k",) if f"field {name}" in imported.stdout)
    nginx = Ruled(tmp_path / "nginx", port_count=2, modules=[MODULE], log_level="crit", http=f"""{limited}
        server {{ listen 127.0.0.1:@PORT1@; tollbar_rules rules.toml; {fields}
                 location / {{ {CONTENT} }} }}""", server=locations.replace("{}", CONTENT))
    nginx.rules(imported.stdout.replace("version = 1\n", "", 1))
    nginx.start()
    try:
        refused = 0
        with Kept(nginx.ports[0]) as stock, Kept(nginx.ports[1]) as ruled:
            for number in range(LOCATIONS):
                asked = [a_request(chance, number) for _ in range(REQUESTS)]
                # In pieces that fit into a socket, all within a second or two.
                for n in range(0, REQUESTS, 100):
                    told = []
                    for kept in (stock, ruled):
                        kept.socket.sendall(b"".join(request(path, keep=True, headers=headers) for path, headers in asked[n:n + 100]))
                        told.append(statuses([kept.read() for _ in asked[n:n + 100]]))
                    assert told[0] == told[1], (limits[number], asked[n:n + 100], told, imported.stdout)
                    refused += told[0].count(429)
        assert LOCATIONS * REQUESTS == 10_000 and 3_000 < refused < 9_990, refused
    finally:
        end_all([nginx])
