"""Load by wrk, and what it counted."""

import re
import subprocess
from dataclasses import dataclass

from . import places

# Each thread counts its own requests; with the prefix no key is ever asked twice.
FRESH_KEYS = """
local threads = 0
function setup(thread)
    thread:set("id", threads)
    threads = threads + 1
end
function init(args)
    prefix = args[1]
    n = 0
end
function request()
    n = n + 1
    return wrk.format("GET", "/?k=" .. prefix .. "." .. id .. "." .. n)
end
"""


@dataclass
class Counted:
    requests: int
    refused: int
    seconds: float

    @property
    def admitted(self):
        return self.requests - self.refused


def begin(nginx, connections, seconds, threads=1, path="/", fresh=None, script=None):
    """Start wrk. With `fresh`, every request has a key that no other has, beginning with that word;
    `script` is Lua of one's own."""
    command = [places.program("wrk"), f"-t{threads}", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s"]
    tail = []
    if fresh or script:
        path_of_script = nginx.home / "keys.lua"
        path_of_script.write_text(script or FRESH_KEYS)
        command += ["-s", str(path_of_script)]
        tail = ["--", fresh or "-"]
    return subprocess.Popen([*command, f"http://127.0.0.1:{nginx.port}{path}", *tail], stdout=subprocess.PIPE)


def end(wrk):
    said = wrk.communicate(timeout=300)[0].decode()
    total = re.search(r"(\d+) requests in ([\d.]+)(m?)s", said)
    assert wrk.returncode == 0 and total, "wrk said: " + said
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    return Counted(int(total[1]), int(refused[1]) if refused else 0, float(total[2]) / (1000 if total[3] else 1))
