"""Schedules: another policy by time of day and day of the week."""

from __future__ import annotations

import time

from . import _core
from .policy import Policy


class Schedule:
    """A parsed schedule: Schedule("1000/min, mon-fri 09:00-18:00 100/min, zone Europe/Berlin").

    tollbar.h ("Schedules") describes the text. A limiter or a table follows it if one thread sets
    the policy in force once a second:

        limiter.set_policy(schedule.policy())

    All processes of a table may do so, because they agree about the policy, and a policy that is in
    force already changes nothing.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = _core.schedule_text(text)

    def policy(self, at: int | None = None) -> Policy:
        """The policy in force now, or at a time in nanoseconds since 1970."""
        return self.in_force(at)[0]

    def in_force(self, at: int | None = None) -> tuple[Policy, int | None]:
        """The policy in force, and the time in nanoseconds since 1970 at which another comes into
        force; None if none does."""
        text, until = _core.schedule_at(self._text, time.time_ns() if at is None else at)
        return Policy(text), until

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Schedule({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Schedule) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[type[Schedule], tuple[str]]:
        return Schedule, (self._text,)
