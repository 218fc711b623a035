"""Checks what nothing here can run: workflows and Dockerfiles. Every script in them is one that a
shell takes, what they call or copy is in the repository, and what a workflow takes from another one
exists. Counts its checks."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

top = Path(__file__).resolve().parent.parent.parent
known = set(subprocess.run(["git", "ls-files"], cwd=top, capture_output=True, text=True, check=True).stdout.split("\n"))
targets = set(re.findall(r"^([a-z-]+):", (top / "Makefile").read_text(), re.M))
steps = set(re.findall(r"^([a-z0-9-]+)\)|^([a-z0-9 |-]+)\)", (top / "tools" / "setup.sh").read_text(), re.M))
parts = {word for group in steps for text in group for word in re.split(r"[ |]+", text) if word}
passed = failed = 0


def check(name: str, fault: str | None) -> None:
    global passed, failed
    if fault:
        failed += 1
        print(f"FAIL  {name}: {fault}")
    else:
        passed += 1
        print(f"ok    {name}")


def script_fault(script: str) -> str | None:
    """Why a script cannot work, as far as reading it shows."""
    script = re.sub(r"\$\{\{.*?\}\}", "x", script)
    done = subprocess.run(["sh", "-n"], input=script, capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr.strip()
    for path in re.findall(r"(?:^|[\s;&|=])((?:tools|packaging|tests|ffi-tests)/[\w./-]+\.(?:sh|py|c))\b", script):
        if path not in known:
            return f"found {path}; expected: a file of the repository"
    for target in re.findall(r"\bmake ([a-z][a-z-]*)", script):
        if target not in targets:
            return f"found make {target}; expected: a target of the Makefile"
    for words in re.findall(r"for part in ([^;]*);", script):
        for part in words.split():
            if part not in parts:
                return f"found {part}; expected: a part of tools/setup.sh"
    return None


crates = {path.parent.name: tomllib.loads(path.read_text())["package"] for path in (top / "crates").glob("*/Cargo.toml")}
crates["tollbar"] = tomllib.loads((top / "Cargo.toml").read_text())["package"]
# The command has no interface that Rust code could use.
libraries = [name for name in crates if name == "tollbar" or (top / "crates" / name / "src" / "lib.rs").exists()]
published = sorted(name for name in libraries if crates[name].get("publish", True))
semver = re.search(r"package: (.*)", (top / ".github" / "workflows" / "test.yml").read_text())
found = sorted(re.split(r",\s*", semver[1])) if semver else []
check("semver-checks knows the published libraries", None if found == published else f"found {found}; expected: {published}")
least = {package["rust-version"] for package in crates.values() if isinstance(package.get("rust-version"), str)}
workspace = tomllib.loads((top / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
tried = set(re.findall(r"rust-toolchain@([\d.]+)", (top / ".github" / "workflows" / "test.yml").read_text()))
check("each least Rust version is tried", None if tried == least | {workspace} else f"found {sorted(tried)}; expected: {sorted(least | {workspace})}")

# Each step is a job.
for name, variables in (("test", ["first", "waits", "links", "works"]), ("soak", ["steps"])):
    script = (top / "tools" / f"{name}.sh").read_text()
    listed = " ".join(re.search(rf'(?m)^{variable}="(.*)"$', script)[1] for variable in variables).split()
    jobs = yaml.safe_load((top / ".github" / "workflows" / f"{name}.yml").read_text())["jobs"]
    matrix = jobs[name]["strategy"]["matrix"]["step"]
    fault = None if sorted(matrix) == sorted(listed) else f"found {sorted(matrix)}; expected: {sorted(listed)}"
    check(f"{name}.yml has a job for each step of tools/{name}.sh", fault)

for workflow in sorted((top / ".github" / "workflows").glob("*.yml")):
    content = yaml.safe_load(workflow.read_text())
    # YAML takes the word on for true.
    check(f"{workflow.name} says when it runs and what it may", None if content.get(True) and content.get("permissions") else "expected: on, permissions")
    for name, job in content["jobs"].items():
        fault = None
        for need in [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", []):
            if need not in content["jobs"]:
                fault = f"found needs: {need}; expected: a job of this workflow"
        if called := job.get("uses"):
            other = top / called
            if not other.is_file() or "workflow_call" not in yaml.safe_load(other.read_text())[True]:
                fault = f"found uses: {called}; expected: a workflow with workflow_call"
        elif "runs-on" not in job:
            fault = "expected: runs-on"
        for step in job.get("steps", []):
            if ("run" in step) == ("uses" in step):
                fault = f"found {step}; expected: run or uses"
            fault = fault or ("run" in step and script_fault(step["run"])) or None
        # Tests lay out clean systems with mounts, which a container without the option refuses.
        makes_systems = any(re.search(r"\bmake (test|soak|packages-test)\b", step.get("run", "")) for step in job.get("steps", []))
        container = job.get("container")
        options = container.get("options", "") if isinstance(container, dict) else ""
        if container and makes_systems and "--privileged" not in options:
            fault = fault or f"found container: {container}; expected: options: --privileged, for mounts"
        check(f"{workflow.name}: {name}", fault)

for dockerfile in sorted((top / "packaging" / "docker").glob("*.Dockerfile")):
    lines = re.sub(r"\\\n", " ", dockerfile.read_text()).split("\n")
    fault = None if any(line.startswith("FROM ") for line in lines) else "expected: FROM"
    stages = set()
    for line in lines:
        word, _, rest = line.partition(" ")
        if word in ("", "#") or word.startswith("#"):
            continue
        if word not in ("ARG", "FROM", "RUN", "COPY", "WORKDIR", "ENV", "USER", "ENTRYPOINT"):
            fault = fault or f"found {word}"
        if word == "RUN":
            fault = fault or script_fault(rest)
        if word == "FROM" and " AS " in rest:
            stages.add(rest.split(" AS ")[1])
        if word == "COPY":
            *sources, _ = [part for part in rest.split() if not part.startswith("--from")]
            stage = re.search(r"--from=(\S+)", rest)
            if stage and stage[1] not in stages:
                fault = fault or f"found --from={stage[1]}; expected: a stage above"
            for source in [] if stage else sources:
                # `make static` makes what is below build/static.
                if not (source.startswith("build/static/") and "static" in targets or (top / source).exists()):
                    fault = fault or f"found {source}; expected: a file of the repository"
    check(dockerfile.name, fault)
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
