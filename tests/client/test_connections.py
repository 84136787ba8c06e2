"""Certificates and keys that are not accepted, and a server that is away for a moment."""

import datetime
import http.server
import ipaddress
import json
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from typing_extensions import override

import bursar
from bursar.http import flow
from tests.bursard import wait_until
from tests.server import World, made


def write_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 that only its own file vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / "server.pem", folder / "server.key"
    public.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return public, private


class Datasets(http.server.BaseHTTPRequestHandler):
    """Answers every request with an empty list."""

    def do_GET(self) -> None:
        body = json.dumps({"items": [], "next_cursor": None}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of a server with a certificate of its own, and the certificate."""
    public, private = write_certificate(tmp_path)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Datasets)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}", public
    server.shutdown()
    server.server_close()


def test_an_unknown_certificate_is_refused_at_once(
    secure: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("bursar.http.transport.sleep", pauses.append)
    url, _ = secure
    with (
        bursar.connect(url, "key", state=None) as client,
        pytest.raises(bursar.TlsFailed) as caught,
    ):
        client.datasets()
    assert "verify='ca.pem'" in str(caught.value)
    assert pauses == []  # trying again would not help


def test_a_missing_authority_is_named(secure: tuple[str, Path]) -> None:
    with pytest.raises(bursar.TlsFailed, match="cannot be read"):
        bursar.connect(secure[0], "key", state=None, verify="nowhere.pem")


def test_a_named_authority_is_accepted(secure: tuple[str, Path]) -> None:
    url, certificate = secure
    with bursar.connect(url, "key", state=None, verify=str(certificate)) as client:
        assert len(client.datasets()) == 0


def test_a_server_without_tls_has_an_error_of_its_own(live: World) -> None:
    url = live.server.url.replace("http:", "https:")
    with (
        bursar.connect(url, "key", state=None) as client,
        pytest.raises(bursar.TlsFailed, match="does not speak TLS") as caught,
    ):
        client.datasets()
    assert live.server.url in str(caught.value)
    assert "certificate" not in str(caught.value)


def test_an_authority_is_named_by_the_environment_or_stored(
    secure: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, certificate = secure
    program = [sys.executable, "-c", "from bursar.command import main; main()"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BURSAR_")}
    environment = {**kept, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}

    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*program, *words],
            env={**environment, **more},
            capture_output=True,
            text=True,
            input="key\n",
        )

    named = {"BURSAR_URL": url, "BURSAR_KEY": "key"}
    refused = run("datasets", **named)
    assert refused.returncode == 2
    assert "bursar login --ca" in refused.stderr
    assert run("datasets", **named, BURSAR_CA=str(certificate)).returncode == 0
    assert run("datasets", **named, BURSAR_CA="nowhere.pem").returncode == 2
    assert run("login", url, "--ca", str(certificate)).returncode == 0
    assert run("datasets").returncode == 0
    monkeypatch.setenv("BURSAR_CA", str(certificate))
    with bursar.connect(url, "key", state=None) as client:
        assert len(client.datasets()) == 0


def test_an_expired_key_is_refused_with_a_hint(live: World) -> None:
    reply = httpx.Response(500)
    for seconds in (1, 4, 16, 64):  # a busy server may refuse an end that has passed meanwhile
        soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
        body = {"expires_at": soon.isoformat().replace("+00:00", "Z")}
        reply = live.admin.post("/v1/analysts/ada/keys", json=body)
        if reply.is_success:
            break
    key = made(reply)["key"]
    wait_until(lambda: datetime.datetime.now(datetime.UTC) > soon, 90, "the key expires")
    with (
        bursar.connect(live.server.url, key, state=None) as client,
        pytest.raises(bursar.NotAuthenticated) as caught,
    ):
        client.datasets()
    assert "expired" in str(caught.value)
    assert "bursar login" in str(caught.value)


def test_a_question_survives_a_restart_of_the_server(
    live: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is stopped before the first attempt and is back before the second."""
    monkeypatch.setattr(flow, "ATTEMPTS_MAX", 2)
    port = live.server.url.rpartition(":")[2]
    restarted: list[str] = []

    def start_again(_: float) -> None:
        live.serve(BURSAR_PORT=port)
        restarted.append(live.server.url)

    monkeypatch.setattr("bursar.http.transport.sleep", start_again)
    with bursar.connect(live.server.url, live.people["ada"].key, state=None) as client:
        question = client["people"].count()
        live.server.stop()
        answer = question.ask(epsilon=0.1)
    assert answer.status == "answered"
    assert restarted == [client.url]
