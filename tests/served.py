"""The tests that start a server of any kind; `make check` leaves them out.

The rule uses folder, fixture and parameter, so that it covers new tests without a change.
"""

import pytest

FOLDERS = ("end_to_end/", "recipes/", "cli/", "harness/", "engines/remote/", "operations/")
FILES = (
    "client/test_own_suite.py",
    "docs/test_fresh_clone.py",
    "docs/test_guide.py",
    "docs/test_monitoring.py",
    "engines/files/test_stopping.py",
    "engines/test_every_engine.py",
    "house/test_operations.py",
    "house/test_readme.py",
    "house/test_wheel.py",
)
FIXTURES = {"live", "live_on_each", "migrated_postgres", "peopled", "postgres", "store", "world"}


def starts_a_server(item: pytest.Item) -> bool:
    path = item.nodeid.split("::")[0].removeprefix("tests/")
    if path.startswith((*FOLDERS, *FILES)):
        return True
    if FIXTURES & set(getattr(item, "fixturenames", ())):
        return True
    parameters = getattr(item, "callspec", None)
    return parameters is not None and "postgresql" in map(str, parameters.params.values())
