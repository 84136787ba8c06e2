"""Commands as docs/operations.md shows them, and a shell that runs them."""

import os
import re
import subprocess
import sys
from pathlib import Path

from sqlalchemy import make_url

from tests.bursard import Ledger, environment_with
from tests.house.documentation import DOCS, section
from tests.postgres import find_binaries

PAGE = DOCS / "operations.md"
_COMMAND = re.compile(r"^\$ (.*)$|`((?:bursard|pg_restore|pg_dump) [^`]*)`", re.MULTILINE)


def command(title: str, beginning: str) -> str:
    """The first command of a section with this beginning."""
    shown = [block or inline for block, inline in _COMMAND.findall(section(PAGE, title))]
    matching = [line for line in shown if line.startswith(beginning)]
    assert matching, f"the section {title} shows no {beginning}: {shown}"
    return str(matching[0])


def shell(
    line: str, ledger: Ledger, folder: Path, code: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run a line for this ledger in `folder`, with the programs of Python and PostgreSQL."""
    environment = environment_with(ledger.environment())
    programs = [Path(sys.executable).parent, find_binaries()]
    environment["PATH"] = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    if ledger.database is not None:
        url = make_url(ledger.database).set(drivername="postgresql")
        environment["LEDGER_URL"] = url.render_as_string(hide_password=False)
    done = subprocess.run(
        ["/bin/sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == code, (line, done.stdout, done.stderr)
    return done
