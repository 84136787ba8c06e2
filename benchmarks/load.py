"""A load of clients in a process of its own: each sends a request, waits for the reply, sends the next.

Started as `python -m benchmarks.load` with a JSON description on standard input; prints a JSON
summary. Requests are written by hand over asyncio streams, so that the load costs little itself.
"""

import asyncio
import json
import sys
import time
from typing import Any

import uvloop


async def client(number: int, job: dict[str, Any], until: float, times: list[float]) -> None:
    reader, writer = await asyncio.open_connection(job["host"], job["port"])
    bodies = [body.encode() for body in job["bodies"]]
    asked = 0
    while time.perf_counter() < until:
        body = bodies[(number + asked) % len(bodies)]
        head = (
            f"{job['method']} {job['path']} HTTP/1.1\r\nHost: bench\r\n"
            f"Authorization: Bearer {job['key']}\r\nContent-Type: application/json\r\n"
            f"Idempotency-Key: {job['run']}-{number}-{asked}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        asked += 1
        started = time.perf_counter()
        writer.write(head.encode() + body)
        reply = await reader.readuntil(b"\r\n\r\n")
        if not reply.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"a request failed: {reply[:200]!r}")
        length = int(reply.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        times.append(time.perf_counter() - started)
    writer.close()


async def run(job: dict[str, Any]) -> dict[str, float]:
    times: list[float] = []
    started = time.perf_counter()
    until = started + job["seconds"]
    await asyncio.gather(*(client(n, job, until, times) for n in range(job["clients"])))
    took = time.perf_counter() - started
    times.sort()
    return {
        "per_second": len(times) / took,
        "p50_ms": times[len(times) // 2] * 1000,
        "p99_ms": times[int(len(times) * 0.99)] * 1000,
        "requests": len(times),
    }


if __name__ == "__main__":
    print(json.dumps(uvloop.run(run(json.load(sys.stdin)))))
