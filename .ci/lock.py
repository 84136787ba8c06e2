"""Write requirements.lock from pyproject.toml; for maintainers, who have `uv` on their path.

The file has three parts. The first has the packages to run and build the service and the client,
with its command and with pandas and Arrow for its frames. The second has those that development
adds, the third Apache Spark, which tests start as a server. The first two come from one resolution,
so a package has the same version in both. Spark is installed in its own folder, because
its package has the name of the thin client's. `client/oldest.lock` and `newest.lock` have the
packages for the client's own suite. The files hold versions and hashes for every system and no
address: the installer decides where packages come from. Versions of the present file are kept where
they can be; delete it first to renew all of them.
"""

import subprocess
import tempfile
import tomllib
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
LOCK = TOP / "requirements.lock"
MARKER = "# --- development ---"
SPARK_MARKER = "# --- spark ---"
SPARK = ["pyspark>=4.2,<4.3"]
COMPILE = [
    *("uv", "pip", "compile", "--quiet", "-"),
    *("--universal", "--python-version", "3.11"),
    *("--fork-strategy", "fewest"),  # one version for every Python: the tested one
    *("--generate-hashes", "--no-header", "--no-annotate"),
    *("--no-emit-index-url", "--no-emit-find-links"),
]


def main() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())
    client = tomllib.loads((TOP / "client" / "pyproject.toml").read_text())["project"]
    build = [
        *project["build-system"]["requires"],  # the project itself is installed without isolation
        *client["dependencies"],
        *client["optional-dependencies"]["command"],
        *(each for each in client["optional-dependencies"]["frames"] if "polars" not in each),
    ]
    everything = resolve(build, "pyproject.toml", "--extra", "dev")
    versions = [pin.split("\\")[0].strip() for pin in everything]  # markers kept, hashes not
    constraints = TOP / ".constraints.txt"
    try:
        constraints.write_text("\n".join(versions))
        needed = set(map(name, resolve(build, "pyproject.toml", "--constraints", constraints.name)))
    finally:
        constraints.unlink(missing_ok=True)
    # Versions of the whole resolution: a runtime package of one system may be a development package
    # of all.
    runtime = [pin for pin in everything if name(pin) in needed]
    development = [pin for pin in everything if name(pin) not in needed]
    spark = [f"{SPARK_MARKER}\n", "".join(resolve(SPARK))]
    lines = ["".join(runtime), f"{MARKER}\n", "".join(development), *spark]
    LOCK.write_text("".join(lines))
    write_client_lock(TOP / "client" / "oldest.lock", "lowest-direct")
    write_client_lock(TOP / "client" / "newest.lock", "highest")


def write_client_lock(path: Path, resolution: str) -> None:
    """Packages of the client with all its extras, for its own suite."""
    extras = ("--extra", "command", "--extra", "frames")
    path.unlink(missing_ok=True)
    command = [part for part in COMPILE if part != "-"]
    options = ("--resolution", resolution, "--output-file", str(path), "client/pyproject.toml")
    subprocess.run([*command, *options, *extras], cwd=TOP, check=True)  # noqa: S603


def name(pin: str) -> str:
    return pin.split("==")[0]


def resolve(build: list[str], *options: str) -> list[str]:
    """Pins, each as one text: the requirement's line and the lines of its hashes."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "requirements.txt"
        if LOCK.exists():
            target.write_text(LOCK.read_text())  # preferred versions
        subprocess.run(  # noqa: S603
            [*COMPILE, "--output-file", str(target), *options],
            cwd=TOP,
            input="\n".join(build),
            stdout=subprocess.DEVNULL,
            text=True,
            check=True,
        )
        lines = target.read_text().splitlines(keepends=True)
    pins: list[str] = []
    for line in lines:
        if line.startswith(" "):
            pins[-1] += line
        else:
            pins.append(line)
    return pins


if __name__ == "__main__":
    main()
