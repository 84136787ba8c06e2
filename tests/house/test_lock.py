"""The lock pins every package by hash and names no package registry."""

import re
import tomllib
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
MARKER = "# --- development ---"
SPARK = "# --- spark ---"
PIN = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9-]*)==(?P<version>[0-9][0-9a-z.+!]*)(?P<marker> ; [^\\]+)?"
    r"(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n"
)


def test_every_line_belongs_to_a_pin_with_a_hash() -> None:
    for part in parts():
        assert PIN.sub("", part) == ""


def test_the_lock_names_no_host_and_no_option() -> None:
    text = (TOP / "requirements.lock").read_text()
    assert "://" not in text
    assert not re.search(r"^\s*--(?!hash=)", text, flags=re.MULTILINE)


def test_a_package_has_one_version_in_all_parts() -> None:
    runtime, development = (names(part) for part in parts())
    assert len(runtime + development) == len(set(runtime + development))


def test_every_dependency_of_the_project_is_in_its_part() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())
    runtime, development = (set(names(part)) for part in parts())
    needed = project["project"]["dependencies"] + project["build-system"]["requires"]
    assert {bare(requirement) for requirement in needed} <= runtime
    extra = project["project"]["optional-dependencies"]["dev"]
    assert {bare(requirement) for requirement in extra} <= runtime | development


def test_all_readers_of_the_lock_cut_it_at_the_same_line() -> None:
    for name in ("Makefile", "Dockerfile", ".ci/lock.py"):
        assert MARKER in (TOP / name).read_text()
    for name in ("Makefile", ".ci/lock.py"):
        assert SPARK in (TOP / name).read_text()


def test_spark_is_pinned_with_all_its_dependencies() -> None:
    text = (TOP / "requirements.lock").read_text().split(f"{SPARK}\n")[1]
    assert names(text) == ["py4j", "pyspark"]
    assert PIN.sub("", text) == ""


def parts() -> tuple[str, str]:
    text = (TOP / "requirements.lock").read_text().split(f"{SPARK}\n")[0]
    runtime, development = text.split(f"{MARKER}\n")
    return runtime, development


def names(part: str) -> list[str]:
    return [pin["name"] for pin in PIN.finditer(part)]


def bare(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found[0]).lower()
