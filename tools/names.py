#!/usr/bin/env python3
"""Writes docs/names.md: the calls that most programs make, and their names in nine languages.

    tools/names.py            writes the page from tools/names.toml
    tools/names.py --check    fails if the page is another one

In both forms it looks for each name in the face's own sources, and fails for a name that the face
does not have, for a cell with neither a name nor a reason, and for a reason that no cell gives.
Ends with `N passed, N failed`."""

import ast
import functools
import re
import sys
import tomllib
from pathlib import Path

top = Path(__file__).resolve().parent.parent
page = top / "docs" / "names.md"
faces = {
    "rust": "Rust", "c": "C", "cpp": "C++", "python": "Python", "go": "Go",
    "lua": "LuaJIT", "php": "PHP", "node": "Node", "java": "Java",
}  # fmt: skip
HEAD = """# One call, nine languages

<!-- tools/names.py writes this page from tools/names.toml. -->

The calls that most programs make. One idea has one name: `_at` takes the caller's time, `_many` a batch, `peek` charges nothing, `check` charges and answers in
full ([parts of names](../CONTRIBUTING.md#the-order-of-items-and-names)). C has `tollbar_` before each name. A number stands for a call that a language does not
have, and leads to the reason below the table.

"""


@functools.cache
def text(pattern: str) -> str:
    """The files of a face, one after the other, without their tests."""
    paths = [path for path in sorted(top.glob(pattern)) if "test" not in path.stem]
    return "\n".join(path.read_text() for path in paths)


def blocks(source: str, begin: str) -> str:
    """What stands between each line that matches `begin` and the next line that begins with `}`."""
    return "\n".join(re.findall(rf"(?ms)^{begin}[^\n]*\{{\n(.*?)^\}}", source))


def rust(name: str) -> bool:
    of, _, method = name.rpartition("::")
    method = rf"pub (?:const |unsafe |async )*fn {method}\b"
    if of == "tollbar":
        return re.search(rf"(?m)^{method}", text("src/*/*.rs")) is not None
    if of.islower():
        return any(re.search(rf"(?m)^{method}", text(f"src/{place}")) for place in (f"{of}.rs", f"{of}/mod.rs", f"{of}/*.rs"))
    folders = ("src/*.rs", "src/*/*.rs", "src/*/*/*.rs", "crates/tollbar-r*/src/*.rs", "crates/tollbar-r*/src/*/*.rs")
    return any(re.search(rf"(?m)^    {method}", blocks(text(each), rf"impl(?:<[^\n]*?>)? {of}\b")) for each in folders)


def c(name: str) -> bool:
    return name in text("abi/*.symbols").split()


def cpp(name: str) -> bool:
    of, _, method = name.rpartition("::")
    if of in ("tollbar", "http"):
        return re.search(rf"(?m)^(?:inline|ready<)[^=;]*\b{method}\(", text("include/tollbar/*.hpp")) is not None
    return re.search(rf"(?m)^    [^/\n]*\b{method}\(", blocks(text("include/tollbar/*.hpp"), rf"(?:template <class T> )?class {of}\b")) is not None


@functools.cache
def python_parts() -> dict[str, set[str]]:
    """The functions of each class and module, and the parameters of each function."""
    found: dict[str, set[str]] = {}
    for path in sorted((top / "bindings/python/src/tollbar").glob("*.py*")):
        tree = ast.parse(path.read_text())
        module = path.stem if path.stem not in ("__init__", "_core") else "tollbar"
        for node in [tree, *ast.walk(tree)]:
            if not isinstance(node, (ast.Module, ast.ClassDef)):
                continue
            of = module if isinstance(node, ast.Module) else node.name
            for part in node.body:
                if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    found.setdefault(of, set()).add(part.name)
                if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    name = of if part.name in ("__new__", "__init__") else f"{of}.{part.name}"
                    parameters = {each.arg for each in part.args.args + part.args.kwonlyargs}
                    found.setdefault(f"{name}()", set()).update(parameters)
    return found


