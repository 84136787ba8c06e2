import pytest

from app.actions.datasets.propose_card import missing, propose_card, proposed_type


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ("BIGINT", "integer"),
        ("UTINYINT", "integer"),
        ("INTEGER", "integer"),
        ("DECIMAL(9,0)", "integer"),
        ("DECIMAL(9,2)", "number"),
        ("DOUBLE", "number"),
        ("FLOAT", "number"),
        ("BOOLEAN", "boolean"),
        ("DATE", "date"),
        ("TIMESTAMP WITH TIME ZONE", "date"),
        ("VARCHAR", "category"),
        ("UUID", "category"),
        ("INTEGER[]", None),
        ("STRUCT(a DOUBLE)", None),
        ("BLOB", None),
    ],
)
def test_a_stored_type_determines_the_type_of_a_column(stored: str, expected: str | None) -> None:
    assert proposed_type("is_date", stored, typed=True) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("birth_date", "date"),
        ("Date", "date"),
        ("seen_at", "date"),
        ("is_member", "boolean"),
        ("HAS_CAR", "boolean"),
        ("age", None),
        ("island", None),
        ("hat", None),
        ("update", None),
    ],
)
def test_in_a_csv_only_the_name_gives_a_hint(name: str, expected: str | None) -> None:
    assert proposed_type(name, "VARCHAR", typed=False) == expected


def test_bounds_categories_and_persons_are_left_open_and_named() -> None:
    card = propose_card(["n", "t", "list", "b"], ["BIGINT", "VARCHAR", "INTEGER[]", "BOOLEAN"],
                        typed=True)  # fmt: skip
    assert card == {
        "person": None,
        "neighbours": None,
        "columns": [
            {"name": "n", "type": "integer", "low": None, "high": None},
            {"name": "t", "type": "category", "values": None},
            {"name": "b", "type": "boolean"},
        ],
    }
    places = [line.split()[0].rstrip(":") for line in missing(card)]
    expected = ["/person", "/neighbours", "/columns/0/low", "/columns/0/high", "/columns/1/values"]
    assert places == expected
