"""Traces by OpenTelemetry, sent over HTTP to a collector.

A span has a name, times, and the few attributes that are set here: route, method, status, request.
No exception is recorded, because its text may quote a value. Spans of private work are made when
they are over, with public times: those of the slot, never those of the work.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from app.ports.telemetry import PastSpan

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

EXTRA = "traces"
SERVICE = "bursar"
SEND_SECONDS = 5
STOP_MS = 1000
NANO = 1_000_000_000


class TracesUnavailable(Exception):
    """The packages for traces are not installed."""


def check_installed() -> None:
    """Raise TracesUnavailable, which names the extra, unless traces can be sent."""
    try:
        import opentelemetry.exporter.otlp.proto.http.trace_exporter
        import opentelemetry.sdk.trace  # noqa: F401
    except ImportError:
        raise TracesUnavailable(
            f"BURSAR_TRACES_URL needs the extra `{EXTRA}`: pip install 'bursar-server[{EXTRA}]'."
        ) from None


class Traces:
    """Spans of one worker. The provider is our own: no other package finds it and adds to it."""

    def __init__(self, provider: "TracerProvider") -> None:
        from opentelemetry import trace

        self._provider = provider
        self._trace: Any = trace
        self._tracer = provider.get_tracer(SERVICE)

    @classmethod
    def to(cls, url: str, version: str, worker: int) -> "Traces":
        check_installed()
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        about = {
            "service.name": SERVICE,
            "service.version": version,
            "service.instance.id": str(worker),
        }
        provider = TracerProvider(resource=Resource(about), shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=url, timeout=SEND_SECONDS)
        provider.add_span_processor(BatchSpanProcessor(exporter))
        return cls(provider)

    @contextmanager
    def request(self, method: str, request_id: str) -> Iterator[Any]:
        """The span of a request; spans of its work lie below it."""
        kind = self._trace.SpanKind.SERVER
        attributes = {"http.request.method": method, "bursar.request_id": request_id}
        with self._current(self._tracer.start_span(method, kind=kind, attributes=attributes)) as it:
            yield it

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        with self._current(self._tracer.start_span(name)):
            yield

    def past_spans(self, *spans: PastSpan) -> None:
        offset = time.time_ns() - int(asyncio.get_running_loop().time() * NANO)
        for name, begin, end in spans:
            span = self._tracer.start_span(name, start_time=offset + int(begin * NANO))
            span.end(offset + int(end * NANO))

    def _current(self, span: Any) -> Any:
        return self._trace.use_span(
            span, end_on_exit=True, record_exception=False, set_status_on_exception=False
        )

    def stop(self) -> None:
        """Send what waits, for at most a moment."""
        self._provider.force_flush(STOP_MS)
        self._provider.shutdown()


def finish(span: Any, method: str, route: str, status: int) -> None:
    """CountName the span of a request when its route is known."""
    span.update_name(f"{method} {route}")
    span.set_attribute("http.route", route)
    span.set_attribute("http.response.status_code", status)
