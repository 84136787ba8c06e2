"""Where the client connects to: arguments, the environment, or a stored login."""

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bursar.errors import NoLogin

URL, KEY, CA = "BURSAR_URL", "BURSAR_KEY", "BURSAR_CA"


@dataclass(frozen=True)
class Login:
    """The address of a server, a key, and perhaps a file with the authority of its certificate."""

    url: str
    key: str
    ca: str | None = None

    def __repr__(self) -> str:
        return f"Login({self.url!r}, key hidden)"


def login_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "bursar" / "login.json"


def store_login(login: Login) -> Path:
    """Store a login for later, readable by its owner only."""
    path = login_file()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w") as file:
        json.dump({name: value for name, value in asdict(login).items() if value}, file)
    temporary.replace(path)
    return path


def remove_login() -> bool:
    """Forget the stored login; False if there was none."""
    try:
        login_file().unlink()
    except FileNotFoundError:
        return False
    return True


def stored_login() -> Login | None:
    try:
        stored = json.loads(login_file().read_text())
        ca = stored.get("ca")
        return Login(str(stored["url"]), str(stored["key"]), None if ca is None else str(ca))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise NoLogin(
            f"The stored login cannot be read: {login_file()}", hint="Log in again: bursar login"
        ) from None


def find_login(url: str | None, key: str | None) -> Login:
    """The login to use: arguments first, then BURSAR_URL and BURSAR_KEY, then the stored one.

    A stored key is used for its own address only. BURSAR_CA comes before a stored authority.
    """
    url = url or os.environ.get(URL)
    key = key or os.environ.get(KEY)
    ca = os.environ.get(CA) or None
    stored = None if url and key else stored_login()
    if stored is not None and not key and url in (None, stored.url):
        return stored if ca is None else replace(stored, ca=ca)
    if not url:
        raise NoLogin(
            "There is no server to connect to.",
            hint=f"Type 'bursar login ADDRESS', or set {URL} and {KEY}.",
        )
    if not key:
        raise NoLogin(
            f"There is no key for {url}.", hint=f"Type 'bursar login {url}', or set {KEY}."
        )
    url, key = url.strip(), key.strip()
    if not url.isprintable() or not url.startswith(("http://", "https://")):
        raise NoLogin(f"{url!r:.200} is not an address.", hint="Write http://... or https://...")
    if not (key.isascii() and key.isprintable()):
        raise NoLogin(
            "The key has characters that no key has.", hint="Copy it again, without what is around."
        )
    return Login(url.rstrip("/"), key, ca)
