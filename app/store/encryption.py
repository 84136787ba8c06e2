"""Encrypted secrets of streams and sign-ins: AES-256-GCM under a key outside the database.

The key comes from BURSAR_SECRET_KEY. If the ledger is the SQLite file in the home folder, the key
may also be a file beside it, made at first use. So a copy of the database alone reveals nothing of
what was drawn. A secret is authenticated together with its context, so it cannot be moved to
another row. Without the key the secrets cannot be recovered.
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
LENGTH = 64  # characters; secrets are padded to it, because the length would leak their size
NO_KEY = (
    "This server has no key to encrypt a stream's secret: its operator must set "
    "BURSAR_SECRET_KEY, the same for every server of this ledger. Nothing was charged."
)
LOST = (
    "This stream's secret cannot be decrypted with this server's key. Without the key that "
    "encrypted it the stream gives no more answers, and its loss is not refunded."
)


class AesSecretBox:
    """Implements `ports.SecretBox`."""

    def __init__(
        self,
        secret_key: str | None,
        home: Path | None,
        *,
        purpose: str = "streams",
        length: int = LENGTH,
    ) -> None:
        """`home`: folder for the key file; None if other servers could not read that folder.

        Boxes for different purposes cannot open each other's secrets.
        """
        self._secret_key = secret_key
        self._home = home
        self._purpose = purpose
        self._length = length
        self._cipher: AESGCM | None = None

    def check(self) -> None:
        self._ready()

    def close(self, secret: str, about: str) -> str:
        if len(secret) > self._length:
            raise ValueError(f"a secret has at most {self._length} characters")
        nonce = secret_bytes(NONCE_BYTES)
        sealed = self._ready().encrypt(nonce, secret.ljust(self._length).encode(), about.encode())
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
            # The text has at least 256 random bits in any alphabet; hash it to the key length.
            self._cipher = AESGCM(
                hashlib.sha256(f"bursar {self._purpose} {text}".encode()).digest()
            )
        return self._cipher


def _from_file(path: Path) -> str:
    """The key in the file. A missing file is created atomically."""
    try:
        if not path.exists():
            aside = path.with_name(f"{path.name}.{secret_text(6)}")
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.write(descriptor, secret_text(32).encode())
                os.fsync(descriptor)
                with suppress(FileExistsError):
                    os.link(aside, path)  # unlike a rename, never replaces another server's key
            finally:
                os.close(descriptor)
                aside.unlink()
            _flush(path.parent)
        text = path.read_text()
    except (OSError, ValueError):
        raise SecretUnavailable("The file with this server's key cannot be read.") from None
    if len(text) < 32:
        raise SecretUnavailable("The file with this server's key is too short to be a key.")
    return text


def _flush(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
