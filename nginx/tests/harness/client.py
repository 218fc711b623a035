"""Clients that know when each request was sent and when its answer was complete."""

import selectors
import socket
import time
from dataclasses import dataclass, field

PATIENCE = 60.0


@dataclass
class Answer:
    """An answer. Its status is 0 when the connection was closed without one."""

    status: int = 0
    headers: dict = field(default_factory=dict)
    body: bytes = b""
    sent: float = 0.0
    done: float = 0.0

    @property
    def took(self):
        return self.done - self.sent


def statuses(answers):
    return [a.status for a in answers]


def count(answers, status=200):
    return statuses(answers).count(status)


def request(path, host="tollbar.test", keep=False, method="GET", headers=()):
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: " + ("keep-alive" if keep else "close")]
    return "\r\n".join([*lines, *headers, "", ""]).encode()


def parse(raw):
    answer = Answer()
    head, _, answer.body = raw.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    if first.startswith("HTTP/1."):
        answer.status = int(first.split()[1])
    for line in rest:
        name, _, value = line.partition(":")
        answer.headers[name.strip().lower()] = value.strip()
    if answer.headers.get("transfer-encoding") == "chunked":
        answer.body = joined(answer.body)
    return answer


def joined(chunks):
    """A body that came in chunks."""
    body = b""
    while True:
        size, _, chunks = chunks.partition(b"\r\n")
        size = int(size, 16)
        if not size:
            return body
        body += chunks[:size]
        chunks = chunks[size + 2:]


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def volley(port, paths, **how):
    """All requests at once; the answers in the order of the paths."""
    answers = [None] * len(paths)
    with selectors.DefaultSelector() as selector:
        flights = [(i, connect(port), []) for i in range(len(paths))]
        sent = []
        for i, s, pieces in flights:
            sent.append(time.monotonic())
            s.sendall(request(paths[i], **how))
            s.setblocking(False)
            selector.register(s, selectors.EVENT_READ, (i, pieces))
        left = len(paths)
        while left:
            ready = selector.select(PATIENCE)
            if not ready:
                raise AssertionError(f"{left} of {len(paths)} requests were not answered")
            for key, _ in ready:
                i, pieces = key.data
                try:
                    piece = key.fileobj.recv(65536)
                except BlockingIOError:
                    continue
                except ConnectionResetError:
                    piece = b""
                if piece:
                    pieces.append(piece)
                    continue
                selector.unregister(key.fileobj)
                key.fileobj.close()
                answers[i] = parse(b"".join(pieces))
                answers[i].sent, answers[i].done = sent[i], time.monotonic()
                left -= 1
    return answers


class Kept:
    """One connection over which requests follow one another, several at a time if one likes."""

    def __init__(self, port):
        self.socket = connect(port)
        self.stream = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.socket.close()

    def send(self, *paths, **how):
        self.socket.sendall(b"".join(request(p, keep=True, **how) for p in paths))

    def read(self):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = self.stream.readline()
            if not line:
                raise AssertionError("the connection was closed in the middle")
            head += line
        answer = parse(head)
        answer.body = self.stream.read(int(answer.headers.get("content-length", "0")))
        answer.done = time.monotonic()
        return answer
