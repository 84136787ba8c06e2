"""Servers that stop talking: a socket that accepts and never speaks, and a proxy that falls silent.

Connections to them stay open, so that only a time limit of the caller's own ends a wait for them.
"""

import socket
from threading import Event, Thread


class Mute:
    """Accepts connections and never says a word."""

    def __init__(self) -> None:
        self.called = Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._calls: list[socket.socket] = []
        Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                call, _ = self._listener.accept()
            except OSError:
                return
            self._calls.append(call)
            self.called.set()

    def close(self) -> None:
        self._listener.close()
        for call in self._calls:
            call.close()


class SilentProxy:
    """Passes bytes on to a Unix socket, until a client sends the words at which it is to fall
    silent. Then `asked` is set, and on that connection nothing is passed on any more."""

    def __init__(self, target: str) -> None:
        self.asked = Event()
        self._words: bytes | None = None
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        Thread(target=self._accept, daemon=True).start()

    def fall_silent_at(self, words: bytes) -> None:
        self._words = words

    def speak(self) -> None:
        """To connections that are not silent yet."""
        self._words = None

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            self._sockets += [client, server]
            Thread(target=self._pass, args=(client, server), daemon=True).start()
            Thread(target=self._pass, args=(server, client), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while taken := source.recv(1 << 16):
                if self._words is not None and self._words in taken:
                    self.asked.set()
                    return
                target.sendall(taken)
        except OSError:
            return

    def close(self) -> None:
        self._listener.close()
        for each in self._sockets:
            each.close()
