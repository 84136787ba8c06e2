"""Draft the card of a source from the names and types of its columns; reads no value."""

from dataclasses import dataclass

from app.access import Principal, Role
from app.actions.datasets.propose_card import Json, missing, propose_card
from app.data.card import Source
from app.ports.engines import Engines


@dataclass(frozen=True, slots=True)
class CardDraft:
    """A card with null where somebody must decide, what is missing, and columns without a type."""

    card: Json
    missing: list[str]
    left_out: list[str]


@dataclass(slots=True)
class DraftCard:
    engines: Engines

    def __call__(self, principal: Principal, source: Source) -> CardDraft:
        principal.must_be(Role.ADMIN)
        columns = self.engines.engine(source.engine).columns(source)
        card = propose_card(columns.names, columns.types, typed=columns.typed)
        proposed = {column["name"] for column in card["columns"]}
        left_out = [name for name in columns.names if name not in proposed]
        return CardDraft(card, missing(card), left_out)
