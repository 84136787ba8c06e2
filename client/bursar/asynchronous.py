"""The asynchronous client: `bursar.connect_async()`. It has the names of the synchronous one."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from bursar import calculator
from bursar.ask import question_flows, streams
from bursar.ask.amounts import Amount
from bursar.ask.datasets import DatasetParts
from bursar.ask.filters import Condition
from bursar.ask.keywords import named_arguments
from bursar.ask.plans import PlanParts, plan_flow, plan_preview_flow
from bursar.ask.question import Assumed, MechanismLike, QuestionParts, price_of
from bursar.errors import NotFound
from bursar.http.rollback_check import SeenCharges
from bursar.http.transport import AsyncTransport, Show
from bursar.login import Login
from bursar.results import budgets, listings
from bursar.results.answers import Answer
from bursar.results.previews import PlanPreview, Preview
from bursar.results.show.budget import budget_html
from bursar.results.show.stream import Shown
from bursar.results.streams import StreamAnswer, StreamPreview, StreamState


@dataclass(frozen=True, repr=False)
class AsyncQuestion(QuestionParts):
    """A question. `preview`, `rehearse` and `sql` text are free; `ask` pays."""

    transport: AsyncTransport = field(compare=False, kw_only=True)

    @named_arguments
    async def ask(
        self,
        *,
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        rho: Amount | None = None,
        within: Amount | None = None,
        confidence: float | None = None,
        mechanism: MechanismLike = None,
        fresh: bool = False,
        key: str | None = None,
    ) -> Answer:
        """Pay for the answer and get it. The same question again is free, unless `fresh`.

        `within=50` asks for the least loss that promises an error of at most 50.
        """
        price = price_of(epsilon, delta, rho, within, confidence, mechanism)
        return await self.transport.run(self.ask_flow(price, fresh=fresh, key=key))

    @named_arguments
    async def preview(
        self,
        *,
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        rho: Amount | None = None,
        within: Amount | None = None,
        confidence: float | None = None,
        mechanism: MechanismLike = None,
        rows: int | None = None,
        epsilons: Sequence[Amount] | None = None,
        holder: str | None = None,
        account: Mapping[str, Any] | None = None,
    ) -> Preview:
        """Price and expected error, for free. `rows` is your guess of how many rows there are.

        `holder` previews for another account that you may see, `account` for one that is made up:
        `account={"currency": "zcdp", "epsilon": 3, "delta": 1e-6}` shows what it would buy.
        """
        price = price_of(epsilon, delta, rho, within, confidence, mechanism)
        return await self.transport.run(
            self.preview_flow(price, Assumed(rows, epsilons, holder, account))
        )

    @named_arguments
    async def rehearse(
        self,
        *,
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        rho: Amount | None = None,
        within: Amount | None = None,
        confidence: float | None = None,
        mechanism: MechanismLike = None,
        rows: int | None = None,
    ) -> Answer:
        """The whole way on made-up rows, for free. The answer says nothing about the data."""
        price = price_of(epsilon, delta, rho, within, confidence, mechanism)
        return await self.transport.run(self.rehearse_flow(price, rows))


@dataclass(frozen=True, repr=False)
class AsyncBudget(budgets.BudgetFigures):
    """A budget with its history and trade-off curve."""

    transport: AsyncTransport = field(compare=False, kw_only=True)

    async def history(self) -> budgets.History:
        """The entries that touched the account, with what was left after each."""
        return await self.transport.run(budgets.history_flow(self))

    async def tradeoff(self) -> budgets.Tradeoff:
        """How much the best attacker could conclude from everything spent so far."""
        return await self.transport.run(budgets.tradeoff_flow(self))

    async def forecast(self) -> budgets.Forecast:
        """When the budget will be used up at the present pace."""
        return (await self.history()).forecast()

    def _repr_html_(self) -> str:
        return budget_html(self)


@dataclass(frozen=True, repr=False)
class AsyncStream(Shown):
    """An open stream."""

    state: StreamState
    transport: AsyncTransport = field(compare=False, repr=False)
    seen: SeenCharges = field(compare=False, repr=False)

    async def ask(self, where: Condition | None = None) -> StreamAnswer:
        """The next answer: for a threshold, about the rows that meet a filter."""
        return await self.transport.run(streams.ask_flow(self.seen, self.state, where))

    async def refresh(self) -> "AsyncStream":
        """Read the state of the stream again."""
        return replace(self, state=await self.transport.run(streams.state_flow(self.state.id)))

    async def close(self) -> None:
        """Close it early. Nothing is given back."""
        await self.transport.run(streams.close_flow(self.state.id))

    def __repr__(self) -> str:
        return repr(self.state)


@dataclass(frozen=True, repr=False)
class AsyncStreamOpener(Shown):
    """A stream that is not open yet."""

    request: streams.StreamRequest
    transport: AsyncTransport = field(compare=False, repr=False)
    seen: SeenCharges = field(compare=False, repr=False)

    async def preview(
        self,
        *,
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        rho: Amount | None = None,
        confidence: float | None = None,
    ) -> StreamPreview:
        body = self.request.body(epsilon=epsilon, delta=delta, rho=rho, confidence=confidence)
        return await self.transport.run(streams.preview_flow(body))

    async def open(
        self,
        *,
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        rho: Amount | None = None,
        confidence: float | None = None,
        key: str | None = None,
    ) -> AsyncStream:
        """Pay for the whole stream and open it."""
        body = self.request.body(epsilon=epsilon, delta=delta, rho=rho, confidence=confidence)
        state = await self.transport.run(streams.open_flow(self.seen, body, key))
        return AsyncStream(state, self.transport, self.seen)

    def __repr__(self) -> str:
        return repr(self.request)


@dataclass(frozen=True, repr=False)
class AsyncDataset(DatasetParts[AsyncQuestion]):
    """A dataset, or the rows of it that meet a filter."""

    transport: AsyncTransport = field(compare=False, kw_only=True)

    async def sample(self, rows: int = 10) -> listings.Listing:
        """Made-up rows, drawn from the public card."""
        return await self.transport.run(listings.sample_flow(self.name, rows))

    @property
    async def budget(self) -> AsyncBudget:
        """Your budget on this dataset, or everybody's (`*`) if your role has none."""
        figures = await self.transport.run(budgets.own_budget_flow(self.name))
        if figures is None:
            detail = f"You have no budget on {self.name}. Ask an administrator for one."
            raise NotFound(404, {"type": "/problems/not-found", "detail": detail})
        return AsyncBudget(**figures, transport=self.transport)

    def above_threshold(
        self, threshold: int, *, crossings: int, asks_max: int
    ) -> AsyncStreamOpener:
        """A stream that says for one count after another whether it reaches a threshold."""
        request = self._above_threshold(threshold, crossings, asks_max)
        return AsyncStreamOpener(request, self.transport, self.empty.seen)

    def running_count(self, *, epochs_max: int) -> AsyncStreamOpener:
        """A stream of the number of rows up to the newest epoch."""
        request = self._running_count(epochs_max)
        return AsyncStreamOpener(request, self.transport, self.empty.seen)


