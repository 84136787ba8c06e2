"""`bursard dataset add`: register a file, with a card from a file or from a dialogue.

Only names and types of columns are read to propose a card, never a value. Errors name a file, a
column or a rule, never a cell.
"""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from app.cli.exits import INPUT, INTERRUPTED, Failure
from app.cli.opened import operator
from app.cli.stop_signals import StopSignals
from app.errors import Conflict, EngineUnavailable, Invalid, NotFound
from app.names import check_name
from app.settings import Settings

if TYPE_CHECKING:  # engines and drivers load only in the command that uses them
    from app.data.card import Card, Dataset
    from app.engines.files.paths import SourceFiles
    from app.engines.files.sources import SourceTable

dataset_cli = typer.Typer(no_args_is_help=True, help="Register, check and remove datasets.")


@dataset_cli.callback()
def _one_of_several() -> None:
    """Register, check and remove datasets."""  # with a callback, `add` stays a subcommand


@dataset_cli.command()
def add(
    path: Annotated[Path, typer.Argument(help="A CSV or Parquet file, or a folder of Parquet.")],
    name: Annotated[
        str | None, typer.Option(help="Name of the dataset; by default the file's.")
    ] = None,
    infer_types: Annotated[
        bool,
        typer.Option("--infer-types", help="Propose a card from column names and types, and ask."),
    ] = False,
    card: Annotated[Path | None, typer.Option(help="Register with this card, in JSON.")] = None,
    to_parquet: Annotated[
        bool,
        typer.Option("--to-parquet", help="Convert a CSV into the first data root, and add that."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before registering.")] = False,
) -> None:
    """Register a dataset, as POST /v1/datasets does.

    With --infer-types, a dialogue on the terminal asks for bounds, categories and the person.
    Without a terminal, a draft to complete is written to PATH.card.json, and the command exits
    with 2.
    """
    if infer_types == (card is not None):
        raise Failure("Use either --infer-types or --card CARD.json.")
    from app.cli.check_dataset import offer

    stopped, settings = StopSignals(), Settings.from_environment()
    try:
        with stopped:
            dataset = _add(settings, path, name, card, to_parquet=to_parquet, yes=yes)
    except (KeyboardInterrupt, typer.Abort, EngineUnavailable) as error:
        # DuckDB turns a KeyboardInterrupt into its own error; the file is not at fault.
        if isinstance(error, EngineUnavailable) and not stopped.heard:
            raise
        raise Failure("Stopped: nothing was registered.", code=INTERRUPTED) from None
    offer(settings, dataset, ask=not (yes or stopped.heard))


def _add(
    settings: Settings,
    path: Path,
    name: str | None,
    card_path: Path | None,
    *,
    to_parquet: bool,
    yes: bool,
) -> "Dataset":
    from app.engines.card_fit import check_fit
    from app.engines.files.connect import Limits
    from app.engines.files.convert import Conversion, read_schema

    source = _located(path, settings, to_parquet=to_parquet)
    limits = Limits(settings.home, settings.engine_memory, settings.engine_threads)
    (settings.home / "tmp").mkdir(mode=0o700, parents=True, exist_ok=True)
    table = read_schema(source, limits)
    card_extras: dict[str, Any] = {}
    if card_path is None:
        card = _confirmed(_proposed(source, table), yes=yes)
    else:
        card, card_extras = _read_card(card_path, settings, source)
    check_fit(card, table)  # before anything is written

    from app.main.stores import Stores  # imports every package, which takes a second

    stores = Stores(settings)
    stores.get_current(settings)
    name = check_name(name or card_extras.get("name") or source.place.stem, "/name", forbidden="/")
    if _found(stores, name) is not None:  # check before a long conversion, not after it
        raise Conflict("A dataset of this name is registered.")
    conversion = None
    location = source.place
    if to_parquet:
        location = _first_root(settings) / f"{source.place.stem}.parquet"
        conversion = Conversion(source.place, location, limits, settings.ingest_timeout_seconds)

    def register() -> "Dataset":
        description = card_extras.get("description") or ""
        root_path = _under_a_root(location, settings)
        return _register(stores, name=name, description=description, path=root_path, card=card)

    dataset = _converted_and_registered(stores, name, conversion, source.place, register)
    _tell(dataset, stores.datasets.fingerprint(dataset), settings)
    stores.database.engine.dispose()
    return dataset


def _confirmed(card: "Card", *, yes: bool) -> "Card":
    """The card, if the operator agrees to it."""
    if not yes:
        typer.echo(_pretty(json.loads(card.model_dump_json(exclude_none=True))))
        if not typer.confirm("Register with this card?"):
            raise Invalid("Nothing was registered.")
    return card


def _converted_and_registered(
    stores: Any, name: str, conversion: Any, source: Path, register: Callable[[], "Dataset"]
) -> "Dataset":
    """Convert the file if needed, and register it. A failure leaves no file behind."""
    try:
        if conversion is not None:
            _convert(conversion, source)
        return register()
    except BaseException as error:
        # A signal may come after the ledger has stored the dataset; then the file must stay.
        stopped = isinstance(error, KeyboardInterrupt)
        if not stopped or (there := _found(stores, name)) is None:
            if conversion is not None:
                conversion.undo()
            raise
        return there
    finally:
        stores.engines.close()


# Location of the data


def _located(path: Path, settings: Settings, *, to_parquet: bool) -> "SourceFiles":
    """Resolve the operator's path: from the working directory, or from a data root.

    A CSV file that is converted may be anywhere.
    """
    from app.engines.files.paths import WANTED, SourceFiles, resolve_source

    if to_parquet and path.suffix != ".csv":
        raise Invalid(f"{path}: --to-parquet is for .csv files.")
    here = path.absolute()
    if to_parquet and here.is_file():
        real = here.resolve()
        return SourceFiles(real, (real,))
    try:
        return resolve_source(str(here if here.exists() else path), settings.data_roots)
    except Invalid:
        hint = " (--to-parquet writes a copy there)" if here.is_file() else ""
        hint = hint if path.suffix == ".csv" else ""
        roots = ", ".join(map(str, settings.data_roots))
        raise Invalid(f"{path}: not {WANTED}{hint}. BURSAR_DATA_ROOTS: {roots}") from None


def _under_a_root(location: Path, settings: Settings) -> str:
    """The path below a root, so that another server finds it under its own root.

    The full path if the short one would lead to another file.
    """
    from app.engines.files.paths import resolve_source

    for root in settings.data_roots:
        real_root = root.resolve()
        if location.is_relative_to(real_root):
            short = str(location.relative_to(real_root))
            if resolve_source(short, settings.data_roots).place == location:
                return short
    return str(location)


def _first_root(settings: Settings) -> Path:
    root = settings.data_roots[0]
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    return root.resolve()


# The card


def _proposed(source: "SourceFiles", table: "SourceTable") -> "Card":
    from app.actions.datasets.propose_card import missing, propose_card
    from app.cli.fill_card import fill_card

    typed = source.is_folder or source.place.suffix != ".csv"
    draft = propose_card(table.names, table.types, typed=typed)
    typer.echo("Proposed from names and types of columns alone; null must be filled in:")
    typer.echo(_pretty(draft))
    named = {column["name"] for column in draft["columns"]}
    for column in table.names:
        if column not in named:
            typer.echo(f"{column} is left out: no card can declare its type.")
    if sys.stdin.isatty():
        return fill_card(draft, table.names)
    target = source.place.with_name(f"{source.place.name}.card.json")
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(_pretty(draft) + "\n")
    except FileExistsError:
        typer.echo(f"{target} exists already: complete it, or delete it for a new one.", err=True)
        raise typer.Exit(INPUT) from None
    except OSError as error:
        raise Invalid(f"{target} cannot be written: {error.strerror}.") from None
    typer.echo(f"Complete these in {target}, and pass it as --card:", err=True)
    for line in missing(draft):
        typer.echo(f"  {line}", err=True)
    raise typer.Exit(INPUT)


def _read_card(
    path: Path, settings: Settings, source: "SourceFiles"
) -> "tuple[Card, dict[str, Any]]":
    """The card, and the name and description that the file may contain.

    Its public tables are read from the data roots.
    """

    from app.actions.datasets.public_tables import with_tables
    from app.api.http.json_body import StrictAdapter, parse, unchanged
    from app.data.card import Card
    from app.data.inspection import PrivateFiles
    from app.main.stores import Stores, public_tables

    def private() -> PrivateFiles:
        if settings.embedded and not (settings.home / "ledger.db").exists():
            return PrivateFiles()  # nothing is created before the card is known to fit
        stores = Stores(settings)
        stores.get_current(settings)
        try:
            return stores.datasets.private_files()
        finally:
            stores.database.engine.dispose()

    class CardFile(Card):
        name: str | None = None
        description: str = ""

    try:
        raw = path.read_bytes()
    except OSError as error:
        raise Invalid(f"{path}: {error.strerror}.") from None
    try:
        tables, rows = public_tables(settings), str(source.place)
        card_file: Any = parse(
            raw,
            StrictAdapter(CardFile),
            None,
            lambda sent: (with_tables(sent, tables, private, source=rows), unchanged),
        ).value
    except Invalid as error:
        detail = "not a card that can be registered." if error.fields else error.detail
        raise Invalid(f"{path}: {detail}", *error.fields) from None
    fields = {each: getattr(card_file, each) for each in Card.model_fields}
    return Card.model_construct(**fields), {
        "name": card_file.name,
        "description": card_file.description,
    }


def _pretty(card: Any) -> str:
    return json.dumps(card, indent=2, ensure_ascii=False)


# Convert and register


def _convert(conversion: Any, csv: Path) -> None:
    from app.cli.progress import follow

    follow(conversion, f"Converting {csv.name} to Parquet", max(csv.stat().st_size, 1))


def _register(stores: Any, *, name: str, description: str, path: str, card: "Card") -> "Dataset":
    from app.data.card import Source

    typer.echo(f"Reading {path} and preparing its rows ...", err=True)
    dataset: Dataset = stores.register_dataset(
        operator(),
        name=name,
        description=description,
        source=Source("duckdb", path),
        card=card,
        reason="added by the operator",
        request=None,
        body="",
    )
    return dataset


def _found(stores: Any, name: str) -> "Dataset | None":
    try:
        found: Dataset = stores.datasets.find(name)
    except NotFound:
        return None
    return found


def _tell(dataset: "Dataset", fingerprint: str, settings: Settings) -> None:
    typer.echo(f"{dataset.name}, version {dataset.version.number}, fingerprint {fingerprint}")
    typer.echo("Nobody may ask yet. Next, with an administrator's key, grant a budget to everybody")
    typer.echo("together, and one to an analyst:")
    for holder in ("*", "ANALYST"):
        path = f"/v1/datasets/{quote(dataset.name, safe='')}/budgets/{holder}"
        typer.echo(
            f"  curl -X PUT {shlex.quote(f'http://{settings.host}:{settings.port}{path}')} \\\n"
            "    -H 'Authorization: Bearer ADMIN_KEY' -H 'Content-Type: application/json' \\\n"
            """    -d '{"currency": "pure", "epsilon": 1}'"""
        )
