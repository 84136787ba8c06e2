"""The longest test files, which start first.

Otherwise one of two workers gets a long file at the end, and the other waits for it. The list is
sorted by seconds in a timed run of the whole suite, longest first. Other files start after them. An
outdated list only costs time.
"""

from collections.abc import Sequence

import pytest

LONGEST = [
    "end_to_end/time/test_time_audit.py",
    "engines/test_every_engine.py",
    "end_to_end/http/test_openapi.py",
    "end_to_end/time/test_cancelling.py",
    "end_to_end/time/test_progress.py",
    "end_to_end/time/test_long_questions.py",
    "end_to_end/time/test_background_failures.py",
    "end_to_end/audits/test_withholding_audit.py",
    "end_to_end/crashes/test_lost_servers.py",
    "end_to_end/crashes/test_lost_data.py",
    "end_to_end/audits/test_audits.py",
    "end_to_end/crashes/rollback/test_rollback.py",
    "end_to_end/crashes/rollback/test_lost_spend.py",
    "end_to_end/crashes/rollback/test_anchors.py",
    "store/writer/test_random_histories.py",
    "end_to_end/streams/test_running_count.py",
    "end_to_end/streams/test_epochs.py",
    "end_to_end/audits/test_keys_audit.py",
    "end_to_end/crashes/test_stopping.py",
    "mechanisms/smooth_sensitivity/test_rank_statistics.py",
    "end_to_end/audits/test_stream_audits.py",
    "mechanisms/sampling/test_partial_sample.py",
    "engines/sql/test_tally_statement.py",
    "end_to_end/datasets/test_old_versions.py",
    "store/writer/snapshot/test_concurrent_snapshots.py",
    "store/writer/snapshot/test_snapshot.py",
    "end_to_end/budgets/test_ledger.py",
    "end_to_end/crashes/test_stream_crashes.py",
    "end_to_end/crashes/test_crash_points.py",
    "end_to_end/audits/test_regression_audit.py",
    "operations/test_upgrade.py",
    "operations/test_restore.py",
    "operations/test_proxy.py",
    "engines/test_epochs.py",
    "engines/sql/test_blocks.py",
    "engines/sql/test_keys.py",
    "cli/test_dataset_add.py",
    "end_to_end/crashes/test_race.py",
]
_PLACES = {f"tests/{name}": place for place, name in enumerate(LONGEST)}


def longest_first(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Sort files in this order; the tests of one file keep theirs."""
    return sorted(items, key=lambda item: _PLACES.get(item.nodeid.split("::")[0], len(LONGEST)))
