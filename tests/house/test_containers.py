"""The container files are valid, as far as tests can check without a container engine."""

import re
import shutil
import subprocess
import sys
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from app.settings import Settings
from tests.house.documentation import section

TOP = Path(__file__).resolve().parents[2]
PAGE = TOP / "docs" / "operations" / "containers.md"
Json = dict[str, Any]


def test_the_dockerfile_passes_hadolint() -> None:
    program("hadolint", "--no-color", "Dockerfile")


def test_the_image_runs_as_an_unprivileged_user_on_locked_packages() -> None:
    lines = (TOP / "Dockerfile").read_text().splitlines()
    assert "USER 10001:10001" in lines
    assert 'CMD ["bursard", "serve"]' in lines
    assert any("--require-hashes" in line for line in lines)


def test_the_compose_file_fits_the_compose_schema() -> None:
    program("check-jsonschema", "--builtin-schema", "vendor.compose-spec", "docker-compose.yml")


def test_the_compose_schema_refuses_an_unknown_key(tmp_path: Path) -> None:
    wrong = tmp_path / "compose.yml"
    wrong.write_text("services: {bursar: {image: bursar, prots: []}}")
    with pytest.raises(AssertionError):
        program("check-jsonschema", "--builtin-schema", "vendor.compose-spec", str(wrong))


def compose() -> Json:
    document: Json = yaml.safe_load((TOP / "docker-compose.yml").read_text())
    return document


