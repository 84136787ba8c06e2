"""The forecast on the page of an account, from the newest entries."""

import datetime

import pytest

from app.web.pages.account import FORECAST_DAYS, Latest, forecast

NOW = datetime.datetime.now(datetime.UTC)


def step(days_ago: float, used: float) -> dict[str, object]:
    at = NOW - datetime.timedelta(days=days_ago)
    return {"at": at.isoformat().replace("+00:00", "Z"), "used": used, "entry": "charge"}


def days_left(latest: Latest, used: float) -> float:
    until = forecast(latest, used)["until"]
    return (datetime.datetime.fromisoformat(until) - NOW).total_seconds() / 86_400


def test_the_pace_counts_what_was_spent_since_the_oldest_recent_entry() -> None:
    entries = [step(1, 0.5), step(10, 0.3), step(FORECAST_DAYS + 5, 0.1)]
    assert days_left(Latest(entries, complete=True), 0.5) == pytest.approx(0.5 / 0.02, rel=0.01)


def test_a_first_recent_entry_of_a_complete_history_counts_as_spent() -> None:
    entries = [step(1, 0.5), step(10, 0.3)]
    assert days_left(Latest(entries, complete=True), 0.5) == pytest.approx(0.5 / 0.05, rel=0.01)


def test_what_was_spent_before_the_listed_entries_is_not_counted_as_recent() -> None:
    entries = [step(1, 0.5), step(10, 0.3)]
    assert days_left(Latest(entries, complete=False), 0.5) == pytest.approx(0.5 / 0.02, rel=0.01)


@pytest.mark.parametrize(
    ("complete", "text"),
    [
        (True, f"Nothing was spent in the last {FORECAST_DAYS} days."),
        (False, "Nothing was spent lately."),
    ],
)
def test_without_a_recent_entry_nothing_is_forecast(complete: bool, text: str) -> None:
    latest = Latest([step(FORECAST_DAYS + 1, 0.5)], complete=complete)
    assert forecast(latest, 0.5) == {"until": None, "text": text}
