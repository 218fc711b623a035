"""Programs run with a library of ours before the system's."""

import os
import subprocess

from . import places


def library(home, name):
    """Builds time/NAME.c."""
    built = home / f"{name}.so"
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu99", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o", built,
                    places.ROOT / "nginx" / "tests" / "time" / f"{name}.c"], check=True)
    return built


def wrapper(built, **environment):
    """What stands before the program's name."""
    return ["env", f"LD_PRELOAD={built}", *[f"{name}={value}" for name, value in environment.items()]]
