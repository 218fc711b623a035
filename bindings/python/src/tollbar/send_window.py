"""SendWindow: a limit on the permits of one process that are sent and not acknowledged, as in the
send window of TCP."""

from __future__ import annotations

from typing import NamedTuple

from . import _core


class SendWindowState(NamedTuple):
    """A window at one instant. `sent` and `acknowledged` count permits modulo 2**22."""

    # The most permits that may be in flight.
    limit: int
    # Permits sent and not acknowledged.
    in_flight: int
    # Permits that may be sent now.
    usable: int
    # The number of the last permit that was sent.
    sent: int
    # The number of the last permit that was acknowledged.
    acknowledged: int


class SendWindow(_core.SendWindow):
    """SendWindow(limit): at most `limit` permits, 2**20 - 1 at most, are sent and not acknowledged.

        number = window.acquire()
        if number is None:
            return wait_for_acknowledgement()
        send(number, message)
        ...
        window.acknowledge(answer.number)  # releases all permits up to this number

    Numbers count from 1 to 2**22, and begin again. A window has either calls of `acknowledge`,
    which is cumulative, or calls of `release`, which releases any permits. No call waits. Any number
    of threads may use one object at once.
    """

    __slots__ = ()

    def __new__(cls, limit: int) -> SendWindow:
        return super().__new__(cls, limit)

    def read(self) -> SendWindowState:
        """The state of the window. Another thread may change it at once."""
        return SendWindowState(*self._read())

    def __repr__(self) -> str:
        limit, in_flight, *_ = self._read()
        return f"<SendWindow, limit={limit}, in_flight={in_flight}>"
