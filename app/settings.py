"""Settings from the environment, read once into one frozen object."""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path

from typing_extensions import override

from app.nearest import nearest

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT])(i?)B")
_AUTHORITY = re.compile(r"[a-z+]+://(?:[^@]*@)?(?:\[[^]]*\]|[^/?:@[]*)(?::[0-9]{1,5})?(?:[/?]|$)")
_PUBLIC_URL = re.compile(
    r"https?://[a-z0-9.-]+(?::[0-9]{1,5})?/?|https?://\[[0-9a-f:]+\](?::[0-9]{1,5})?/?"
)
_PREFIX = "BURSAR_"
# Variables for other purposes: fault points of the tests, and the address, key and authority of the
# client, which people set in the same terminal.
_OTHERS = {
    "BURSAR_CA",
    "BURSAR_FAULT",
    "BURSAR_FAULT_ONCE",
    "BURSAR_KEY",
    "BURSAR_URL",
}
_OTHERS_PREFIX = "BURSAR_TEST_"
WORKER_FOLDER = "BURSAR_WORKER_FOLDER"  # a server sets it for its workers
# Settings that are secret or contain a secret. NAME_FILE may name a file with the value of NAME.
SECRETS = (
    "BURSAR_ADMIN_KEY",
    "BURSAR_DATABASE_URL",
    "BURSAR_SCRAPE_TOKEN",
    "BURSAR_SECRET_KEY",
)
_SECRET_BYTES_MAX = 65_536


class SettingsError(Exception):
    """A setting that cannot be used; names the variable."""


