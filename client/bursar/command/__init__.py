"""The program `bursar`: ask private data from a terminal."""

import sys


def main() -> None:
    """Run the program. Errors are one or two lines, and the exit code names their sort."""
    try:
        from bursar.command.program import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "click"):
            raise
        sys.stderr.write(
            f"bursar: the package {error.name} is not installed.\n"
            "        Type: pip install 'bursar[command]'\n"
        )
        raise SystemExit(2) from None
    raise SystemExit(run())
