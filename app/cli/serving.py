"""`bursard serve` and `bursard demo`: take the port, open the ledger, serve until a stop signal."""

import contextlib
import gc
import logging
import logging.config
import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator

from app.cli.opened import make_stores
from app.settings import WORKER_FOLDER, Settings, SettingsError
from app.stopping import REQUESTS_SHARE
from app.telemetry.counters import ServerFolder
from app.telemetry.logs import log_config
from app.telemetry.traces import TracesUnavailable, check_installed

ADMIN_KEY_LENGTH_MIN = 32
_log = logging.getLogger("bursar.server")


def serve() -> None:
    """Serve the HTTP interface; settings come from the environment (docs/settings.md)."""
    settings = Settings.from_environment()
    start_log(settings)
    listener = own_port(settings)  # first: a second server would make a key and never use it
    stores = make_stores(settings)
    made = stores.get_ready(settings)
    if made is not None:
        print(f"First administrator's key, shown this once and stored nowhere:\n{made}", flush=True)
    if stores.standing.compare().stopped:
        _log.error(
            "the ledger is behind its anchors: it was restored from an older copy, or changed; "
            "nothing is charged until the difference is booked: `bursard reconcile --reason TEXT`"
        )
    for caution in cautions(settings):
        _log.warning("%s", caution)
    listen(settings, listener)


def start_log(settings: Settings) -> None:
    """Log to standard error from now on. Standard output is for the person at the terminal.

    Raises SettingsError if traces are turned on and cannot be sent.
    """
    logging.config.dictConfig(log_config(settings.log_format, settings.log_level))
    if settings.traces_url is not None:
        try:
            check_installed()
        except TracesUnavailable as missing:
            raise SettingsError(str(missing)) from None


def cautions(settings: Settings) -> Iterator[str]:
    """Settings that are allowed, and weaken a promise."""
    if settings.admin_key is not None and len(settings.admin_key) < ADMIN_KEY_LENGTH_MIN:
        yield "BURSAR_ADMIN_KEY is short: anybody who guesses it owns this service. Use 32 letters."
    if settings.lease_seconds <= settings.engine_timeout_seconds:
        yield (
            "BURSAR_LEASE_SECONDS is not above BURSAR_ENGINE_TIMEOUT_SECONDS: a slow question may "
            "be taken over while it still runs, and after three attempts is charged for nothing."
        )
    if settings.release_grid_ms == 0:
        yield "BURSAR_RELEASE_GRID_MS is 0: response times may reveal something about the data."
    for name, path in settings.secret_files:
        if path.stat().st_mode & stat.S_IROTH:
            yield f"{name}: everybody on this machine may read the file. Run `chmod o-rwx` on it."


def own_port(settings: Settings) -> socket.socket:
    """Listen on the port, or raise SettingsError.

    Only listening reserves the port: two programs may bind the same one. Clients that connect now
    wait until the server is ready.
    """
    # With an explicit protocol number asyncio turns off Nagle's algorithm on a socket that several
    # workers share. Otherwise each reply on a kept connection waits about 45 ms.
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}."
        ) from None
    listener.set_inheritable(True)
    return listener


def listen(
    settings: Settings,
    listener: socket.socket,
    announce: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until a stop signal; `announce` is called with the address."""
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    from app.api.http.connections.sockets import GuardedProtocol

    host, port = listener.getsockname()[:2]
    announce(f"http://{host}:{port}")
    print(f"Bursar serves on http://{host}:{port}", flush=True)
    _log.info("serves on http://%s:%d, workers: %d", host, port, settings.workers)
    folder = ServerFolder(settings.home)
    os.environ[WORKER_FOLDER] = str(folder.path)  # workers inherit it
    requests_seconds = settings.stop_seconds * REQUESTS_SHARE
    config = uvicorn.Config(
        "app.main:application",  # imported when a worker already answers its supervisor
        factory=True,
        workers=settings.workers,
        log_config=log_config(settings.log_format, settings.log_level),
        log_level=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        http=GuardedProtocol,
        timeout_graceful_shutdown=requests_seconds,  # type: ignore[arg-type]  # only waited for
    )
    server = uvicorn.Server(config)
    with _ended(folder):
        if settings.workers == 1:
            with contextlib.suppress(KeyboardInterrupt):  # raised again after a clean stop
                server.run(sockets=[listener])
            gc.unfreeze()  # otherwise packages report everything that they still own as a leak
        else:
            Multiprocess(config, sockets=[listener]).run()


@contextlib.contextmanager
def _ended(folder: ServerFolder) -> Iterator[None]:
    """Remove the folder and log the end, also if SIGTERM ends this process.

    After a clean stop uvicorn raises the signal again, under the handler that it found.
    """

    def end(*_: object) -> None:
        folder.remove()
        _log.info("has stopped")

    def end_by_signal(number: int, _: object) -> None:
        end()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    signal.signal(signal.SIGTERM, end_by_signal)
    yield
    end()


def demo() -> None:
    """Make a ledger with two demo datasets and four keys, print a question to paste, and serve."""
    from app.demo.populate import message, populate

    os.environ["BURSAR_HOME"] = os.environ.get("BURSAR_HOME") or ".bursar-demo"
    os.environ.pop("BURSAR_DATA_ROOTS", None)  # the demo's data are in its own home
    settings = Settings.from_environment()
    start_log(settings)
    listener = own_port(settings)
    keys = populate(settings)
    listen(settings, listener, lambda url: print(message(keys, settings.home, url), flush=True))
