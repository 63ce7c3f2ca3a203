#!/usr/bin/env python3
"""Write the table of settings into docs/settings.md, from where they are declared.

With `--check`, write nothing, and end with 1 when the page is not up to date.
"""

import argparse
import sys
from pathlib import Path

from tensorplay.runtime.setting import Setting
from tensorplay.runtime.settings_table import SETTINGS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "settings.md"
START = "<!-- made by scripts/make_settings_table.py; do not edit by hand -->\n"
END = "<!-- end -->"


def table() -> str:
    """Return the table as Markdown."""
    head = ("| Setting | Variable | Default | Allowed | What it does |", "| --- | --- | --- | --- | --- |")
    return "\n".join((*head, *map(_row, SETTINGS))) + "\n"


def with_table(text: str) -> str:
    """Return the page with the table between its two marks; `ValueError` when it has none."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise ValueError(f"{PAGE.name} has lost its marks, {START.strip()} and {END}")
    return f"{before}{start}\n{table()}\n{end}{after}"


def main() -> int:
    """Write or check; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail when the page is not up to date")
    is_check = parser.parse_args().check
    before = PAGE.read_text(encoding="utf-8")
    after = with_table(before)
    if is_check and after != before:
        sys.stderr.write("docs/settings.md is not up to date: run .venv/bin/python scripts/make_settings_table.py\n")
        return 1
    if not is_check:
        PAGE.write_text(after, encoding="utf-8")
    return 0


def _row(setting: Setting) -> str:
    variables = "<br>".join(f"`{variable}`" for variable in setting.variables)
    device = "" if setting.device == "all" else f" Only on {setting.device}."
    allowed = "on or off" if setting.kind.name == "boolean" else setting.allowed
    cells = (f"`{setting.name}`", variables, _default(setting), _plain(allowed), _plain(setting.help + device))
    return "| " + " | ".join(cells) + " |"


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is, in one cell."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("_", "\\_")


def _default(setting: Setting) -> str:
    value = setting.default
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None or value in {"", ()}:
        return ""
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


if __name__ == "__main__":
    sys.exit(main())