def python(name: str) -> bool:
    name, _, parameter = name.rstrip(")").partition("(")
    if parameter:
        return parameter in python_parts().get(f"{name}()", set())
    of, _, function = name.rpartition(".")
    return function in python_parts().get(of, set()) if of else name in python_parts()


def go(name: str) -> bool:
    *package, last = name.split(".")
    folder = f"{package.pop(0)}/" if package and package[0].islower() else ""
    receiver = rf"\(\w+ \*?{package[0]}(?:\[\w+\])?\) " if package else ""
    return re.search(rf"(?m)^func {receiver}{last}[\[(]", text(f"bindings/go/{folder}*.go")) is not None


def lua(name: str) -> bool:
    of, mark, function = re.split(r"([.:])", name)
    if mark == ":":
        kind = "".join(part.capitalize() for part in of.split("_"))
        return re.search(rf"(?m)^function {kind}:{function}\(", text(f"bindings/lua/tollbar/{of}.lua")) is not None
    if of == "tollbar":
        return re.search(rf"(?m)^    {function}\b", text("bindings/lua/tollbar.lua")) is not None
    return re.search(rf"(?m)^return \{{.*\b{function} = ", text(f"bindings/lua/tollbar/{of}.lua")) is not None


def php(name: str) -> bool:
    of, _, method = name.rpartition("::")
    source = blocks(text("bindings/php/Tollbar.php").replace("class Table\n{", "class Table {"), rf"final class {of}\b")
    return re.search(rf"(?m)^    public (?:static )?function {method}\(", source) is not None


def node(name: str) -> bool:
    of, _, function = name.rpartition(".")
    source = text("bindings/node/tollbar.js")
    if not of:
        return re.search(rf"(?m)^module\.exports = .*\b{function}\b", source) is not None
    return re.search(rf"(?m)^    (?:static )?(?:async )?{function}\(", blocks(source, f"class {of}")) is not None


def java(name: str) -> bool:
    of, _, method = name.rpartition(".")
    source = blocks(text("bindings/java/tollbar/Table.java"), f"public final class {of}")
    return re.search(rf"(?m)^    public (?:static )?[\w<>\[\], .]+ {method}\(", source) is not None


def shown(face: str, name: str) -> str:
    return f"`{name.removeprefix('tollbar_') if face == 'c' else name}`"


def main() -> int:
    read = tomllib.loads((top / "tools" / "names.toml").read_text())
    reasons, calls = read["reasons"], read["call"]
    passed, faults = 0, []
    given: dict[str, int] = {}
    lines = [f"| | {' | '.join(faces.values())} |", "|---" * (len(faces) + 1) + "|"]
    for call in calls:
        cells = []
        for face in faces:
            name, none = call.get(face), call.get("none", {}).get(face)
            fault = None
            if (name is None) == (none is None):
                fault = "a name and a reason" if name else "neither a name nor a reason"
            elif none is not None and none not in reasons:
                fault = f'the reason "{none}", which [reasons] does not have'
            elif name is not None and not globals()[face](name):
                fault = f"{name}, which its sources do not have"
            if fault:
                faults.append(f'"{call["does"]}", {faces[face]}: found {fault}')
            passed += fault is None
            cells.append(shown(face, name) if name else f"[{given.setdefault(none, len(given) + 1)}](#without-a-name)")
        lines.append(f"| {call['does']} | {' | '.join(cells)} |")
    for unused in sorted(set(reasons) - set(given)):
        faults.append(f'[reasons]: found "{unused}", which no cell gives')
    notes = "".join(f"{number}. {reasons.get(reason)}\n" for reason, number in given.items())
    made = HEAD + "\n".join(lines) + "\n\n## Without a name\n\n" + notes
    if "--check" not in sys.argv:
        page.write_text(made)
    elif not page.exists() or page.read_text() != made:
        faults.append("docs/names.md: found another page; expected: what tools/names.py writes")
    passed += page.exists() and page.read_text() == made
    for fault in faults:
        print(f"FAIL {fault}")
    print(f"{len(calls)} calls, {len(faces)} languages")
    print(f"{passed} passed, {len(faults)} failed")
    return len(faults) > 0


if __name__ == "__main__":
    sys.exit(main())
