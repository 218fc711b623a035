"""TLS of a lease's connection to its store: the ssl module, between memory and memory.

The client's thread makes all calls. None of them waits, and none touches a socket.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable

OPEN, HANDSHAKE = 0, 1


class Connection:
    """One connection. A call that fails raises OSError, which ssl.SSLError is."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._from, self._to = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._from, self._to, server_hostname=host)

    def cipher_in(self, data: bytes) -> int:
        """Takes bytes that the server has sent."""
        return self._from.write(data)

    def cipher_out(self, most: int) -> bytes:
        """Gives bytes for the server."""
        return self._to.read(most)

    def plain_in(self, data: bytes) -> int:
        """Takes bytes to encrypt; how many, or 0 for none now."""
        try:
            return self._tls.write(data)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0

    def plain_out(self, most: int) -> bytes:
        """Gives decrypted bytes, or none now."""
        try:
            return self._tls.read(most)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, ssl.SSLZeroReturnError):
            return b""

    def wants(self) -> int:
        """Goes on with the handshake: OPEN once it is done, HANDSHAKE before."""
        try:
            self._tls.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return HANDSHAKE
        return OPEN


def starter(url: str, tls: ssl.SSLContext | None) -> Callable[[str], Connection] | None:
    """What begins TLS with a host; None for a URL without TLS."""
    if url.partition(":")[0] not in ("rediss", "valkeys"):
        return None
    context = ssl.create_default_context() if tls is None else tls
    return lambda host: Connection(context, host)
