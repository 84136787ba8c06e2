from importlib import resources

import duckdb
import pytest

from app.data.card import Card
from app.data.columns import (
    BooleanColumn,
    CategoryColumn,
    Column,
    DateColumn,
    IntegerColumn,
    NumberColumn,
    TextColumn,
)
from app.demo.cards import CENSUS, RAND_HIE

CARDS = pytest.mark.parametrize("card", [CENSUS, RAND_HIE], ids=["census", "rand-hie"])


@CARDS
def test_the_service_accepts_the_card(card: dict[str, object]) -> None:
    assert read(card).columns


@CARDS
def test_a_card_names_its_contents_and_its_file(card: dict[str, object]) -> None:
    assert isinstance(card["name"], str)
    assert isinstance(card["description"], str)
    source = card["source"]
    assert isinstance(source, dict)
    assert source["engine"] == "duckdb"
    assert str(source["path"]).endswith(".parquet")


def test_the_census_has_cells_by_region_and_every_type_of_column() -> None:
    card = read(CENSUS)
    assert card.cells is not None
    assert card.cells.column == "region"
    kinds = {type(column) for column in card.columns}
    assert kinds == {IntegerColumn, NumberColumn, CategoryColumn, BooleanColumn, DateColumn}


def test_the_study_has_every_declared_column_and_types_that_fit() -> None:
    file = resources.files("app.demo") / "rand_hie.parquet"
    with resources.as_file(file) as path:
        rows = duckdb.read_parquet(str(path))
        types = dict(zip(rows.columns, map(str, rows.types), strict=True))
    card = read(RAND_HIE)
    assert set(types) == {column.name for column in card.columns} | {"person"}
    for column in card.columns:
        assert types[column.name] in fitting(column), column.name


def fitting(column: Column) -> set[str]:
    match column:
        case IntegerColumn():
            return {"TINYINT", "SMALLINT", "INTEGER", "BIGINT"}
        case NumberColumn():
            return {"DOUBLE"}
        case CategoryColumn():
            return {"VARCHAR"}
        case BooleanColumn():
            return {"BOOLEAN"}
        case DateColumn():
            return {"DATE"}
        case TextColumn():
            return {"VARCHAR"}


def read(card: dict[str, object]) -> Card:
    apart = {"name", "description", "source"}
    return Card.model_validate({key: value for key, value in card.items() if key not in apart})
