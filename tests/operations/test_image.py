"""The image: its Dockerfile is built, and serves as its user with a read-only root. `make image`

With a container engine it is the real image. Without one, the steps of the Dockerfile run by chroot
in a Debian with the same Python: near to `python:3.11-slim`, and not the same. This takes minutes.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.bursard import CHECKOUT, wait_until
from tests.operations.caddy import free_port
from tests.operations.dockerfile import Builder, Image, in_namespace, inside, system_mounts

BUILD = CHECKOUT / "build" / "image"
PATIENCE_SECONDS = 120
SUITE = "bookworm"  # the Debian release that has the Python of the image
PYTHON = "3.11"
pytestmark = [pytest.mark.audit, pytest.mark.timeout(3600)]


def has_engine() -> bool:
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "info"], capture_output=True).returncode == 0


needs_root = pytest.mark.skipif(
    has_engine() or os.geteuid() != 0 or shutil.which("debootstrap") is None,
    reason="this needs root and debootstrap; with a container engine the real image is built",
)
needs_engine = pytest.mark.skipif(not has_engine(), reason="no container engine runs here")


def base_system() -> Path:
    """A small Debian with Python, kept for the next time."""
    root = BUILD / "base"
    if (root / "complete").exists():
        return root
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    packages = f"python{PYTHON},python{PYTHON}-venv,python3-distutils,ca-certificates"
    command = ["debootstrap", "--variant=minbase", f"--include={packages}", SUITE, str(root)]
    subprocess.run([*command, mirror()], check=True, stdout=subprocess.DEVNULL)
    for name in ("python", "python3"):
        (root / "usr/local/bin" / name).symlink_to(f"/usr/bin/python{PYTHON}")
    (root / "complete").touch()
    return root


def mirror() -> str:
    """Where this machine gets its Debian packages from."""
    words = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"]
    sites = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    return min(sites, key=len)  # the updates of security have a longer address


def wheels() -> Path:
    """The locked packages of the service; pip checks each hash again in the image."""
    folder = BUILD / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    lock = BUILD / "runtime.lock"
    lock.write_text((CHECKOUT / "requirements.lock").read_text().split("# --- development ---")[0])
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes"]
    subprocess.run([*pip, "--requirement", lock, "--dest", folder], check=True)
    return folder


@pytest.fixture(scope="module")
def image() -> Image:
    assert sys.version_info[:2] == (3, 11), "the wheels are downloaded for the image's Python"
    builder = Builder(CHECKOUT, base_system(), wheels(), BUILD)
    built = builder.build(CHECKOUT / "Dockerfile")
    assert builder.bases == {f"python:{PYTHON}-slim"}
    return built


def locked_root(image: Image, volume: Path) -> str:
    """Mounts of a container with a read-only root, a /tmp in memory, and its volume."""
    (mounted,) = image.volumes
    root = image.root
    return " && ".join(
        [
            f"mount --bind {root} {root}",
            system_mounts(root),
            f"mount -t tmpfs tmpfs {root}/tmp",
            f"mount --bind {volume} {root}{mounted}",
            f"mount -o remount,bind,ro {root}",
        ]
    )


@contextmanager
def container(image: Image, volume: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**image.environment, "BURSAR_PORT": str(port)}
    line = inside(image, image.command, environment, locked=True)
    with (volume.parent / "log").open("wb") as log:
        process = subprocess.Popen(
            ["unshare", "--mount", "/bin/sh", "-ec", f"{locked_root(image, volume)} && {line}"],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.fixture
def volume(image: Image, tmp_path: Path) -> Path:
    """A new volume takes over the folder of the image, with its owner and mode."""
    (mounted,) = image.volumes
    target = tmp_path / "volume"
    subprocess.run(["cp", "--archive", f"{image.root}{mounted}", target], check=True)
    return target


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=10).status_code == 200
    except httpx.TransportError:
        return False


@needs_root
def test_the_image_serves_as_its_user_with_a_read_only_root(image: Image, volume: Path) -> None:
    assert image.user == "10001:10001"
    assert image.volumes == [image.environment["BURSAR_HOME"]] == [image.folder]
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    log = volume.parent / "log"
    with container(image, volume, port) as process:
        wait_until(
            lambda: answers(url) or process.poll() is not None, PATIENCE_SECONDS, log.read_text()
        )
        assert process.poll() is None, log.read_text()
        assert httpx.get(f"{url}/healthz").json() == {"status": "ok"}
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert re.search(r"^Uid:\s+10001\s+10001", status, re.MULTILINE)
        assert re.search(r"^Cap(Eff|Prm|Bnd):\s+0+$", status, re.MULTILINE)
        assert re.search(r"^NoNewPrivs:\s+1$", status, re.MULTILINE)
        (key,) = re.findall(r"^bursar_\S+$", log.read_text(), re.MULTILINE)
        headers = {"Authorization": f"Bearer {key}"}
        assert httpx.get(f"{url}/v1/analysts", headers=headers).status_code == 200
        environment = {**image.environment, "BURSAR_PORT": str(port)}
        health = inside(image, image.health, environment, locked=True)
        subprocess.run(in_namespace(f"{locked_root(image, volume)} && {health}"), check=True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) in (0, -signal.SIGTERM)
    assert (volume / "ledger.db").exists()
    assert "Traceback" not in log.read_text()


@needs_root
def test_nothing_but_the_volume_and_tmp_can_be_written_to(image: Image, volume: Path) -> None:
    (mounted,) = image.volumes
    for path, allowed in (
        (f"{mounted}/x", True),
        ("/tmp/x", True),
        ("/x", False),
        ("/opt/x", False),
    ):
        line = inside(image, ["/usr/bin/touch", path], image.environment, locked=True)
        ran = subprocess.run(
            in_namespace(f"{locked_root(image, volume)} && {line}"), capture_output=True, text=True
        )
        assert (ran.returncode == 0) is allowed, ran.stderr
        assert allowed or "Read-only file system" in ran.stderr


@needs_root
def test_the_image_has_the_program_and_no_development_package(image: Image, volume: Path) -> None:
    packages = image.root / "opt/bursar/venv/lib" / f"python{PYTHON}" / "site-packages"
    assert (packages / "app" / "migrations" / "versions").is_dir()
    for name in ("pytest", "ruff", "mypy", "hypothesis"):
        assert not (packages / name).exists()
    assert not (image.root / "opt/bursar/source").exists()
    line = inside(image, ["bursard", "doctor"], image.environment, locked=True)
    ran = subprocess.run(
        in_namespace(f"{locked_root(image, volume)} && {line}"), capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@needs_engine
def test_an_engine_builds_the_image_and_it_serves() -> None:
    name, port = "bursar:tested", free_port()
    subprocess.run(["docker", "build", "--tag", name, CHECKOUT], check=True)
    hardened = ["--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--security-opt=no-new-privileges"]
    started = subprocess.run(
        ["docker", "run", "--detach", "--rm", *hardened, f"--publish=127.0.0.1:{port}:8000", name],
        check=True,
        capture_output=True,
        text=True,
    )
    try:
        wait_until(
            lambda: answers(f"http://127.0.0.1:{port}"),
            PATIENCE_SECONDS,
            "the image does not serve",
        )
        user = ["docker", "exec", started.stdout.strip(), "id", "-u"]
        assert subprocess.run(user, capture_output=True, text=True).stdout.strip() == "10001"
    finally:
        subprocess.run(["docker", "stop", started.stdout.strip()], check=True)


@needs_engine
def test_the_image_has_no_critical_hole_that_has_a_fix() -> None:
    """Trivy scans the image. It needs its database of holes, so a machine without it skips."""
    scanner = shutil.which("trivy")
    if scanner is None:
        pytest.skip("trivy is not installed: the image was not scanned")
    name = "bursar:tested"
    subprocess.run(["docker", "build", "--tag", name, CHECKOUT], check=True)
    options = ["--exit-code=1", "--severity=CRITICAL", "--ignore-unfixed", "--quiet"]
    scanned = subprocess.run([scanner, "image", *options, name], capture_output=True, text=True)
    assert scanned.returncode == 0, scanned.stdout + scanned.stderr
