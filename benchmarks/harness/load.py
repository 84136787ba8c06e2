"""A load of clients in a separate process: each sends a request, waits for the reply, and repeats.

Started as `python -m benchmarks.harness.load` with a JSON description on standard input; prints a
JSON summary. It is one loop over plain sockets, because on two cores it takes its processor time
from the server.
"""

import json
import select
import socket
import sys
import time
from typing import Any


class Client:
    """One connection: the current request, and the received part of its reply."""

    def __init__(self, number: int, job: dict[str, Any], bodies: list[bytes]) -> None:
        self.socket = socket.create_connection((job["host"], job["port"]))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._bodies = bodies
        self._number = number
        self._asked = 0
        self._started = 0.0
        self._got = b""
        head = (
            f"{job['method']} {job['path']} HTTP/1.1\r\nHost: bench\r\n"
            f"Authorization: Bearer {job['key']}\r\nContent-Type: application/json\r\n"
            f"Idempotency-Key: {job['run']}-{number}-"
        )
        self._head = head.encode()

    def send(self) -> None:
        body = self._bodies[(self._number + self._asked) % len(self._bodies)]
        rest = f"{self._asked}\r\nContent-Length: {len(body)}\r\n\r\n"
        self._asked += 1
        self._started = time.perf_counter()
        self.socket.sendall(self._head + rest.encode() + body)

    def receive(self) -> float | None:
        """Time of the request in seconds, or None until the reply is complete."""
        self._got += self.socket.recv(65536)
        head, blank, body = self._got.partition(b"\r\n\r\n")
        if not blank:
            return None
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"a request failed: {self._got[:300]!r}")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        if len(body) < length:
            return None
        self._got = b""
        return time.perf_counter() - self._started


def run(job: dict[str, Any]) -> dict[str, float]:
    bodies = [body.encode() for body in job["bodies"]]
    clients = [Client(number, job, bodies) for number in range(job["clients"])]
    by_descriptor = {client.socket.fileno(): client for client in clients}
    ready = select.epoll()
    for descriptor in by_descriptor:
        ready.register(descriptor, select.EPOLLIN)
    times: list[float] = []
    started = time.perf_counter()
    until = started + job["seconds"]
    for client in clients:
        client.send()
    waiting = len(clients)
    while waiting:
        for descriptor, _ in ready.poll():
            client = by_descriptor[descriptor]
            took = client.receive()
            if took is None:
                continue
            times.append(took)
            if time.perf_counter() < until:
                client.send()
            else:
                waiting -= 1
    took_all = time.perf_counter() - started
    times.sort()
    return {
        "per_second": len(times) / took_all,
        "p50_ms": times[len(times) // 2] * 1000,
        "p99_ms": times[int(len(times) * 0.99)] * 1000,
        "requests": len(times),
    }


if __name__ == "__main__":
    print(json.dumps(run(json.load(sys.stdin))))
