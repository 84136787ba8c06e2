"""Alert rules and the board: promtool takes them, and a real server has their metrics."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from docs.tools.build_board import BOARD, board, expressions
from tests.end_to_end.telemetry.exposition import samples
from tests.server import World, ask, count, made, new_key

FOLDER = BOARD.parent
# Functions, and words of the language, that stand where a metric's name could stand.
NAME = re.compile(r"\b(?:bursar|process|up)(?:_\w+)?\b(?=\s*[\[{)]|\s*$|\s*[-+*/<>=]|\s+and\b)")


def promtool(*arguments: str, folder: Path = FOLDER) -> subprocess.CompletedProcess[str]:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed: rules and expressions were not checked")
    return subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)


def alerts() -> list[dict[str, str]]:
    (group,) = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    return list(group["rules"])


def test_the_rules_are_valid_and_their_tests_pass() -> None:
    for words in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
        done = promtool(*words)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested_while_it_fires() -> None:
    tests = yaml.safe_load((FOLDER / "alerts_test.yml").read_text())["tests"]
    fired = {
        case["alertname"]
        for each in tests
        for case in each["alert_rule_test"]
        if "exp_alerts" in case
    }
    assert fired == {rule["alert"] for rule in alerts()}


def test_a_rule_that_is_wrong_fails(tmp_path: Path) -> None:
    for name in ("alerts.yml", "alerts_test.yml"):
        text = (FOLDER / name).read_text()
        (tmp_path / name).write_text(
            text.replace("(bursar_budget_remaining_ratio) < 0.1", "(x) < 0.1")
        )
    assert promtool("test", "rules", "alerts_test.yml", folder=tmp_path).returncode != 0


def test_the_board_is_the_one_that_the_script_builds() -> None:
    assert BOARD.read_text() == board(), "run `python -m docs.tools.build_board`"


def test_the_board_has_every_expression_once_and_asks_for_its_source() -> None:
    panels = json.loads(BOARD.read_text())["panels"]
    shown = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    assert shown == expressions()
    assert len(set(shown)) == len(shown)
    sources = {
        target["datasource"]["uid"] for panel in panels for target in panel.get("targets", [])
    }
    assert sources == {"${source}"}
    assert all(panel["title"] for panel in panels)


def test_every_expression_of_the_board_parses(tmp_path: Path) -> None:
    rules = [
        {"record": f"board:{number}", "expr": text.replace("$__rate_interval", "1m")}
        for number, text in enumerate(expressions())
    ]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "b", "rules": rules}]}))
    done = promtool("check", "rules", "rules.yml", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules)} rules found" in done.stdout


def test_a_real_server_has_every_metric_and_label_of_the_board_and_the_alerts(live: World) -> None:
    made(ask(live.client("ada"), count("people", 0.25), new_key()))
    exported: dict[str, set[str]] = {"up": {"job", "instance"}}
    for name, labels, _ in samples(live.admin.get("/metrics").text):
        exported.setdefault(name, set()).update(labels, ("job", "instance"))
    used = [*expressions(), *(rule["expr"] for rule in alerts())]
    names = {name for text in used for name in NAME.findall(text)}
    assert len(names) > 20
    assert names <= set(exported)
    known = set().union(*exported.values())
    for text in used:
        for grouped in re.findall(r"\b(?:by|on) \(([^)]*)\)", text):
            assert set(filter(None, re.split(r",\s*", grouped))) <= known, text
        for matched in re.findall(r"(\w+)(?:=~?|!=)[\"']", text):
            assert matched in known, text
