"""Requests that go on until a test ends them, and an nginx that counts them."""

from . import config
from .client import connect, parse
from .server import PATIENCE, Nginx, wait_until

# A request whose body never arrives stays in the content phase. nginx answers "100 Continue" there,
# which shows that no limit has refused the request.
HOLD = "proxy_pass http://127.0.0.1:@PORT0@/end;"
END = "location /end { return 200; }"


class Counting(Nginx):
    """An nginx whose access log has $tollbar_conn_status."""

    def write(self, **parts):
        self.parts = parts
        text = config.text(ports=self.ports, **parts).replace("$limit_req_status", "$tollbar_conn_status")
        # A test fills a zone.
        text = text.replace("worker_connections 2048", "worker_connections 8000")
        (self.home / "nginx.conf").write_text(text)


class Held:
    """One request. `status` is 100 while it is held; else it is what it was refused with, or 0."""

    def __init__(self, port, path):
        self.socket = connect(port)
        lines = [f"POST {path} HTTP/1.1", "Host: tollbar.test", "Connection: close", "Content-Length: 1",
                 "Expect: 100-continue", "", ""]
        self.socket.sendall("\r\n".join(lines).encode())
        self.status = None

    def answer(self):
        """Waits for the first line."""
        if self.status is None:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                try:
                    piece = self.socket.recv(1)
                except ConnectionResetError:
                    piece = b""
                if not piece:
                    break
                head += piece
            self.status = parse(head).status
            if self.status != 100:
                self.socket.close()
        return self.status

    def end(self):
        """Lets it come to its end."""
        self.socket.sendall(b"x")
        answer = b""
        while True:
            piece = self.socket.recv(65536)
            if not piece:
                break
            answer += piece
        self.socket.close()
        return parse(answer).status

    def drop(self):
        self.socket.close()


def hold(nginx, path, count):
    """So many at once: (those that are held, what the others were refused with)."""
    all_of_them = [Held(nginx.port, path) for _ in range(count)]
    statuses = [one.answer() for one in all_of_them]
    return [one for one in all_of_them if one.status == 100], [s for s in statuses if s != 100]


def end(held):
    for one in held:
        assert one.end() == 200


def room(nginx, path, limit, spare=3):
    """How many more of a key nginx lets in, one after the other. They are ended again."""
    found = []
    for _ in range(limit + spare):
        one = Held(nginx.port, path)
        if one.answer() == 100:
            found.append(one)
    end(found)
    return len(found)


def wait_for_room(nginx, path, limit, patience=PATIENCE):
    """A client sees the end of its request a moment before nginx has done with it."""
    wait_until(lambda: room(nginx, path, limit) == limit, f"{path} has room for {limit}", patience)
