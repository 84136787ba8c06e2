"""Two names of one book with cells: no person's loss exceeds the ledger's figure for their cell.

Every test asks the cells under both names. For each person it adds up the epsilon of all answers
that counted their row. That true loss must not exceed the ledger's figure for any cell that the
person is in.
"""

from pathlib import Path

import duckdb
import pytest

from tests.conftest import Template
from tests.end_to_end.datasets.book_with_cells import (
    BY_OLD,
    BY_SEX,
    COLUMNS,
    HEADER,
    SEX,
    Book,
    book_with,
    moved,
    some_persons,
)
from tests.server import Json, World, made, new_key


def test_the_same_file_again_has_the_same_cells(live_on_each: World) -> None:
    book, first, path, rows = book_with(live_on_each)
    second, reply = book.register(path, rows, BY_SEX)
    made(reply)
    book.ask_every_cell(second)
    book.must_hold(first, second)
    assert live_on_each.spent(first, "*") == 2


@pytest.mark.parametrize("cells", [BY_SEX, BY_OLD], ids=["category", "derived"])
def test_the_same_rows_as_parquet_or_in_another_order_have_the_same_cells(
    live: World, cells: Json
) -> None:
    book, first, path, rows = book_with(live, cells)
    names = [first]
    for other in (
        live.write_parquet(path),
        live.write_parquet(path, "age, side, id, sex"),
        book.write(rows[::-1]),
    ):
        name, reply = book.register(other, rows, cells)
        made(reply)
        book.ask_every_cell(name)
        names.append(name)
    book.must_hold(*names)
    assert live.spent(first, "*") == 4


@pytest.mark.parametrize("cells", [BY_SEX, BY_OLD], ids=["category", "derived"])
def test_a_changed_file_does_not_get_the_cells_of_the_old_one(
    live_on_each: World, cells: Json
) -> None:
    """Seven persons moved to another cell. Their loss was epsilon 2 while the ledger showed 1."""
    book, first, path, rows = book_with(live_on_each, cells)
    after = moved(rows, "sex" if cells == BY_SEX else "age")
    book.write(after, path)
    refresh = live_on_each.admin.patch(f"/v1/datasets/{first}", json={"refresh": True})
    assert refresh.status_code in (409, 422)
    book.must_refuse_cells(first, path, after)


def test_swapped_headers_do_not_get_the_same_cells(live_on_each: World) -> None:
    book, first, _, rows = book_with(live_on_each)
    swapped = [{**row, "sex": row["side"], "side": row["sex"]} for row in rows]
    path = book.write(rows, header=("id", "side", "sex", "age"))
    book.must_refuse_cells(first, path, swapped)


@pytest.mark.parametrize("column", HEADER)
def test_a_column_with_permuted_values_is_noticed(live: World, column: str) -> None:
    """This includes a column that is on no card, since it may identify the persons."""
    book, first, _, rows = book_with(live)
    after = moved(rows, column)
    copied = book.write(after)
    book.must_refuse_cells(first, copied, after)
    again = live.write_parquet(copied)
    _, refused = book.register(again, after, BY_SEX)
    assert refused.status_code == 409


def test_other_cells_are_still_refused(live: World) -> None:
    book, first, path, rows = book_with(live, BY_OLD)
    for cells in ({"column": "side"}, {"column": "old", "edges": [0, 4, 9]}):
        _, refused = book.register(path, rows, cells)
        assert refused.status_code == 409
    wider = [each | ({"high": 90} if each["name"] == "age" else {}) for each in COLUMNS]
    _, refused = book.register(path, rows, BY_OLD, columns=wider)
    assert refused.status_code == 409, "the derived column has another source column"
    second, reply = book.register(path, rows, None)
    made(reply)
    book.ask_every_cell(second)
    book.must_hold(first)


def test_part_of_a_folder_does_not_get_the_cells_of_the_whole(live: World) -> None:
    book = Book(live, BY_SEX, SEX)
    rows = some_persons()
    folder = live.ledger.data / f"folder-{new_key()[:8]}"
    folder.mkdir()
    with duckdb.connect() as connection:
        for part, some in enumerate((rows[:12], rows[12:])):
            source = live.ledger.data / book.write(some)
            target = folder / f"{part}.parquet"
            connection.execute(
                f"COPY (SELECT * FROM read_csv('{source}')) TO '{target}' (FORMAT parquet)"
            )
    first, reply = book.register(folder.name, rows, BY_SEX)
    made(reply)
    book.ask_every_cell(first)
    book.must_refuse_cells(first, f"{folder.name}/0.parquet", rows[:12])


