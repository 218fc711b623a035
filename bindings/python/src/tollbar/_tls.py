"""TLS of a lease's connection to its store: the ssl module, between memory and memory.

The client's thread makes all calls. None of them waits, and none touches a socket.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable

OPEN, HANDSHAKE = 0, 1
SCHEMES = ("rediss:", "valkeys:")


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
        except ssl.SSLCertVerificationError as error:
            # Without the words around it, which say the same for every certificate.
            raise OSError(error.verify_message) from None
        return OPEN


def starter(url: str, tls: ssl.SSLContext | None) -> Callable[[str], Connection]:
    """What begins TLS with a host."""
    if tls is None:
        context = ssl.create_default_context()
        # The name is one of the certificate's alternative names, and not its subject.
        context.hostname_checks_common_name = False
    elif not isinstance(tls, ssl.SSLContext):
        raise TypeError(f"tls must be an ssl.SSLContext, not {type(tls).__name__}")
    elif tls.protocol == ssl.PROTOCOL_TLS_SERVER:
        raise ValueError("tls is a context for servers; expected one for clients, such as ssl.create_default_context()")
    elif not url.startswith(SCHEMES):
        raise ValueError("tls needs a URL that begins with rediss:// or valkeys://")
    else:
        context = tls
    return lambda host: Connection(context, host)
