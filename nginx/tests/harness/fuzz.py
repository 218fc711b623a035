"""A stream of requests no client in its senses would send. The same seed gives the same stream."""

import random
import socket
import struct

from .client import connect, request

ODD = ["%00", "%", "%zz", "%ff%fe", "a" * 5000, "x" * 4096, "&k=1&k=2", "=", "#", "?", "\x7f", "\xff\xfe", "../..",
       "%2e%2e/"]
HEADERS = ["X: " + "y" * 3000, "Content-Length: 5", "Range: bytes=1-"]


def piece(chance):
    """Some bytes to send, and whether to wait for what comes back."""
    path = chance.choice(["/", "/delay", "/several", "/dry", "/long", "/redirect", "/none"])
    args = "".join(f"{chance.choice('&?')}{chance.choice('kkkabx')}={chance.choice([*ODD, str(chance.randrange(3))])}"
                   for _ in range(chance.randrange(4)))
    if path == "/long" and chance.random() < 0.5:
        args += "&k=" + "x" * 4096
    whole = request(path + "?" + args, method=chance.choice(["GET", "GET", "HEAD", "POST", "BREW"]),
                    keep=chance.random() < 0.3, headers=[chance.choice(HEADERS)])
    kind = chance.randrange(8)
    if kind == 0:
        return chance.randbytes(chance.randrange(1, 3000)), False
    if kind == 1:
        return whole[:chance.randrange(1, len(whole))], False
    if kind == 2:
        broken = bytearray(whole)
        for _ in range(chance.randrange(1, 8)):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        return bytes(broken), False
    if kind == 3:
        return whole * chance.randrange(2, 6), True
    return whole, chance.random() < 0.7


def stream(port, count, seed):
    """Send it. Gives how many pieces were answered with something."""
    chance = random.Random(seed)
    answered = 0
    for _ in range(count):
        data, wait = piece(chance)
        reset = chance.random() < 0.3
        with connect(port) as s:
            # Most answers come within this time. The client leaves while nginx still delays the
            # others, which tests that path too.
            s.settimeout(0.4)
            if reset:
                # Closing sends a reset and drops unsent data.
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            try:
                s.sendall(data)
                if wait and s.recv(4096):
                    answered += 1
            except (TimeoutError, ConnectionError):
                pass
    return answered
