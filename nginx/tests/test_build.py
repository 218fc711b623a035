"""`make nginx` on machines that lack something: what it asks for, which Rust it takes, and which
nginx it builds for."""

import subprocess
import sys

import pytest

from harness import places, server

SETUP = places.ROOT / "tools" / "setup.sh"
BUILD = places.ROOT / "nginx" / "build.sh"
LEAST = "1.81"


def program(directory, name, text):
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def rust(directory, version):
    """A toolchain that knows its version and nothing else."""
    for name in ("rustc", "cargo"):
        program(directory, name, f'echo "{name} {version} (0000000 2026-01-01)"')


@pytest.fixture
def machine(tmp_path):
    """Runs a script as an ordinary user of a machine that has these programs, and `more` in a
    directory that is first in PATH."""

    class Machine:
        home = tmp_path / "home"
        first = tmp_path / "first"
        usual = tmp_path / "usual"

        def run(self, *command, **environment):
            return subprocess.run(
                [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd=places.ROOT,
                env={"HOME": str(self.home), "PATH": f"{self.first}:{self.usual}", **environment})

    made = Machine()
    made.home.mkdir()
    made.first.mkdir()
    # A machine without nginx, wrk, curl and Python.
    for name in ("sh", "bash", "sed", "sort", "head", "tail", "tr", "cut", "dirname", "cat", "cksum", "mkdir", "rm", "ln", "cmp", "cp", "mv",
                 "env", "grep", "uname", "cc", "gcc", "make", "ld", "as", "mktemp", "printf", "awk", "expr", "ls", "chmod"):
        found = subprocess.run(["sh", "-c", f"PATH=/usr/bin:/bin command -v {name}"], stdout=subprocess.PIPE, text=True, check=False)
        if found.stdout.startswith("/"):
            program(made.usual, name, f'exec {found.stdout.strip()} "$@"')
    program(made.usual, "id", "echo 1000")
    return made


def test_a_build_asks_only_for_what_a_build_needs(machine):
    rust(machine.first, "1.90.0")
    done = machine.run(SETUP, "nginx")
    assert (done.returncode, done.stdout) == (0, "")


def test_the_tests_need_more(machine):
    """So that the machine above lacks what it is said to lack."""
    rust(machine.first, "1.90.0")
    done = machine.run(SETUP, "test")
    assert done.returncode == 1 and "wrk" in done.stdout and "curl" in done.stdout


def test_an_old_rust_is_named_with_the_version_that_is_needed(machine):
    rust(machine.first, "1.63.0")
    done = machine.run(SETUP, "nginx")
    assert done.returncode == 1
    assert done.stdout == f"Rust is too old: {machine.first}/rustc is 1.63.0, and {LEAST} or later is needed (https://rustup.rs)\n"


def test_no_rust_at_all(machine):
    done = machine.run(SETUP, "nginx")
    assert (done.returncode, done.stdout) == (1, f"missing: Rust {LEAST} or later (https://rustup.rs)\n")


@pytest.mark.parametrize("in_path, at_home, taken", [
    # Debian's old Rust in PATH and a newer one at home; only one at home; only one in PATH; twice,
    # the newer of two.
    ("1.63.0", "1.90.0", "1.90.0"), (None, "1.81.0", "1.81.0"), ("1.88.0", None, "1.88.0"), ("1.88.0", "1.63.0", "1.88.0"),
    ("1.88.0", "1.90.0", "1.90.0"),
])
def test_the_rust_that_is_taken(machine, in_path, at_home, taken):
    if in_path:
        rust(machine.first, in_path)
    if at_home:
        rust(machine.home / ".cargo" / "bin", at_home)
    done = machine.run("sh", "-c", ". tools/rust.sh && rustc --version && cargo --version")
    assert (done.returncode, [line.split()[1] for line in done.stdout.splitlines()]) == (0, [taken, taken]), done.stdout


def sources(directory, version):
    """What build.sh looks at before it configures anything."""
    (directory / "auto").mkdir(parents=True)
    (directory / "src" / "core").mkdir(parents=True)
    (directory / "src" / "core" / "nginx.h").write_text(f'#define NGINX_VERSION      "{version}"\n')
    program(directory, "configure", "echo configured; exit 3")
    return directory


def nginx_of(directory, version):
    return program(directory, "nginx", f'echo "nginx version: nginx/{version}" >&2')


def test_another_nginx_in_the_path_is_refused(machine, tmp_path):
    """Without a word which sources, those of nginx-dev are meant, and the nginx that they are
    of."""
    found = nginx_of(machine.first, "1.31.5")
    tree = sources(tmp_path / "tree", "1.22.1")
    done = machine.run(BUILD, tmp_path / "out", TOLLBAR_NGINX_DEV=str(tree))
    assert done.returncode == 1 and "configured" not in done.stdout
    assert done.stdout == (
        f"{found} is nginx 1.31.5, and {tree} has the sources of 1.22.1: modules of these would not load there.\n"
        "For that nginx: make nginx NGINX_SRC=directory of its sources; for 1.22.1: "
        f"make nginx NGINX_SRC={tree}\n")


@pytest.mark.parametrize("chosen", [True, False])
def test_sources_that_fit_or_were_chosen_are_built(machine, tmp_path, chosen):
    nginx_of(machine.first, "1.31.5" if chosen else "1.22.1")
    tree = sources(tmp_path / "tree", "1.22.1")
    done = machine.run(BUILD, tmp_path / "out", *([tree] if chosen else []), TOLLBAR_NGINX_DEV=str(tree))
    assert done.returncode == 1 and done.stdout.endswith("configured\n")
    assert ("for nginx 1.22.1" in done.stdout) == chosen


def test_no_sources(machine, tmp_path):
    done = machine.run(BUILD, tmp_path / "out", TOLLBAR_NGINX_DEV=str(tmp_path / "none"))
    assert done.returncode == 1
    assert done.stdout == f"{tmp_path}/none is not nginx's source: install nginx-dev, or make nginx NGINX_SRC=directory\n"


def test_nginx_is_found_where_debian_has_it():
    """As an ordinary user, whose PATH has no /usr/sbin."""
    run = subprocess.run([sys.executable, "-c", "from harness import places; print(places.program('nginx'))"],
                         cwd=places.ROOT / "nginx" / "tests", env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}, stdout=subprocess.PIPE, text=True, check=True)
    assert run.stdout.strip().endswith("/nginx")