def test_the_order_in_which_names_get_cells_does_not_matter(live: World) -> None:
    """The first name has no cells. The second has cells, and a third must match it."""
    book = Book(live, BY_SEX, SEX)
    rows = some_persons()
    path = book.write(rows)
    plain, reply = book.register(path, rows, None)
    made(reply)
    book.ask_every_cell(plain)
    after = moved(rows, "sex")
    book.write(after, path)
    celled, reply = book.register(path, after, BY_SEX)
    made(reply)
    book.ask_every_cell(celled)
    book.must_hold(celled)
    book.must_refuse_cells(celled, book.write(rows), rows)


def test_rows_can_be_appended_only_while_one_name_has_cells(live_on_each: World) -> None:
    """Otherwise the same new persons could be appended to each name in different cells."""
    world = live_on_each
    book, first, path, rows = book_with(world)
    second, reply = book.register(path, rows, BY_SEX)
    made(reply)
    book.ask_every_cell(second)
    later = some_persons()
    append = {"append": {"path": book.write(later)}}
    for name in (first, second):
        refused = world.admin.patch(f"/v1/datasets/{name}", json=append)
        assert refused.status_code == 409, refused.text
        assert "without cells" in refused.json()["detail"]
    plain, reply = book.register(path, rows, None)
    made(reply)
    made(world.admin.patch(f"/v1/datasets/{plain}", json=append))
    book.rows[plain] = rows + later
    book.ask_every_cell(plain)
    book.must_hold(first, second)


def test_no_second_name_gets_cells_after_rows_were_appended(live: World) -> None:
    book, first, path, rows = book_with(live)
    later = some_persons()
    epoch = book.write(later)
    made(live.admin.patch(f"/v1/datasets/{first}", json={"append": {"path": epoch}}))
    book.rows[first] = rows + later
    book.ask_every_cell(first)
    after = moved(later, "sex")
    for source, held in (
        (path, rows),
        (book.write(after), after),
        (book.write(rows + later), rows),
    ):
        _, refused = book.register(source, held, BY_SEX)
        assert refused.status_code == 409
    book.must_refuse_cells(first, path, rows)


def test_persons_identified_by_a_column_keep_their_cell(live: World) -> None:
    """The ids have more than 62 bits and are equal as doubles. Only their texts differ."""
    world = live
    cells = {**BY_SEX, "one_per_person": True}
    book = Book(world, cells, SEX, person={"kind": "column", "column": "id", "rows_max": 1})
    rows = [{**row, "id": 2**62 + row["id"]} for row in some_persons()]
    first, reply = book.register(book.write(rows), rows, cells)
    made(reply)
    book.ask_every_cell(first)
    same, reply = book.register(world.write_parquet(book.write(rows)), rows, cells)
    made(reply)
    book.ask_every_cell(same)
    book.must_hold(first, same)
    after = moved(rows, "sex")
    book.must_refuse_cells(first, book.write(after), after)


BELIEVES_EVERY_SECOND_NAME = """
import app.store.datasets.fingerprints
app.store.datasets.fingerprints.must_hold_the_same_rows = lambda *_: None
"""


def test_saboteur_a_server_that_admits_every_second_name_understates_a_loss(
    peopled: Template, tmp_path: Path
) -> None:
    """Both known attacks succeed on a server that accepts every second name."""
    world = peopled("sqlite", tmp_path / "ledger")
    world.serve(sabotage=BELIEVES_EVERY_SECOND_NAME)
    try:
        for attack in ("moved", "swapped"):
            book, first, path, rows = book_with(world)
            if attack == "moved":
                after = moved(rows, "sex")
                book.write(after, path)
            else:
                after = [{**row, "sex": row["side"], "side": row["sex"]} for row in rows]
                path = book.write(rows, header=("id", "side", "sex", "age"))
            second, reply = book.register(path, after, BY_SEX)
            made(reply)
            book.ask_every_cell(second)
            with pytest.raises(AssertionError, match="the ledger claims"):
                book.must_hold(first, second)
    finally:
        world.ledger.stop()
