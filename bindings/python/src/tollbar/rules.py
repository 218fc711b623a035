"""Rate limits from a file in TOML or YAML (docs/rules.md), by libtollbar-rules.

    rules = tollbar.rules.Rules("site.toml")
    answer = rules.check({":method": "GET", ":path": "/blog/1", ":address": "198.51.100.7", "user-agent": "curl"})
    if not answer.allowed:
        return answer.status, answer.body

The library is the one in the package: that of the wheels for glibc, or of a checkout in which
`make rules` had built it. Otherwise it is the system's. The environment variable
TOLLBAR_RULES_LIBRARY names another.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Answer", "Rules", "RulesError"]

_ERROR_BYTES = 65536


class RulesError(ValueError):
    """Rules that cannot be read or decided. The text has a line for each fault: "FILE:LINE:COLUMN:
    FIELD: found; expected what"."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The decision on a request."""

    verdict: int
    """0 allowed, 1 denied, 2 never."""
    reason: int
    """A TOLLBAR_REASON_ number."""
    status: int
    """The HTTP status to answer; 200 for a request that may pass."""
    body: str
    """The body to answer; empty for a request that may pass."""
    rule: str | None
    """The rule that refuses or, in an admission, has the fewest permits left. None if no rule matches."""
    remaining: int
    """Permits that are left."""
    retry_after: float
    """Seconds until the same request would pass; infinite if waiting does not help."""
    reset_after: float
    """Seconds until all limits are as good as fresh."""
    generation: int
    """The number of the set of rules that decided: each reload that succeeds adds 1."""
    taken: tuple[int, int] = (0, 0)
    """For Rules.settle: when the estimates were taken, and which shadows have taken nothing."""

    @property
    def allowed(self) -> bool:
        """Whether the request may pass."""
        return self.verdict == 0


class _Options(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("keys", ctypes.c_uint64),
        ("room", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


class _Field(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("name_length", ctypes.c_size_t),
        ("value", ctypes.c_char_p),
        ("value_length", ctypes.c_size_t),
    ]


class _Source(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("name_length", ctypes.c_size_t), ("rules", ctypes.c_void_p)]


class _Answer(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("verdict", ctypes.c_uint32),
        ("reason", ctypes.c_uint32),
        ("status", ctypes.c_uint32),
        ("remaining", ctypes.c_uint64),
        ("retry_after_ns", ctypes.c_uint64),
        ("reset_after_ns", ctypes.c_uint64),
        ("generation", ctypes.c_uint64),
        ("rule", ctypes.c_char * 64),
        ("body", ctypes.c_char * 256),
        ("limit", ctypes.c_uint64),
        ("period_ns", ctypes.c_uint64),
        ("burst", ctypes.c_uint64),
        ("taken_at_ns", ctypes.c_uint64),
        ("refused_shadows", ctypes.c_uint64),
    ]


@functools.cache
def _library() -> ctypes.CDLL:
    """Loaded with the first rules, because most programs have none."""
    beside = Path(__file__).with_name("libtollbar-rules.so.1")
    name = os.environ.get("TOLLBAR_RULES_LIBRARY") or (str(beside) if beside.is_file() else beside.name)
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        expected = "libtollbar-rules installed, `make rules` before pip install, or its path in TOLLBAR_RULES_LIBRARY"
        raise ImportError(f"{name} cannot be loaded ({error}); expected: {expected}") from error
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    fields, answer = ctypes.POINTER(_Field), ctypes.POINTER(_Answer)
    signatures: dict[str, tuple[object, list[object]]] = {
        "tollbar_rules_open": (ctypes.c_int32, [ctypes.c_char_p, ctypes.POINTER(_Options), ctypes.POINTER(pointer), ctypes.c_char_p, size]),
        "tollbar_rules_check": (ctypes.c_int32, [pointer, fields, size, answer]),
        "tollbar_rules_check_at": (ctypes.c_int32, [pointer, fields, size, ctypes.c_uint64, answer]),
        "tollbar_rules_settle": (ctypes.c_int32, [pointer, fields, size, answer]),
        "tollbar_rules_settle_at": (ctypes.c_int32, [pointer, fields, size, answer, ctypes.c_uint64]),
        "tollbar_rules_now": (ctypes.c_uint64, [pointer]),
        "tollbar_rules_reload": (ctypes.c_int32, [pointer, ctypes.c_char_p, size]),
        "tollbar_rules_reload_if_changed": (ctypes.c_int32, [pointer, ctypes.c_char_p, size]),
        "tollbar_rules_reset": (ctypes.c_int32, [pointer, ctypes.c_char_p, ctypes.c_char_p, size, ctypes.c_char_p, size]),
        "tollbar_rules_metrics": (
            ctypes.c_int32,
            [ctypes.POINTER(_Source), size, ctypes.c_uint32, ctypes.c_char_p, size, ctypes.POINTER(size)],
        ),
        "tollbar_rules_close": (None, [pointer]),
    }
    for call, (result, arguments) in signatures.items():
        function = getattr(library, call)
        function.restype, function.argtypes = result, arguments
    return library


_NEVER = 2**64 - 1


def _bytes(value: str | bytes) -> bytes:
    # Servers give headers as text of single bytes, or of escaped ones.
    return value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")


_Request = Mapping[str, str | bytes] | Iterable[tuple[str | bytes, str | bytes]]


def _fields(request: _Request) -> Any:
    """The fields of a request as an array of C's."""
    items: Any = request.items() if isinstance(request, Mapping) else request
    pairs = [(_bytes(name), _bytes(value)) for name, value in items]
    return (_Field * len(pairs))(*[_Field(name, len(name), value, len(value)) for name, value in pairs])


