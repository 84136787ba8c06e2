"""Servers that stop responding: a socket that accepts and stays silent, and a silent proxy.

Connections to them stay open, so that only a time limit of the caller ends a wait.
"""

import socket
from threading import Event, Thread


class Mute:
    """A server that accepts connections and sends nothing."""

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
    """A proxy to a Unix socket that falls silent when a client sends certain words.

    Then `asked` is set, and nothing more is passed on that connection.
    """

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
        """Pass data again, on connections that are not silent yet."""
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
