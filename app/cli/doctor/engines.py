"""Engines: DuckDB loads, and every named connection answers within a few seconds."""

from collections.abc import Iterator

from app.cli.doctor.result import CheckResult, failed, ok, warning
from app.settings import Settings


def check_engines(settings: Settings) -> Iterator[CheckResult]:
    yield _duckdb(settings)
    yield from _connections(settings)


def _duckdb(settings: Settings) -> CheckResult:
    try:
        import duckdb

        with duckdb.connect(
            ":memory:", config={"memory_limit": settings.engine_memory}
        ) as connection:
            answer = connection.execute("SELECT 6 * 7").fetchone()
    except Exception:  # noqa: BLE001  # a broken package may raise anything
        answer = None
    if answer != (42,):
        advice = "Install the locked packages again; check BURSAR_ENGINE_MEMORY."
        return failed("DuckDB", "it does not load or answer.", advice)
    return ok("DuckDB", "it loads and answers.")


def _connections(settings: Settings) -> Iterator[CheckResult]:
    from app.engines.remote.answering import ANSWER_SECONDS, has_spark, silent
    from app.engines.remote.connections import Unusable, read_connections

    try:
        connections = read_connections(settings.connections)
    except Unusable as error:
        yield failed("connections", str(error), "Correct the file.")
        return
    quiet = silent(connections)
    for name, connection in sorted(connections.items()):
        check = f"connection {name}"
        if connection.engine == "spark" and not has_spark():
            advice = "Run `pip install 'bursar-server[spark]'`."
            yield warning(check, "the package for Spark is not installed.", advice)
        if name in quiet:
            text = f"{connection.engine} does not answer within {ANSWER_SECONDS} s."
            yield failed(check, text, "Check its address in BURSAR_CONNECTIONS, and the network.")
        else:
            yield ok(check, f"{connection.engine} answers.")
