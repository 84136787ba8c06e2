"""Write requirements.lock from pyproject.toml; for maintainers, who have `uv` on their path.

One file, three parts: what the service runs on and is built with, what development adds, and Apache
Spark, which tests start as a server. The first two come from one resolution, so a package has the
same version in either; Spark lies in a folder of its own, for its package is called as the thin
client's is. The file holds versions and hashes for every system and no address: where packages come
from is the installer's business.
"""

import subprocess
import tomllib
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
MARKER = "# --- development ---"
SPARK_MARKER = "# --- spark ---"
SPARK = ["pyspark>=4.2,<4.3"]
COMPILE = [
    *("uv", "pip", "compile", "--quiet", "-"),
    *("--universal", "--python-version", "3.11"),
    *("--fork-strategy", "fewest"),  # one version for every Python: the one that is tested
    *("--generate-hashes", "--no-header", "--no-annotate"),
    *("--no-emit-index-url", "--no-emit-find-links"),
]


def main() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())
    build = project["build-system"]["requires"]  # the project itself is installed without isolation
    everything = resolve(build, "pyproject.toml", "--extra", "dev")
    versions = [pin.split("\\")[0].strip() for pin in everything]  # markers kept, hashes not
    constraints = TOP / ".constraints.txt"
    try:
        constraints.write_text("\n".join(versions))
        needed = set(map(name, resolve(build, "pyproject.toml", "--constraints", constraints.name)))
    finally:
        constraints.unlink(missing_ok=True)
    # As all together have it: what some system needs to run may be what all need to develop.
    runtime = [pin for pin in everything if name(pin) in needed]
    development = [pin for pin in everything if name(pin) not in needed]
    spark = [f"{SPARK_MARKER}\n", "".join(resolve(SPARK))]
    lines = ["".join(runtime), f"{MARKER}\n", "".join(development), *spark]
    (TOP / "requirements.lock").write_text("".join(lines))


def name(pin: str) -> str:
    return pin.split("==")[0]


def resolve(build: list[str], *options: str) -> list[str]:
    """The pins, each one text: the requirement's line and its hashes' lines."""
    done = subprocess.run(  # noqa: S603
        [*COMPILE, *options],
        cwd=TOP,
        input="\n".join(build),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    pins: list[str] = []
    for line in done.stdout.splitlines(keepends=True):
        if line.startswith(" "):
            pins[-1] += line
        else:
            pins.append(line)
    return pins


if __name__ == "__main__":
    main()
