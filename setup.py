"""The one build step that pyproject.toml cannot state: a wheel carries the migrations.

They stay in the top-level folder `migrations`. A wheel has them as `app/migrations`; an editable
install reads them from the checkout. `app/store/migrate.py` looks in both places.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SOURCE = Path("migrations")


class BuildWithMigrations(build_py):
    """Copies the migrations into the built package."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib, "app", "migrations")
        shutil.rmtree(target, ignore_errors=True)  # a migration that was renamed must not stay
        shutil.copytree(SOURCE, target, ignore=shutil.ignore_patterns("__pycache__"))


setup(cmdclass={"build_py": BuildWithMigrations})
