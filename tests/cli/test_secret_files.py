"""Secrets from files: the file's content is the value, and no error or warning shows it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli.serving import cautions
from app.settings import SECRETS, Settings, SettingsError
from tests.bursard import Server, wait_until
from tests.cli.running import run_here
from tests.cli.test_doctor import examined
from tests.conftest import Template
from tests.server import World

VALUES = {
    "BURSAR_ADMIN_KEY": "an-administrators-key-of-32-letters",
    "BURSAR_DATABASE_URL": "postgresql://ledger:hush@database/bursar",
    "BURSAR_SECRET_KEY": "k" * 32,
}
PLANTED = "planted-secret"


def secret_file(folder: Path, name: str, content: str | bytes, mode: int = 0o600) -> str:
    path = folder / name.lower()
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_content_of_a_file_is_the_value(tmp_path: Path, name: str, end: str) -> None:
    value = VALUES.get(name, "v" * 40)
    from_file = Settings.from_environment(
        {f"{name}_FILE": secret_file(tmp_path, name, value + end)}
    )
    plain = Settings.from_environment({name: value})
    assert from_file.secret_files == ((f"{name}_FILE", tmp_path / name.lower()),)
    for member in ("admin_key", "database_url", "scrape_token", "secret_key"):
        assert getattr(from_file, member) == getattr(plain, member)


@pytest.mark.parametrize("name", SECRETS)
def test_an_unusable_file_is_refused_by_the_name_of_its_variable(tmp_path: Path, name: str) -> None:
    file, folder = tmp_path / "file", tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "loop").symlink_to("loop")
    contents = {
        b"": "empty",
        b"\n": "empty",
        f"{PLANTED}\nand more".encode(): "one line",
        f"{PLANTED}\n\n".encode(): "one line",
        PLANTED.encode() + b"\xff": "one line",
        PLANTED.encode() + b"\x00": "one line",
        PLANTED.encode() * 10_000: "one line",
    }
    for content, rule in contents.items():
        file.write_bytes(content)
        must_be_refused({f"{name}_FILE": str(file)}, f"{name}_FILE", rule)
    for path in (tmp_path / "none", tmp_path / "loop", file / "below", "a\0b", "x" * 5000):
        must_be_refused({f"{name}_FILE": str(path)}, f"{name}_FILE", "cannot be read")
    for path in (folder, "/dev/zero"):
        must_be_refused({f"{name}_FILE": str(path)}, f"{name}_FILE", "not a folder or a device")


def must_be_refused(variables: dict[str, str], name: str, rule: str) -> None:
    with pytest.raises(SettingsError, match=name) as caught:
        Settings.from_environment(variables)
    assert rule in str(caught.value)
    assert PLANTED not in str(caught.value)
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize("name", SECRETS)
def test_a_value_and_a_file_together_are_refused(tmp_path: Path, name: str) -> None:
    path = secret_file(tmp_path, name, PLANTED)
    must_be_refused({name: PLANTED, f"{name}_FILE": path}, name, "both set")
    assert Settings.from_environment({name: "", f"{name}_FILE": ""}).secret_files == ()


def test_the_rules_of_a_setting_hold_for_its_file(tmp_path: Path) -> None:
    path = secret_file(tmp_path, "BURSAR_SECRET_KEY", PLANTED)
    must_be_refused({"BURSAR_SECRET_KEY_FILE": path}, "BURSAR_SECRET_KEY", "32 to 500")


def test_only_secrets_come_from_files(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no setting BURSAR_PORT_FILE"):
        Settings.from_environment({"BURSAR_PORT_FILE": secret_file(tmp_path, "port", "8000")})
    with pytest.raises(SettingsError, match="did you mean BURSAR_ADMIN_KEY_FILE"):
        Settings.from_environment({"BURSAR_ADMIN_KEY_FIL": "x"})


@pytest.mark.parametrize(("mode", "warns"), [(0o600, False), (0o640, False), (0o644, True)])
def test_a_file_that_everybody_may_read_is_a_caution(
    tmp_path: Path, mode: int, warns: bool
) -> None:
    value = VALUES["BURSAR_ADMIN_KEY"]
    path = secret_file(tmp_path, "BURSAR_ADMIN_KEY", value, mode)
    lines = list(cautions(Settings.from_environment({"BURSAR_ADMIN_KEY_FILE": path})))
    assert [line for line in lines if "BURSAR_ADMIN_KEY_FILE" in line] == lines
    assert len(lines) == warns
    assert value not in "".join(lines)


def test_doctor_warns_about_readers_and_names_every_unusable_file(
    peopled: Template, tmp_path: Path
) -> None:
    ledger = peopled("sqlite", tmp_path / "ledger").ledger
    ledger.home.chmod(0o700)
    shared = secret_file(tmp_path, "key", ledger.admin_key, 0o644)
    seen = examined(ledger, BURSAR_ADMIN_KEY="", BURSAR_ADMIN_KEY_FILE=shared)
    assert (seen.code, seen.of("settings")) == (0, ["warning"] * 2), "the file and the time grid"
    assert "BURSAR_ADMIN_KEY_FILE: everybody" in seen.text
    assert ledger.admin_key not in seen.text
    short = secret_file(tmp_path, "short", PLANTED)
    wrong = {
        "BURSAR_ADMIN_KEY_FILE": shared,  # beside BURSAR_ADMIN_KEY
        "BURSAR_SECRET_KEY_FILE": short,
        "BURSAR_DATABASE_URL_FILE": str(tmp_path),
        "BURSAR_PORT": "many",
    }
    seen = examined(ledger, **wrong)
    assert (seen.code, seen.failures()) == (1, ["settings"] * 4), seen.text
    assert PLANTED not in seen.text


@pytest.fixture
def world(peopled: Template, tmp_path: Path) -> Iterator[World]:
    made = peopled("postgresql", tmp_path / "ledger")
    yield made
    made.ledger.stop()


def test_a_server_and_its_workers_take_their_secrets_from_files(
    world: World, tmp_path: Path
) -> None:
    environment = world.ledger.environment()
    secrets = {name: environment[name] for name in SECRETS if name in environment}
    assert set(secrets) >= set(VALUES)
    files = {f"{name}_FILE": secret_file(tmp_path, name, text) for name, text in secrets.items()}
    server: Server = world.serve(**dict.fromkeys(secrets, ""), **files, BURSAR_WORKERS="2")
    wait_until(lambda: world.admin.get("/v1/analysts").status_code == 200, 60, "no worker answers")
    for text in secrets.values():
        assert text not in server.output()
        assert text not in Path(f"/proc/{server.process.pid}/environ").read_text(errors="replace")


def test_a_command_names_the_variable_and_exits_with_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BURSAR_DATABASE_URL_FILE", str(tmp_path))
    done = run_here("verify")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("bursard: BURSAR_DATABASE_URL_FILE must name a file")
