from pathlib import Path

import pytest

from app.demo.populate import populate
from app.settings import Settings, SettingsError


def test_the_demo_uses_only_an_empty_folder_or_its_own(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    settings = Settings.from_environment({"BURSAR_HOME": str(home)})
    other = home / "something"
    other.write_text("not the demo's")
    with pytest.raises(SettingsError, match="does not belong to the demo"):
        populate(settings)
    other.unlink()
    assert populate(settings) == populate(settings)
