"""The examples of the pages that need a GPU run, each in a process of its own, and print what their comments say."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
_EXAMPLE = re.compile(r"^<!-- needs: (?P<needs>\w+) -->\n```python\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_PRINTED = re.compile(r"^print\(.*\)  # (?P<output>.+)$", re.MULTILINE)


def _examples(page: Path) -> Iterator[Any]:
    text = page.read_text(encoding="utf-8")
    for match in _EXAMPLE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield pytest.param(match["needs"], match["text"], id=f"{page.name}:{line}")


EXAMPLES = [example for page in sorted(ROOT.glob("docs/*.md")) for example in _examples(page)]


@pytest.mark.parametrize(("needs", "text"), EXAMPLES)
def test_it_runs_and_prints_what_it_says(needs: str, text: str, tmp_path: Path) -> None:
    if find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    # A machine may have its packages on the path only.
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == _PRINTED.findall(text)
