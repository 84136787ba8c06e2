"""The files that take longest, which are begun first: otherwise one of two workers gets a long one
when nothing else is left, and the other waits for it.

By their seconds when the whole suite was timed, longest first. A file that is not here is begun
after them; a list that is out of date costs time and nothing else.
"""

from collections.abc import Sequence

import pytest

LONGEST = [
    "timing/test_time_audit.py",
    "engines/test_every_engine.py",
    "end_to_end/test_openapi.py",
    "end_to_end/test_cancelling.py",
    "end_to_end/test_progress.py",
    "end_to_end/test_long_questions.py",
    "end_to_end/test_withholding_audit.py",
    "end_to_end/test_lost_servers.py",
    "end_to_end/test_audits.py",
    "end_to_end/test_rollback.py",
    "store/test_random_histories.py",
    "end_to_end/test_running_count.py",
    "end_to_end/test_keys_audit.py",
    "end_to_end/test_stopping.py",
    "mechanisms/test_smooth_sensitivity.py",
    "end_to_end/test_stream_audits.py",
    "mechanisms/test_lazy_real.py",
    "engines/test_sql.py",
    "end_to_end/test_old_versions.py",
    "store/test_known.py",
    "end_to_end/test_ledger.py",
    "end_to_end/test_stream_crashes.py",
    "end_to_end/test_crash_points.py",
    "end_to_end/test_regression_audit.py",
    "engines/test_epochs.py",
    "engines/test_blocks.py",
    "engines/test_keys.py",
    "cli/test_dataset_add.py",
    "end_to_end/test_race.py",
]
_PLACES = {f"tests/{name}": place for place, name in enumerate(LONGEST)}


def longest_first(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Files in this order; the tests of one file stay as they are."""
    return sorted(items, key=lambda item: _PLACES.get(item.nodeid.split("::")[0], len(LONGEST)))
