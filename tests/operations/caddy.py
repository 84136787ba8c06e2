"""The proxy of docs/proxy/Caddyfile as a real process, with a certificate of its own.

Caddy is a Debian package, which `make test` installs where it can.
"""

import datetime
import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Self

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.bursard import CHECKOUT, START_SECONDS, wait_until

CADDYFILE = CHECKOUT / "docs" / "proxy" / "Caddyfile"
needs_caddy = pytest.mark.skipif(
    shutil.which("caddy") is None,
    reason="there is no Caddy on this machine; `make test` installs it with apt-get as root",
)


class Proxy:
    """A running Caddy in front of servers; `certificate` is the authority of its clients."""

    def __init__(self, folder: Path, servers: Sequence[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.certificate = folder / "certificate.pem"
        self.port, self.plain_port = free_port(), free_port()
        self.url = f"https://localhost:{self.port}"
        self.folder = folder
        make_certificate(self.certificate, folder / "key.pem")
        environment = {
            "SITE": "localhost",
            "HTTP_PORT": str(self.plain_port),
            "HTTPS_PORT": str(self.port),
            "TLS_CERTIFICATE": str(self.certificate),
            "TLS_KEY": str(folder / "key.pem"),
            "SERVERS": " ".join(server.removeprefix("http://") for server in servers),
            "HEALTH_INTERVAL": "300ms",
            "HOME": str(folder),
            "PATH": os.environ["PATH"],
        }
        with (folder / "caddy.log").open("wb") as log:
            self._process = subprocess.Popen(
                ["caddy", "run", "--adapter", "caddyfile", "--config", CADDYFILE],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @classmethod
    def start(cls, folder: Path, servers: Sequence[str]) -> Self:
        """Start Caddy and wait until a server answers through it."""
        proxy = cls(folder, servers)
        try:
            wait_until(proxy._is_ready, START_SECONDS, "the proxy is not ready")
        except BaseException:
            proxy.stop()
            raise
        return proxy

    def client(self, key: str | None = None, source: str | None = None) -> httpx.Client:
        """A client of its own connection, from the address `source`."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        trusted = ssl.create_default_context(cafile=self.certificate)
        transport = httpx.HTTPTransport(verify=trusted, local_address=source)
        return httpx.Client(base_url=self.url, headers=headers, transport=transport, timeout=60)

    def output(self) -> str:
        return (self.folder / "caddy.log").read_text(errors="replace")

    def stop(self) -> None:
        """End it at once: it has nothing to save, and would wait for open streams."""
        self._process.kill()
        self._process.wait()

    def _is_ready(self) -> bool:
        if self._process.poll() is not None:
            raise RuntimeError(f"Caddy ended at once:\n{self.output()[-2000:]}")
        try:
            with self.client() as client:
                return client.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False


def free_port() -> int:
    """A port that nobody uses now; a server that restarts needs a fixed one."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def make_certificate(certificate: Path, key: Path) -> None:
    """A certificate of this machine, signed by itself."""
    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=7))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(secret, hashes.SHA256())
    )
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        secret.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
