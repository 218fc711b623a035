"""command.py BINARY ARCHITECTURE DIRECTORY [WRITER]: a wheel with the command, tollbar-command, into the directory. pip puts it
on the PATH of the environment, for programs of any libc: the binary is static. WRITER is the command for this machine, which
writes the manual pages and completions."""

import base64
import hashlib
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

top = Path(__file__).resolve().parent.parent
binary, architecture, out = Path(sys.argv[1]).resolve(), sys.argv[2], Path(sys.argv[3])
writer = str(Path(sys.argv[4]).resolve()) if len(sys.argv) > 4 else str(binary)
version = tomllib.loads((top / "Cargo.toml").read_text())["workspace"]["package"]["version"]
when = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315_532_800))[:6]
name = f"tollbar_command-{version}"
tags = [f"manylinux_2_17_{architecture}", f"manylinux2014_{architecture}", f"musllinux_1_2_{architecture}"]

METADATA = f"""Metadata-Version: 2.4
Name: tollbar-command
Version: {version}
Summary: The command of tollbar: replays logs, checks rules, shows and changes tables
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-APACHE
License-File: LICENSE-MIT
Project-URL: Homepage, https://github.com/tollbar/tollbar
Requires-Python: >=3.11
Description-Content-Type: text/markdown

`pip install tollbar[command]` brings the command `tollbar`. `tollbar --help` says what it does.
"""
WHEEL = f"Wheel-Version: 1.0\nGenerator: tollbar\nRoot-Is-Purelib: false\n{''.join(f'Tag: py3-none-{tag}{chr(10)}' for tag in tags)}"

files: dict[str, bytes] = {f"{name}.data/scripts/tollbar": binary.read_bytes()}
with tempfile.TemporaryDirectory() as manual:
    subprocess.run([writer, "man", manual], check=True)
    for page in sorted(Path(manual).iterdir()):
        files[f"{name}.data/data/share/man/man1/{page.name}"] = page.read_bytes()
for shell, place in (
    ("bash", "bash-completion/completions/tollbar"),
    ("zsh", "zsh/site-functions/_tollbar"),
    ("fish", "fish/vendor_completions.d/tollbar.fish"),
):
    files[f"{name}.data/data/share/{place}"] = subprocess.run([writer, "completions", shell], check=True, capture_output=True).stdout
for license in ("LICENSE-APACHE", "LICENSE-MIT"):
    files[f"{name}.dist-info/licenses/{license}"] = (top / license).read_bytes()
files[f"{name}.dist-info/METADATA"] = METADATA.encode()
files[f"{name}.dist-info/WHEEL"] = WHEEL.encode()
record = f"{name}.dist-info/RECORD"
lines = []
for path, content in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    lines.append(f"{path},sha256={digest},{len(content)}\n")
files[record] = "".join([*lines, f"{record},,\n"]).encode()

out.mkdir(parents=True, exist_ok=True)
wheel = out / f"{name}-py3-none-{'.'.join(tags)}.whl"
with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for path, content in files.items():
        entry = zipfile.ZipInfo(path, when)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.create_system = 3
        entry.external_attr = (0o100755 if "/scripts/" in path else 0o100644) << 16
        archive.writestr(entry, content)
print(wheel)
