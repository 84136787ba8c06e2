"""Lists of datasets, of made-up rows, and of questions asked before."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bursar.ask.cards import Card
from bursar.ask.nearest import did_you_mean
from bursar.errors import BadQuestion, NoGrant, NotFound
from bursar.http.flow import Call, Flow, quoted, send
from bursar.results.budgets import pages
from bursar.results.show import html
from bursar.results.show.answer import text_table
from bursar.results.tables import Row, Table, columns_of


@dataclass(frozen=True, repr=False)
class Listing(Table):
    """Rows with a heading."""

    heading: str
    items: tuple[Row, ...]

    def rows(self) -> list[Row]:
        return list(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return "\n".join([self.heading, *text_table(self.rows())])

    def _repr_html_(self) -> str:
        rows = self.rows()
        return html.box(html.title(self.heading), html.table(rows, columns_of(rows)))


def datasets_flow() -> Flow[Listing]:
    cards = [Card.read(item) for item in (yield from pages("/v1/datasets", {}))]
    rows = tuple(
        {
            "name": card.name,
            "description": card.description,
            "columns": len(card.columns),
            "person": card.person,
            "status": card.members["status"],
        }
        for card in cards
    )
    return Listing("Datasets that you may ask about", rows)


def card_flow(dataset: str) -> Flow[Card]:
    named: object = dataset
    if not isinstance(named, str):
        kind = type(named).__name__
        raise BadQuestion(f"A dataset has a name, not a {kind}.", hint='For example: b["census"]')
    try:
        reply = yield from send(Call("GET", f"/v1/datasets/{quoted(dataset)}"))
    except (NotFound, NoGrant) as error:
        names = [item["name"] for item in (yield from pages("/v1/datasets", {}))]
        near = did_you_mean(dataset, names)
        text = f"You have no dataset '{dataset}'{near or '.'}"
        listed = "" if near else f"You may ask about {', '.join(names) or 'nothing yet'}."
        raise type(error)(error.status, {**error.members, "detail": text}, hint=listed) from None
    return Card.read(reply.json())


def sample_flow(dataset: str, rows: int) -> Flow[Listing]:
    path = f"/v1/datasets/{quoted(dataset)}/sample"
    reply = yield from send(Call("GET", path, parameters={"rows": rows}))
    return Listing(f"Made-up rows of {dataset}: nobody in them exists", tuple(reply.json()["rows"]))


def history_flow(filters: Mapping[str, Any]) -> Flow[Listing]:
    items = yield from pages("/v1/queries", filters)
    rows = tuple(
        {
            "id": item["id"],
            "asked_at": item["asked_at"],
            "dataset": item["dataset"],
            "kind": ((item.get("question") or {}).get("query") or {}).get("kind"),
            "status": item["status"],
            "epsilon": item["price"]["epsilon"],
            "delta": item["price"]["delta"],
            "entry": item["receipt"]["entry"],
        }
        for item in items
    )
    return Listing("Questions asked before", rows)


def columns_listing(card: Card, *, all_values: bool = False) -> Listing:
    rows = tuple(
        {
            "column": column.name,
            "type": column.type,
            "values": ", ".join(column.values) if all_values and column.values else column.range,
            "description": column.description,
        }
        for column in card.columns
    )
    return Listing(f"{card.name}: {card.description}", rows)