class _Environment(Mapping[str, str]):
    """The environment without empty variables, which records every variable that is read.

    So the variables read are the known ones, and a new setting needs no second list.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = {name: text for name, text in variables.items() if text}
        self._read: set[str] = set()
        self.secret_files: tuple[tuple[str, Path], ...] = tuple(self._take_secrets())

    @override
    def __getitem__(self, name: str) -> str:
        self._read.add(name)
        return self._variables[name]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    @override
    def __len__(self) -> int:
        return len(self._variables)

    def _take_secrets(self) -> Iterator[tuple[str, Path]]:
        """Take the value of each NAME_FILE from its file; yield the names with their files."""
        for secret in SECRETS:
            name = f"{secret}_FILE"
            self._read.add(name)
            path = self._variables.pop(name, None)
            if path is None:
                continue
            if secret in self._variables:
                raise SettingsError(f"{secret} and {name} are both set; unset one of them.")
            self._variables[secret] = _secret_in(Path(path), name)
            yield name, Path(path).absolute()

    def refuse_unknown(self) -> None:
        """Raise SettingsError for a BURSAR_ variable that nothing has read."""
        ends = [name.removeprefix(_PREFIX) for name in sorted(self._read)]
        for name in sorted(self._variables):
            ours = name.startswith(_PREFIX) and not name.startswith(_OTHERS_PREFIX)
            if ours and name not in self._read | _OTHERS:
                end = nearest(name.removeprefix(_PREFIX), ends)
                hint = f"did you mean {_PREFIX}{end}?" if end else "docs/settings.md lists all."
                raise SettingsError(f"There is no setting {name[:60]}; {hint}")


@dataclass(frozen=True, slots=True)
class Settings:
    home: Path
    database_url: str
    host: str
    port: int
    workers: int
    data_roots: tuple[Path, ...]
    connections: Path | None
    anchor: Path | None
    admin_key: str | None
    secret_key: str | None
    release_grid_ms: int
    slot_factor: float
    answer_seconds: float
    lease_seconds: float
    engine_timeout_seconds: float
    ingest_timeout_seconds: float
    learning_timeout_seconds: float
    engine_memory: str
    engine_threads: int
    groups_max: int
    running_max: int
    running_each: int
    header_seconds: float
    body_seconds: float
    connections_each: int
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...]
    prepared_bytes_max: int
    body_bytes_max: int
    stop_seconds: float
    drain_seconds: float
    public_url: str | None
    scrape_token: str | None
    log_format: str
    log_level: str
    traces_url: str | None
    worker_folder: Path | None
    secret_files: tuple[tuple[str, Path], ...]  # variables that name a file, with the file

    @property
    def embedded(self) -> bool:
        """True if the ledger is the SQLite file in the home folder, which we migrate ourselves."""
        return self.database_url == embedded_url(self.home)

    @property
    def anchor_folders(self) -> tuple[Path, ...]:
        """Folders in which each commit is anchored outside the ledger."""
        more = () if self.anchor is None else (self.anchor,)
        return (self.home / "anchors", *more)

    @classmethod
    def from_environment(cls, variables: Mapping[str, str] = os.environ) -> "Settings":
        """Read the settings. Raises SettingsError for an unusable value or an unknown variable."""
        environment = _Environment(variables)
        settings = cls._read(environment)
        environment.refuse_unknown()
        return settings

    @classmethod
    def _read(cls, environment: _Environment) -> "Settings":
        get = environment.get
        _check_texts(environment)
        home = Path(get("BURSAR_HOME", ".bursar")).absolute()
        roots = get("BURSAR_DATA_ROOTS") or str(home / "data")
        return cls(
            home=home,
            database_url=get("BURSAR_DATABASE_URL") or embedded_url(home),
            host=get("BURSAR_HOST", "127.0.0.1"),
            port=_whole(environment, "BURSAR_PORT", 8000, 0, 65535),
            workers=_whole(environment, "BURSAR_WORKERS", 1, 1, 64),
            data_roots=tuple(Path(root).absolute() for root in roots.split(os.pathsep) if root),
            connections=Path(get("BURSAR_CONNECTIONS", "")) if get("BURSAR_CONNECTIONS") else None,
            anchor=Path(get("BURSAR_ANCHOR", "")).absolute() if get("BURSAR_ANCHOR") else None,
            admin_key=get("BURSAR_ADMIN_KEY") or None,
            secret_key=get("BURSAR_SECRET_KEY") or None,
            release_grid_ms=_whole(environment, "BURSAR_RELEASE_GRID_MS", 100, 0, 60_000),
            slot_factor=_factor(environment, "BURSAR_SLOT_FACTOR"),
            answer_seconds=_real(environment, "BURSAR_ANSWER_SECONDS", 20.0),
            lease_seconds=_real(environment, "BURSAR_LEASE_SECONDS", 60.0),
            engine_timeout_seconds=_real(environment, "BURSAR_ENGINE_TIMEOUT_SECONDS", 30.0),
            ingest_timeout_seconds=_real(environment, "BURSAR_INGEST_TIMEOUT_SECONDS", 3600.0),
            learning_timeout_seconds=_real(environment, "BURSAR_LEARNING_TIMEOUT_SECONDS", 3600.0),
            engine_memory=get("BURSAR_ENGINE_MEMORY", "1GB"),
            engine_threads=_whole(environment, "BURSAR_ENGINE_THREADS", 2, 1, 256),
            groups_max=_whole(environment, "BURSAR_GROUPS_MAX", 4_000_000, 1, 4_000_000),
            running_max=_whole(environment, "BURSAR_RUNNING_MAX", 1000, 1, 1_000_000),
            running_each=_whole(environment, "BURSAR_RUNNING_EACH", 100, 1, 1_000_000),
            header_seconds=_real(environment, "BURSAR_HEADER_SECONDS", 10.0),
            body_seconds=_real(environment, "BURSAR_BODY_SECONDS", 30.0),
            connections_each=_whole(environment, "BURSAR_CONNECTIONS_EACH", 512, 1, 1_000_000),
            trusted_proxies=_networks(get("BURSAR_TRUSTED_PROXIES") or ""),
            prepared_bytes_max=_bytes(get("BURSAR_PREPARED_SIZE_MAX") or "64GB"),
            body_bytes_max=_whole(environment, "BURSAR_BODY_BYTES_MAX", 4 << 20, 1024, 64 << 20),
            stop_seconds=_real(environment, "BURSAR_STOP_SECONDS", 10.0),
            drain_seconds=float(_whole(environment, "BURSAR_DRAIN_SECONDS", 0, 0, 3600)),
            public_url=(get("BURSAR_PUBLIC_URL") or "").rstrip("/") or None,
            scrape_token=get("BURSAR_SCRAPE_TOKEN") or None,
            log_format=_choice(environment, "BURSAR_LOG_FORMAT", "text", "json"),
            log_level=_choice(environment, "BURSAR_LOG_LEVEL", "info", "debug", "warning", "error"),
            traces_url=get("BURSAR_TRACES_URL") or None,
            worker_folder=Path(get(WORKER_FOLDER, "")) if get(WORKER_FOLDER) else None,
            secret_files=environment.secret_files,
        )


def _secret_in(path: Path, name: str) -> str:
    """The one line of the file that a variable names. No error quotes the file's content."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe or a device might never end
            raise SettingsError(f"{name} must name a file, not a folder or a device.")
        with path.open("rb") as file:
            content = file.read(_SECRET_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no path"
        raise SettingsError(f"{name} names a file that cannot be read: {reason}.") from None
    text = content.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", errors="replace")
    if not text:
        raise SettingsError(f"{name} names an empty file.")
    if len(content) > _SECRET_BYTES_MAX or "\ufffd" in text or not text.isprintable():
        raise SettingsError(f"{name} must name a file with one line of printable text.")
    return text


def _check_texts(environment: Mapping[str, str]) -> None:
    url = environment.get("BURSAR_DATABASE_URL")
    if url and not re.match(r"(sqlite:///.|postgres(ql)?(\+psycopg)?://)", url):
        raise SettingsError("BURSAR_DATABASE_URL must begin with sqlite:/// or postgresql://.")
    if url and not url.startswith("sqlite") and not _AUTHORITY.match(url):
        raise SettingsError("BURSAR_DATABASE_URL must have a host, and a number as its port.")
    public = environment.get("BURSAR_PUBLIC_URL")
    if public and not _PUBLIC_URL.fullmatch(public):
        raise SettingsError(
            "BURSAR_PUBLIC_URL must be the address that people type, without a path, "
            "such as https://bursar.example."
        )
    key = environment.get("BURSAR_ADMIN_KEY")
    if key and not re.fullmatch(r"[!-~]{1,500}", key):
        raise SettingsError("BURSAR_ADMIN_KEY must be 1 to 500 printable ASCII letters, no spaces.")
    secret = environment.get("BURSAR_SECRET_KEY")
    if secret and not re.fullmatch(r"[!-~]{32,500}", secret):
        raise SettingsError(
            "BURSAR_SECRET_KEY must be 32 to 500 printable ASCII letters, no spaces."
        )
    scrape = environment.get("BURSAR_SCRAPE_TOKEN")
    if scrape and not re.fullmatch(r"[!-~]{32,500}", scrape):
        raise SettingsError(
            "BURSAR_SCRAPE_TOKEN must be 32 to 500 printable ASCII letters, no spaces."
        )
    traces = environment.get("BURSAR_TRACES_URL")
    if traces and not re.fullmatch(r"https?://[!-~]{1,500}", traces):
        raise SettingsError(
            "BURSAR_TRACES_URL must be an address such as http://collector:4318/v1/traces."
        )
    for name in ("BURSAR_ENGINE_MEMORY", "BURSAR_PREPARED_SIZE_MAX"):
        size = environment.get(name)
        if size and not _SIZE.fullmatch(size):
            raise SettingsError(f"{name} must be a size such as 1GB.")


def _networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        networks = tuple(ip_network(part.strip()) for part in text.split(",") if text)
    except ValueError:
        raise SettingsError(
            "BURSAR_TRUSTED_PROXIES must be addresses and networks, such as 127.0.0.1,10.0.0.0/24."
        ) from None
    if any(network.prefixlen == 0 for network in networks):
        raise SettingsError("BURSAR_TRUSTED_PROXIES must not trust every address.")
    return networks


def _bytes(size: str) -> int:
    found = _SIZE.fullmatch(size)
    assert found is not None, "checked before"
    step = 1024 if found[3] else 1000
    return int(float(found[1]) * step ** ("KMGT".index(found[2]) + 1))


def embedded_url(home: Path) -> str:
    return f"sqlite:///{home / 'ledger.db'}"


def _whole(environment: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    text = environment.get(name) or str(default)
    plain = text.isascii() and text.isdecimal() and len(text) < 20
    if not plain or not low <= int(text) <= high:
        raise SettingsError(f"{name} must be a whole number from {low} to {high}.")
    return int(text)


def _choice(environment: Mapping[str, str], name: str, default: str, *others: str) -> str:
    text = environment.get(name) or default
    if text not in (default, *others):
        raise SettingsError(f"{name} must be {default} or {' or '.join(others)}.")
    return text


def _factor(environment: Mapping[str, str], name: str) -> float:
    text = environment.get(name) or "1"
    if not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,6})?", text) or not 0.01 <= float(text) <= 1000:
        raise SettingsError(f"{name} must be a number from 0.01 to 1000.")
    return float(text)


def _real(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name) or str(default)
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 < value <= 86_400.0:
        raise SettingsError(f"{name} must be a number of seconds above 0 and up to 86400.")
    return value
