"""Settings: every variable is known and valid, and none weakens a promise."""

import os
import re
from collections.abc import Iterator

from app.cli.doctor.result import CheckResult, failed, ok, warning
from app.cli.serving import cautions
from app.settings import Settings, SettingsError

CHECK = "settings"
_NAME = re.compile(r"BURSAR_[A-Z_]+")


def check_settings() -> tuple[Settings | None, list[CheckResult]]:
    """The settings, or None if one is wrong; every wrong one is named."""
    variables = {name: text for name, text in os.environ.items() if text}
    ours = [name for name in variables if name.startswith("BURSAR_")]
    wrong = list(_wrong(variables))
    if wrong:
        advice = "See docs/settings.md."
        return None, [failed(CHECK, message, advice) for message in wrong]
    settings = Settings.from_environment(variables)
    results = [warning(CHECK, message, "See docs/settings.md.") for message in cautions(settings)]
    return settings, results or [
        ok(CHECK, f"all {len(ours)} variables that are set are known and valid.")
    ]


def _wrong(variables: dict[str, str]) -> Iterator[str]:
    """Messages about all wrong variables: each is left out once it is reported."""
    left = dict(variables)
    while True:
        try:
            Settings.from_environment(left)
            return
        except SettingsError as error:
            yield str(error)
            named = _NAME.search(str(error))
            if named is None or not {named[0], f"{named[0]}_FILE"} & left.keys():
                return
            left.pop(named[0], None)
            left.pop(f"{named[0]}_FILE", None)  # the wrong value may have come from its file
