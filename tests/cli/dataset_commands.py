"""Cards, files and runs of `bursard dataset`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from app.cli import cli
from app.errors import AppError
from tests.bursard import Ledger
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


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def add(*words: str) -> Done:
    """Run the command in this process, without a terminal: it is seconds faster."""
    result = CliRunner().invoke(cli, ["dataset", "add", *words])
    if isinstance(result.exception, AppError):  # as `main` prints it
        return Done(1, result.stdout, f"{result.stderr}{result.exception.detail}\n")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Done(result.exit_code, result.stdout, result.stderr)
