"""Write the golden files; with --check, compare them and print the differences."""

import argparse
import gc
import os
import sys
import tempfile
from pathlib import Path

from tests.golden import fixed

# The last digits of linear algebra depend on the processor's kernel. Every processor with AVX2 can
# run this one; it is chosen before numpy is loaded.
os.environ["OPENBLAS_CORETYPE"] = "Haswell"
fixed.install()  # before the app is imported, which draws some randomness

from tests.golden.compare import FOLDER, NAMES, difference  # noqa: E402
from tests.golden.files import write  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, and change nothing")
    parser.add_argument("--to", type=Path, default=FOLDER, help="another folder to write to")
    given = parser.parse_args()
    if not given.check:
        write(given.to)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        found = [difference(FOLDER / name, Path(folder) / name) for name in NAMES]
    print("\n".join(each for each in found if each) or "All golden files are equal.")
    return int(any(found))


if __name__ == "__main__":
    code = main()
    # The app froze the collector, and DuckDB would report false leaks.
    gc.unfreeze()
    sys.stdout.flush()
    os._exit(code)
