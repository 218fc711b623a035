"""The package as a whole: its types, its examples, what it exports."""

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import tollbar
from tollbar import _core, _redis, asgi, fastapi, flask, limits, wsgi

HERE = Path(__file__).resolve().parent.parent
INSTALLED = Path(tollbar.__file__).parent
# What mypy has read for one test, it need not read for the next.
CACHE = str(HERE.parent.parent / "build" / "mypy")
MYPY = ("-m", "mypy", "--strict", "--cache-dir", CACHE)
PYRIGHT = ("-m", "pyright", "--pythonpath", sys.executable)


def run(*command, **options):
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=300, **options)


def test_it_is_typed():
    assert (INSTALLED / "py.typed").is_file()
    sources = HERE / "src" / "tollbar"
    # pyright warns of each stub whose module is not beside it, because that is compiled.
    for checker in MYPY, (*PYRIGHT, "--level", "error"):
        done = run(*checker, str(sources), cwd=HERE)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_stubs_are_those_of_the_extensions(tmp_path):
    """mypy's stubtest compares every name, signature and base class of the stubs with what is
    imported."""
    allowed = HERE / "tests" / "stubtest.txt"
    # Django's modules are imported, too, and want settings.
    django = {**os.environ, "DJANGO_SETTINGS_MODULE": "django.conf.global_settings"}
    done = run("-m", "mypy.stubtest", "tollbar", "--allowlist", str(allowed), "--mypy-config-file", str(HERE / "pyproject.toml"), cwd=tmp_path, env=django)
    assert done.returncode == 0, done.stdout + done.stderr


TYPED = """
import asyncio, collections.abc, datetime, tollbar
from tollbar.wsgi import RateLimit
limiter = tollbar.Limiter("1/s")
left: int = limiter.check(2).remaining
after: int | None = limiter.check().retry_after_ns
ok: bool = tollbar.Table({"a": "1/s"}, 10).allow(b"key", policy="a")
many: bytes = tollbar.Table(["1/s"], 10).check_many([1, "b", b"c"])
asyncio.run(limiter.wait_async(datetime.timedelta(seconds=0)))
with tollbar.Table("1/s", 10) as table:
    table.check(memoryview(b"x"))
with tollbar.Lease("60/s burst 99", name="a", nodes=2, url="redis://127.0.0.1:1", on_change=print) as lease:
    more: int = lease.check("key", 2).remaining + lease.stats().granted
    state: str = lease.circuit
    waited: bool = lease.wait("key", 0.1, cost=2).allowed
    app = RateLimit(lambda environ, start: [], lease)

number: int | None = tollbar.SendWindow(4).acquire()
painted: str = tollbar.Meter(1000, 3000, 1500).color(5, "yellow")
shard: str | None = tollbar.route({"a": 1, "b": 2}, b"key")
of_list: int | None = tollbar.route(range(4), "key", seed=7)

# D2: @limit keeps the function's type.
@tollbar.limit("5/min")
def send(text: str, *, to: int = 1) -> str:
    return text

@tollbar.limit("5/min", wait=2, key=lambda user: user, cost=lambda user: 2)
async def ask(user: str) -> int:
    return 1

def by_user(user: str, n: int) -> str:
    return user

class Service:
    @tollbar.limit("5/min", key=lambda self, user, n: user)
    def keyed(self, user: str, n: int) -> str:
        return user

@tollbar.limit(tollbar.Table("5/min", 10), key=by_user)
async def events(user: str, n: int) -> collections.abc.AsyncIterator[int]:
    yield n

sent: str = send("hello", to=2)
asked: int = asyncio.run(ask("ann"))
kept: str = Service().keyed("ann", 1)
async def read() -> list[int]:
    return [n async for n in events("ann", 2)]
"""
MISTYPED = """
import tollbar, tollbar.fastapi, tollbar.flask
tollbar.fastapi.RateLimit("1/s", keyy=3)
tollbar.flask.RateLimit("1/s", skip=lambda request: request.adress)
tollbar.Limiter(5)
tollbar.Table("1/s", 10).check(1.5)
tollbar.Limiter("1/s").check("1")
text: str = tollbar.Limiter("1/s").allow()
tollbar.Limiter("1/s").nothing
tollbar.Meter(1, 1).color(5, "blue")
@tollbar.limit("5/min")
def send(text: str) -> str:
    return text
send(5)
"""


def test_users_are_checked_by_its_types(tmp_path):
    for name, text, errors in (("right.py", TYPED, 0), ("wrong.py", MISTYPED, 9)):
        (tmp_path / name).write_text(text)
        for checker in MYPY, PYRIGHT:
            done = run(*checker, name, cwd=tmp_path)
            assert done.stdout.count("error:" if checker is MYPY else " error: ") == errors, done.stdout + done.stderr


