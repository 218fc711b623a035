"""Requests at an even pace over several nginx at once, with the time of every answer."""

import selectors
import time
from dataclasses import dataclass, field

from .client import connect, parse, request


@dataclass
class Paced:
    """When requests were sent and answered: those that were admitted. How long any answer took, and
    when."""

    begun: float = 0.0
    ended: float = 0.0
    admitted: list = field(default_factory=list)
    refused: int = 0
    took: list = field(default_factory=list)
    lost: int = 0
    # The late turns of the loop: when, and by how much. The client sent nothing in that time.
    stalls: list = field(default_factory=list)

    def rate(self, start=0.0, end=None):
        """Admitted a second, from one second of the run to another."""
        end = end or self.ended - self.begun
        return sum(start <= done - self.begun < end for _, done in self.admitted) / (end - start)

    def reached(self, start=0.0, end=None):
        """`rate` for lower bounds: over the time in which there was somebody to ask. The client may
        have had no core, or an event to deal with."""
        end = end or self.ended - self.begun
        away = sum(max(0.0, min(at, end) - max(at - length, start)) for at, length in self.stalls)
        return self.rate(start, end) * (end - start) / max(end - start - away, 0.05)

    def slowest(self):
        return max(self.took)

    def excess(self, rate):
        """By how many permits any window of time has more than the rate gives: the burst of a
        bound, or less. When nginx decided is known only to be between the sending and the answer,
        so of a window those are counted that were sent and answered in it."""
        worst = 0.0
        answered = sorted(self.admitted, key=lambda one: one[1])
        for start, _ in self.admitted:
            count = 0
            for sent, done in answered:
                if sent >= start:
                    count += 1
                    worst = max(worst, count - rate * (done - start))
        return worst


def paced(ports, per_second, seconds, path="/?k=a", events=()):
    """`per_second` requests at each port. `events` are (second, what to do then)."""
    result = Paced()
    events = sorted(events, key=lambda event: event[0])
    with selectors.DefaultSelector() as selector:
        result.begun = now = time.monotonic()
        due = {port: now for port in ports}
        flying, looked = 0, now
        while True:
            now = time.monotonic()
            if now - looked > 0.02 + 1 / per_second:
                result.stalls.append((now - result.begun, now - looked))
            looked = now
            while events and now - result.begun >= events[0][0]:
                events.pop(0)[1]()
                now = time.monotonic()
            asking = now - result.begun < seconds
            if not asking and (not flying or now - result.begun > seconds + 20):
                break
            for port in ports:
                # After a pause the client does not send all missed requests at once.
                due[port] = max(due[port], now - 0.05)
                while asking and due[port] <= now:
                    due[port] += 1 / per_second
                    flying += send(selector, port, path, result)
            for key, _ in selector.select(max(0.0, min(due.values()) - now) if asking else 0.05):
                flying -= receive(selector, key, result)
        result.ended = result.begun + seconds
    return result


def send(selector, port, path, result):
    try:
        s = connect(port)
        at = time.monotonic()
        s.sendall(request(path))
    except OSError:
        result.lost += 1
        return 0
    s.setblocking(False)
    selector.register(s, selectors.EVENT_READ, (at, []))
    return 1


def receive(selector, key, result):
    """Whether that was all of an answer."""
    at, pieces = key.data
    try:
        piece = key.fileobj.recv(65536)
    except BlockingIOError:
        return 0
    except ConnectionError:
        piece = b""
    if piece:
        pieces.append(piece)
        return 0
    selector.unregister(key.fileobj)
    key.fileobj.close()
    answer = parse(b"".join(pieces))
    now = time.monotonic()
    if answer.status == 200:
        result.admitted.append((at, now))
        result.took.append(now - at)
    elif answer.status == 429:
        result.refused += 1
        result.took.append(now - at)
    else:
        result.lost += 1
    return 1
