"""A crowd that asks one question over and over: plain sockets in one loop, since on few cores what
the asking costs is taken from the server."""

import contextlib
import json
import selectors
import socket
from urllib.parse import urlsplit

from tests.server import Json, Server


class _Asker:
    """One connection: a request under way, and what has come of its reply."""

    def __init__(self, host: str, port: int, request: bytes) -> None:
        self.socket = socket.create_connection((host, port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = request
        self._got = b""

    def send(self) -> None:
        self.socket.sendall(self._request)

    def receive(self) -> Json | None:
        """The answer, once it is whole."""
        part = self.socket.recv(1 << 16)
        assert part, "the server closed a connection"
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
    """So many answers to a question, each drawn and charged by itself."""
    body = json.dumps({**question, "fresh": True}).encode()
    place = urlsplit(server.url)
    assert place.hostname is not None
    assert place.port is not None
    head = (
        f"POST /v1/queries HTTP/1.1\r\nHost: {place.hostname}\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    found: list[Json] = []
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as ready:
        crowd = [_Asker(place.hostname, place.port, head.encode() + body) for _ in range(askers)]
        for asker in crowd:
            stack.enter_context(asker.socket)
            ready.register(asker.socket, selectors.EVENT_READ, asker)
            asker.send()
        asked = len(crowd)
        while len(found) < asked:
            for event, _ in ready.select(timeout=60):
                asker = event.data
                answer = asker.receive()
                if answer is not None:
                    found.append(answer)
                    if asked < count:
                        asked += 1
                        asker.send()
    return found
