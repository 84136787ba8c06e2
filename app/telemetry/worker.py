"""Telemetry of one worker: its counts, its state, its traces, and the text of a scrape."""

import logging
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.types import ASGIApp

from app.ports.telemetry import FiguresOfLedger
from app.telemetry.counters import Counters, CountLayout, WorkerFiles, Workers
from app.telemetry.logs import WORKER, quiet_hooks
from app.telemetry.metrics import Build, ScrapedText
from app.telemetry.observer import WorkerObserver, count_names
from app.telemetry.requests import Observed
from app.telemetry.traces import Traces
from app.telemetry.worker_state import STATE, Heartbeat

_log = logging.getLogger("bursar.worker")


@dataclass(frozen=True, slots=True)
class KnownLabels:
    """Everything that a label may be, apart from names of the catalogue."""

    routes: list[tuple[str, str]]  # template and method
    problems: list[str]
    questions: list[str]  # kinds


class WorkerTelemetry:
    """`folder`: that of the server, for all its workers; None if this process serves alone."""

    def __init__(
        self, known: KnownLabels, folder: Path | None, *, version: str, traces_url: str | None
    ) -> None:
        layout = CountLayout(STATE, count_names(known.routes, known.problems, known.questions))
        self._known = known
        self._version = version
        self._traces: Traces | None = None
        number = 1
        self._read_workers: Callable[[], Workers]
        if folder is None:
            self._counters = Counters(layout)
            self._read_workers = self._alone
        else:
            files = WorkerFiles(folder, layout)
            self._counters = files.claim()
            self._read_workers = files.read
            number = WORKER["worker"] = files.number
            quiet_hooks()
        if traces_url is not None:
            self._traces = Traces.to(traces_url, version, number)
        self.observer = WorkerObserver(self._counters, self._traces)
        self._heartbeat: Heartbeat | None = None

    def _alone(self) -> Workers:
        state, counts = self._counters.read()
        return Workers({1: state}, counts)

    def observed(self, application: ASGIApp, grid_seconds: float) -> ASGIApp:
        routes = self._known.routes
        return Observed(application, self._counters, routes, grid_seconds, self._traces)

    def start(
        self, parts: Callable[[], Mapping[str, int]], ledger: FiguresOfLedger, store: str
    ) -> ScrapedText:
        """Begin to write this worker's state, and return the text of a scrape."""
        self._heartbeat = Heartbeat(self._counters, parts)
        self._heartbeat.start()
        _log.info("worker ready")
        build = Build(self._version, platform.python_version(), store)
        return ScrapedText(build, ledger, self._read_workers, self._heartbeat.beat)

    def stop(self) -> None:
        """Stop writing the state; on the event loop."""
        _log.info("worker stops")
        if self._heartbeat is not None:
            self._heartbeat.stop()

    def close(self) -> None:
        """Send the traces that wait. Blocking, for at most a moment."""
        if self._traces is not None:
            self._traces.stop()
