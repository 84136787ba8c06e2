"""Secrets of streams at rest: AES-256-GCM under a key that is not in the ledger's database.

The key comes from BURSAR_SECRET_KEY; where the ledger is the file in the home folder, a file beside
it will do, made when it is first needed. A copy of the database alone therefore tells nothing of
what was drawn. What a secret is about is authenticated with it, so that none can be moved to
another row. Whoever loses the key loses the secrets: there is no other way to them.
"""

import base64
import hashlib
import os
from contextlib import suppress
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from app.errors import SecretUnavailable
from app.mechanisms.sampling.system import secret_bytes, secret_text

FILE = "secret.key"
NONCE_BYTES = 12
LENGTH = 64  # secrets are padded to it: a longer one would tell how large it is
NO_KEY = (
    "This server has no key to keep a stream's secret with: its operator must set "
    "BURSAR_SECRET_KEY, the same for every server of this ledger. Nothing was charged."
)
LOST = (
    "This stream's secret cannot be opened with the key that this server has. Without the key it "
    "was sealed with the stream answers nothing more, and nothing is given back."
)


class KeySeal:
    """Implements `interfaces.Seal`."""

    def __init__(self, secret_key: str | None, home: Path | None) -> None:
        """`home` is where a key may be kept in a file; None where other servers could not find
        it."""
        self._secret_key = secret_key
        self._home = home
        self._cipher: AESGCM | None = None

    def check(self) -> None:
        self._ready()

    def close(self, secret: str, about: str) -> str:
        if len(secret) > LENGTH:
            raise ValueError("a secret is short")
        nonce = secret_bytes(NONCE_BYTES)
        sealed = self._ready().encrypt(nonce, secret.ljust(LENGTH).encode(), about.encode())
        return base64.b64encode(nonce + sealed).decode()

    def open(self, sealed: str, about: str) -> str:
        cipher = self._ready()
        opened: bytes | None = None
        with suppress(InvalidTag, ValueError):
            raw = base64.b64decode(sealed, validate=True)
            opened = cipher.decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], about.encode())
        if opened is None:
            raise SecretUnavailable(LOST)
        return opened.decode().rstrip()

    def _ready(self) -> AESGCM:
        if self._cipher is None:
            text = self._secret_key
            if text is None:
                if self._home is None:
                    raise SecretUnavailable(NO_KEY)
                text = _from_file(self._home / FILE)
            # Of 256 random bits or more in whatever letters; a hash makes the key's length of it.
            self._cipher = AESGCM(hashlib.sha256(f"bursar streams {text}".encode()).digest())
        return self._cipher


def _from_file(path: Path) -> str:
    """The key in the file, which is made if it is not there, whole or not at all."""
    try:
        if not path.exists():
            aside = path.with_name(f"{path.name}.{secret_text(6)}")
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.write(descriptor, secret_text(32).encode())
                os.fsync(descriptor)
                with suppress(FileExistsError):
                    os.link(aside, path)  # unlike renaming, never over another's key
            finally:
                os.close(descriptor)
                aside.unlink()
            _flush(path.parent)
        text = path.read_text()
    except (OSError, ValueError):
        raise SecretUnavailable("The file that holds this server's key cannot be read.") from None
    if len(text) < 32:
        raise SecretUnavailable("The file that holds this server's key holds none.")
    return text


def _flush(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
