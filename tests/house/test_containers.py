"""The container files are valid, as far as tests can check without building them."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

TOP = Path(__file__).resolve().parents[2]


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


def test_the_compose_file_holds_no_password() -> None:
    services = yaml.safe_load((TOP / "docker-compose.yml").read_text())["services"]
    secret = "${BURSAR_DATABASE_PASSWORD:?"
    assert services["database"]["environment"]["POSTGRES_PASSWORD"].startswith(secret)
    for name in ("migrate", "bursar"):
        environment = services[name]["environment"]
        assert environment["PGPASSWORD"].startswith(secret)
        assert environment["BURSAR_ADMIN_KEY"] is None
        url = "postgresql+psycopg://bursar@database/bursar"
        assert environment["BURSAR_DATABASE_URL"] == url


def test_the_service_starts_after_the_migration_and_mounts_data_read_only() -> None:
    services = yaml.safe_load((TOP / "docker-compose.yml").read_text())["services"]
    service = services["bursar"]
    assert services["migrate"]["command"] == ["bursard", "migrate"]
    assert service["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
    assert service["read_only"] is True
    assert "./data:/data:ro" in service["volumes"]


def program(name: str, *arguments: str) -> None:
    path = Path(sys.executable).with_name(name)
    done = subprocess.run([path, *arguments], cwd=TOP, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
