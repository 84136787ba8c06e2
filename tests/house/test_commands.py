"""The commands in the Makefile and the hooks do what the documentation says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


def test_every_documented_command_exists_and_is_explained() -> None:
    shown = set(re.findall(r"^  make (\w+)\t\S", make(), flags=re.MULTILINE))
    promised = "setup demo serve test audit lint bench lock clean help"
    assert shown >= set(promised.split())


def test_make_test_checks_the_house_and_then_runs_pytest() -> None:
    commands = make("--dry-run", "test")
    order = ["ruff format --check", "ruff check", "/mypy", "/lint-imports", "-m pytest"]
    found = [commands.index(command) for command in order]
    assert found == sorted(found)
    assert commands.rstrip().endswith("-m pytest -n 2 --dist loadfile --no-loadscope-reorder")


def test_make_audit_runs_every_test_of_an_invariant_with_a_configurable_size() -> None:
    commands = make("--dry-run", "audit")
    assert "AUDIT_RUNS=5000 " in commands
    assert "-m pytest -p tests.audit -m invariant " in commands
    assert "AUDIT_RUNS=20 " in make("--dry-run", "audit", "AUDIT_RUNS=20")


def test_make_passes_args_to_pytest() -> None:
    assert make("--dry-run", "test", "ARGS=tests/house -x").rstrip().endswith("tests/house -x")


def test_ci_runs_only_make_test_at_the_top(tmp_path: Path) -> None:
    """A fake `make` that only records its arguments replaces the real one."""
    note = tmp_path / "note"
    stand_in = tmp_path / "make"
    stand_in.write_text(f'#!/bin/sh\necho "$PWD: $*" >> "{note}"\nexit 7\n')
    stand_in.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run([TOP / ".ci" / "run"], cwd=tmp_path, env={**os.environ, "PATH": path})
    assert note.read_text() == f"{TOP}: test\n"
    assert done.returncode == 7


def test_the_pre_commit_hooks_are_valid_and_local() -> None:
    program = Path(sys.executable).with_name("pre-commit")
    config = TOP / ".pre-commit-config.yaml"
    subprocess.run([program, "validate-config", config], check=True)
    assert re.findall(r"repo: (\S+)", config.read_text()) == ["local"]


def make(*arguments: str) -> str:
    """Output of make, without variables of a make that runs the tests."""
    program = shutil.which("make")
    assert program is not None
    apart = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "ARGS", "AUDIT_RUNS", "PYTHON"}
    environment = {name: value for name, value in os.environ.items() if name not in apart}
    done = subprocess.run(
        [program, "--no-print-directory", *arguments],
        cwd=TOP,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
