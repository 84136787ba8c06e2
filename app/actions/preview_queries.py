"""Price questions without asking them: reads no data, charges nothing, promises nothing kept."""

from dataclasses import dataclass
from typing import Any

from app.access import Principal, Role
from app.accounting.rounding import PICO, wire
from app.errors import AppError, Invalid, LedgerError, NoGrant
from app.interfaces import Catalogue, Ledger
from app.ledger.account import EVERYBODY, NO_GRANT, Account
from app.names import folded
from app.planning.plan import Plan, Planner
from app.planning.question import Question


@dataclass(slots=True)
class PreviewQueries:
    ledger: Ledger
    catalogue: Catalogue
    planner: Planner

    async def __call__(
        self, principal: Principal, questions: list[Question], *, listed: bool
    ) -> list[dict[str, Any]]:
        """Each question as it would be decided after the ones before it were paid."""
        principal.must_be(Role.ANALYST)
        accounts: dict[str, dict[str, Account]] = {}
        previews = []
        for index, question in enumerate(questions):
            try:
                previews.append(await self._preview(principal, question, accounts))
            except Invalid as error:
                raise _at_index(error, index) if listed else error from None
        return previews

    async def _preview(
        self, principal: Principal, question: Question, books: dict[str, dict[str, Account]]
    ) -> dict[str, Any]:
        dataset = await self.catalogue.dataset(question.dataset)
        holders = [folded(principal.name), EVERYBODY]
        if dataset.book_id not in books:
            books[dataset.book_id] = await self.ledger.accounts(dataset.book_id, holders)
        accounts = books[dataset.book_id]
        if any(holder not in accounts for holder in holders):
            raise NoGrant(NO_GRANT)
        plan = self.planner.plan(question, dataset, question.model_dump_json(by_alias=True))
        refusal: AppError | None = None
        try:
            books[dataset.book_id] = {h: accounts[h].admit(plan.loss) for h in holders}
        except LedgerError as error:
            refusal = error
        own = books[dataset.book_id][holders[0]]
        return {
            "dataset": dataset.name,
            "kind": question.query.kind,
            "price": plan.loss.wire(),
            "mechanism": plan.mechanism,
            "theorem": f"{plan.release.theorem}; {own.rule.theorem}",
            "expected_error": _expected_error(plan),
            "groups": plan.release.tally.group_count(),
            "fits": refusal is None and not dataset.closed,
            "refusal": _refusal(refusal, closed=dataset.closed),
            "remaining_after": own.remaining.wire(),
            **wire("largest_epsilon", accounts[holders[0]].largest_epsilon, PICO),
        }


def _expected_error(plan: Plan) -> dict[str, Any]:
    """From the law of the noise alone; None where it depends on what would be released."""
    confidence = plan.question.confidence
    return {
        "half_width": plan.release.half_width(confidence),
        "confidence": confidence,
        "covers": "noise",
    }


def _refusal(error: AppError | None, *, closed: bool) -> dict[str, Any] | None:
    if error is not None:
        return {"detail": error.detail, **error.members}
    return {"detail": "This dataset is closed."} if closed else None


def _at_index(error: Invalid, index: int) -> Invalid:
    moved = [type(each)(f"/{index}{each.pointer}", each.rule) for each in error.fields]
    return type(error)(f"Question {index}: {error.detail}", *moved)
