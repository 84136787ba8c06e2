"""Cards, files and runs of `bursard dataset`."""

import json
from pathlib import Path
from typing import Any

from tests.bursard import Ledger
from tests.cli.running import Done, run_here
from tests.server import HEADER, card, some_rows

CARD = {key: value for key, value in card("").items() if key not in ("name", "source")}


def write_csv(path: Path, rows: list[list[object]] | None = None) -> Path:
    lines = [",".join(map(str, row)) for row in [HEADER, *(rows or some_rows())]]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_card(folder: Path, **changes: Any) -> Path:
    path = folder / "card.json"
    path.write_text(json.dumps(CARD | changes))
    return path


def entries(ledger: Ledger) -> list[dict[str, Any]]:
    """Ledger entries of registered datasets."""
    query = "SELECT text FROM entries WHERE kind = 'dataset_registered' ORDER BY seq"
    return [json.loads(text) for (text,) in ledger.rows(query)]


def add(*words: str) -> Done:
    """Run `bursard dataset add` in this process."""
    return run_here("dataset", "add", *words)
