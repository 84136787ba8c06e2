"""Many concurrent clients that repeat one question over plain sockets in one loop.

On few cores, a heavier client would take processor time from the server.
"""

import contextlib
import json
import selectors
import socket
from urllib.parse import urlsplit

from tests.bursard import Server
from tests.server import Json

REOPENED_MAX = 3  # by one client


class _Asker:
    """One connection: an open request, and the received part of its reply."""

    def __init__(self, host: str, port: int, request: bytes) -> None:
        self._address, self._request = (host, port), request
        self._got, self._reopened = b"", -1
        self.reopen()

    def reopen(self) -> None:
        """Connect. A server closes a connection that has been idle for some seconds.

        On a busy machine a client may be that late with its next request.
        """
        self._reopened += 1
        assert self._reopened <= REOPENED_MAX, "the server closes connections"
        self.socket = socket.create_connection(self._address, timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self) -> None:
        self.socket.sendall(self._request)

    def receive(self) -> Json | None:
        """The answer, once it is complete. ConnectionError if there is none of this request."""
        part = self.socket.recv(1 << 16)
        if not part:
            assert not self._got, "the server closed a connection in the middle of a reply"
            raise ConnectionResetError
        self._got += part
        head, blank, body = self._got.partition(b"\r\n\r\n")
        if not blank:
            return None
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        if len(body) < length:
            return None
        assert head.startswith(b"HTTP/1.1 200"), body[:1000]
        self._got = b""
        answer: Json = json.loads(body)
        return answer


def answers(
    server: Server, key: str, question: Json, count: int, *, askers: int = 16
) -> list[Json]:
    """This many answers to a question, each drawn and charged separately."""
    body = json.dumps({**question, "fresh": True}).encode()
    address = urlsplit(server.url)
    assert address.hostname is not None
    assert address.port is not None
    head = (
        f"POST /v1/queries HTTP/1.1\r\nHost: {address.hostname}\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    received: list[Json] = []
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as ready:
        crowd = [
            _Asker(address.hostname, address.port, head.encode() + body) for _ in range(askers)
        ]
        for asker in crowd:
            stack.enter_context(asker.socket)
            ready.register(asker.socket, selectors.EVENT_READ, asker)
            asker.send()
        sent = len(crowd)
        while len(received) < sent:
            for event, _ in ready.select(timeout=60):
                asker = event.data
                try:
                    answer = asker.receive()
                except ConnectionError:
                    ready.unregister(asker.socket)
                    asker.reopen()
                    stack.enter_context(asker.socket)
                    ready.register(asker.socket, selectors.EVENT_READ, asker)
                    asker.send()
                    continue
                if answer is not None:
                    received.append(answer)
                    if sent < count:
                        sent += 1
                        asker.send()
    return received
