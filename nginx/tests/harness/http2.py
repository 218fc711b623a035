"""As much of HTTP/2 as it takes to ask many things over one connection at once."""

import struct
import time

from .client import Answer, connect

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS = 0, 1, 3, 4
END_STREAM, END_HEADERS, ACK = 1, 4, 1

# Fields of HPACK's table that have their values: :method GET, :scheme http. And the statuses nginx
# sends by number.
GET_HTTP = b"\x82\x86"
INDEXED_STATUS = {0x88: 200, 0x89: 204, 0x8A: 206, 0x8B: 304, 0x8C: 400, 0x8D: 404, 0x8E: 500}


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def plain(text):
    # A length below 127 is one byte; without the top bit, what follows is not compressed.
    assert len(text) < 127
    return bytes([len(text)]) + text.encode()


def ask(stream, path):
    # :path and :authority by their names' numbers, "without indexing".
    block = GET_HTTP + b"\x04" + plain(path) + b"\x01" + plain("tollbar.test")
    return frame(HEADERS, END_STREAM | END_HEADERS, stream, block)


def status_of(block):
    """The status is the first field; nginx writes those that have no number as three plain
    digits."""
    # Before it there may be a change of the table's size.
    while block[0] & 0xE0 == 0x20:
        block = block[1:]
    if block[0] in INDEXED_STATUS:
        return INDEXED_STATUS[block[0]]
    assert block[1] == 3, block
    return int(block[2:5])


def exactly(stream, size):
    found = stream.read(size)
    if len(found) < size:
        raise AssertionError("the connection was closed in the middle")
    return found


def together(port, paths):
    """All requests in one piece over one connection; the answers in the order of the paths."""
    answers = {2 * i + 1: Answer() for i in range(len(paths))}
    with connect(port) as s, s.makefile("rb") as incoming:
        sent = time.monotonic()
        s.sendall(PREFACE + frame(SETTINGS, 0, 0) + b"".join(ask(2 * i + 1, p) for i, p in enumerate(paths)))
        open_streams = set(answers)
        while open_streams:
            head = exactly(incoming, 9)
            payload = exactly(incoming, int.from_bytes(head[:3], "big"))
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
            if kind == SETTINGS and not flags & ACK:
                s.sendall(frame(SETTINGS, ACK, 0))
            elif kind == HEADERS:
                answers[stream].status = status_of(payload)
            elif kind == DATA:
                answers[stream].body += payload
            if stream and (kind == RST_STREAM or (kind in (HEADERS, DATA) and flags & END_STREAM)):
                answers[stream].sent, answers[stream].done = sent, time.monotonic()
                open_streams.discard(stream)
    return list(answers.values())
