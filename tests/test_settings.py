"""Settings: safe defaults, and an invalid one stops the start by its name."""

import os
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

import pytest

from app.settings import Settings, SettingsError, embedded_url


def test_an_empty_environment_gives_a_ledger_in_a_folder_on_this_machine_only() -> None:
    settings = Settings.from_environment({})
    assert settings.home == Path(".bursar").absolute()
    assert settings.database_url == embedded_url(settings.home)
    assert settings.embedded
    assert settings.host == "127.0.0.1"
    assert settings.admin_key is None
    assert settings.data_roots == (settings.home / "data",)
    assert settings.release_grid_ms > 0


def every_variable(home: Path) -> dict[str, str]:
    return {
        "BURSAR_HOME": str(home),
        "BURSAR_DATABASE_URL": "postgresql://ledger",
        "BURSAR_HOST": "0.0.0.0",
        "BURSAR_PORT": "1",
        "BURSAR_WORKERS": "2",
        "BURSAR_DATA_ROOTS": os.pathsep.join(["a", "/b", ""]),
        "BURSAR_ADMIN_KEY": "key",
        "BURSAR_SECRET_KEY": "k" * 32,
        "BURSAR_RELEASE_GRID_MS": "0",
        "BURSAR_ANSWER_SECONDS": "0.5",
        "BURSAR_LEASE_SECONDS": "1.5",
        "BURSAR_ENGINE_TIMEOUT_SECONDS": "2",
        "BURSAR_INGEST_TIMEOUT_SECONDS": "3",
        "BURSAR_LEARNING_TIMEOUT_SECONDS": "4",
        "BURSAR_CONNECTIONS": "/etc/connections.json",
        "BURSAR_ANCHOR": "/elsewhere",
        "BURSAR_ENGINE_MEMORY": "2GB",
        "BURSAR_SLOT_FACTOR": "2.5",
        "BURSAR_ENGINE_THREADS": "3",
        "BURSAR_GROUPS_MAX": "5",
        "BURSAR_RUNNING_MAX": "6",
        "BURSAR_RUNNING_EACH": "4",
        "BURSAR_HEADER_SECONDS": "5",
        "BURSAR_BODY_SECONDS": "7",
        "BURSAR_CONNECTIONS_EACH": "9",
        "BURSAR_PREPARED_SIZE_MAX": "1.5 MiB",
        "BURSAR_BODY_BYTES_MAX": "2048",
        "BURSAR_STOP_SECONDS": "7.5",
        "BURSAR_DRAIN_SECONDS": "5",
        "BURSAR_PUBLIC_URL": "https://bursar.example/",
        "BURSAR_SCRAPE_TOKEN": "t" * 32,
        "BURSAR_LOG_FORMAT": "json",
        "BURSAR_LOG_LEVEL": "warning",
        "BURSAR_TRACES_URL": "http://127.0.0.1:4318/v1/traces",
        "BURSAR_WORKER_FOLDER": "/run/bursar",
        "BURSAR_TRUSTED_PROXIES": "127.0.0.1, 10.1.0.0/16,fd00::/8",
    }


def test_every_setting_is_read_from_its_variable(tmp_path: Path) -> None:
    settings = Settings.from_environment(every_variable(tmp_path))
    assert settings == Settings(
        home=tmp_path,
        database_url="postgresql://ledger",
        host="0.0.0.0",
        port=1,
        workers=2,
        data_roots=(Path("a").absolute(), Path("/b")),
        connections=Path("/etc/connections.json"),
        anchor=Path("/elsewhere"),
        admin_key="key",
        secret_key="k" * 32,
        release_grid_ms=0,
        slot_factor=2.5,
        answer_seconds=0.5,
        lease_seconds=1.5,
        engine_timeout_seconds=2.0,
        ingest_timeout_seconds=3.0,
        learning_timeout_seconds=4.0,
        engine_memory="2GB",
        engine_threads=3,
        groups_max=5,
        running_max=6,
        running_each=4,
        header_seconds=5.0,
        body_seconds=7.0,
        connections_each=9,
        trusted_proxies=(
            IPv4Network("127.0.0.1/32"),
            IPv4Network("10.1.0.0/16"),
            IPv6Network("fd00::/8"),
        ),
        prepared_bytes_max=1_572_864,
        body_bytes_max=2048,
        stop_seconds=7.5,
        drain_seconds=5.0,
        public_url="https://bursar.example",
        scrape_token="t" * 32,
        log_format="json",
        log_level="warning",
        traces_url="http://127.0.0.1:4318/v1/traces",
        worker_folder=Path("/run/bursar"),
        secret_files=(),
    )
    assert not settings.embedded
    assert settings.anchor_folders == (tmp_path / "anchors", Path("/elsewhere"))


