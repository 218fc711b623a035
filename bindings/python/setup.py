"""Builds tollbar._core and tollbar._redis: C against the stable ABI of Python 3.11, linked statically with libtollbar.a and
libtollbar-redis.a. The second is imported when a lease is made.

The library comes from the checkout this directory is part of, from the checkout that TOLLBAR_ROOT names, or,
when neither is there (in an unpacked sdist), from what `make install` told pkg-config about.
"""

import os
import subprocess
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

HERE = Path(__file__).resolve().parent


def build(root: Path) -> Path:
    """Where the archives of a checkout are, built anew if its sources are newer: make compares their times."""
    archive = root / "build" / "libtollbar.a"
    question = ["make", "--silent", "--question", "lib"]
    try:
        stale = subprocess.run(question, cwd=root, capture_output=True).returncode != 0
        if stale:
            subprocess.run(["make", "--silent", "lib"], cwd=root, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        is_there = "is older than the sources" if archive.is_file() else "is not there"
        raise SystemExit(
            f"tollbar: {archive} {is_there}, and `make lib` in {root} failed ({error}); expected: make, and Rust's cargo in PATH"
        ) from error
    return archive.parent


def libraries() -> tuple[str, Path]:
    """The directory of the headers, and that of the archives."""
    root = Path(os.environ.get("TOLLBAR_ROOT") or HERE.parent.parent)
    if (root / "include" / "tollbar.h").is_file():
        return str(root / "include"), build(root)
    try:
        asked = [
            subprocess.run(
                ["pkg-config", f"--variable={name}", "tollbar"], check=True, capture_output=True, text=True
            ).stdout.strip()
            for name in ("includedir", "libdir")
        ]
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(
            "tollbar: no checkout here, TOLLBAR_ROOT is not set, and pkg-config knows no tollbar; "
            "`make install` in a checkout first"
        ) from error
    return asked[0], Path(asked[1])


include, archives = libraries()
# A free-threaded interpreter has no stable ABI: there the same sources are built for that one version.
limited = not sysconfig.get_config_var("Py_GIL_DISABLED")


def extension(name: str, sources: str, headers: list[str], archive: str) -> Extension:
    """The module `name` of the C files in `sources`."""
    return Extension(
        name,
        sources=sorted(f"{sources}/{path.name}" for path in (HERE / sources).glob("*.c")),
        depends=[*headers, str(archives / archive)],
        include_dirs=[include],
        extra_objects=[str(archives / archive)],
        define_macros=[("Py_LIMITED_API", "0x030B0000")] if limited else [],
        py_limited_api=limited,
        extra_compile_args=["-std=gnu11", "-O2", "-Wall", "-Wextra", "-fvisibility=hidden"],
        # Only the module's PyInit leaves it, so that another libtollbar in the process is no matter.
        extra_link_args=["-Wl,--exclude-libs,ALL"],
    )


core = ["csrc/core.h", f"{include}/tollbar.h"]
setup(
    ext_modules=[
        extension("tollbar._core", "csrc", core, "libtollbar.a"),
        extension(
            "tollbar._redis", "csrc/redis", [*core, "csrc/redis/redis.h", f"{include}/tollbar_redis.h"], "libtollbar-redis.a"
        ),
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if limited else {},
)
