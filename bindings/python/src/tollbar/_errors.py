"""The exceptions. tollbar._core makes them by the two functions at the end."""

import os


class Error(Exception):
    """An error of tollbar. `code` and `name` are the number and the name of the result in
    tollbar.h."""

    code: int = 0
    name: str = ""

    # BaseException takes anything too, but does not tell inspect.signature so.
    def __init__(self, *args: object) -> None:
        super().__init__(*args)


class PolicyError(Error, ValueError):
    """A policy's text was refused. `column`, from 1, is where the wrong part of it begins, and
    `expected` is what was expected there."""

    column: int = 0
    expected: str = ""
    text: str = ""


class TableError(Error, OSError, ValueError):
    """A table could not be made, opened or used. `errno` and `filename` are set where a system call
    failed."""


class QueueFull(Error):
    """A queue has no room: as many callers wait as the option `waiters` allows, or in a tollbar.Queue
    as many items as its capacity and its spare hold. Nothing has been charged."""

    reason: str = "queue full"

    def __init__(self, most: object, who: str = "callers", more: str = "the option `waiters` with a larger number") -> None:
        super().__init__(f"{most} {who} wait already; expected: fewer, or {more}")

    def __reduce__(self) -> tuple[type[Error], tuple[str]]:
        return Error, (str(self),)


class LeaseError(Error, ValueError):
    """A limit could not be leased, or a store's URL is invalid."""


# The ranges that tollbar.h gives the codes of policies, tables and leases, and one code by name.
# [lists: errors] written by cargo xtask lists
_POLICIES = range(-37, -9)
_NO_MEMORY = -40
_TABLES = range(-79, -49)
_LEASES = range(-96, -79)
# [lists: end]
# A table's error after those of the range: TOLLBAR_E_SLOT_ROOM.
_SLOT_ROOM = -106


def policy_error(code: int, name: str, expected: str, column: int, text: str) -> Exception:
    error = PolicyError(f"column {column}: {expected} (in {text!r})")
    error.code, error.name = code, name
    error.column, error.expected, error.text = column, expected, text
    return error


def call_error(code: int, name: str, message: str, errno: int, path: object) -> Exception:
    if code == _NO_MEMORY:
        return MemoryError(message)
    error: Error
    if code in _TABLES or code == _SLOT_ROOM:
        where = None if path is None else os.fspath(path)  # type: ignore[call-overload]
        if errno:
            error = TableError(errno, f"{message} ({os.strerror(errno)})", where)
        else:
            error = TableError(message if where is None else f"{message}: {where!r}")
    elif code in _POLICIES:
        error = PolicyError(message)
    elif code in _LEASES:
        error = LeaseError(message if path is None else f"{message}: {path}")
    else:
        error = Error(message)
    error.code, error.name = code, name
    return error
