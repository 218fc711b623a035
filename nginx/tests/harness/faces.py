"""Programs of other languages that use the table of a file beside nginx: those of
ffi-tests/together (hammer.c says what they do), and the Python package in this process.

The Python extension is compiled here, because build/python belongs to the tests of Python, which
install it anew while these run."""

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from . import places

PYTHON = places.ROOT / "bindings" / "python"
TOGETHER = places.ROOT / "ffi-tests" / "together"
ARCHIVE = places.ROOT / "build" / "libtollbar.a"
INCLUDE = places.ROOT / "include"


def cc(*arguments):
    subprocess.run([os.environ.get("CC", "cc"), *arguments], check=True)


@functools.cache
def directory():
    """Where the programs are, until this process ends."""
    made = tempfile.TemporaryDirectory(prefix="tollbar-faces-")
    directory.kept = made
    return Path(made.name)


@functools.cache
def package():
    """The directory from which Python imports `tollbar`."""
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.is_file():
        raise places.Missing(
            f"{header} is not there: the Python that runs these tests needs its headers"
        )
    home = directory() / "python"
    shutil.copytree(
        PYTHON / "src" / "tollbar", home / "tollbar", ignore=shutil.ignore_patterns("__pycache__")
    )
    cc(
        "-std=gnu11",
        "-O1",
        "-shared",
        "-fPIC",
        "-fvisibility=hidden",
        "-DPy_LIMITED_API=0x030B0000",
        f"-I{header.parent}",
        f"-I{INCLUDE}",
        "-o",
        str(home / "tollbar" / "_core.abi3.so"),
        *map(str, sorted((PYTHON / "csrc").glob("*.c"))),
        str(ARCHIVE),
        "-Wl,--exclude-libs,ALL",
        "-Wl,--gc-sections",
    )
    return home


@functools.cache
def tollbar():
    """The Python package, in this process."""
    sys.path.insert(0, str(package()))
    sys.dont_write_bytecode = True
    import tollbar as module  # noqa: PLC0415

    return module


@functools.cache
def driver():
    """The driver of ffi-tests/together, as a module: its processes, boards and policy."""
    tollbar()
    spec = importlib.util.spec_from_file_location("together_driver", TOGETHER / "driver.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def hammers():
    """The commands of the programs: {language: words}. Each takes three more: the table, its board
    and the policy."""
    made = directory()
    cc(
        "-std=c99",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{INCLUDE}",
        "-o",
        str(made / "hammer"),
        str(TOGETHER / "hammer.c"),
        str(ARCHIVE),
    )
    go = shutil.which("go", path=os.environ.get("PATH", "") + ":/usr/local/go/bin")
    if not go:
        raise places.Missing("go is not installed")
    here = places.ROOT / "bindings" / "go"
    subprocess.run(
        ["sh", "-ec", f'. "$here/env.sh"; cd {TOGETHER}/gohammer; go build -o {made}/gohammer .'],
        check=True,
        env={
            **os.environ,
            "here": str(here),
            "root": str(places.ROOT),
            "PATH": f"{os.environ['PATH']}:{Path(go).parent}",
        },
    )
    python = [
        "env",
        f"PYTHONPATH={package()}",
        "PYTHONDONTWRITEBYTECODE=1",
        sys.executable,
        str(TOGETHER / "hammer.py"),
    ]
    return {"c": [str(made / "hammer")], "python": python, "go": [str(made / "gohammer")]}


def without_times(path):
    """A table's file without the pair of times that each process notes that opens it, for a restart
    of the machine."""
    content = path.read_bytes()
    return content[:128] + content[144:]
