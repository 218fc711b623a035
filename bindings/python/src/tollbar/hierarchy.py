"""Hierarchy: classes with guaranteed rates and ceilings, that borrow what is idle."""

from __future__ import annotations

from types import TracebackType
from typing import ClassVar

from . import _core, _time


class Hierarchy(_core.Hierarchy):
    """Hierarchy("1000/s"): one rate, divided among classes, for example tenants and their users.

        nodes = tollbar.Table(Hierarchy.POLICY, 10_000, on_full="deny")
        shop = Hierarchy("1000/s", classes=8)
        acme = shop.add(Hierarchy.ROOT, "acme", "400/s")
        users = shop.add(acme, "users", "1/s", "50/s", keys=100)
        share = shop.take(nodes, users, "ann")

    Each class has a guaranteed rate and a ceiling, and borrows what is idle. The classes' nodes are
    keys of a table, so processes share them. tollbar.h ("Hierarchies") has the rules.

    `burst`, in seconds or as a timedelta, is the time for which a leaf may be ahead of its rate: 1
    ms to 10 s, and at least twenty permits of `rate`. `classes` is the most classes, the root
    included, and `policy` the number of POLICY in the table. Any number of threads may use one
    object at once. The object is a context manager.
    """

    __slots__ = ()

    POLICY: ClassVar[str] = _core.hierarchy_policy
    """The policy of a table's nodes."""
    ROOT: ClassVar[int] = _core.hierarchy_root
    """The class that Hierarchy() makes."""

    def __new__(cls, rate: str, burst: _time.Time = 0.1, *, classes: int = 1024, policy: int = 0) -> Hierarchy:
        return super().__new__(cls, rate, _time.nanoseconds(burst, "burst"), classes, policy)

    def __enter__(self) -> Hierarchy:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<Hierarchy, closed>" if self.closed else "<Hierarchy>"
