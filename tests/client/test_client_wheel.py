"""The client's wheel holds everything that it needs, and nothing of the server."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "client"],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for name in tracked:
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((TOP / name).read_bytes())
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([*pip, *options, str(source / "client")], check=True)
    (built,) = folder.glob("bursar-*.whl")
    return built


def test_the_wheel_has_the_package_and_its_types(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "bursar/py.typed" in names
    assert "bursar/bodies.py" in names
    assert "bursar/results/show/svg.py" in names
    folders = {name.split("/")[0] for name in names}
    assert folders == {"bursar", f"{wheel.name.split('-py3')[0]}.dist-info"}


def test_the_client_works_from_its_wheel_alone(wheel: Path) -> None:
    """Only the wheel and the packages of the environment are on the path, not the checkout."""
    code = (
        "import sys; sys.path = [p for p in sys.path if 'client' not in p]\n"
        f"sys.path.insert(0, {str(wheel)!r})\n"
        "import bursar; assert '.whl' in bursar.__file__, bursar.__file__\n"
        "from bursar import col\n"
        "print((col.age >= 18).body)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=wheel.parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "{'column': 'age', 'op': '>=', 'value': 18}\n"
