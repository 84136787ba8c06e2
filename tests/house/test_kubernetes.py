"""The manifests fit the schemas of Kubernetes, each other, the settings and the image."""

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]

from app.settings import Settings

TOP = Path(__file__).resolve().parents[2]
FOLDER = TOP / "docs" / "kubernetes"
VERSIONS = ("1.31", "1.34", "1.37")
Json = dict[str, Any]


def kustomization() -> Json:
    document: Json = yaml.safe_load((FOLDER / "kustomization.yml").read_text())
    return document


def resources() -> dict[str, Json]:
    """Every object by kind and name."""
    texts = [(FOLDER / name).read_text() for name in kustomization()["resources"]]
    objects = [item for text in texts for item in yaml.safe_load_all(text)]
    return {f"{item['kind']}/{item['metadata']['name']}": item for item in objects}


OBJECTS = resources()
SERVERS = OBJECTS["StatefulSet/bursar"]
PODS: dict[str, Json] = {
    "servers": SERVERS["spec"]["template"],
    "migrate": OBJECTS["Job/bursar-migrate"]["spec"]["template"],
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", OBJECTS)
def test_every_manifest_fits_the_schema(name: str, version: str) -> None:
    kubernetes_validate.validate(OBJECTS[name], version, strict=True)


def misspelt_field(servers: Json) -> None:
    context = servers["spec"]["template"]["spec"]["containers"][0]["securityContext"]
    context["readOnlyRootFileSystem"] = context.pop("readOnlyRootFilesystem")


def wrong_type(servers: Json) -> None:
    servers["spec"]["replicas"] = "two"


def missing_field(servers: Json) -> None:
    del servers["spec"]["selector"]


def wrong_level(servers: Json) -> None:
    servers["spec"]["terminationGracePeriodSeconds"] = 40


@pytest.mark.parametrize("plant", [misspelt_field, wrong_type, missing_field, wrong_level])
def test_the_schema_refuses_a_planted_mistake(plant: Callable[[Json], None]) -> None:
    wrong = copy.deepcopy(SERVERS)
    plant(wrong)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_every_file_belongs_to_the_kustomization() -> None:
    document = kustomization()
    (settings,) = document["configMapGenerator"]
    listed = {*document["resources"], *settings["envs"], "kustomization.yml"}
    assert listed == {path.name for path in FOLDER.iterdir() if path.is_file()}


@pytest.mark.parametrize("name", PODS)
def test_every_pod_is_hardened(name: str) -> None:
    pod = PODS[name]["spec"]
    (container,) = pod["containers"]
    user = re.search(r"^USER (\d+):(\d+)$", (TOP / "Dockerfile").read_text(), re.MULTILINE)
    assert user is not None
    context = pod["securityContext"]
    assert (str(context["runAsUser"]), str(context["runAsGroup"])) == user.groups()
    assert context["runAsNonRoot"] is True
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    # Kubernetes would set BURSAR_PORT to the address of the service `bursar`.
    assert pod["enableServiceLinks"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"cpu", "memory"} <= set(container["resources"]["limits"])


@pytest.mark.parametrize("name", PODS)
def test_a_pod_mounts_what_it_names_and_writes_to_its_home_only(name: str) -> None:
    pod = PODS[name]["spec"]
    (container,) = pod["containers"]
    claims = SERVERS["spec"]["volumeClaimTemplates"] if name == "servers" else []
    there = {volume["name"] for volume in pod["volumes"]}
    there |= {claim["metadata"]["name"] for claim in claims}
    mounts = container["volumeMounts"]
    assert {mount["name"] for mount in mounts} == there
    writable = {mount["mountPath"] for mount in mounts if not mount.get("readOnly")}
    assert writable == {"/var/lib/bursar", "/tmp"}
    assert "BURSAR_HOME=/var/lib/bursar" in (TOP / "Dockerfile").read_text()


def configured() -> dict[str, str]:
    lines = (FOLDER / "settings.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_the_service_starts_with_the_settings_and_the_secret(tmp_path: Path) -> None:
    (secret,) = kustomization()["secretGenerator"]
    values = {"database_url": "postgresql+psycopg://bursar:hush@database/bursar"}
    for path in secret["files"]:
        name = path.removeprefix("secrets/")
        (tmp_path / name).write_text(values.get(name, name * 8) + "\n")
    pod = PODS["servers"]["spec"]
    mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    environment = {
        name: text.replace(mounts["secrets"], str(tmp_path)) for name, text in configured().items()
    }
    settings = Settings.from_environment(environment)
    files = {path.name for _, path in settings.secret_files}
    assert files == {path.removeprefix("secrets/") for path in secret["files"]}
    assert settings.public_url is not None
    grace = pod["terminationGracePeriodSeconds"]
    assert settings.drain_seconds + settings.stop_seconds < grace
    probe = pod["containers"][0]["readinessProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] * 2 < settings.drain_seconds
    for name in PODS:
        (container,) = PODS[name]["spec"]["containers"]
        (source,) = container["envFrom"]
        (generator,) = kustomization()["configMapGenerator"]
        assert source["configMapRef"]["name"] == generator["name"]
        (volume,) = [v for v in PODS[name]["spec"]["volumes"] if v["name"] == "secrets"]
        assert volume["secret"] == {"secretName": secret["name"], "defaultMode": 0o440}


def test_selectors_find_the_pods_they_are_for() -> None:
    servers = PODS["servers"]["metadata"]["labels"]
    migrate = PODS["migrate"]["metadata"]["labels"]
    selecting = {
        "StatefulSet/bursar": SERVERS["spec"]["selector"]["matchLabels"],
        "PodDisruptionBudget/bursar": OBJECTS["PodDisruptionBudget/bursar"]["spec"]["selector"][
            "matchLabels"
        ],
        "Service/bursar": OBJECTS["Service/bursar"]["spec"]["selector"],
        "Service/bursar-servers": OBJECTS["Service/bursar-servers"]["spec"]["selector"],
    }
    for name, labels in selecting.items():
        assert labels.items() <= servers.items(), name
        assert not labels.items() <= migrate.items(), name
    allowed = OBJECTS["NetworkPolicy/bursar"]["spec"]["podSelector"]["matchLabels"]
    assert allowed.items() <= servers.items()
    assert allowed.items() <= migrate.items()
    assert SERVERS["spec"]["serviceName"] == OBJECTS["Service/bursar-servers"]["metadata"]["name"]


def test_two_servers_outlive_a_disruption_and_a_rollout() -> None:
    assert SERVERS["spec"]["replicas"] >= 2
    budget = OBJECTS["PodDisruptionBudget/bursar"]["spec"]
    assert budget["minAvailable"] == SERVERS["spec"]["replicas"] - 1
    (container,) = PODS["servers"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert f"BURSAR_PORT={ports['http']}" in (TOP / "Dockerfile").read_text()
    for probe, path in (
        ("liveness", "/healthz"),
        ("readiness", "/readyz"),
        ("startup", "/healthz"),
    ):
        asked = container[f"{probe}Probe"]["httpGet"]
        assert (asked["path"], asked["port"]) == (path, "http")