def test_the_variable_that_nginx_reads_is_not_read_here(tmp_path, monkeypatch):
    """nginx takes NGINX for a list of sockets that it inherits. Somebody's is neither taken for the
    program, nor passed on."""
    monkeypatch.setenv("NGINX", "/nowhere/nginx")
    assert places.program("nginx") != "/nowhere/nginx"
    nginx = server.Nginx(tmp_path / "nginx", server="location / { empty_gif; }").start()
    try:
        assert nginx.get("/").status == 200
    finally:
        nginx.stop()
    assert nginx.said("inherited") == [] and nginx.said("socket number") == []


def test_the_program_can_be_chosen(monkeypatch, tmp_path):
    chosen = nginx_of(tmp_path, "1.0.0")
    monkeypatch.setenv("TOLLBAR_NGINX", str(chosen))
    assert places.program("nginx") == str(chosen)


FUTURE = """
#include_next <nginx.h>
#undef nginx_version
#define nginx_version 1099000
"""


@pytest.mark.parametrize("future", [False, True])
def test_the_rewrite_module_is_looked_into_only_in_versions_that_are_known(tmp_path, future):
    """Compiled for a version of nginx that nobody has looked at, the file asks nothing of the
    rewrite module."""
    built = places.MODULES
    tree = built / "tree" / "src"
    if future:
        (tmp_path / "nginx.h").write_text(FUTURE)
    includes = [tmp_path, places.ROOT / "nginx" / "http", places.ROOT / "nginx" / "common", places.ROOT / "include", built / "objects",
                *(tree / part for part in ("core", "event", "event/modules", "os/unix", "http", "http/modules", "http/v2"))]
    subprocess.run(["cc", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-c", *[f"-I{path}" for path in includes], "-o", tmp_path / "o",
                    places.ROOT / "nginx" / "http" / "ngx_http_tollbar_return.c"], check=True)
    names = subprocess.run(["nm", tmp_path / "o"], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "T ngx_http_tollbar_returns" in names
    assert ("ngx_http_script_return_code" in names) == (not future)
