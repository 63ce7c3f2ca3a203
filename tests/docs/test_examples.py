"""Every Python example runs, page by page, and prints what its comments say."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tensorplay.database.csv_text import parse_results, parse_untuned

Blocks = Callable[[Path, str], list[tuple[int, str]]]

_PRINTED = re.compile(r"^ *print\(.*\)  # (?P<output>.+)$", re.MULTILINE)


def _program(page: Path, blocks: Blocks) -> str:
    """Return the examples in the page's own lines, so that a traceback names the line of the page."""
    lines = [""] * (page.read_text(encoding="utf-8").count("\n") + 1)
    for start, text in blocks(page, "python"):
        block = text.splitlines()
        lines[start : start + len(block)] = block
    return "\n".join(lines)


@pytest.mark.timeout(120)
def test_the_examples_of_a_page_run_in_order_and_print_what_they_say(
    python_page: Path, blocks: Blocks, missing_lines: Callable[[list[str], str], list[str]], tmp_path: Path
) -> None:
    program = _program(python_page, blocks)
    script = tmp_path / python_page.name
    script.write_text(program, encoding="utf-8")
    environ = os.environ | {"TP_TUNABLEOP_MAX_TUNING_DURATION_MS": "2"}
    command = [sys.executable, "-P", "-W", "error", script.name]
    ended = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    assert missing_lines(_PRINTED.findall(program), ended.stdout) == [], ended.stdout


def test_an_example_that_prints_something_else_is_found(missing_lines: Callable[[list[str], str], list[str]]) -> None:
    assert missing_lines(["a * c", "2"], "a b c\nother\n2\n") == []
    assert missing_lines(["2", "a * c"], "a b c\n2\n") == ["a * c"]
    assert missing_lines(["[1]"], "1\n") == ["[1]"]


def test_every_line_of_an_example_file_can_be_read(csv_page: Path, blocks: Blocks) -> None:
    for start, text in blocks(csv_page, "csv"):
        results, untuned = parse_results(text), parse_untuned(text)
        bad = untuned.bad_lines if untuned.signatures else results.bad_lines
        assert bad == (), f"{csv_page.name}, the block after line {start}"
