"""Log lines as text or as JSON, with a fixed list of fields.

Only messages of this service are written in full: they are constants, or name public facts. Other
packages may quote a value, a question or a key in theirs. From them a line has the known constant
messages of the HTTP server, and otherwise only the name of the package. No traceback is ever
written.
"""

import datetime
import json
import logging
import sys
import threading
from typing import Any

from typing_extensions import override

from app.ports.telemetry import REQUEST

OURS = "bursar"
LEVELS = ("debug", "info", "warning", "error")
# Fields beside time, level and event, in their order. `extra` of a log call may set these alone.
FIELDS = ("request_id", "route", "method", "status", "duration_ms", "analyst", "worker")
WITHHELD = "a message of {package} was withheld"
# Messages of the HTTP server that have no arguments, or whose arguments are left out.
SERVER_MESSAGES = {
    "Waiting for application startup.": None,
    "Application startup complete.": None,
    "Application startup failed. Exiting.": "the application could not start",
    "Application shutdown complete.": None,
    "Application shutdown failed. Exiting.": "the application could not stop cleanly",
    "Started server process [%d]": None,
    "Finished server process [%d]": None,
    "Shutting down": None,
    "Waiting for application shutdown.": None,
    "Waiting for connections to close. (CTRL+C to force quit)": None,
    "Waiting for background tasks to complete. (CTRL+C to force quit)": None,
    "Received SIGINT, exiting.": None,
    "Received SIGTERM, exiting.": None,
    "Invalid HTTP request received.": "an invalid HTTP request was refused",
    "Unsupported upgrade request.": "an upgrade of the protocol was refused",
    "Exception in ASGI application\n": "a request failed without a reply",
    "ASGI callable returned without completing response.": "a request ended without a whole reply",
    "Cancel %s running task(s), timeout graceful shutdown exceeded": (
        "requests were cancelled at the end of the grace period"
    ),
}
# Begin with these, and end with a process id.
WORKER_MESSAGES = {
    "Started parent process [": None,
    "Stopping parent process [": None,
    "Waiting for child process [": None,
    "Terminated child process [": None,
    "Child process [": "a worker has ended, and is started again",
}
WORKER: dict[str, int] = {}  # the number of this process among the workers, once it is known


def event_of(record: logging.LogRecord) -> str | None:
    """The event of a record; None for one that says nothing new."""
    package = record.name.partition(".")[0]
    if package == OURS:
        return record.getMessage()
    if package == "uvicorn" and isinstance(record.msg, str):
        if record.msg in SERVER_MESSAGES:
            return SERVER_MESSAGES[record.msg]
        for start, event in WORKER_MESSAGES.items():
            if record.msg.startswith(start):
                return event
        if record.levelno < logging.WARNING:
            return None
    return WITHHELD.format(package=package)


def line_of(record: logging.LogRecord, event: str) -> dict[str, Any]:
    moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
    notes = REQUEST.get()
    known = {
        "request_id": None if notes is None else notes.id,
        "analyst": None if notes is None else notes.analyst_id,
        **WORKER,
    }
    fields = {name: getattr(record, name, None) or known.get(name) for name in FIELDS}
    return {
        "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "event": event,
        **{name: value for name, value in fields.items() if value is not None},
    }


class NewEvents(logging.Filter):
    """Leaves out records that say nothing new: the service reports its start and stop itself."""

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        return event_of(record) is not None


class JsonLines(logging.Formatter):
    @override
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(line_of(record, event_of(record) or ""), ensure_ascii=True)


class TextLines(logging.Formatter):
    """Time, level and event, then the other fields as name=value."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        line = line_of(record, _printable(event_of(record) or ""))
        first = [line.pop("time"), line.pop("level").upper().ljust(7), line.pop("event")]
        return " ".join([*first, *(f"{name}={value}" for name, value in line.items())])


def _printable(text: str) -> str:
    """One line without control characters, so that nothing forges another line."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def log_config(form: str, level: str) -> dict[str, Any]:
    """Configuration for `logging.config.dictConfig`, of the server and of its workers."""
    module = __name__
    formatter = {"json": "JsonLines", "text": "TextLines"}[form]
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": f"{module}.{formatter}"}},
        "filters": {"new": {"()": f"{module}.NewEvents"}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "stream": "ext://sys.stderr",
                "formatter": "lines",
                "filters": ["new"],
            }
        },
        "root": {"level": "WARNING", "handlers": ["stderr"]},
        "loggers": {
            OURS: {"level": level.upper()},
            "uvicorn": {"level": "INFO" if level in ("debug", "info") else level.upper()},
        },
    }


def quiet_hooks() -> None:
    """Log the type of an error that nobody caught, where Python would print its text."""
    log = logging.getLogger(f"{OURS}.unexpected")
    logging.captureWarnings(True)

    def of_thread(caught: threading.ExceptHookArgs) -> None:
        if caught.exc_type is not SystemExit:
            log.error("unexpected %s in a thread", caught.exc_type.__name__)

    def unraisable(caught: "sys.UnraisableHookArgs") -> None:
        log.error("unexpected %s while cleaning up", caught.exc_type.__name__)

    threading.excepthook = of_thread
    sys.unraisablehook = unraisable