def test_d4_the_examples_pass_both_checkers():
    examples = HERE.parents[1] / "examples" / "python"
    files = sorted(path.name for path in examples.glob("*.py"))
    assert len(files) > 8
    # Celery and Django publish no types. mypy takes their names for Any, and --strict refuses some
    # uses of Any.
    for checker in (*MYPY, "--ignore-missing-imports", "--allow-subclassing-any", "--allow-untyped-decorators"), PYRIGHT:
        done = run(*checker, *files, cwd=examples)
        assert done.returncode == 0, done.stdout + done.stderr


DOCS = HERE.parents[1] / "docs"
DOCUMENTS = {"readme": HERE / "README.md", "manual": DOCS / "python.md", "from_limits": DOCS / "from-limits.md"}


def programs(document):
    return [part.split("```")[0] for part in document.read_text().split("```python\n")[1:]]


def test_the_documents_pass_both_checkers(tmp_path):
    for name, document in DOCUMENTS.items():
        (tmp_path / f"{name}.py").write_text("\n".join(programs(document)))
    for checker in MYPY, PYRIGHT:
        done = run(*checker, *(f"{name}.py" for name in DOCUMENTS), cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_stub_has_what_the_extension_has():
    core, redis = ((HERE / "src" / "tollbar" / f"{name}.pyi").read_text() for name in ("_core", "_redis"))
    for stub, thing in (
        (core, _core.Limiter),
        (core, _core.Table),
        (core, _core.Decision),
        (redis, _redis.Lease),
        (redis, _redis.Client),
    ):
        for name, value in vars(thing).items():
            if not name.startswith("__") and (callable(value) or inspect.isdatadescriptor(value)):
                assert f"def {name}(" in stub, f"{thing.__name__}.{name}"


def vars_of_all_bases(thing):
    """The members that tollbar defines in a class and its bases. Members of tuple, Exception and
    other classes of Python are left out."""
    return {k: v for base in reversed(thing.__mro__) if "tollbar" in base.__module__ for k, v in vars(base).items()}


FACES = {"asgi": asgi, "wsgi": wsgi, "fastapi": fastapi, "flask": flask}


def public():
    """All that users call: functions and classes, and the methods of those."""
    for module in (tollbar, asgi, wsgi, limits, fastapi, flask):
        for name in getattr(module, "__all__", ("RateLimit", "by_client")):
            thing = getattr(module, name)
            if callable(thing):
                yield f"{module.__name__}.{name}", thing
            if inspect.isclass(thing):
                for method, value in vars_of_all_bases(thing).items():
                    if not method.startswith("_") and callable(value):
                        yield f"{module.__name__}.{name}.{method}", getattr(thing, method)


@pytest.mark.parametrize(("name", "thing"), [pytest.param(*pair, id=pair[0]) for pair in public()])
def test_signatures_can_be_inspected(name, thing):
    assert inspect.signature(thing) is not None
    assert inspect.getdoc(thing) and "--\n" not in inspect.getdoc(thing), name


def test_every_option_has_a_name():
    """help() lists the options: no public function takes any keyword but those of a policy's
    text, and of storages, whose options `limits` reads from a URI."""
    for name, thing in public():
        kinds = {p.kind for p in inspect.signature(thing).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds or name.startswith(("tollbar.Policy.of",
            "tollbar.limits.")), name


def test_the_faces_have_the_same_options():
    """Middleware and decorators of all frameworks, and the type of Django's settings."""
    options = {name: set(inspect.signature(face.RateLimit).parameters) - {"app"} for name, face in FACES.items()}
    done = run("-c", "import tollbar.django; print(*tollbar.django.Options.__annotations__)",
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "django.conf.global_settings"})
    assert set(done.stdout.split()) == options["wsgi"] == options["asgi"] == options["fastapi"] == options["flask"], done.stderr
    assert {"skip", "enabled", "charge", "policy", "exempt", "headers"} <= options["wsgi"]


def test_signatures_are_those_of_the_stub():
    """Of each method of the extension: the names and defaults that it has are those that mypy
    checks users by."""
    seen = 0
    extensions = {"_core": _core, "_redis": _redis}
    nodes = [
        (extension, node)
        for name, extension in extensions.items()
        for node in ast.parse((HERE / "src" / "tollbar" / f"{name}.pyi").read_text()).body
    ]
    for extension, node in nodes:
        for function in node.body if isinstance(node, ast.ClassDef) else ():
            if not isinstance(function, ast.FunctionDef) or function.decorator_list or function.name.startswith("__"):
                continue
            arguments = function.args
            wanted = [a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
            defaults = [ast.literal_eval(d) for d in arguments.defaults + [d for d in arguments.kw_defaults if d]]
            is_ = inspect.signature(getattr(getattr(extension, node.name), function.name)).parameters.values()
            assert [p.name for p in is_] == wanted, (node.name, function.name)
            assert [p.default for p in is_ if p.default is not p.empty] == defaults, (node.name, function.name)
            positional = {p.name for p in is_ if p.kind is p.POSITIONAL_ONLY} - {"self"}
            assert positional == {a.arg for a in arguments.posonlyargs} - {"self"}, (node.name, function.name)
            seen += 1
    assert seen > 35


@pytest.mark.parametrize("extension", [_core, _redis])
def test_an_extension_is_of_the_stable_abi_and_exports_only_its_start(extension):
    path = Path(extension.__file__)
    name = extension.__name__.rpartition(".")[2]
    if hasattr(sys, "_is_gil_enabled") and not sys._is_gil_enabled():
        pytest.skip("a free-threaded interpreter has no stable ABI")
    assert path.name == f"{name}.abi3.so"
    symbols = subprocess.run(["nm", "-D", "--defined-only", str(path)], capture_output=True, text=True, check=True)
    assert [line.split()[-1] for line in symbols.stdout.splitlines()] == [f"PyInit_{name}"]


def test_importing_it_imports_no_event_loop():
    done = run("-c", "import sys, tollbar; print('asyncio' in sys.modules, 'numpy' in sys.modules)")
    assert done.stdout == "False False\n", done.stderr


def test_only_a_lease_loads_libtollbar_redis():
    program = """
import sys, tollbar
from tollbar import asgi, wsgi
wsgi.RateLimit(lambda environ, start: [], "1/s")
tollbar.Table("1/s", 10).allow("key")
assert {"Lease", "LeaseStats"} <= set(dir(tollbar)) and not hasattr(tollbar, "Leese")
print("tollbar._redis" in sys.modules)
tollbar.Lease
print("tollbar._redis" in sys.modules)
"""
    done = run("-c", program)
    assert done.stdout == "False\nTrue\n", done.stderr


def test_the_licences_are_with_it():
    from importlib.metadata import files

    assert {f.name for f in files("tollbar") if f.name.startswith("LICENSE")} == {"LICENSE-MIT", "LICENSE-APACHE"}


def test_the_example():
    done = run(str(HERE.parent.parent / "examples" / "python" / "logins.py"))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 6 and sum("passes" in line for line in lines) == 4
    assert lines[3].startswith("192.0.2.1: again in ") and lines[5] == "together they had 4"


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_the_documents(document):
    """The programs of a document run, in order, in one process."""
    assert programs(document)
    # The files of tables stay: another process may come later. Two runs on one machine have two
    # directories.
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        done = run("-c", "\n".join(programs(document)).replace("/dev/shm/", f"{directory}/"))
    assert done.returncode == 0, done.stderr


def test_the_benchmark():
    done = run(str(HERE / "bench.py"), "--smoke")
    assert done.returncode == 0, done.stderr
    assert "Table.allow" in done.stdout


# A checkout whose library is a text: what `make lib` was called for.
MAKEFILE = """
lib: build/libtollbar.a
build/libtollbar.a: src/lib.rs
\tmkdir -p build
\t$(BUILD)
"""


def checkout(path, build):
    for name in ("include", "src", "build"):
        (path / name).mkdir()
    (path / "include" / "tollbar.h").touch()
    (path / "src" / "lib.rs").write_text("new")
    (path / "Makefile").write_text(MAKEFILE.replace("$(BUILD)", build))
    return path / "build" / "libtollbar.a", path / "src" / "lib.rs"


def set_up(root):
    return run("setup.py", "--version", cwd=HERE, env={**os.environ, "TOLLBAR_ROOT": str(root)})


def test_installing_builds_a_library_that_is_stale(tmp_path):
    archive, source = checkout(tmp_path, "cp src/lib.rs $@ && echo built >>builds")
    archive.write_text("old")
    os.utime(archive, (1, 1))
    assert set_up(tmp_path).returncode == 0 and archive.read_text() == "new"
    # Not when nothing has changed, nor because of it.
    assert set_up(tmp_path).returncode == 0 and (tmp_path / "builds").read_text() == "built\n"
    source.write_text("newer")
    os.utime(archive, (1, 1))
    assert set_up(tmp_path).returncode == 0 and archive.read_text() == "newer"


# A compiler that logs its arguments and writes an empty file.
COMPILER = """#!/bin/sh
echo "$@" >>$log
while [ "$1" != -o ]; do shift; done
: >"$2"
"""


def test_a_build_by_another_compiler_takes_nothing_from_the_last(tmp_path):
    package = tmp_path / "package"
    shutil.copytree(HERE, package, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    compiled = []
    for name in ("one", "other", "one"):
        compiler, log = tmp_path / name, tmp_path / f"{name}.log"
        compiler.write_text(COMPILER.replace("$log", str(log)))
        compiler.chmod(0o755)
        environment = {**os.environ, "TOLLBAR_ROOT": str(HERE.parent.parent), "CC": str(compiler), "LDSHARED": f"{compiler} -shared"}
        done = run("setup.py", "build_ext", cwd=package, env=environment)
        assert done.returncode == 0, done.stderr
        compiled.append(log.read_text().count(" -c "))
    # All sources by each compiler, and nothing when the first comes again.
    assert compiled[0] == compiled[1] == compiled[2] == len(list(package.glob("csrc/**/*.c")))


def test_a_removed_module_is_not_installed(tmp_path):
    package = tmp_path / "package"
    shutil.copytree(HERE, package, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    module, environment = package / "src" / "tollbar" / "gone.py", {**os.environ, "TOLLBAR_ROOT": str(HERE.parent.parent)}
    module.write_text("")
    seen = []
    for _ in range(2):
        done = run("setup.py", "build_py", cwd=package, env=environment)
        assert done.returncode == 0, done.stderr
        built = {path.name for path in package.glob("build/*/lib*/tollbar/*")}
        assert {"__init__.py", "_core.pyi", "py.typed"} <= built
        seen.append("gone.py" in built)
        module.unlink(missing_ok=True)
    assert seen == [True, False]


@pytest.mark.parametrize(("there", "found"), [(True, "is older than the sources"), (False, "is not there")])
def test_installing_says_why_the_library_cannot_be_built(tmp_path, there, found):
    archive, _ = checkout(tmp_path, "no-such-cargo")
    if there:
        archive.write_text("old")
        os.utime(archive, (1, 1))
    done = set_up(tmp_path)
    assert done.returncode != 0 and f"{archive} {found}" in done.stderr and "cargo in PATH" in done.stderr


RULES = """
rules: build/libtollbar-rules.so
build/libtollbar-rules.so: src/lib.rs
\tfalse
"""


def test_the_library_of_rules_goes_into_the_package_if_it_is_fresh(tmp_path):
    root, package = tmp_path / "root", tmp_path / "package"
    root.mkdir()
    archive, source = checkout(root, "cp src/lib.rs $@")
    archive.write_text("made")
    with (root / "Makefile").open("a") as makefile:
        makefile.write(RULES)
    os.utime(source, (1, 1))
    shutil.copytree(HERE, package, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    library, seen = root / "build" / "libtollbar-rules.so", []
    for state in ("none", "fresh", "stale", "fresh"):
        if state != "none":
            library.write_text("rules")
            os.utime(library, (0, 0) if state == "stale" else None)
        done = run("setup.py", "build_py", cwd=package, env={**os.environ, "TOLLBAR_ROOT": str(root)})
        assert done.returncode == 0, done.stderr
        seen.append([path.read_text() for path in package.glob("build/*/lib*/tollbar/libtollbar-rules*")])
    assert seen == [[], ["rules"], [], ["rules"]]
    # Wheels for an index have none.
    environment = {**os.environ, "TOLLBAR_ROOT": str(root), "TOLLBAR_ARCHIVES": str(root / "build")}
    assert run("setup.py", "build_py", cwd=package, env=environment).returncode == 0
    assert not list(package.glob("build/*/lib*/tollbar/libtollbar-rules*"))


def test_rules_load_the_library_beside_them(tmp_path):
    shutil.copy(HERE / "src" / "tollbar" / "rules.py", tmp_path / "rules.py")
    names = re.findall(r'"(tollbar_rules_\w+)":', (tmp_path / "rules.py").read_text())
    assert len(names) > 8
    (tmp_path / "rules.c").write_text("\n".join(f"int {name}(void) {{ return 7; }}" for name in names))
    (tmp_path / "other").mkdir()
    for file in "libtollbar-rules.so.1", "other/mine.so":
        subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / file, tmp_path / "rules.c"], check=True)
    program = "import rules; print(rules._library()._name)"

    def load(name):
        return run("-c", program, cwd=tmp_path, env={**os.environ, "TOLLBAR_RULES_LIBRARY": name}).stdout.strip()

    loaded = {name: load(name) for name in ("", "other/mine.so")}
    assert loaded == {"": str(tmp_path / "libtollbar-rules.so.1"), "other/mine.so": "other/mine.so"}
    (tmp_path / "libtollbar-rules.so.1").unlink()
    environment = {name: value for name, value in os.environ.items() if name != "TOLLBAR_RULES_LIBRARY"}
    missing = run("-c", program, cwd=tmp_path, env={**environment, "LD_LIBRARY_PATH": str(tmp_path)})
    assert "expected: libtollbar-rules installed, `make rules` before pip install" in missing.stderr
