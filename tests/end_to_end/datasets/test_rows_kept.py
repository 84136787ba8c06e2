"""Names of one book keep the same rows of a person with more rows than the card allows."""

from typing import Any

import duckdb

from tests.server import Json, World, ask, made, new_key

HEADER = ("visit", "who", "ward", "cost")
WARDS = list("abcdef")
COLUMNS: list[Json] = [
    {"name": "ward", "type": "category", "values": WARDS},
    {"name": "cost", "type": "integer", "low": 0, "high": 9},
]
PERSON: Json = {"kind": "column", "column": "who", "rows_max": 2}
SURE = {"epsilon": 2000}  # the noise is practically always 0


def visits(persons: int = 40) -> list[tuple[object, ...]]:
    """Six visits per person; two of them are kept."""
    start = int(new_key().encode().hex()[:8], 16)
    return [
        (6 * who + visit, f"p{start + who}", WARDS[visit], (who + visit) % 10)
        for who in range(persons)
        for visit in range(6)
    ]


def registered(world: World, path: str, **changes: Any) -> str:
    return world.dataset(path, person=PERSON, columns=COLUMNS, **changes)


def kept(world: World, name: str) -> list[Any]:
    """Exact number of kept rows per ward, and their total cost."""
    answers = []
    for query in (
        {"kind": "count", "group_by": ["ward"]},
        {"kind": "sum", "column": "cost", "group_by": ["ward"]},
        {"kind": "sum", "column": "cost"},
    ):
        question = {"dataset": name, "query": query, "privacy": SURE, "fresh": True}
        answers.append(made(ask(world.client("ada"), question, new_key()))["value"])
    return answers


def opened(world: World) -> tuple[str, str]:
    path = world.write_csv(visits(), HEADER)
    name = registered(world, path)
    for holder in ("*", "ada"):
        world.grant(name, holder, 100_000)
    return path, name


def test_every_name_of_a_file_keeps_the_same_rows(live_on_each: World) -> None:
    world = live_on_each
    path, first = opened(world)
    expected = kept(world, first)
    assert sum(each["value"] for each in expected[0]) == 80, "two rows per person"
    for other in (
        path,
        world.write_parquet(path),
        world.write_parquet(path, "cost, who, visit, ward"),
    ):
        assert kept(world, registered(world, other)) == expected


def seeds(world: World, *names: str) -> list[str]:
    named = ", ".join(f"'{name}'" for name in names)
    rows = world.ledger.rows(
        "SELECT versions.seed FROM versions JOIN datasets ON datasets.version_id = versions.id "
        f"WHERE datasets.name IN ({named}) ORDER BY datasets.created_at"
    )
    return [row[0] for row in rows]


def test_names_of_one_book_share_a_seed_and_books_have_different_seeds(live_on_each: World) -> None:
    """The same seed assigns persons and rows to blocks."""
    world = live_on_each
    path, first = opened(world)
    second, (_, alien) = registered(world, path), opened(world)
    one, two, other = seeds(world, first, second, alien)
    assert one == two != other
    later = world.write_csv(visits(), HEADER)
    made(world.admin.patch(f"/v1/datasets/{second}", json={"append": {"path": later}}))
    assert seeds(world, second) == [one]


def test_names_with_their_own_seeds_keep_them(live_on_each: World) -> None:
    """An earlier release gave every name its own seed. Such a name keeps its seed and its rows.

    The next name gets the seed of the book's first name.
    """
    world = live_on_each
    path, first = opened(world)
    second = registered(world, path)
    (row,) = world.ledger.rows(f"SELECT version_id FROM datasets WHERE name = '{second}'")
    before = kept(world, first)
    world.ledger.change(f"UPDATE versions SET seed = 'of its own' WHERE id = '{row[0]}'")
    assert kept(world, second) == before, "the version prepared with the first seed stays"
    assert kept(world, registered(world, path)) == before
    assert kept(world, first) == before


def test_a_rebuilt_version_has_the_same_rows(live: World) -> None:
    """Another server, or the same one after it lost its prepared files, keeps the same rows."""
    path, first = opened(live)
    second = registered(live, path)
    before = kept(live, second)
    (row,) = live.ledger.rows(f"SELECT version_id FROM datasets WHERE name = '{second}'")
    files = list((live.ledger.home / "versions").glob(f"{row[0]}*.duckdb"))
    assert len(files) == 1
    with duckdb.connect(str(files[0]), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM rows").fetchone() == (80,)
    live.ledger.stop()
    files[0].unlink()
    live.serve()
    assert kept(live, second) == kept(live, first) == before