SERVICES: dict[str, Json] = compose()["services"]
SERVERS = ("migrate", "bursar", "bursar-2")


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_hardened(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service.get("cap_add", []) == (["NET_BIND_SERVICE"] if name == "proxy" else [])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["pids_limit"] > 0
    assert not {"privileged", "network_mode", "pid", "ipc", "devices", "userns_mode"} & set(service)
    assert re.fullmatch(r"[a-z/]+:(local|v?\d+\.\d+(\.\d+)?)", service["image"]), "no moving tag"


@pytest.mark.parametrize("name", SERVICES)
def test_every_secret_is_a_file(name: str) -> None:
    service = SERVICES[name]
    mounted = set(service.get("secrets", []))
    assert mounted <= set(compose()["secrets"])
    read = set()
    for variable, text in service.get("environment", {}).items():
        assert "${" not in str(text) or variable == "SITE"
        if re.search(r"PASSWORD|SECRET|TOKEN|_KEY|DATABASE_URL", variable):
            assert variable.endswith("_FILE"), variable
            read.add(str(text).removeprefix("/run/secrets/"))
    configured = {"proxy": {"tls_certificate", "tls_key"}, "prometheus": {"scrape_token"}}
    assert read | configured.get(name, set()) == mounted


@pytest.mark.parametrize("name", SERVICES)
def test_every_mounted_file_exists_and_is_read_only(name: str) -> None:
    volumes = compose()["volumes"]
    for mount in SERVICES[name].get("volumes", []):
        source, _, options = mount.split(":") if mount.count(":") == 2 else (*mount.split(":"), "")
        if not source.startswith("."):
            assert source in volumes
            continue
        assert options == "ro", mount
        if source != "./data":
            assert (TOP / source).exists(), mount


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_open_on_this_machine_only_but_for_the_proxy(name: str) -> None:
    ports = SERVICES[name].get("ports", [])
    assert all(name == "proxy" or port.startswith("127.0.0.1:") for port in ports)


def test_the_ledger_is_reached_by_the_service_only() -> None:
    assert compose()["networks"]["ledger"] == {"internal": True}
    inside = {name for name, service in SERVICES.items() if "ledger" in service["networks"]}
    assert inside == {"database", *SERVERS}


def test_only_the_proxy_is_trusted_and_its_address_is_its_own() -> None:
    address = SERVICES["proxy"]["networks"]["front"]["ipv4_address"]
    (configured,) = compose()["networks"]["front"]["ipam"]["config"]
    assert ip_address(address) in ip_network(configured["subnet"])
    assert ip_address(address) not in ip_network(configured["ip_range"])
    for name in SERVERS:
        assert SERVICES[name]["environment"]["BURSAR_TRUSTED_PROXIES"] == address
    servers = SERVICES["proxy"]["environment"]["SERVERS"].split()
    assert servers == ["bursar:8000", "bursar-2:8000"]


def test_the_service_starts_after_the_migration_and_mounts_data_read_only() -> None:
    assert SERVICES["migrate"]["command"] == ["bursard", "migrate"]
    homes = set()
    for name in ("bursar", "bursar-2"):
        service = SERVICES[name]
        assert service["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
        assert "./data:/data:ro" in service["volumes"]
        homes |= {volume for volume in service["volumes"] if volume.endswith(":/var/lib/bursar")}
    assert len(homes) == 2, "each server has a home of its own"


def test_the_commands_of_the_page_make_secrets_with_which_the_service_starts(
    tmp_path: Path,
) -> None:
    commands = re.findall(r"^\$ (.*)$", section(PAGE, "Secrets"), re.MULTILINE)
    script = "set -e\n" + "\n".join(commands)
    subprocess.run(["/bin/sh", "-c", script], cwd=tmp_path, check=True, capture_output=True)
    folder = tmp_path / "secrets"
    assert folder.stat().st_mode & 0o777 == 0o700
    made = {path.name for path in folder.iterdir()}
    assert made | {"tls_certificate", "tls_key"} == set(compose()["secrets"])
    environment = {
        name: str(text).replace("/run/secrets", str(folder))
        for name, text in SERVICES["bursar"]["environment"].items()
    }
    settings = Settings.from_environment(environment)
    assert settings.database_url.startswith("postgresql+psycopg://bursar:")
    assert settings.admin_key != settings.secret_key
    grace = float(SERVICES["bursar"]["stop_grace_period"].removesuffix("s"))
    assert settings.drain_seconds + settings.stop_seconds < grace


@pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="there is no promtool; `make test` installs it with apt-get as root",
)
def test_prometheus_accepts_its_configuration(tmp_path: Path) -> None:
    folder = TOP / "docs" / "monitoring"
    (tmp_path / "scrape_token").write_text("token")
    text = (folder / "prometheus.yml").read_text().replace("/run/secrets", str(tmp_path))
    (tmp_path / "alerts.yml").write_text((folder / "alerts.yml").read_text())
    for content, accepted in ((text, True), (text.replace("job_name", "jobname"), False)):
        (tmp_path / "prometheus.yml").write_text(content)
        done = subprocess.run(
            ["promtool", "check", "config", tmp_path / "prometheus.yml"], capture_output=True
        )
        assert (done.returncode == 0) is accepted, done.stdout + done.stderr


def test_prometheus_scrapes_the_servers_with_the_mounted_token() -> None:
    folder = TOP / "docs" / "monitoring"
    (job,) = yaml.safe_load((folder / "prometheus.yml").read_text())["scrape_configs"]
    assert job["authorization"]["credentials_file"] == "/run/secrets/scrape_token"
    (fixed,), (looked_up,) = job["static_configs"], job["dns_sd_configs"]
    named = {*fixed["targets"], *(f"{name}:{looked_up['port']}" for name in looked_up["names"])}
    assert named == set(SERVICES["proxy"]["environment"]["SERVERS"].split())


def test_grafana_finds_its_data_source_and_its_board() -> None:
    folder = TOP / "docs" / "monitoring" / "grafana"
    (source,) = yaml.safe_load((folder / "datasources/prometheus.yml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    shared = set(SERVICES["grafana"]["networks"]) & set(SERVICES["prometheus"]["networks"])
    assert shared == {"scraping"}
    (boards,) = yaml.safe_load((folder / "dashboards/bursar.yml").read_text())["providers"]
    mounted = [volume.split(":")[1] for volume in SERVICES["grafana"]["volumes"]]
    assert str(folder.relative_to(TOP / "docs")) == "monitoring/grafana"
    assert f"{boards['options']['path']}/bursar.json" in mounted


def program(name: str, *arguments: str) -> None:
    path = Path(sys.executable).with_name(name)
    done = subprocess.run([path, *arguments], cwd=TOP, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