class Rules:
    """Rules in force. Any number of threads may check requests while another one reloads."""

    def __init__(self, path: str | os.PathLike[str], *, keys: int = 100_000, shared: bool = False,
        room: int = 0) -> None:
        """Reads the file. `keys`: how many keys can have a debt at one time; a key counts once for
        each of its limits. `shared`: the states are shared with the processes that this one forks
        later, and only this process can reload. `room`: the most segments of a sliding window, or
        permits of a sliding log, for which each key has room; a reload may then turn any algorithm
        into any other, and keys keep the permits that they have left."""
        if not 0 <= room < 2**32:
            raise ValueError(f"room {room}: expected 0 to {2**32 - 1}")
        self._rules = ctypes.c_void_p()
        library = _library()
        options = _Options(ctypes.sizeof(_Options), int(shared), keys, room, 0)
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        code = library.tollbar_rules_open(os.fsencode(path), options, self._rules, error, _ERROR_BYTES)
        self._raise(code, error)

    def check(self, request: _Request, *, now_ns: int | None = None) -> Answer:
        """Takes the request's cost of all limits of all rules that it matches, or of none. A
        request is a mapping or pairs of names and values: ":method", ":path", ":address", other
        words of the server with a colon, and headers. `now_ns` is on the scale of `now_ns()`."""
        fields = _fields(request)
        out = _Answer(ctypes.sizeof(_Answer))
        if now_ns is None:
            code = _library().tollbar_rules_check(self._open(), fields, len(fields), out)
        else:
            code = _library().tollbar_rules_check_at(self._open(), fields, len(fields), now_ns, out)
        self._raise(code, None)
        seconds = [float("inf") if ns == _NEVER else ns / 1e9 for ns in (out.retry_after_ns, out.reset_after_ns)]
        return Answer(
            out.verdict, out.reason, out.status, out.body.decode(), out.rule.decode() or None, out.remaining, seconds[0], seconds[1], out.generation,
            (out.taken_at_ns, out.refused_shadows),
        )

    def settle(self, answer: Answer, request: _Request, *, now_ns: int | None = None) -> bool:
        """Charges what the answer to an admitted request has cost, under rules with cost = "answer
        NAME". `answer` is that of check, and `request` has the request's fields again, with the
        words of the answer (":NAME") among them. Returns whether the words had a whole number for
        each such cost: the estimate stays where one is missing. Call it once for each admission."""
        fields = _fields(request)
        taken = _Answer(ctypes.sizeof(_Answer), generation=answer.generation, taken_at_ns=answer.taken[0], refused_shadows=answer.taken[1])
        if now_ns is None:
            code = _library().tollbar_rules_settle(self._open(), fields, len(fields), taken)
        else:
            code = _library().tollbar_rules_settle_at(self._open(), fields, len(fields), taken, now_ns)
        self._raise(code, None)
        return bool(code)

    def now_ns(self) -> int:
        """The tables' clock, in nanoseconds."""
        return int(_library().tollbar_rules_now(self._open()))

    def reload(self) -> None:
        """Reads the file again and puts its rules in force as a whole. If that raises a RulesError,
        the old rules stay."""
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        self._raise(_library().tollbar_rules_reload(self._open(), error, _ERROR_BYTES), error)

    def reload_if_changed(self) -> bool:
        """reload(), if the file has changed since it was last read. Returns whether it has."""
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        code = _library().tollbar_rules_reload_if_changed(self._open(), error, _ERROR_BYTES)
        self._raise(code, error)
        return bool(code)

    def reset(self, rule: str, key: str | None = None) -> bool:
        """Lets the keys of a rule begin anew: the one with this text, as `keys` and `exempt` of the
        file write it, or all. Returns whether they do: one key keeps its debt if the table has no
        other slot for it. Raises RulesError for a rule that is not in force, and for a key that is
        none."""
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        text = None if key is None else key.encode()
        code = _library().tollbar_rules_reset(self._open(), rule.encode(), text, len(text or b""), error, _ERROR_BYTES)
        self._raise(code, error)
        return bool(code)

    def metrics(self, name: str, *, openmetrics: bool = False) -> str:
        """What the rules have counted, as text for Prometheus: decisions by rule, and shadows'
        disagreements. `name` is the label "limit" of their series. No key is ever a label."""
        label, length, room = name.encode(), ctypes.c_size_t(), 16384
        source = _Source(label, len(label), self._open())
        while True:
            text = ctypes.create_string_buffer(room)
            code = _library().tollbar_rules_metrics(source, 1, int(openmetrics), text, room, length)
            if code < 0 and length.value >= room:
                room = length.value * 9 // 8 + 1
                continue
            self._raise(code, None)
            return text.raw[: length.value].decode()

    def close(self) -> None:
        """Ends the rules. No other thread may be using them."""
        rules, self._rules = self._rules, ctypes.c_void_p()
        _library().tollbar_rules_close(rules)

    def __del__(self) -> None:
        if getattr(self, "_rules", None):
            self.close()

    def _open(self) -> ctypes.c_void_p:
        if not self._rules:
            raise RulesError("the rules are closed")
        return self._rules

    @staticmethod
    def _raise(code: int, error: ctypes.Array[ctypes.c_char] | None) -> None:
        if code < 0:
            text = error.value.decode(errors="replace") if error is not None else ""
            raise RulesError(text or f"error {code} of tollbar_errname")
