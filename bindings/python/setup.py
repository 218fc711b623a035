"""Builds tollbar._core and tollbar._redis: C against the stable ABI of Python 3.11, linked
statically with libtollbar.a and libtollbar-redis.a. The second is imported when a lease is made.

The library comes from the checkout that TOLLBAR_ROOT names, or from the one that this directory is
part of. In an unpacked sdist it is built from the sources in core/, with Rust; where there is no
Rust it is what `make install` told pkg-config about.
"""

import hashlib
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
# The library's sources in an sdist.
CORE = HERE / "core"


def build(root: Path) -> Path:
    """Where the archives of a checkout are, built anew if its sources are newer: make compares
    their times."""
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


def compile_core() -> Path:
    """Where the archives of an sdist are, built by its sources' own script."""
    try:
        subprocess.run(["tools/lib.sh", "build", "1"], cwd=CORE, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"tollbar: tools/lib.sh in {CORE} failed ({error}); expected: a C compiler, and Rust's cargo in PATH") from error
    return CORE / "build"


def rules() -> Path | None:
    """libtollbar-rules: the file that TOLLBAR_RULES names, or that of a checkout, if `make rules` has
    built it from the present sources. A wheel for musl has none."""
    if given := os.environ.get("TOLLBAR_RULES"):
        return Path(given)
    root = Path(os.environ.get("TOLLBAR_ROOT") or HERE.parent.parent)
    library = root / "build" / "libtollbar-rules.so"
    if "TOLLBAR_ARCHIVES" in os.environ or not library.is_file():
        return None
    question = ["make", "--silent", "--question", "rules"]
    return library if subprocess.run(question, cwd=root, capture_output=True).returncode == 0 else None


def libraries() -> tuple[str, Path]:
    """The directory of the headers, and that of the archives."""
    if given := os.environ.get("TOLLBAR_ARCHIVES"):
        return str(Path(os.environ["TOLLBAR_ROOT"]) / "include"), Path(given)
    root = Path(os.environ.get("TOLLBAR_ROOT") or HERE.parent.parent)
    if (root / "include" / "tollbar.h").is_file() and (root / "Makefile").is_file():
        return str(root / "include"), build(root)
    has_rust = shutil.which("cargo", path=f"{os.environ.get('PATH', '')}:{Path.home()}/.cargo/bin")
    if (CORE / "Cargo.toml").is_file() and has_rust:
        return str(CORE / "include"), compile_core()
    try:
        asked = [
            subprocess.run(
                ["pkg-config", f"--variable={name}", "tollbar"], check=True, capture_output=True, text=True
            ).stdout.strip()
            for name in ("includedir", "libdir")
        ]
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(
            "tollbar: no cargo in PATH to build the library with (https://rustup.rs), and pkg-config knows no tollbar; "
            "expected: Rust, or `make install` in a checkout of tollbar"
        ) from error
    return asked[0], Path(asked[1])


class WithCore(sdist):
    """An sdist has the library's sources, so that Rust is all that it needs."""

    def run(self) -> None:
        source = Path(os.environ.get("TOLLBAR_ROOT") or HERE.parent.parent) / "packaging" / "source.sh"
        if not source.is_file():
            super().run()
            return
        try:
            subprocess.run([source, CORE], check=True)
            super().run()
        finally:
            shutil.rmtree(CORE, ignore_errors=True)


class Modules(build_py):
    """setuptools copies modules to where the last build left its own, and packs all that is there:
    a removed module, too. The library that tollbar.rules loads goes beside them."""

    def run(self) -> None:
        package = Path(self.build_lib, "tollbar")
        for path in (*package.glob("*.py*"), *package.glob("libtollbar-rules*")):
            path.unlink()
        super().run()
        library = rules()
        if library is not None:
            shutil.copy(library, package / "libtollbar-rules.so.1")


def digest(*things: str | None | Path) -> str:
    """A short name for what a build depends on: texts, and the contents of files."""
    hashed = hashlib.sha256()
    for thing in things:
        hashed.update(thing.read_bytes() if isinstance(thing, Path) else str(thing).encode())
        hashed.update(b"\0")
    return hashed.hexdigest()[:16]


include, archives = libraries()
# A free-threaded interpreter has no stable ABI: there the same sources are built for that one
# version.
limited = not sysconfig.get_config_var("Py_GIL_DISABLED")


def extension(name: str, sources: str, headers: list[str], archive: str) -> Extension:
    """The module `name` of the C files in `sources`."""
    return Extension(
        name,
        sources=sorted(f"{sources}/{path.name}" for path in (HERE / sources).glob("*.c")),
        depends=headers,
        include_dirs=[include],
        extra_objects=[str(archives / archive)],
        define_macros=[("Py_LIMITED_API", "0x030B0000")] if limited else [],
        py_limited_api=limited,
        extra_compile_args=["-std=gnu11", "-O2", "-Wall", "-Wextra", "-fvisibility=hidden"],
        # The module exports PyInit only, so it does not clash with another libtollbar in the
        # process. The linker drops the functions of the library that the module does not call.
        extra_link_args=["-Wl,--exclude-libs,ALL", "-Wl,--gc-sections"],
    )


# setuptools takes an object for fresh that another compiler has made, or that another archive is
# linked into. So what is compiled is kept by compiler, interpreter, headers and archives.
kept = digest(
    *(os.environ.get(name) for name in ("CC", "CFLAGS", "LDFLAGS", "LDSHARED", "_PYTHON_HOST_PLATFORM")),
    sysconfig.get_platform(),
    sysconfig.get_config_var("EXT_SUFFIX"),
    *sorted(Path(include).glob("*.h")),
    *sorted(archives.glob("libtollbar*.a")),
)
options = {"build": {"build_base": f"build/{kept}"}}
if limited:
    options["bdist_wheel"] = {"py_limited_api": "cp311"}
setup(
    cmdclass={"build_py": Modules, "sdist": WithCore},
    ext_modules=[
        extension("tollbar._core", "csrc", ["csrc/core.h"], "libtollbar.a"),
        extension("tollbar._redis", "csrc/redis", ["csrc/core.h", "csrc/redis/redis.h"], "libtollbar-redis.a"),
    ],
    options=options,
)
