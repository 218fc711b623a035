"""A client that finds the rate of a server: it may send 200/s, and the server admits 50/s."""

import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tollbar import Limiter, http, pacing

POLICY = "50/s burst 10"
limit = Limiter(POLICY)


class Server(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        decision = limit.check()
        self.send_response(200 if decision else 429)
        for name, value in http.fields([http.Limit("api", POLICY, decision)], retry_after=False):
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"

# tollbar.pacing has adapters for requests, httpx and aiohttp. For any other library the program
# asks for turns itself.
pace = pacing.Pacing(most=200)
statuses = []
for _ in range(100):
    ticket = pace.acquire(url)
    try:
        with urllib.request.urlopen(url) as response:
            status, headers = response.status, response.headers.items()
    except urllib.error.HTTPError as refused:
        status, headers = refused.code, refused.headers.items()
    pace.respond(ticket, status, headers)
    statuses.append(status)

state = pace.state(url)
print(f"{statuses.count(200)} accepted, {statuses.count(429)} refused, now {state.rate if state else 0:.0f}/s")
server.shutdown()
