"""A ledger from before currencies, cells and groups: it still takes charges and still verifies."""

import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import MetaData, Table, insert, update

from app.access import Role
from app.accounting.rules.terms import GrantTerms, Terms
from app.errors import BudgetExhausted
from app.ledger.account import EVERYBODY
from app.ledger.chain import FIRST_PREVIOUS, SYSTEM_BOOK, Book, canonical
from app.ledger.orders import PreparedAnswer, State
from app.ledger.verification.lines import from_lines, to_line
from app.ledger.verification.verify import verify
from app.store.administration import Administration
from app.store.analysts import SqlAnalysts
from app.store.budgets import SqlBudgets
from app.store.connect import Database
from app.store.datasets.datasets import SqlDatasets
from app.store.history.history import SqlHistory
from app.store.migrate import check_current, migrate
from tests.queries.cards import card
from tests.store.ledgers import TENTH, Ledger, execute
from tests.store.test_migrations import alembic

LARGEST = 2**63 - 1  # formerly the largest epsilon that could be granted
AT = 1_700_000_000_000_000


class Old:
    """Writer of rows in the form of the first release."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.books = {
            name: Book(name, 0, FIRST_PREVIOUS, 0) for name in (SYSTEM_BOOK, "b_1", "b_2")
        }

    def put(self, table: str, **values: Any) -> None:
        with self.database.writing() as connection:
            found = Table(table, MetaData(), autoload_with=connection)
            connection.execute(insert(found).values(**values))

    def say(self, book: str, kind: str, body: dict[str, Any]) -> None:
        entry = self.books[book].append(kind=kind, actor="admin", at=AT, body=body)
        self.put("entries", **entry._asdict())

    def finish(self) -> None:
        with self.database.writing() as connection:
            books = Table("books", MetaData(), autoload_with=connection)
            for book in self.books.values():
                values = {"seq": book.seq, "head": book.head, "last_at": book.last_at}
                connection.execute(update(books).where(books.c.id == book.id).values(**values))

    def people(self) -> None:
        self.put("installation", id=1, secret="s", catalogue=1)
        for book in self.books:
            self.put("books", id=book, seq=0, head=FIRST_PREVIOUS, last_at=0)
            self.say(SYSTEM_BOOK, "book_opened", {"book": book})
        for name, role in (("admin", "admin"), ("Ann", "analyst")):
            given = {"name": name, "folded": name.lower(), "role": role, "enabled": 1}
            self.put("analysts", id=f"a_{name.lower()}", created_at=AT, **given)
            after = {"role": role}
            self.say(SYSTEM_BOOK, "analyst_created", {"analyst": name, "after": after})

    def dataset(self, number: int, **changes: Any) -> None:
        name, book = f"people {number}", f"b_{number}"
        card_fields = json.loads(card().model_dump_json()) | changes
        source = {"engine": "duckdb", "path": f"{name}.csv"}
        self.put(
            "datasets",
            id=f"d_{number}",
            name=name,
            folded=name,
            description="",
            book_id=book,
            card=canonical(card_fields),
            source=canonical(source),
            version_id=f"v_{number}",
            closed=0,
            created_at=AT,
        )
        given = {"number": 1, "digest": "d", "fingerprint": f"f_{number}", "seed": "s"}
        self.put("versions", id=f"v_{number}", dataset_id=f"d_{number}", created_at=AT, **given)
        self.say(book, "dataset_registered", {"dataset": name, "after": {"card": card_fields}})

    def grant(self, book: str, holder: str, limit: int, *, delta: int = 0, spent: int = 0) -> None:
        currency = "approximate" if delta else "pure"
        after = {"currency": currency, "epsilon_limit": limit, "delta_limit": delta}
        body = {"holder": holder, "before": None, "after": after, "reason": None}
        self.say(book, "grant", body)
        self.put(
            "accounts",
            id=f"{book}/{holder}",
            book_id=book,
            holder=holder,
            shown=holder.title(),
            currency=currency,
            epsilon_limit=limit,
            delta_limit=delta,
            epsilon_spent=spent,
            delta_spent=0,
            version=1,
            updated_at=AT,
        )

    def charge(
        self, number: int, epsilon: int, *, voided: bool = False, answer: str | None = None
    ) -> None:
        said = {"charge": f"q_{number}", "accounts": ["ann", EVERYBODY], "epsilon": epsilon}
        record = {"query": "count", "mechanism": "laplace"}
        about = {"dataset": "people 1", "version": "v_1", "plan": "p"}
        self.say("b_1", "charge", {**said, "delta": 0, **about, **record})
        if voided:
            self.say("b_1", "void", {**said, "delta": 0, "reason": "gone"})
        self.put(
            "charges",
            id=f"q_{number}",
            analyst_id="a_ann",
            request=f"a_ann/key {number}",
            body_hash="body of 3",
            reuse_key=f"reuse {number}",
            dataset_id="d_1",
            version_id="v_1",
            state="voided" if voided else "answered" if answer else "charged",
            answer=answer,
            settled_at=AT if voided or answer else None,
            attempt=1,
            lease_until=0,
            epsilon=epsilon,
            delta=0,
            question="{}",
            charged='{"charged":{"accounts":[{"holder":"Ann"},{"holder":"*"}]}}',
            created_at=AT,
        )


@pytest.fixture
def ledger(empty: Database) -> Iterator[Ledger]:
    """A ledger of the first release, then migrated: Ann has spent 3 of 10 tenths."""
    alembic(empty, "upgrade", "0001")
    old = Old(empty)
    old.people()
    old.dataset(1, cells={"column": "city", "edges": None})
    old.dataset(2, neighbours="replace_one", rows=100)
    old.put("fingerprints", fingerprint="f_1", book_id="b_1")
    old.grant("b_1", EVERYBODY, LARGEST, delta=10**12, spent=3 * TENTH)
    old.grant("b_1", "ann", 10 * TENTH, spent=3 * TENTH)
    old.grant("b_2", EVERYBODY, 20 * TENTH)
    old.grant("b_2", "ann", 10 * TENTH)
    old.charge(1, 3 * TENTH)
    old.charge(2, 2 * TENTH, voided=True)
    old.charge(3, 0, answer='{"value":7}')
    old.finish()
    migrate(empty)
    check_current(empty)
    administration = Administration(empty)
    people = SqlAnalysts(empty, administration)
    dataset = SqlDatasets(empty, administration).find("people 1")
    made = Ledger(
        empty,
        people,
        SqlDatasets(empty, administration),
        SqlBudgets(empty, administration),
        SqlHistory(empty),
        [people.find("Ann")],
        dataset,
    )
    yield made
    made.close()


def sound(ledger: Ledger) -> bool:
    lines = list(ledger.history.snapshot(None))
    report = verify(lines)
    assert report.sound, report.findings
    return verify(from_lines(to_line(line) for line in lines)).sound


def test_a_ledger_of_the_first_release_verifies_after_the_migration(ledger: Ledger) -> None:
    assert sound(ledger)
    mine, everybody = ledger.account("ann"), ledger.account(EVERYBODY)
    assert mine.terms == Terms(10 * TENTH, 0, (10 * TENTH, 0))
    assert mine.balance.common == everybody.balance.common == (3 * TENTH, 0)
    assert everybody.terms.limits == (LARGEST - 1, 10**12), (
        "the old largest limit now means no limit"
    )
    assert ledger.analysts[0].groups == ()
    assert ledger.analysts[0].role is Role.ANALYST


def test_missing_records_of_the_first_release_are_reported_as_not_covered(
    ledger: Ledger,
) -> None:
    report = verify(ledger.history.snapshot(None, stored=True))
    assert report.sound, report.findings
    assert report.not_covered == {
        "answers stored before they were recorded": 2,  # one of them was refunded
        "fingerprints stored before they were recorded": 1,
    }
    ledger.settle(ledger.order(at_once=PreparedAnswer(lambda _: "{}", 0.0)))
    report = verify(ledger.history.snapshot(None, stored=True))
    assert report.sound, report.findings
    assert sum(report.not_covered.values()) == 3, "new charges are covered"
    execute(ledger.database, "DELETE FROM charges WHERE id = 'q_3'")
    execute(ledger.database, "UPDATE charges SET epsilon = 1 WHERE id = 'q_1'")
    findings = verify(ledger.history.snapshot(None, stored=True)).findings
    assert {finding.charge for finding in findings} == {"q_1", "q_3"}


def test_migrated_charges_are_marked_as_their_cards_declare(ledger: Ledger) -> None:
    assert ledger.dataset.celled
    moving = ledger.datasets.find("people 2")
    assert not moving.celled
    found = ledger.budgets.all(holders=("ann",), after="", limit=10)
    assert {b.dataset: b.account.balance.pairs for _, b in found} == {
        "people 1": False,
        "people 2": True,
    }


def test_a_migrated_ledger_takes_cells_and_currencies(ledger: Ledger) -> None:
    ledger.charge(ledger.order(tenths=7, cells=(1,)))
    ledger.charge(ledger.order(tenths=7, cells=(0,)))
    (refusal,) = ledger.settle(ledger.order(tenths=1, cells=(1,)))
    assert isinstance(refusal, BudgetExhausted)
    assert sound(ledger)
    ledger.grant("ann", tenths=20)
    wish = GrantTerms(epsilon=Decimal(5), delta=Decimal("1e-6"))
    carried, _ = ledger.grant("ann", tenths=None, currency="renyi", wish=wish)
    assert carried.balance.common[0] == 3 * TENTH
    assert {cell: spend[0] for cell, spend in carried.balance.cells.items()} == {
        0: 7 * TENTH,
        1: 7 * TENTH,
    }
    assert sound(ledger)
    other = Ledger(
        *(ledger.database, ledger.people, ledger.datasets, ledger.budgets, ledger.history),
        ledger.analysts,
        ledger.datasets.find("people 2"),
    )
    other.grant("ann", tenths=None, currency="renyi", wish=wish)
    other.charge(other.order(tenths=3))
    other.close()
    assert sound(ledger)


def test_an_old_charge_can_be_taken_over_and_refunded(ledger: Ledger) -> None:
    taken = ledger.order(key="key 1", tenths=3)
    again = ledger.charge(taken)
    assert (again.charge_id, again.attempt) == ("q_1", 2)
    assert again.payers() == ("ann", EVERYBODY)
    ledger.settle(replace(ledger.void(taken, attempt=2), charge_id="q_1"))
    assert ledger.history.one("q_1", analyst_id=None).state is State.VOIDED
    assert ledger.spent() == ledger.spent(None) == 0
    assert sound(ledger)
