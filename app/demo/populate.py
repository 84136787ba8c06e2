"""Fill a ledger for the demo: two datasets, four keys, budgets; and print lines to paste.

Keys are stored in a file beside the ledger, readable by its owner only, so that the demo can be
restarted. A real server shows a key once and stores only its hash.
"""

import json
import os
import shutil
import sys
from decimal import Decimal
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from app.access import Principal, Role
from app.accounting.rules.terms import GrantTerms
from app.data.card import Card, Source
from app.demo import census
from app.demo.cards import CENSUS, RAND_HIE
from app.ledger.precondition import MUST_BE_NEW
from app.main.stores import Stores
from app.settings import Settings, SettingsError

PEOPLE = {"viewer": Role.VIEWER, "analyst-1": Role.ANALYST, "analyst-2": Role.ANALYST}
PYTHON = """import bursar
from bursar import col
print(bursar.connect()["census"].where(col.age >= 65).count().ask(epsilon=0.1))"""
BUDGETS = {"*": Decimal(10), "analyst-1": Decimal(3), "analyst-2": Decimal(3)}


def populate(settings: Settings) -> dict[str, str]:
    """The demo's keys. The home is marked while it is being filled; an unfinished one is redone."""
    if not settings.embedded:
        raise SettingsError("The demo has its own ledger: unset BURSAR_DATABASE_URL.")
    mark = settings.home / "demo-is-being-made"
    path = settings.home / "demo-keys.json"
    if mark.exists():
        shutil.rmtree(settings.home)
    if not path.exists():
        if settings.home.exists() and any(settings.home.iterdir()):
            shown = os.path.relpath(settings.home)
            raise SettingsError(f"{shown} does not belong to the demo: set another BURSAR_HOME.")
        settings.home.mkdir(parents=True, mode=0o700, exist_ok=True)
        mark.touch()
        _build(settings, path)
        mark.unlink()
    keys: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return keys


def _build(settings: Settings, path: Path) -> None:
    stores = Stores(settings)
    admin_key = stores.get_ready(settings) or settings.admin_key
    assert admin_key is not None
    keys = {"admin": admin_key} | _fill(settings, stores)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(keys, file)
    stores.engines.close()
    stores.database.engine.dispose()


def _fill(settings: Settings, stores: Stores) -> dict[str, str]:
    root = settings.data_roots[0]
    root.mkdir(parents=True, exist_ok=True)
    census.write(root / "census.parquet")
    with as_file(files("app.demo") / "rand_hie.parquet") as shipped:
        shutil.copyfile(shipped, root / "rand_hie.parquet")
    operator = Principal("", "demo", Role.ADMIN, "")
    for description in (CENSUS, RAND_HIE):
        _register(stores, operator, root, description)
    keys = {}
    for name, role in PEOPLE.items():
        stores.people.create("demo", name, role, "demo", None, "")
        _, secret = stores.people.issue_key(
            "demo", name, expires_at=None, reason="demo", request=None, body=""
        )
        assert secret is not None
        keys[name] = secret
    for description in (CENSUS, RAND_HIE):
        for holder, epsilon in BUDGETS.items():
            stores.grant_budget(
                operator,
                dataset=description["name"],
                holder=holder,
                currency="pure",
                wish=GrantTerms(epsilon=epsilon),
                precondition=MUST_BE_NEW,
                reason="demo",
            )
    return keys


def _register(stores: Stores, operator: Principal, root: Path, description: dict[str, Any]) -> None:
    card = {k: v for k, v in description.items() if k not in ("name", "description", "source")}
    stores.register_dataset(
        operator,
        name=description["name"],
        description=description["description"],
        source=Source("duckdb", description["source"]["path"]),
        card=Card.model_validate(card),
        reason="demo",
        request=None,
        body="",
    )


def message(keys: dict[str, str], home: Path, url: str) -> str:
    """Text to print: keys, sign-in links, and lines to paste for curl, Python and `bursar`."""
    programs = os.path.dirname(sys.executable)
    lines = [f"  {name:10} {key}" for name, key in keys.items()]
    question = {
        "dataset": CENSUS["name"],
        "query": {
            "kind": "count",
            "where": {"all": [{"column": "age", "op": ">=", "value": 65}]},
        },
        "privacy": {"epsilon": 0.1},
    }
    return "\n".join(
        [
            f"Demo keys (delete the folder {os.path.relpath(home)} to start again):",
            *lines,
            "",
            "The pages, signed in as each of them; the key behind # is never sent:",
            *(f"  {name:10} {url}/sign-in#key={key}" for name, key in keys.items()),
            "",
            "How many are 65 or older? Paste:",
            "",
            f"curl -s {url}/v1/queries \\",
            f"  -H 'Authorization: Bearer {keys['analyst-1']}' \\",
            "  -H 'Content-Type: application/json' -H 'Idempotency-Key: my-first-question' \\",
            f"  -d '{json.dumps(question)}'",
            "",
            "The same in Python, or with the program bursar. In another terminal, paste first:",
            "",
            f"export BURSAR_URL={url} \\",
            f"  BURSAR_KEY={keys['analyst-1']} \\",
            f'  PATH="{programs}:$PATH"',
            "",
            f"python -c '{PYTHON}'",
            "",
            "bursar ask census count -w 'age>=65' -e 0.1",
            "",
        ]
    )
