"""Where the programs and the modules under test are, and a plain word when one of them is
missing."""

import os
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MODULES = Path(os.environ.get("TOLLBAR_NGINX_MODULES", ROOT / "build" / "nginx"))

DROPIN = "ngx_http_tollbar_limit_req_module.so"

STOCK_FLAVOUR = "stock"
DROPIN_FLAVOUR = "dropin"


class Missing(Exception):
    """Something a test needs is not there. A test that meets this fails; it is never skipped."""


def program(name):
    """Where it is; TOLLBAR_NGINX chooses another nginx, and so on."""
    # nginx reads the variable NGINX as a list of inherited sockets, so a variable of the user's
    # must not reach it.
    os.environ.pop("NGINX", None)
    # Debian keeps nginx in a directory that is not on every user's path.
    found = shutil.which(os.environ.get(f"TOLLBAR_{name.upper()}", name), path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not found:
        raise Missing(f"{name} is not installed")
    return found


def module(name):
    path = MODULES / name
    if not path.is_file():
        raise Missing(f"{name} is not in {MODULES}: `make nginx` builds it")
    return path


def modules_of(flavour):
    """The modules to load for one flavour of limit_req."""
    return {STOCK_FLAVOUR: [], DROPIN_FLAVOUR: [DROPIN]}[flavour]
