"""trio's event loop. Only programs that have imported trio run it, so nothing here imports it
before."""

from __future__ import annotations

import sys
from contextlib import suppress


def is_running() -> bool:
    """Whether the caller is a task of trio."""
    trio = sys.modules.get("trio")
    return trio is not None and bool(trio.lowlevel.in_trio_task())


class Bell:
    """Wakes a task of this loop. Any thread rings it."""

    __slots__ = ("loop", "_rung")

    def __init__(self) -> None:
        import trio

        self.loop = trio.lowlevel.current_trio_token()
        self._rung = trio.Event()

    def ring(self) -> None:
        import trio

        # A loop that has ended needs no ring.
        with suppress(trio.RunFinishedError):
            self.loop.run_sync_soon(self._ring)

    def _ring(self) -> None:
        self._rung.set()

    async def wait(self, seconds: float) -> None:
        import trio

        with trio.move_on_after(seconds):
            await self._rung.wait()
        self._rung = trio.Event()
