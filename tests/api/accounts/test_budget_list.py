"""One request for budgets looks at a limited number of them, and its cursor goes on from there."""

from types import SimpleNamespace
from typing import Any

import pytest

from app.api.accounts import budget_list
from app.api.http.wire import cursor_place


def test_a_page_ends_at_the_limit_of_budgets_and_the_next_begins_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget_list, "CHUNK", 2)
    monkeypatch.setattr(budget_list, "READS_MAX", 2)
    unused: Any = SimpleNamespace(account=SimpleNamespace(used=0.25))
    rows = [(f"b/{number}", unused) for number in range(5)]

    def read(*, after: str, limit: int, **_: object) -> list[tuple[str, Any]]:
        return [row for row in rows if row[0] > after][:limit]

    deps: Any = SimpleNamespace(budgets=SimpleNamespace(all=read))
    items, cursor = budget_list.page_of(deps, None, None, 0.5, "", 10)
    assert (items, cursor_place(cursor, str)) == ([], ("b/3",))
    assert budget_list.page_of(deps, None, None, 0.5, "b/3", 10) == ([], None)
