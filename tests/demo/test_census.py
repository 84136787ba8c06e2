from pathlib import Path

import duckdb
import pytest

from app.demo import census
from app.demo.cards import CENSUS

FIRST_SUMS = (30_000, 1_220_716, 500_636, 675_998_650)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("census") / "census.parquet"
    census.write(path)
    return path


def test_two_runs_write_the_same_bytes(file: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.parquet"
    census.write(again)
    assert again.read_bytes() == file.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["again.parquet"]


def test_the_persons_are_the_same_on_every_machine(file: Path) -> None:
    """Sums of integers, recorded when the census was made: any changed draw shows."""
    assert one(file, "count(*), sum(age), sum(hours), sum(income)::BIGINT") == FIRST_SUMS


def test_the_columns_are_the_declared_ones(file: Path) -> None:
    columns = CENSUS["columns"]
    assert isinstance(columns, list)
    assert duckdb.read_parquet(str(file)).columns == [column["name"] for column in columns]


def test_categories_are_on_the_card_and_each_occurs(file: Path) -> None:
    columns = CENSUS["columns"]
    assert isinstance(columns, list)
    for column in columns:
        if column["type"] == "category":
            rows = duckdb.read_parquet(str(file)).project(column["name"]).distinct().fetchall()
            found = {value for (value,) in rows if value is not None}
            assert found == set(column["values"])


def test_some_answers_are_missing_and_a_few_incomes_exceed_the_bound(file: Path) -> None:
    persons, with_income, above = one(file, "count(*), count(income), count_if(income > 200000)")
    assert 0.93 < with_income / persons < 0.97
    assert 0 < above < 100


def test_income_follows_hours_occupation_and_age(file: Path) -> None:
    full, part = one(
        file,
        "median(income) FILTER (hours >= 35)::BIGINT,"
        "median(income) FILTER (hours BETWEEN 1 AND 25)::BIGINT",
    )
    managers, labourers = one(
        file,
        "median(income) FILTER (occupation = 'managerial')::BIGINT,"
        "median(income) FILTER (occupation = 'labourer')::BIGINT",
    )
    young, old = one(
        file,
        "median(income) FILTER (hours > 0 AND age < 25)::BIGINT,"
        "median(income) FILTER (hours > 0 AND age BETWEEN 45 AND 55)::BIGINT",
    )
    assert full > 1.5 * part
    assert managers > 2 * labourers
    assert old > 1.3 * young


def one(file: Path, what: str) -> tuple[int, ...]:
    row: tuple[int, ...]
    (row,) = duckdb.read_parquet(str(file)).aggregate(what).fetchall()
    return row