@pytest.mark.parametrize("name", every_variable(Path()))
def test_an_empty_variable_counts_as_unset(name: str) -> None:
    assert Settings.from_environment({name: ""}) == Settings.from_environment({})


def test_an_environment_of_empty_variables_counts_as_an_empty_one() -> None:
    empty = dict.fromkeys(every_variable(Path()), "")
    assert Settings.from_environment(empty) == Settings.from_environment({})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PORT", "65536"),
        ("PORT", "-1"),
        ("PORT", "http"),
        ("PORT", "8e3"),
        ("PORT", "8000.0"),
        ("PORT", " 8000"),
        ("PORT", "9" * 5000),
        ("WORKERS", "0"),
        ("WORKERS", "65"),
        ("RELEASE_GRID_MS", "60001"),
        ("ENGINE_THREADS", "0"),
        ("BODY_BYTES_MAX", "0"),
        ("BODY_BYTES_MAX", "999999999999"),
        ("LEASE_SECONDS", "0"),
        ("LEASE_SECONDS", "-5"),
        ("LEASE_SECONDS", "nan"),
        ("LEASE_SECONDS", "inf"),
        ("LEASE_SECONDS", "a minute"),
        ("ENGINE_TIMEOUT_SECONDS", "0"),
        ("ENGINE_TIMEOUT_SECONDS", "86401"),
        ("SCRAPE_TOKEN", "t" * 31),
        ("SCRAPE_TOKEN", "two words" * 5),
        ("LOG_FORMAT", "xml"),
        ("LOG_LEVEL", "INFO"),
        ("TRACES_URL", "somewhere:4318"),
        ("DRAIN_SECONDS", "-1"),
        ("DRAIN_SECONDS", "3601"),
        ("TRUSTED_PROXIES", "proxy.example"),
        ("TRUSTED_PROXIES", "unix:/run/proxy.sock"),
        ("TRUSTED_PROXIES", "10.0.0.1/8"),
        ("TRUSTED_PROXIES", "10.0.0.1,,10.0.0.2"),
        ("TRUSTED_PROXIES", "10.0.0.1;10.0.0.2"),
        ("TRUSTED_PROXIES", "*"),
        ("TRUSTED_PROXIES", "0.0.0.0/0"),
        ("TRUSTED_PROXIES", "10.0.0.1,::/0"),
    ],
)
def test_an_invalid_value_is_refused_by_its_name(name: str, text: str) -> None:
    with pytest.raises(SettingsError, match=f"BURSAR_{name}") as caught:
        Settings.from_environment({f"BURSAR_{name}": text})
    assert text not in str(caught.value) or len(text) < 6


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("BURSAR_PRT", "BURSAR_PORT"),
        ("BURSAR_DATA_ROOT", "BURSAR_DATA_ROOTS"),
        ("BURSAR_RELEASE_GRID", "BURSAR_RELEASE_GRID_MS"),
        ("BURSAR_port", "BURSAR_PORT"),
    ],
)
def test_an_unknown_variable_is_refused_with_the_nearest_name(name: str, meant: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment({name: "planted"})
    assert str(caught.value) == f"There is no setting {name}; did you mean {meant}?"


def test_an_unknown_variable_without_a_close_name_is_refused_too() -> None:
    with pytest.raises(SettingsError, match=r"no setting BURSAR_\$\$\$; docs/settings.md"):
        Settings.from_environment({"BURSAR_$$$": "planted"})


def test_variables_of_other_programs_are_ignored() -> None:
    others = {
        "PATH": "/bin",
        "BURSARY": "x",
        "BURSAR_FAULT": "F1",
        "BURSAR_FAULT_ONCE": "file",
        "BURSAR_URL": "http://127.0.0.1:8000",
        "BURSAR_KEY": "key",
        "BURSAR_CA": "ca.pem",
        "BURSAR_TEST_POSTGRES_URL": "postgresql://x",
        "BURSAR_PRT": "",
    }
    assert Settings.from_environment(others) == Settings.from_environment({})
