"""Forked servers behave like others: separate processes whose exit status is known."""

import ast
import os
import signal
import sys
from pathlib import Path

import httpx
import pytest

from tests.bursard import CHECKOUT
from tests.nursery import Children
from tests.server import World, ask, count, made

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="servers are forked on Linux only")

# Each process decides these while it imports, and again in `nursery._be_another`.
DECIDED_ANEW = {
    "app/__init__.py: os.environ",
    "app/engines/files/connect.py: os.getpid",
    "app/engines/files/connect.py: secrets.token_hex",
    "app/fault_points.py: os.environ",
    "app/names.py: secrets.randbits",
    "app/names.py: secrets.token_bytes",
}


@ON_LINUX
def test_a_forked_server_leads_its_own_session_and_its_exit_status_is_known(world: World) -> None:
    first, second = world.serve(), world.serve()
    for server in (first, second):
        status = Path(f"/proc/{server.process.pid}/stat").read_text()
        parent, _, session = status.rpartition(") ")[2].split()[1:4]
        assert int(parent) != os.getpid()  # another process forked it
        assert int(session) == server.process.pid
        assert server.process.poll() is None
    first.kill()
    assert first.process.poll() == -signal.SIGKILL
    second.stop()
    # uvicorn shuts down, and then ends by the signal
    assert second.process.poll() == -signal.SIGTERM


def test_a_reused_process_id_is_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Process ids repeat after about ten thousand processes: the new one then seemed to have
    ended.
    """
    statuses = iter([(0, 0), (7, signal.SIGKILL), (0, 0)])
    monkeypatch.setattr(os, "listdir", lambda _: ["this thread"])
    monkeypatch.setattr(os, "fork", lambda: 7)
    monkeypatch.setattr(os, "waitpid", lambda *_: next(statuses))
    children = Children()
    assert children.fork() == 7
    assert [children.ended(7) for _ in range(3)] == [None, -signal.SIGKILL, -signal.SIGKILL]
    assert children.fork() == 7
    assert children.ended(7) is None


def test_the_last_output_of_a_server_is_read(world: World) -> None:
    with pytest.raises(RuntimeError, match="BURSAR_WORKERS"):
        world.serve(BURSAR_WORKERS="none")


def test_the_settings_of_one_server_are_not_those_of_the_next(world: World) -> None:
    for fault in ("F1=kill", "F11=kill"):
        world.serve(fault=fault, once=False)
        with pytest.raises(httpx.TransportError):
            ask(world.client("ada"), count("people", 0.1))
        assert world.server.wait_dead() == -signal.SIGKILL
    world.serve()
    assert ask(world.client("ada"), count("people", 0.1)).status_code == 200


def test_no_two_forked_servers_share_draws_or_names(world: World) -> None:
    """With scale 2,000 a pair of draws agrees by chance once in 8,000: six never agree."""
    answers = []
    for _ in range(2):
        client = world.serve().client(world.people["ada"].key)
        asked = [ask(client, count("people", 0.0005, fresh=True)) for _ in range(6)]
        answers.append([made(reply) for reply in asked])
    first, second = answers
    assert [each["value"] for each in first] != [each["value"] for each in second]
    of_the_process = slice(2 + 12, 2 + 22)  # after `q_` and six bytes of time
    named = [{each["id"][of_the_process] for each in some} for some in answers]
    assert [len(names) for names in named] == [1, 1]
    assert named[0] != named[1]


def test_the_nursery_knows_all_decisions_made_on_import() -> None:
    assert decided(CHECKOUT / "app") == DECIDED_ANEW


def test_a_new_decision_on_import_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    file = tmp_path / "app" / "new.py"
    file.write_text("import os\nclass A:\n    began = os.getpid()\ndef f(): return os.getpid()\n")
    assert decided(tmp_path / "app") == {"app/new.py: os.getpid"}


def decided(folder: Path) -> set[str]:
    """Where code that runs on import reads the process: environment, id, clock, randomness."""
    names = set()
    for path in sorted(folder.rglob("*.py")):
        for name in read_on_import(ast.parse(path.read_text())):
            names.add(f"{path.relative_to(folder.parent)}: {name}")
    return names


def read_on_import(node: ast.AST) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return set()
    names = set()
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        of_the_process = node.attr in {"environ", "environb", "getenv", "getpid", "urandom"}
        if node.value.id in {"secrets", "time", "socket"} or of_the_process:
            names.add(f"{node.value.id}.{node.attr}")
    for below in ast.iter_child_nodes(node):
        names |= read_on_import(below)
    return names
