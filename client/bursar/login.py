"""Where the client connects to: arguments, the environment, or a stored login."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from bursar.errors import NoLogin

URL, KEY = "BURSAR_URL", "BURSAR_KEY"


@dataclass(frozen=True)
class Login:
    """The address of a server, and a key."""

    url: str
    key: str

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
        json.dump({"url": login.url, "key": login.key}, file)
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
        return Login(str(stored["url"]), str(stored["key"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise NoLogin(
            f"The stored login cannot be read: {login_file()}", hint="Log in again: bursar login"
        ) from None


def find_login(url: str | None, key: str | None) -> Login:
    """The login to use: arguments first, then BURSAR_URL and BURSAR_KEY, then the stored one.

    A stored key is used for its own address only.
    """
    url = url or os.environ.get(URL)
    key = key or os.environ.get(KEY)
    stored = None if url and key else stored_login()
    if stored is not None and not key and url in (None, stored.url):
        return stored
    if not url:
        raise NoLogin(
            "There is no server to connect to.",
            hint=f"Type 'bursar login ADDRESS', or set {URL} and {KEY}.",
        )
    if not key:
        raise NoLogin(
            f"There is no key for {url}.", hint=f"Type 'bursar login {url}', or set {KEY}."
        )
    if not url.startswith(("http://", "https://")):
        raise NoLogin(f"{url} is not an address.", hint="Write http://... or https://...")
    return Login(url.rstrip("/"), key)
