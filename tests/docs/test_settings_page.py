"""The table of settings is the one that the declarations give."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tensorplay.runtime.settings_table import SETTINGS

_REFRESH = "run .venv/bin/python scripts/make_settings_table.py"


def _check(script: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)


def test_the_committed_table_is_up_to_date(root: Path) -> None:
    ended = _check(root / "scripts" / "make_settings_table.py")
    assert ended.returncode == 0, ended.stderr


def test_a_table_that_is_not_up_to_date_is_refused_and_mended(root: Path, tmp_path: Path) -> None:
    script, page = tmp_path / "scripts" / "make_settings_table.py", tmp_path / "docs" / "settings.md"
    for copy, source in ((script, "scripts/make_settings_table.py"), (page, "docs/settings.md")):
        copy.parent.mkdir()
        copy.write_text((root / source).read_text(encoding="utf-8"), encoding="utf-8")
    right = page.read_text(encoding="utf-8")
    page.write_text(right.replace("`min_gain`", "`least_gain`"), encoding="utf-8")
    ended = _check(script)
    assert ended.returncode == 1
    assert _REFRESH in ended.stderr
    subprocess.run([sys.executable, script], check=True)
    assert page.read_text(encoding="utf-8") == right


def test_every_setting_has_a_row_with_every_variable(
    docs: Callable[[str], str], rows: Callable[..., list[list[str]]]
) -> None:
    listed = {row[0].strip("`"): row[1] for row in rows(docs("settings.md"), "Setting", "Variable")}
    assert list(listed) == [setting.name for setting in SETTINGS]
    for setting in SETTINGS:
        assert all(f"`{variable}`" in listed[setting.name] for variable in setting.variables)
