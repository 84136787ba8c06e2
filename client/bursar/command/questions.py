"""The commands about questions: price, ask, rehearse, sql and plan."""

import inspect
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from bursar import Client, Dataset, Question
from bursar.ask.kinds import Kinds
from bursar.ask.nearest import did_you_mean
from bursar.command import texts
from bursar.command.options import as_options
from bursar.command.printing import note, print_json, print_table, print_text
from bursar.command.session import client
from bursar.errors import BadQuestion, BudgetExhausted
from bursar.results.answers import Answer
from bursar.results.previews import PlanPreview, read_previews
from bursar.results.show.answer import price_line
from bursar.results.show.preview import preview_text

DatasetName = Annotated[str, typer.Argument(help="The dataset.", metavar="DATASET")]
Kind = Annotated[str, typer.Argument(help="count, mean, median, histogram, ...", metavar="KIND")]
ColumnName = Annotated[
    str | None, typer.Argument(help="The column, if the kind has one.", metavar="[COLUMN]")
]
Where = Annotated[list[str], typer.Option("-w", "--where", help="A filter: 'age>=65'.")]
By = Annotated[list[str], typer.Option("--by", help="A group: region, or age:0,18,65,120.")]
More = Annotated[list[str], typer.Option("--set", help="Another field: q=0.9, edges=[0,18,120].")]
Epsilon = Annotated[str | None, typer.Option("-e", "--epsilon", help="The price in epsilon.")]
Delta = Annotated[str | None, typer.Option(help="The price in delta, with an epsilon or a rho.")]
Rho = Annotated[str | None, typer.Option(help="The price in rho.")]
Within = Annotated[str | None, typer.Option(help="The error to promise instead of a price.")]
Confidence = Annotated[float | None, typer.Option(help="For intervals and --within; 0.95.")]
MechanismName = Annotated[str | None, typer.Option("-m", "--mechanism", help="By name.")]
Rows = Annotated[int | None, typer.Option(help="Your guess of how many rows there are.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Full = Annotated[bool, typer.Option("--full", help="Print the whole answer as one JSON object.")]
Fresh = Annotated[bool, typer.Option(help="Pay for a new answer, though there is one.")]


def build(
    dataset: Dataset,
    kind: str,
    column: str | None,
    where: list[str],
    by: list[str],
    more: list[str],
) -> Question:
    """The question that was typed."""
    name = kind.replace("-", "_")
    kinds = [n for n, member in vars(Kinds).items() if not n.startswith("_") and callable(member)]
    if name not in kinds:
        near = did_you_mean(name, kinds)
        raise BadQuestion(
            f"There is no kind of question '{kind}'{near or '.'}",
            hint="" if near else f"Kinds are {', '.join(sorted(kinds))}.",
        )
    table = dataset.where(*(texts.condition(dataset.card, text) for text in where))
    method = getattr(table, name)
    fields = texts.settings(more)
    first = next(iter(inspect.signature(method).parameters), None)
    if column is not None:
        if first not in ("column", "outcome"):
            raise BadQuestion(f"A {kind} takes no column.", hint="Filter with -w, group with --by.")
        fields[first] = column
    try:
        question: Question = method(**fields)
    except TypeError:
        takes = list(inspect.signature(method).parameters)
        wrong = next((field for field in fields if field not in takes), None)
        near = "" if wrong is None else did_you_mean(wrong, takes)
        if near:
            raise BadQuestion(f"A {kind} has no field '{wrong}'{near}") from None
        raise BadQuestion(
            f"A {kind} takes {', '.join(takes) or 'nothing'}.",
            hint="Give the column, and other fields with --set NAME=VALUE.",
        ) from None
    groups = [texts.group(dataset.card, text) for text in by]
    return question.by(*groups) if groups else question


def price(
    dataset: DatasetName,
    kind: Kind,
    column: ColumnName = None,
    where: Where = [],  # noqa: B006  # typer copies it
    by: By = [],  # noqa: B006
    more: More = [],  # noqa: B006
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    within: Within = None,
    confidence: Confidence = None,
    mechanism: MechanismName = None,
    rows: Rows = None,
    holder: Annotated[str | None, typer.Option("--as", help="Another account to pay.")] = None,
    as_json: Json = False,
) -> None:
    """Show the price and the expected error of a question, for free."""
    question = build(client()[dataset], kind, column, where, by, more)
    preview = question.preview(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        within=within,
        confidence=confidence,
        mechanism=mechanism,
        rows=rows,
        holder=holder,
    )
    if as_json:
        print_json(preview.members)
    else:
        print_text(as_options(preview_text(preview)))


def ask(
    dataset: DatasetName,
    kind: Kind,
    column: ColumnName = None,
    where: Where = [],  # noqa: B006
    by: By = [],  # noqa: B006
    more: More = [],  # noqa: B006
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    within: Within = None,
    confidence: Confidence = None,
    mechanism: MechanismName = None,
    fresh: Fresh = False,
    as_json: Json = False,
    full: Full = False,
) -> None:
    """Pay for an answer and print it. The same question again is free."""
    question = build(client()[dataset], kind, column, where, by, more)
    answer = question.ask(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        within=within,
        confidence=confidence,
        mechanism=mechanism,
        fresh=fresh,
    )
    show(answer, as_json=as_json, full=full)


def rehearse(
    dataset: DatasetName,
    kind: Kind,
    column: ColumnName = None,
    where: Where = [],  # noqa: B006
    by: By = [],  # noqa: B006
    more: More = [],  # noqa: B006
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    within: Within = None,
    confidence: Confidence = None,
    mechanism: MechanismName = None,
    rows: Rows = None,
    as_json: Json = False,
    full: Full = False,
) -> None:
    """Go the whole way on made-up rows, for free."""
    question = build(client()[dataset], kind, column, where, by, more)
    answer = question.rehearse(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        within=within,
        confidence=confidence,
        mechanism=mechanism,
        rows=rows,
    )
    show(answer, as_json=as_json, full=full)


def sql(
    text: Annotated[str, typer.Argument(help="A SELECT; it names its dataset.", metavar="SELECT")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    preview: Annotated[bool, typer.Option(help="Only show the price.")] = False,
    fresh: Fresh = False,
    as_json: Json = False,
    full: Full = False,
) -> None:
    """Ask a question in SQL."""
    question = client().sql(text)
    if preview:
        shown = question.preview(epsilon=epsilon, delta=delta, rho=rho)
        if as_json:
            print_json(shown.members)
        else:
            print_text(as_options(preview_text(shown)))
        return
    answer = question.ask(epsilon=epsilon, delta=delta, rho=rho, fresh=fresh)
    show(answer, as_json=as_json, full=full)


def show(answer: Answer, *, as_json: bool, full: bool = False) -> None:
    if answer.status == "withheld":
        note(f"{answer.question}: withheld; the data are not stable enough")
    if answer.made_up:
        note("MADE-UP ROWS: this says nothing about the data")
    if full:
        print_json(answer.full())
    else:
        print_table(answer, as_json=as_json, heading=answer.question)
    note(price_line(answer))


def plan(
    file: Annotated[Path, typer.Argument(help="A JSON list of questions.", metavar="FILE")],
    epsilon: Epsilon = None,
    do_ask: Annotated[bool, typer.Option("--ask", help="Ask them, if all fit.")] = False,
    as_json: Json = False,
) -> None:
    """Price a file of questions in order, and say where the budget stops."""
    bodies = read_plan(file, epsilon)
    connected = client()
    preview = preview_bodies(connected, bodies)
    if not do_ask:
        print_table(preview, as_json=as_json, heading="plan")
        fit = len(bodies) if preview.stops_at is None else preview.stops_at
        note(f"the budget pays for {fit} of {len(bodies)} questions")
        raise typer.Exit(0 if preview.fits else 3)
    if not preview.fits:
        detail = (
            f"The budget pays for {preview.stops_at} of {len(bodies)} questions: none was asked."
        )
        refusal = preview.items[preview.stops_at or 0].refusal or {}
        members = {**refusal, "type": "/problems/budget-exhausted", "detail": detail}
        raise BudgetExhausted(402, members, hint="Lower the prices, or leave out questions.")
    answers = [connected.ask_body(body) for body in bodies]
    if as_json:
        print_json([answer.members for answer in answers])
        return
    for answer in answers:
        show(answer, as_json=False)


def read_plan(file: Path, epsilon: str | None) -> list[dict[str, Any]]:
    """The bodies in a file; those without a price get the one that was typed."""
    try:
        listed = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadQuestion(f"{file} cannot be read: {type(error).__name__}.") from None
    except (ValueError, RecursionError):
        raise BadQuestion(f"{file} is not JSON.", hint="It holds a list of questions.") from None
    if not isinstance(listed, list) or not all(isinstance(body, dict) for body in listed):
        raise BadQuestion(f"{file} holds no list of questions.")
    for number, body in enumerate(listed, start=1):
        if not isinstance(body.get("query", {}), dict):
            raise BadQuestion(
                f"Question {number} of {file}: query is an object.",
                hint='For example: {"dataset": "census", "query": {"kind": "count"}}',
            )
    if epsilon is None:
        return listed
    return [{"privacy": {"epsilon": epsilon}, **body} for body in listed]


def preview_bodies(connected: Client, bodies: list[dict[str, Any]]) -> PlanPreview:
    names = [str(body.get("sql") or (body.get("query") or {}).get("kind")) for body in bodies]
    return read_previews(connected.preview_bodies(bodies), names)
