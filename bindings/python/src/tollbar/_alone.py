"""Warnings about a table that is meant for several processes, and that each of them has for
itself."""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path

# What starts several workers for one application.
_SERVERS = ("daphne", "granian", "gunicorn", "hypercorn", "uvicorn", "uwsgi")


def warn_of_workers(policy: str) -> None:
    """Warns if this process is one of several workers of a server: each has made a table of its own
    of the policy."""
    count = _workers() if any(server in sys.modules for server in _SERVERS) else 1
    if count > 1:
        shared = f'tollbar.Table.open("/run/app/limits", {policy!r}, 100_000)'
        warnings.warn(
            f"{count} workers have a table of {policy!r} each, so together they admit {count} times as much; expected: {shared}, one table for all",
            RuntimeWarning,
            stacklevel=2,
        )


def warn_of_spawn() -> None:
    """Warns if this process was not forked: what its parent has made is not in its memory."""
    # In processes that the multiprocessing module spawns, also by a fork server, the main module
    # has this name.
    if getattr(sys.modules.get("__mp_main__"), "__name__", "") == "__mp_main__":
        warnings.warn(
            "shared=True shares a table with processes that are forked later, and this process was spawned: its table is not its parent's; expected: "
            'tollbar.Table.open("/run/app/limits", ...), one table for all',
            RuntimeWarning,
            stacklevel=3,
        )


def _workers() -> int:
    """The processes with this one's command line that its parent has started, itself included; 1
    where the system does not tell."""
    try:
        parent = os.getppid()
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return [_command(child) for child in children].count(_command("self"))
    except OSError:
        return 1


def _command(process: str) -> bytes:
    # Spawned workers differ in the numbers of their descriptors.
    return re.sub(rb"\d+", b"", Path(f"/proc/{process}/cmdline").read_bytes())