@dataclass(frozen=True, repr=False)
class AsyncPlan(PlanParts[AsyncQuestion]):
    """Questions in order."""

    transport: AsyncTransport = field(compare=False, kw_only=True)

    async def preview(
        self,
        *,
        epsilon: Amount | None = None,
        rho: Amount | None = None,
        rows: int | None = None,
        holder: str | None = None,
        account: Mapping[str, Any] | None = None,
    ) -> PlanPreview:
        """Prices in order, and where the budget stops. The price is for each question.

        `rows` is your guess for each question; `holder` and `account` name who would pay for all.
        """
        price = price_of(epsilon, None, rho, None, None, None)
        assumed = Assumed(rows, None, holder, account)
        return await self.transport.run(plan_preview_flow(self, price, assumed))

    async def ask(
        self, *, epsilon: Amount | None = None, rho: Amount | None = None
    ) -> list[Answer]:
        """Ask all of them in order, if the budget pays for all; otherwise none."""
        price = price_of(epsilon, None, rho, None, None, None)
        return await self.transport.run(plan_flow(self, price))


class AsyncClient:
    """A connection to a server. `b["census"]` is a dataset."""

    def __init__(self, login: Login, verify: Any, show: Show, seen: SeenCharges) -> None:
        self.url = login.url
        self._transport = AsyncTransport(login.url, login.key, verify, show)
        self._seen = seen

    async def dataset(self, name: str) -> AsyncDataset:
        """A dataset with its public card and your budget."""
        card = await self._transport.run(listings.card_flow(name))
        empty = AsyncQuestion(card, None, seen=self._seen, transport=self._transport)
        figures = await self._transport.run(budgets.own_budget_flow(name))
        shown = None if figures is None else budgets.BudgetFigures(**figures)
        return AsyncDataset(card, empty, None, shown, transport=self._transport)

    def __getitem__(self, name: str) -> Awaitable[AsyncDataset]:
        """`census = await b["census"]`."""
        return self.dataset(name)

    async def datasets(self) -> listings.Listing:
        """The datasets that you may ask about."""
        return await self._transport.run(listings.datasets_flow())

    async def budgets(
        self,
        *,
        dataset: str | None = None,
        holder: str | None = None,
        used_above: float | None = None,
    ) -> list[AsyncBudget]:
        """Budgets that you may see, perhaps only those above a share that is used."""
        flow = budgets.budgets_flow(dataset=dataset, holder=holder, used_above=used_above)
        figures = await self._transport.run(flow)
        return [AsyncBudget(**each, transport=self._transport) for each in figures]

    async def budget(self, dataset: str, holder: str) -> AsyncBudget:
        """The budget of a holder: an analyst, `group:name` or `*`."""
        figures = await self._transport.run(budgets.budget_flow(dataset, holder))
        return AsyncBudget(**figures, transport=self._transport)

    def sql(self, text: str) -> AsyncQuestion:
        """A question in SQL; the text names its dataset."""
        return AsyncQuestion(None, None, text, seen=self._seen, transport=self._transport)

    async def ask_body(self, body: Mapping[str, Any], *, key: str | None = None) -> Answer:
        """Ask a question that is JSON already, as `POST /v1/queries` takes it."""
        text = str(body.get("sql") or (body.get("query") or {}).get("kind"))
        return await self._transport.run(question_flows.ask(self._seen, body, text, key))

    async def preview_bodies(self, bodies: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Preview a list of questions that are JSON already."""
        members: Mapping[str, Any] = (
            await self._transport.run(question_flows.preview(bodies))
        ).json()
        return members

    def plan(self, *questions: AsyncQuestion) -> AsyncPlan:
        """Questions in order, to see how far a budget reaches."""
        return AsyncPlan(questions, transport=self._transport)

    async def history(
        self,
        *,
        holder: str | None = None,
        kind: str | None = None,
        status: str | None = None,
        since: str | None = None,
    ) -> listings.Listing:
        """Questions asked before. `since` is a moment such as `2026-11-18T00:00:00Z`."""
        filters = {"holder": holder, "kind": kind, "status": status, "since": since}
        return await self._transport.run(listings.history_flow(filters))

    async def compose(
        self,
        events: Sequence[calculator.Event] | None = None,
        *,
        delta: Amount | None = None,
        epsilon: Amount | None = None,
        target: calculator.Event | None = None,
        accountants: Sequence[calculator.Accountant] | None = None,
        orders: Sequence[Amount] | None = None,
        neighbours: Literal["add_remove", "replace_one"] = "add_remove",
        group_size: int = 1,
    ) -> calculator.Composition:
        """The loss of mechanisms together. See `bursar.calculator` for events and targets."""
        return await self._transport.run(
            calculator.compose_flow(
                events,
                delta=delta,
                epsilon=epsilon,
                to_reach=target,
                accountants=accountants,
                orders=orders,
                neighbours=neighbours,
                group_size=group_size,
            )
        )

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<asynchronous bursar client of {self.url}; .datasets() lists what you may ask>"
