"""A wheel works without this checkout: installed in an environment, it serves and answers.

The wheel is built from a source distribution, like a release. The environment links the runtime
packages of the lock from the development environment, and nothing else.
"""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.bursard import START_SECONDS, Server, wait_until
from tests.house.test_lock import names, parts
from tests.server import ask, card, count, made, some_rows

TOP = Path(__file__).resolve().parents[2]
PROJECT = ["pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "app", "migrations"]
NAME = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["name"]


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, and an empty folder to run it in."""

    environment: Path
    folder: Path

    def run(self, program: str, *words: str) -> str:
        done = subprocess.run(
            [self.environment / "bin" / program, *words],
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables without any path to the checkout."""
        return {"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1", "BURSAR_PORT": "0"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder_of_all = tmp_path_factory.mktemp("wheel")
    environment = folder_of_all / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", str(environment))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    run(
        *pip,
        "--python",
        str(environment),
        "install",
        "--no-deps",
        "--no-index",
        build(folder_of_all),
    )
    (packages,) = environment.glob("lib/python*/site-packages")
    link_runtime_packages(packages)
    folder = folder_of_all / "empty"
    folder.mkdir()
    return Installed(environment, folder)


@pytest.fixture
def server(installed: Installed, tmp_path: Path) -> Iterator[Server]:
    log, connections = tmp_path / "log", tmp_path / "connections.json"
    connections.write_text('{"lake": {"engine": "spark", "url": "sc://127.0.0.1:1"}}')
    with log.open("wb") as output:
        process = subprocess.Popen(
            [installed.environment / "bin" / "bursard", "serve"],
            cwd=installed.folder,
            env={**installed.variables, "BURSAR_CONNECTIONS": str(connections)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = Server(process, log)
    try:
        wait_until(server._is_ready, START_SECONDS, "the server is not ready")
        yield server
    finally:
        server.kill()


def test_program_and_migrations_come_from_the_wheel(installed: Installed) -> None:
    look = "import app, app.store.migrate as m; print(app.__file__, m.MIGRATIONS, sep='\\n')"
    for place in installed.run("python", "-c", look).splitlines():
        assert Path(place).is_relative_to(installed.environment / "lib"), place
        assert not Path(place).resolve().is_relative_to(TOP), place


def test_the_wheel_has_every_migration(installed: Installed) -> None:
    look = "import app.store.migrate as m; print(m.MIGRATIONS)"
    shipped = Path(installed.run("python", "-c", look).strip())
    for path in (TOP / "migrations").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            copy = shipped / path.relative_to(TOP / "migrations")
            assert copy.read_bytes() == path.read_bytes()


def test_a_server_in_an_empty_folder_answers_a_question(
    installed: Installed, server: Server
) -> None:
    found = re.search(r"First administrator's key.*\n(\S+)\n", server.output())
    assert found is not None, server.output()
    admin = server.client(found[1])
    data = installed.folder / ".bursar" / "data"
    data.mkdir(exist_ok=True)
    header = "age,income,region,smoker,seen"
    lines = [header, *(",".join(map(str, row)) for row in some_rows())]
    (data / "people.csv").write_text("\n".join(lines) + "\n")
    made(admin.post("/v1/datasets", json=card("people.csv", name="people")))
    made(admin.post("/v1/analysts", json={"name": "ann", "role": "analyst"}))
    key = made(admin.post("/v1/analysts/ann/keys"))["key"]
    for holder in ("*", "ann"):
        budget = {"currency": "pure", "epsilon": 1}
        made(admin.put(f"/v1/datasets/people/budgets/{holder}", json=budget))
    answer = made(ask(server.client(key), count("people")))
    assert isinstance(answer["value"], int)

    # Packages of the extras are missing, and the reply names the extra.
    plan = {"delta": 1e-6, "events": [{"mechanism": "laplace", "epsilon": 1}]}
    results = made(admin.post("/v1/accounting/compose", json=plan))["results"]
    assert f"pip install '{NAME}[pld]'" in results["pld"]["unavailable"]
    source = {"engine": "spark", "connection": "lake", "table": "visits"}
    reply = admin.post("/v1/datasets", json=card("", source=source))
    assert reply.status_code == 503
    assert f"pip install '{NAME}[spark]'" in reply.json()["detail"]
    assert "Traceback" not in server.output()


def test_the_environment_has_no_development_package(installed: Installed) -> None:
    """Otherwise the tests above would not notice what a plain `pip install` lacks."""
    look = (
        "import importlib.util as u; print([u.find_spec(n) for n in ('pytest', 'dp_accounting')])"
    )
    assert installed.run("python", "-c", look).strip() == "[None, None]"


def build(target: Path) -> str:
    """Build the wheel of this checkout from a source distribution."""
    source = target / "source"
    source.mkdir()
    for name in PROJECT:
        path, copy = TOP / name, source / name
        if path.is_dir():
            shutil.copytree(path, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, copy)
    make = "import setuptools.build_meta as b; b.build_sdist('dist')"
    run(sys.executable, "-c", make, folder=source)
    (archive,) = source.glob("dist/*.tar.gz")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(target)]
    run(*pip, "wheel", *options, str(archive))
    (wheel,) = target.glob("*.whl")
    return str(wheel)


def link_runtime_packages(packages: Path) -> None:
    runtime, _ = parts()
    for name in names(runtime):
        try:
            files = importlib.metadata.distribution(name).files or []
        except importlib.metadata.PackageNotFoundError:  # for another system
            continue
        for top in {path.parts[0] for path in files} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                located = importlib.metadata.distribution(name).locate_file(top)
                (packages / top).symlink_to(str(located))


def run(*command: str, folder: Path | None = None) -> None:
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
