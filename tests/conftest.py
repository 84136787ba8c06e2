"""Ledgers, servers and people that the tests share."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.bursard import Ledger
from tests.order import longest_first
from tests.postgres import PostgresServer
from tests.served import starts_a_server
from tests.server import World, new_ledger, some_rows

# The time of an example, and of generating one, depends on the load of the machine.
settings.register_profile(
    "quiet", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
# For `make check`: every property is tried, with fewer examples.
settings.register_profile("quick", parent=settings.get_profile("quiet"), max_examples=10)
settings.load_profile("quiet")

STORES = ["sqlite", "postgresql"]
PEOPLE = {"ada": "analyst", "bob": "analyst", "vera": "viewer"}


def pytest_report_header(config: pytest.Config) -> str | None:
    """With several workers pytest does not report that tests were left out."""
    if config.option.markexpr != "not audit":
        return None
    return "left out: more cases of the audits, marked `audit`; `make audit` runs them"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = longest_first(items)
    for item in items:
        if starts_a_server(item):
            item.add_marker("served")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL that keeps what it has committed."""
    server = PostgresServer.start(fsync=True)
    yield server
    server.stop()


@pytest.fixture(params=STORES)
def store_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(store_kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Ledger]:
    """A ledger for a single test, without people."""
    data = tmp_path / "data"
    data.mkdir()
    postgres = request.getfixturevalue("postgres") if store_kind == "postgresql" else None
    ledger = new_ledger(store_kind, tmp_path / "ledger", data, postgres)
    yield ledger
    ledger.stop()


Template = Callable[[str, Path], World]
Counts = Callable[[str, int], None]


@pytest.fixture
def counts(record_property: Callable[[str, object], None]) -> Counts:
    """Adds to a number that is printed when all tests are done: `counts("charges", 3)`."""
    return lambda name, number: record_property(f"counts {name}", number)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    sums: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "call":
                for name, number in report.user_properties:
                    if name.startswith("counts "):
                        sums[name.removeprefix("counts ")] += int(number)
    if sums:
        terminalreporter.section("counts")
        for name, number in sorted(sums.items()):
            terminalreporter.write_line(f"{name}: {number}")


@pytest.fixture(scope="session")
def peopled(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Template:
    """Makes worlds as copies of one template per store.

    Each has ada, bob and vera, and the dataset `people`. Ada and bob may spend 1 each, and all
    together 100.
    """
    templates: dict[str, World] = {}

    def copy(kind: str, folder: Path) -> World:
        server = request.getfixturevalue("postgres") if kind == "postgresql" else None
        if kind not in templates:
            place = tmp_path_factory.mktemp(kind)
            (place / "data").mkdir()
            world = World(new_ledger(kind, place / "ledger", place / "data", server))
            for name, role in PEOPLE.items():
                world.person(name, role)
            world.dataset(world.write_csv(some_rows()), name="people")
            world.grant("people", "*", 100)
            world.grant("people", "ada", 1)
            world.grant("people", "bob", 1)
            world.ledger.stop()
            templates[kind] = world
        template = templates[kind]
        return World(template.ledger.copy(folder, server), template.people)

    return copy


@pytest.fixture
def world(peopled: Template, store_kind: str, tmp_path: Path) -> Iterator[World]:
    """A world for a single test, on each store in turn; its first server starts when needed."""
    made = peopled(store_kind, tmp_path / "ledger")
    yield made
    made.ledger.stop()


@pytest.fixture(scope="module")
def live(peopled: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world on SQLite that the tests of one file share; each test makes what it changes."""
    made = peopled("sqlite", tmp_path_factory.mktemp("live") / "ledger")
    yield made
    made.ledger.stop()


@pytest.fixture(scope="module", params=STORES)
def live_on_each(
    peopled: Template, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[World]:
    """A world on each store in turn, shared by the tests of one file."""
    made = peopled(request.param, tmp_path_factory.mktemp("live") / "ledger")
    yield made
    made.ledger.stop()
