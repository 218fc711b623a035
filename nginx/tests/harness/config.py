"""The text of a configuration: what every test has in common, around what it cares about."""

import os

from . import places

# The status is last and in brackets because it may be empty.
LOG_FORMAT = "log_format brief '$status $request_method $request_uri [$limit_req_status]';"

# An image of 43 bytes from memory. `return` would answer before any limit is asked.
CONTENT = "empty_gif;"

TEMP_PATHS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def load_lines(modules):
    # Always one line, so that the line numbers in nginx's messages are the same for every set of
    # modules.
    return " ".join(f"load_module {places.module(name)};" for name in modules) or "# nothing is loaded"


def text(*, modules=(), main="", http="", server="", stream="", ports=(), workers=1, listen="", log_level="info",
         daemon=False):
    """A whole configuration. @PORT0@, @PORT1@, … in the parts stand for ports; the server listens
    on the first."""
    # nginx started as root gives its workers another user, and that user cannot read the temporary
    # directory.
    user = "user root;" if os.getuid() == 0 else ""
    temp = "\n".join(f"    {name}_temp_path temp_{name};" for name in TEMP_PATHS)
    own_server = f"    server {{\n        listen 127.0.0.1:@PORT0@ {listen};\n{server}\n    }}" if server else ""
    whole = f"""{load_lines(modules)}
{user}
daemon {"on" if daemon else "off"};
pid nginx.pid;
lock_file nginx.lock;
error_log error.log {log_level};
worker_processes {workers};
{main}
events {{ worker_connections 2048; }}
http {{
{temp}
    {LOG_FORMAT}
    access_log access.log brief;
    root html;
    keepalive_requests 1000000;
{http}
{own_server}
}}
{stream and "stream {" + stream + "}"}
"""
    for i, port in enumerate(ports):
        whole = whole.replace(f"@PORT{i}@", str(port))
    return whole
